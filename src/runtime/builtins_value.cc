// Builtins on slots, lists and registers.
#include "runtime/builtins.h"

namespace bevel::rt {

/// vm.set_slot(slot, integer)
static Status setSlot(Call& call) {
  int64_t slot, value;
  BEVEL_RT_TRY(call.checkCount(2));
  BEVEL_RT_TRY(call.integer(0, &slot));
  BEVEL_RT_TRY(call.integer(1, &value));
  if (slot < 0 || uint64_t(slot) >= call.frame.slots.size())
    return fail(BEVEL_ERROR_REFUSED, "vm.set_slot: no such slot");
  call.frame.slots[size_t(slot)] = value;
  return BEVEL_OK;
}

/// vm.move(x)
static Status move(Call& call) {
  BEVEL_RT_TRY(call.checkCount(1));
  return call.result(call.value(0));
}

/// vm.kill(registers…)
static Status kill(Call& call) {
  for (uint32_t i = 0; i < call.count(); ++i)
    if (call.args[i].kind == BEVEL_ARG_REGISTER) call.frame.registers[size_t(call.args[i].integer)].clear();
  return BEVEL_OK;
}

/// vm.tuple(x…)
static Status tuple(Call& call) {
  auto list = Ref<List>::adopt(new List);
  for (uint32_t i = 0; i < call.count(); ++i) BEVEL_RT_TRY(list->append(call.value(i)));
  return call.result(Value::of(std::move(list)));
}

/// vm.tuple_get(list, i)
static Status tupleGet(Call& call) {
  List* list;
  int64_t i;
  BEVEL_RT_TRY(call.checkCount(2));
  BEVEL_RT_TRY(call.list(0, &list));
  BEVEL_RT_TRY(call.integer(1, &i));
  if (i < 0 || uint64_t(i) >= list->items.size())
    return fail(BEVEL_ERROR_REFUSED, "field %lld of a list of %zu", static_cast<long long>(i),
                list->items.size());
  Value item = list->items[size_t(i)];
  if (Tensor* tensor = item.tensor(); tensor && !tensor->compact) { // lists may come from the host
    auto compact = makeCompact(Ref<Tensor>::share(tensor));
    return call.result(std::move(compact));
  }
  return call.result(std::move(item));
}

/// vm.check_equal(a, b, text)
static Status checkEqual(Call& call) {
  int64_t a, b;
  BEVEL_RT_TRY(call.checkCount(3));
  BEVEL_RT_TRY(call.integer(0, &a));
  BEVEL_RT_TRY(call.integer(1, &b));
  if (a == b) return BEVEL_OK;
  Value text = call.value(2);
  return fail(BEVEL_ERROR_REFUSED, "%s: %lld is not %lld",
              text.string() ? text.string()->text.c_str() : "a check", static_cast<long long>(a),
              static_cast<long long>(b));
}

std::span<const BuiltinEntry> valueBuiltins() {
  static const BuiltinEntry kTable[] = {
      {"vm.set_slot", setSlot}, {"vm.move", move},          {"vm.kill", kill},
      {"vm.tuple", tuple},      {"vm.tuple_get", tupleGet}, {"vm.check_equal", checkEqual},
  };
  return kTable;
}

} // namespace bevel::rt
