// C API: instances, runs, profile.
#include "runtime/api.h"

#include <algorithm>
#include <cstring>

using namespace bevel::rt;

int32_t bevel_instance_create(bevel_model* model, const bevel_options* options, bevel_instance** instance) {
  if (!model || !instance) return nullArgument("bevel_instance_create");
  *instance = nullptr;
  bevel_options given = {};
  if (options) {
    if (options->size < sizeof(uint32_t) * 2) return fail(BEVEL_ERROR_USAGE, "bevel_options.size is not set");
    memcpy(&given, options,
           std::min<size_t>(options->size, sizeof given)); // a program built for another version
  }
  if (given.num_threads < 0) return fail(BEVEL_ERROR_USAGE, "%d threads", given.num_threads);
  return guarded([&]() -> Status {
    auto made = std::make_unique<Instance>(Ref<Model>::share(&toModel(model)), given);
    if (bevel_model_num_functions(model) > 0) BEVEL_RT_TRY(bevel_select_function(made.get(), 0));
    *instance = made.release();
    return BEVEL_OK;
  });
}

void bevel_instance_release(bevel_instance* instance) {
  if (instance) delete &toInstance(instance);
}

static const Function* selectedFunction(const Instance& instance) {
  auto& functions = instance.model().publicFunctions;
  return size_t(instance.selected) < functions.size() ? functions[size_t(instance.selected)] : nullptr;
}

int32_t bevel_select_function(bevel_instance* handle, int32_t function) {
  if (!handle) return nullArgument("bevel_select_function");
  Instance& instance = toInstance(handle);
  auto& functions = instance.model().publicFunctions;
  if (function < 0 || size_t(function) >= functions.size())
    return fail(BEVEL_ERROR_USAGE, "no function of number %d", function);
  return guarded([&]() -> Status {
    BEVEL_RT_TRY(instance.checkIdle());
    instance.selected = function;
    instance.inputs.assign(functions[size_t(function)]->params.size(), Value());
    instance.outputTargets.assign(functions[size_t(function)]->results.size(), Ref<Tensor>());
    instance.outputs.clear();
    return BEVEL_OK;
  });
}

Status bevel::rt::fromOutside(const bevel_value& raw, Value* value) {
  if (raw.kind == BEVEL_VIEW) {
    if (!raw.v.view) return fail(BEVEL_ERROR_USAGE, "a null view");
    BEVEL_RT_TRY(checkForeign(*raw.v.view));
    *value = Value::of(Tensor::borrow(*raw.v.view));
    return value->isNone() ? Status(BEVEL_ERROR_MEMORY) : BEVEL_OK;
  }
  if (raw.kind < BEVEL_NONE || raw.kind > BEVEL_OBJECT)
    return fail(BEVEL_ERROR_USAGE, "a value of unknown kind %d", raw.kind);
  if (raw.kind >= BEVEL_TENSOR && !raw.v.object) return fail(BEVEL_ERROR_USAGE, "a value with a null handle");
  *value = Value::share(raw);
  return BEVEL_OK;
}

int32_t bevel_set_input_value(bevel_instance* handle, int32_t index, const bevel_value* value) {
  if (!handle || !value) return nullArgument("bevel_set_input_value");
  Instance& instance = toInstance(handle);
  if (index < 0 || size_t(index) >= instance.inputs.size())
    return fail(BEVEL_ERROR_USAGE, "no input of number %d", index);
  return guarded([&] { return fromOutside(*value, &instance.inputs[size_t(index)]); });
}

int32_t bevel_set_input(bevel_instance* handle, int32_t index, const DLTensor* tensor) {
  bevel_value value = {tensor ? BEVEL_VIEW : BEVEL_NONE, 0, {}};
  value.v.view = tensor;
  return bevel_set_input_value(handle, index, &value);
}

int32_t bevel_set_output(bevel_instance* handle, int32_t index, const DLTensor* tensor) {
  if (!handle) return nullArgument("bevel_set_output");
  Instance& instance = toInstance(handle);
  if (index < 0 || size_t(index) >= instance.outputTargets.size())
    return fail(BEVEL_ERROR_USAGE, "no output of number %d", index);
  return guarded([&]() -> Status {
    BEVEL_RT_TRY(instance.checkIdle());
    if (tensor) BEVEL_RT_TRY(checkForeign(*tensor));
    instance.outputTargets[size_t(index)] = tensor ? Tensor::borrow(*tensor) : Ref<Tensor>();
    return BEVEL_OK;
  });
}

int32_t bevel_run(bevel_instance* handle) {
  if (!handle) return nullArgument("bevel_run");
  Instance& instance = toInstance(handle);
  const Function* function = selectedFunction(instance);
  if (!function) return fail(BEVEL_ERROR_USAGE, "the model has no public function");
  return guarded(
      [&] { return instance.enter(*function, instance.inputs, instance.outputTargets, &instance.outputs); });
}

const DLTensor* bevel_output(bevel_instance* handle, int32_t index) {
  auto& outputs = toInstance(handle).outputs;
  Tensor* tensor = index >= 0 && size_t(index) < outputs.size() ? outputs[size_t(index)].tensor() : nullptr;
  return tensor ? &tensor->dl : nullptr;
}

int32_t bevel_output_value(bevel_instance* handle, int32_t index, bevel_value* value) {
  if (!handle || !value) return nullArgument("bevel_output_value");
  auto& outputs = toInstance(handle).outputs;
  *value = {BEVEL_NONE, 0, {}};
  if (index < 0 || size_t(index) >= outputs.size())
    return fail(BEVEL_ERROR_USAGE, "no output of number %d, or no run that succeeded", index);
  *value = Value(outputs[size_t(index)]).leak();
  return BEVEL_OK;
}

int32_t bevel_call(bevel_instance* handle, int32_t function, const bevel_value* args, int32_t num_args,
                   bevel_value* results, int32_t num_results) {
  if (!handle || num_args < 0 || num_results < 0 || (num_args && !args) || (num_results && !results))
    return nullArgument("bevel_call");
  Instance& instance = toInstance(handle);
  auto& functions = instance.model().publicFunctions;
  if (function < 0 || size_t(function) >= functions.size())
    return fail(BEVEL_ERROR_USAGE, "no function of number %d", function);
  const Function& f = *functions[size_t(function)];
  if (size_t(num_results) != f.results.size())
    return fail(BEVEL_ERROR_USAGE, "'%s' has %zu outputs, room for %d is given", f.name, f.results.size(),
                num_results);
  return guarded([&]() -> Status {
    std::vector<Value> values(static_cast<size_t>(num_args)), made;
    for (int32_t i = 0; i < num_args; ++i) BEVEL_RT_TRY(fromOutside(args[i], &values[size_t(i)]));
    BEVEL_RT_TRY(instance.enter(f, std::move(values), {}, &made));
    for (int32_t i = 0; i < num_results; ++i) results[i] = made[size_t(i)].leak();
    return BEVEL_OK;
  });
}

uint64_t bevel_instance_memory(const bevel_instance* instance) {
  return static_cast<const Instance*>(instance)->memory();
}

int32_t bevel_profile_num_rows(bevel_instance* handle) {
  Instance& instance = toInstance(handle);
  (void)guarded([&]() -> Status {
    instance.profileRows.clear();
    if (instance.sites.empty()) return BEVEL_OK;
    for (const Function& f : instance.model().program.functions)
      for (const Instruction& in : f.code)
        if (in.op == BEVEL_OP_CALL && instance.sites[in.site].calls)
          instance.profileRows.emplace_back(&f, &in);
    return BEVEL_OK;
  });
  return int32_t(instance.profileRows.size());
}

int32_t bevel_profile_row(bevel_instance* handle, int32_t row, bevel_profile_entry* entry) {
  Instance& instance = toInstance(handle);
  if (!entry || row < 0 || size_t(row) >= instance.profileRows.size())
    return fail(BEVEL_ERROR_USAGE, "no row %d: call bevel_profile_num_rows first", row);
  auto [function, in] = instance.profileRows[size_t(row)];
  const Program& program = instance.model().program;
  const Instance::Site& site = instance.sites[in->site];
  *entry = {function->name,
            "",
            in->origins,
            in->callee,
            int32_t(site.dims.size()),
            site.dims.data(),
            site.calls,
            site.nanoseconds,
            -1,
            -1,
            "",
            ""};
  if (in->callee == BEVEL_CALLEE_KERNEL) {
    const KernelInfo& kernel = program.kernels[in->index];
    entry->callee = kernel.name;
    entry->flops = kernel.flops, entry->bytes = kernel.bytes;
    entry->flops_text = kernel.flopsText, entry->bytes_text = kernel.bytesText;
  } else {
    entry->callee =
        in->callee == BEVEL_CALLEE_PACKED ? program.packed[in->index] : program.functions[in->index].name;
  }
  return BEVEL_OK;
}

void bevel_profile_reset(bevel_instance* handle) {
  for (Instance::Site& site : toInstance(handle).sites) site.calls = site.nanoseconds = 0;
}
