// The virtual machine: runs the instructions of a function.
#include "runtime/builtins.h"

#include <algorithm>
#include <chrono>

namespace bevel::rt {

static Status condition(const Value& value, bool* truth) {
  int64_t i = 0;
  if (value.kind() == BEVEL_INT)
    i = value.raw().v.i;
  else if (Tensor* tensor = value.tensor())
    BEVEL_RT_TRY(scalarInt(*tensor, &i));
  else
    return fail(BEVEL_ERROR_INTERNAL, "a branch on %s", kindName(value.kind()));
  *truth = i != 0;
  return BEVEL_OK;
}

/// Memory of an arena: the plan gives it to other tensors as soon as it knows of no further use.
static bool isPlanned(const Storage& storage) {
  return storage.planned;
}

/// Whether the memory overlaps that of a tensor in the value which lies in an arena or is somebody else's.
static bool liesInPassing(const Value& value, const Storage& memory) {
  if (List* list = value.list())
    return std::any_of(list->items.begin(), list->items.end(),
                       [&](const Value& item) { return liesInPassing(item, memory); });
  Tensor* tensor = value.tensor();
  if (!tensor || tensor->isText()) return false;
  const Storage& s = *tensor->storage;
  auto at = reinterpret_cast<uintptr_t>(s.data), other = reinterpret_cast<uintptr_t>(memory.data);
  return (s.planned || s.borrowed()) && &s != &memory && at < other + memory.bytes && other < at + s.bytes;
}

Status Instance::execute(Frame& frame, Value* results) {
  const Function& function = frame.function;
  for (uint32_t pc = 0;;) {
    const Instruction& in = function.code[pc++];
    switch (in.op) {
    case BEVEL_OP_CALL: {
      Status status = sites.empty() ? call(in, frame) : timedCall(in, frame);
      if (status) return failedAt(status, in, frame);
      break;
    }
    case BEVEL_OP_BRANCH: {
      bool truth = false;
      BEVEL_RT_TRY(condition(frame.registers[in.reg], &truth));
      if (!truth) pc = in.index;
      break;
    }
    case BEVEL_OP_JUMP:
      pc = in.index;
      break;
    default:
      for (uint32_t i = 0; i < in.numArgs; ++i) {
        results[i] = argValue(function.args[in.firstArg + i], frame);
        BEVEL_RT_TRY(settle(results[i], isPlanned)); // the next call overwrites it
      }
      return BEVEL_OK;
    }
  }
}

Value Instance::argValue(const Arg& arg, Frame& frame) const {
  switch (arg.kind) {
  case BEVEL_ARG_REGISTER:
    return frame.registers[size_t(arg.integer)];
  case BEVEL_ARG_INT:
    return Value::ofInt(arg.integer);
  case BEVEL_ARG_FLOAT:
    return Value::ofFloat(arg.number);
  case BEVEL_ARG_SLOT:
    return Value::ofInt(frame.slots[size_t(arg.integer)]);
  case BEVEL_ARG_CONST:
    return Value::of(model_->constants[size_t(arg.integer)]);
  case BEVEL_ARG_STRING:
    return Value::of(Ref<String>::share(arg.string));
  case BEVEL_ARG_HEAP:
    return Value::of(copyTensor(*frame.heap)); // the heap itself must not leave its frame
  default:
    return {};
  }
}

Status Instance::call(const Instruction& in, Frame& frame) {
  if (in.callee == BEVEL_CALLEE_KERNEL) return callKernel(in, frame);
  if (in.builtin) {
    Call call{*this, frame, in, frame.function.args.data() + in.firstArg};
    return in.builtin(call);
  }
  return in.callee == BEVEL_CALLEE_PACKED ? callPackedFunction(in, frame) : callFunction(in, frame);
}

Status Instance::timedCall(const Instruction& in, Frame& frame) {
  auto begin = std::chrono::steady_clock::now();
  Status status = call(in, frame);
  auto end = std::chrono::steady_clock::now();
  Site& site = sites[in.site];
  ++site.calls;
  site.nanoseconds += uint64_t(std::chrono::duration_cast<std::chrono::nanoseconds>(end - begin).count());
  if (in.callee == BEVEL_CALLEE_KERNEL)
    site.dims.assign(dims_.begin(), dims_.begin() + model_->program.kernels[in.index].numDims);
  return status;
}

Status Instance::callKernel(const Instruction& in, Frame& frame) {
  const KernelInfo& kernel = model_->program.kernels[in.index];
  const Arg* arg = frame.function.args.data() + in.firstArg;
  auto integer = [&](const Arg& a) {
    return a.kind == BEVEL_ARG_INT ? a.integer : frame.slots[size_t(a.integer)];
  };
  for (uint32_t i = 0; i < kernel.numBuffers; ++i, ++arg) {
    if (arg->kind == BEVEL_ARG_REGISTER) {
      Tensor* tensor = frame.registers[size_t(arg->integer)].tensor();
      if (!tensor || !tensor->compact || tensor->isText())
        return fail(BEVEL_ERROR_INTERNAL, "argument %u is no tensor that a kernel can take", i);
      buffers_[i] = tensor->dl.data;
    } else if (arg->kind == BEVEL_ARG_CONST) {
      buffers_[i] = model_->constants[size_t(arg->integer)]->dl.data;
    } else {
      buffers_[i] = frame.slots.data();
    }
  }
  for (uint32_t i = 0; i < kernel.numDims; ++i, ++arg) dims_[i] = integer(*arg);
  uint64_t shared = kernel.workspaceShared, perThread = kernel.workspacePerThread;
  if (kernel.dynamicWorkspace) {
    int64_t first = integer(arg[0]), second = integer(arg[1]);
    if (first < 0 || second < 0 || first > INT64_MAX / 2 || second > INT64_MAX / 65536)
      return fail(BEVEL_ERROR_INTERNAL, "a workspace of impossible size");
    shared = uint64_t(first), perThread = uint64_t(second);
  }
  void* workspace = nullptr;
  if (shared | perThread) BEVEL_RT_TRY(reserveWorkspace(shared, perThread, &workspace));
  Status status = model_->kernels[in.index](&ctx_, buffers_.data(), dims_.data(), workspace);
  if (status)
    (void)fail(BEVEL_ERROR_INTERNAL, "returned status %d", status); // unless it told more by ctx->fail
  return status;
}

Status Instance::reserveWorkspace(uint64_t shared, uint64_t perThread, void** workspace) {
  uint64_t bytes = shared + perThread * uint64_t(ctx_.num_threads); // bounded by the checks on both
  if (!workspace_ || workspace_->bytes < bytes) {
    workspace_ = {};
    workspace_ = Storage::alloc(bytes);
    if (!workspace_) return lastStatus();
  }
  *workspace = workspace_->data;
  return BEVEL_OK;
}

Status Instance::callPackedFunction(const Instruction& in, Frame& frame) {
  Cache& cache = frame.caches[in.cache];
  const char* name = model_->program.packed[in.index];
  if (uint64_t version = packedVersion(); cache.packedVersion != version) {
    cache.packed = findPacked(name);
    cache.packedVersion = version;
  }
  if (!cache.packed)
    return fail(BEVEL_ERROR_MISSING, "no packed function '%s' is registered (bevel_register_packed)", name);
  std::vector<Value> values(in.numArgs);
  std::vector<bevel_value> raw(in.numArgs);
  for (uint32_t i = 0; i < in.numArgs; ++i) {
    values[i] = argValue(frame.function.args[in.firstArg + i], frame);
    raw[i] = values[i].raw();
  }
  Value result;
  Ref<PackedFunction> function = cache.packed; // it may unregister itself
  failText(BEVEL_OK, "");
  BEVEL_RT_TRY(function->call(&ctx_, raw.data(), int32_t(raw.size()), &result));
  if (in.reg == BEVEL_NO_REGISTER) {
    if (result.isNone()) return BEVEL_OK;
    return fail(BEVEL_ERROR_REFUSED, "it returned %s, but it should write its result into its last arguments",
                describe(result).c_str());
  }
  // It may have returned an argument, as it is or by way of DLPack: its place in the arena serves again after
  // its last use, and an input is the caller's.
  BEVEL_RT_TRY(settle(result, [&](const Storage& s) {
    return isPlanned(s) ||
           std::any_of(values.begin(), values.end(), [&](const Value& v) { return liesInPassing(v, s); });
  }));
  frame.registers[in.reg] = std::move(result);
  return BEVEL_OK;
}

Status Instance::callFunction(const Instruction& in, Frame& frame) {
  const Function& callee = model_->program.functions[in.index];
  std::vector<Value> args(in.numArgs), results(callee.results.size());
  for (uint32_t i = 0; i < in.numArgs; ++i) args[i] = argValue(frame.function.args[in.firstArg + i], frame);
  BEVEL_RT_TRY(invoke(in.index, std::move(args), {}, results.data()));
  Value& destination = in.reg == BEVEL_NO_REGISTER ? frame.nowhere : frame.registers[in.reg];
  if (results.size() == 1) {
    destination = std::move(results[0]);
  } else {
    auto list = Ref<List>::adopt(new List);
    for (Value& result : results) BEVEL_RT_TRY(list->append(std::move(result)));
    destination = Value::of(std::move(list));
  }
  return BEVEL_OK;
}

/// Adds to the message what was called, for which nodes of the model. Function calls have said it inside
/// already.
Status Instance::failedAt(Status status, const Instruction& in, const Frame& frame) {
  if (in.callee == BEVEL_CALLEE_FUNCTION) return status;
  const Program& program = model_->program;
  bool kernel = in.callee == BEVEL_CALLEE_KERNEL;
  std::string reason;
  {
    std::lock_guard lock(failureMutex_);
    reason = std::exchange(failure_, {});
  }
  if (reason.empty()) reason = *lastError() ? lastError() : "failed without a reason";
  if (in.builtin && !*in.origins) return failText(status, reason.c_str());
  std::string nodes = *in.origins ? std::string(" (") + in.origins + ")" : "";
  const char* name = kernel ? program.kernels[in.index].name : program.packed[in.index];
  std::string text = "'" + std::string(frame.function.name) + "', " + (kernel ? "kernel" : "call of") + " '" +
                     name + "'" + nodes + ": " + reason;
  return failText(status, text.c_str());
}

} // namespace bevel::rt
