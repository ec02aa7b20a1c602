// See env.h. Packed functions get their tensors as DLPack views; the last argument is the result, to be
// filled.
#include "env.h"

#include <algorithm>
#include <atomic>

namespace bevel::course {
namespace {

std::atomic<int> linears, relus;

const DLTensor* tensor(const bevel_value& v) {
  if (v.kind != BEVEL_TENSOR) return nullptr;
  const DLTensor* t = bevel_tensor_view(v.v.tensor);
  return t->dtype.code == kDLFloat && t->dtype.bits == 32 ? t : nullptr;
}

float* values(const DLTensor* t) {
  return reinterpret_cast<float*>(static_cast<char*>(t->data) + t->byte_offset);
}

// out = x w' + b: x is 1xm, w nxm, b n, out 1xn.
int32_t linear(const bevel_ctx*, void*, const bevel_value* args, int32_t count, bevel_value*) {
  const DLTensor* t[4] = {};
  for (int i = 0; i < 4 && count == 4; ++i) t[i] = tensor(args[i]);
  if (!t[0] || !t[1] || !t[2] || !t[3] || t[1]->ndim != 2)
    return bevel_fail(BEVEL_ERROR_REFUSED, "env.linear takes x, w, b and out, all of float32");
  int64_t n = t[1]->shape[0], m = t[1]->shape[1];
  const float *x = values(t[0]), *w = values(t[1]), *b = values(t[2]);
  for (int64_t j = 0; j < n; ++j) {
    float sum = b[j];
    for (int64_t k = 0; k < m; ++k) sum += x[k] * w[j * m + k];
    values(t[3])[j] = sum;
  }
  ++linears;
  return BEVEL_OK;
}

int32_t relu(const bevel_ctx*, void*, const bevel_value* args, int32_t count, bevel_value*) {
  const DLTensor* x = count == 2 ? tensor(args[0]) : nullptr;
  const DLTensor* out = count == 2 ? tensor(args[1]) : nullptr;
  if (!x || !out) return bevel_fail(BEVEL_ERROR_REFUSED, "env.relu takes x and out, both of float32");
  int64_t n = 1;
  for (int i = 0; i < x->ndim; ++i) n *= x->shape[i];
  for (int64_t i = 0; i < n; ++i) values(out)[i] = std::max(values(x)[i], 0.0f);
  ++relus;
  return BEVEL_OK;
}

} // namespace

Status registerEnv() {
  const int override = 1;
  linears = relus = 0;
  if (int32_t status = bevel_register_packed("env.linear", linear, nullptr, nullptr, override))
    return fail(runtimeError(status));
  if (int32_t status = bevel_register_packed("env.relu", relu, nullptr, nullptr, override))
    return fail(runtimeError(status));
  return {};
}

int linearCalls() {
  return linears;
}
int reluCalls() {
  return relus;
}

} // namespace bevel::course
