/* Course program 10 as it ships: the compiled library of p10_mlp_env.py, and a C program that brings
 * `env.linear` and `env.relu`. Reads the arrays x, w0, b0, w1 and b1 from raw float32 files and prints the
 * ten scores.
 *
 *   bevel compile p10_mlp_env.py -o p10.so
 *   cc p10_main.c -I . -I include -L . -l:p10.so -L build -lbevel_runtime -o p10
 *   ./p10 x.bin w0.bin b0.bin w1.bin b1.bin */
#include "p10.h"

#include <bevel/runtime.h>

#include <stdio.h>
#include <stdlib.h>

static const DLTensor* tensor(const bevel_value* v) {
  return bevel_tensor_view(v->v.tensor);
}

static int32_t linear(const bevel_ctx* ctx, void* self, const bevel_value* args, int32_t count,
                      bevel_value* result) {
  (void)ctx, (void)self, (void)result;
  if (count != 4) return bevel_fail(BEVEL_ERROR_REFUSED, "env.linear takes x, w, b and out");
  const float *x = tensor(&args[0])->data, *w = tensor(&args[1])->data, *b = tensor(&args[2])->data;
  float* out = tensor(&args[3])->data;
  int64_t n = tensor(&args[1])->shape[0], m = tensor(&args[1])->shape[1];
  for (int64_t j = 0; j < n; ++j) {
    float sum = b[j];
    for (int64_t k = 0; k < m; ++k) sum += x[k] * w[j * m + k];
    out[j] = sum;
  }
  return BEVEL_OK;
}

static int32_t relu(const bevel_ctx* ctx, void* self, const bevel_value* args, int32_t count,
                    bevel_value* result) {
  (void)ctx, (void)self, (void)result;
  if (count != 2) return bevel_fail(BEVEL_ERROR_REFUSED, "env.relu takes x and out");
  const float* x = tensor(&args[0])->data;
  float* out = tensor(&args[1])->data;
  for (int64_t i = 0; i < tensor(&args[0])->shape[1]; ++i) out[i] = x[i] > 0 ? x[i] : 0;
  return BEVEL_OK;
}

static float* readFloats(const char* path, size_t count) {
  float* values = malloc(count * sizeof(float));
  FILE* file = fopen(path, "rb");
  if (!file || !values || fread(values, sizeof(float), count, file) != count) {
    fprintf(stderr, "%s: cannot read %zu floats\n", path, count);
    exit(2);
  }
  fclose(file);
  return values;
}

int main(int argc, char** argv) {
  int64_t shapes[5][2] = {{1, 784}, {128, 784}, {128, 0}, {10, 128}, {10, 0}};
  bevel_model* model = NULL;
  bevel_instance* run = NULL;
  if (argc != 6) return 2;
  int32_t status = bevel_register_packed("env.linear", linear, NULL, NULL, 1);
  if (!status) status = bevel_register_packed("env.relu", relu, NULL, NULL, 1);
  if (!status) status = p10_load(&model);
  if (!status) status = bevel_instance_create(model, NULL, &run);
  for (int i = 0; i < 5 && !status; ++i) {
    int rank = shapes[i][1] ? 2 : 1;
    size_t count = (size_t)(shapes[i][0] * (rank == 2 ? shapes[i][1] : 1));
    DLTensor input = {
        readFloats(argv[i + 1], count), {kDLCPU, 0}, rank, {kDLFloat, 32, 1}, shapes[i], NULL, 0};
    status = bevel_set_input(run, i, &input);
  }
  if (!status) status = bevel_run(run);
  if (status) {
    fprintf(stderr, "%s\n", bevel_last_error());
    return 1;
  }
  const DLTensor* scores = bevel_output(run, 0);
  for (int64_t i = 0; i < scores->shape[1]; ++i) printf("%.9g\n", ((const float*)scores->data)[i]);
  bevel_instance_release(run);
  bevel_model_release(model);
  return 0;
}
