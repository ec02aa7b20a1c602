// C API: errors, versions, models, packed functions, pools.
#include "runtime/api.h"

#include <cstring>

using namespace bevel::rt;

#ifndef BEVEL_VERSION
#define BEVEL_VERSION "0.1.0"
#endif

const char* bevel_last_error(void) {
  return lastError();
}
const char* bevel_version(void) {
  return BEVEL_VERSION;
}
uint32_t bevel_abi_version(void) {
  return BEVEL_ABI_VERSION;
}

static Status handOut(Ref<Model> model, bevel_model** out) {
  if (!model) return lastStatus();
  *out = model.leak();
  return BEVEL_OK;
}

int32_t bevel_model_load(const char* path, bevel_model** model) {
  if (!path || !model) return nullArgument("bevel_model_load");
  *model = nullptr;
  return guarded([&] { return handOut(Model::load(path), model); });
}

int32_t bevel_model_from_image(const bevel_image* image, const char* directory, bevel_model** model) {
  if (!image || !model) return nullArgument("bevel_model_from_image");
  *model = nullptr;
  return guarded([&] { return handOut(Model::fromImage(*image, directory ? directory : ""), model); });
}

void bevel_model_retain(bevel_model* model) {
  toModel(model).retain();
}
void bevel_model_release(bevel_model* model) {
  if (model) toModel(model).release();
}

const char* bevel_model_target(const bevel_model* model) {
  return toModel(model).program.targets[0].name;
}
int32_t bevel_model_num_functions(const bevel_model* model) {
  return int32_t(toModel(model).publicFunctions.size());
}

static const Function* publicFunction(const bevel_model* model, int32_t index) {
  auto& functions = toModel(model).publicFunctions;
  return index >= 0 && size_t(index) < functions.size() ? functions[size_t(index)] : nullptr;
}

const char* bevel_model_function_name(const bevel_model* model, int32_t function) {
  const Function* f = publicFunction(model, function);
  return f ? f->name : nullptr;
}

int32_t bevel_model_find_function(const bevel_model* model, const char* name) {
  for (int32_t i = 0; i < bevel_model_num_functions(model); ++i)
    if (!strcmp(bevel_model_function_name(model, i), name)) return i;
  return -1;
}

int32_t bevel_model_num_inputs(const bevel_model* model, int32_t function) {
  const Function* f = publicFunction(model, function);
  return f ? int32_t(f->params.size()) : -1;
}

int32_t bevel_model_num_outputs(const bevel_model* model, int32_t function) {
  const Function* f = publicFunction(model, function);
  return f ? int32_t(f->results.size()) : -1;
}

static Status describeParam(const std::vector<Param>& params, int32_t index, bevel_param* out) {
  if (!out || index < 0 || size_t(index) >= params.size())
    return fail(BEVEL_ERROR_USAGE, "no input or output of number %d", index);
  const Param& p = params[size_t(index)];
  *out = {p.name,
          int32_t(p.kind),
          p.dtype,
          p.rank,
          p.dims.data(),
          p.dimNames.data(),
          p.defaultConstant != BEVEL_NO_CONSTANT};
  return BEVEL_OK;
}

int32_t bevel_model_input(const bevel_model* model, int32_t function, int32_t index, bevel_param* param) {
  const Function* f = publicFunction(model, function);
  return f ? describeParam(f->params, index, param)
           : fail(BEVEL_ERROR_USAGE, "no function of number %d", function);
}

int32_t bevel_model_output(const bevel_model* model, int32_t function, int32_t index, bevel_param* param) {
  const Function* f = publicFunction(model, function);
  return f ? describeParam(f->results, index, param)
           : fail(BEVEL_ERROR_USAGE, "no function of number %d", function);
}

int32_t bevel_register_packed(const char* name, bevel_packed function, void* self,
                              void (*deleter)(void* self), int32_t override_existing) {
  if (!name || !function) return nullArgument("bevel_register_packed");
  if (!strncmp(name, "vm.", 3))
    return fail(BEVEL_ERROR_USAGE, "names that begin with 'vm.' are the runtime's own");
  return guarded([&] {
    auto made = Ref<PackedFunction>::adopt(new PackedFunction(function, self, deleter));
    Status status = registerPacked(name, made, override_existing != 0);
    if (status) made->disown(); // self stays the caller's
    return status;
  });
}

int32_t bevel_unregister_packed(const char* name) {
  if (!name) return nullArgument("bevel_unregister_packed");
  return guarded([&] { return unregisterPacked(name); });
}

int32_t bevel_call_packed(const char* name, const bevel_value* args, int32_t num_args, bevel_value* result) {
  if (!name || num_args < 0 || (num_args && !args)) return nullArgument("bevel_call_packed");
  return guarded([&] {
    bevel_ctx ctx = makeHostContext();
    return ctx.call_packed(&ctx, name, args, num_args, result);
  });
}

int32_t bevel_fail(int32_t status, const char* message) {
  return failText(status ? status : int32_t(BEVEL_ERROR_INTERNAL), message);
}

int32_t bevel_pool_create(int32_t num_threads, bevel_pool** pool) {
  if (!pool) return nullArgument("bevel_pool_create");
  if (num_threads < 0 || num_threads > 1024)
    return fail(BEVEL_ERROR_USAGE, "a pool of %d threads", num_threads);
  return guarded([&]() -> Status {
    *pool = new ThreadPool(num_threads ? num_threads : availableProcessors());
    return BEVEL_OK;
  });
}

void bevel_pool_release(bevel_pool* pool) {
  if (pool) static_cast<ThreadPool*>(pool)->release();
}
