// Finding builtins by name, and reading their arguments.
#include "runtime/builtins.h"

#include <cstring>

namespace bevel::rt {

Builtin findBuiltin(const char* name) {
  for (auto table : {tensorBuiltins(), memoryBuiltins(), valueBuiltins()})
    for (const BuiltinEntry& entry : table)
      if (!strcmp(entry.name, name)) return entry.function;
  return nullptr;
}

static const char* nameOf(const Call& call) {
  return call.instance.model().program.packed[call.in.index];
}

static Status wrongArgument(const Call& call, uint32_t i, const char* expected) {
  Value given = call.value(i);
  return fail(BEVEL_ERROR_REFUSED, "%s: argument %u is %s, expected %s", nameOf(call), i,
              kindName(given.kind()), expected);
}

Status Call::checkCount(uint32_t min, uint32_t max) const {
  if (count() >= min && count() <= max) return BEVEL_OK;
  return fail(BEVEL_ERROR_REFUSED, "%s: wrong number of arguments: %u", nameOf(*this), count());
}

Status Call::integer(uint32_t i, int64_t* value) const {
  const Arg& arg = args[i];
  if (arg.kind == BEVEL_ARG_INT)
    *value = arg.integer;
  else if (arg.kind == BEVEL_ARG_SLOT)
    *value = frame.slots[size_t(arg.integer)];
  else if (arg.kind == BEVEL_ARG_REGISTER && frame.registers[size_t(arg.integer)].kind() == BEVEL_INT)
    *value = frame.registers[size_t(arg.integer)].raw().v.i;
  else
    return wrongArgument(*this, i, "an integer");
  return BEVEL_OK;
}

Status Call::tensor(uint32_t i, Tensor** tensor) const {
  const Arg& arg = args[i];
  *tensor = nullptr;
  if (arg.kind == BEVEL_ARG_REGISTER)
    *tensor = frame.registers[size_t(arg.integer)].tensor();
  else if (arg.kind == BEVEL_ARG_CONST)
    *tensor = instance.model().constants[size_t(arg.integer)].get();
  else if (arg.kind == BEVEL_ARG_HEAP)
    *tensor = frame.heap.get();
  if (!*tensor) return wrongArgument(*this, i, "a tensor");
  return BEVEL_OK;
}

Status Call::list(uint32_t i, List** list) const {
  *list = args[i].kind == BEVEL_ARG_REGISTER ? frame.registers[size_t(args[i].integer)].list() : nullptr;
  if (!*list) return wrongArgument(*this, i, "a list");
  return BEVEL_OK;
}

Status Call::integers(uint32_t first, std::vector<int64_t>* values) const {
  values->clear();
  for (uint32_t i = first; i < count(); ++i) {
    int64_t value = 0;
    BEVEL_RT_TRY(integer(i, &value));
    values->push_back(value);
  }
  return BEVEL_OK;
}

} // namespace bevel::rt
