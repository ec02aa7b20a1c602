// What builtins of the virtual machine see of a call.
#pragma once

#include "runtime/instance.h"

namespace bevel::rt {

struct Call {
  Instance& instance;
  Frame& frame;
  const Instruction& in;
  const Arg* args;

  uint32_t count() const { return in.numArgs; }
  /// Refuses another number of arguments; at most `max` (none by default).
  Status checkCount(uint32_t min, uint32_t max) const;
  Status checkCount(uint32_t exact) const { return checkCount(exact, exact); }

  /// Argument `i` as an integer: immediate, slot, or a register that holds one.
  Status integer(uint32_t i, int64_t* value) const;
  /// Argument `i` as a tensor, borrowed.
  Status tensor(uint32_t i, Tensor** tensor) const;
  Status list(uint32_t i, List** list) const;
  Value value(uint32_t i) const { return instance.argValue(args[i], frame); }
  /// Integers from argument `first` on.
  Status integers(uint32_t first, std::vector<int64_t>* values) const;

  Cache& cache() const { return frame.caches[in.cache]; }
  Value& destination() const { return in.reg == BEVEL_NO_REGISTER ? frame.nowhere : frame.registers[in.reg]; }
  Status result(Value value) const {
    destination() = std::move(value);
    return BEVEL_OK;
  }
  /// The tensor as the result, or the failure that left it null.
  Status result(Ref<Tensor> tensor) const {
    if (!tensor) return lastStatus();
    return result(Value::of(std::move(tensor)));
  }
};

/// A compact tensor of that shape that the call site may have kept from an earlier run; undefined contents.
Status freshTensor(Call& call, bevel_dtype dtype, int32_t rank, const int64_t* shape, Ref<Tensor>* tensor);

struct BuiltinEntry {
  const char* name;
  Builtin function;
};
std::span<const BuiltinEntry> tensorBuiltins(); // builtins_tensor.cc
std::span<const BuiltinEntry> memoryBuiltins(); // builtins_memory.cc
std::span<const BuiltinEntry> valueBuiltins();  // builtins_value.cc

} // namespace bevel::rt
