// Builtins on integers, lists, optional values and registers.
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

/// An integer, or the only element of a tensor.
static Status number(const Call& call, uint32_t i, int64_t* value) {
  Value given = call.value(i);
  if (Tensor* tensor = given.tensor()) return scalarInt(*tensor, value);
  return call.integer(i, value);
}

static Status toInt(Call& call) {
  int64_t value;
  BEVEL_RT_TRY(call.checkCount(1));
  BEVEL_RT_TRY(number(call, 0, &value));
  return call.result(Value::ofInt(value));
}

static Status toBool(Call& call) {
  int64_t value;
  BEVEL_RT_TRY(call.checkCount(1));
  BEVEL_RT_TRY(number(call, 0, &value));
  return call.result(Value::ofInt(value != 0));
}

template <class F> static Status binary(Call& call, F f) {
  int64_t a, b;
  BEVEL_RT_TRY(call.checkCount(2));
  BEVEL_RT_TRY(call.integer(0, &a));
  BEVEL_RT_TRY(call.integer(1, &b));
  return call.result(Value::ofInt(f(a, b)));
}

// Sums wrap around: counters of hostile images must not be undefined behaviour.
static Status add(Call& c) {
  return binary(c, [](int64_t a, int64_t b) { return int64_t(uint64_t(a) + uint64_t(b)); });
}
static Status sub(Call& c) {
  return binary(c, [](int64_t a, int64_t b) { return int64_t(uint64_t(a) - uint64_t(b)); });
}
static Status mul(Call& c) {
  return binary(c, [](int64_t a, int64_t b) { return int64_t(uint64_t(a) * uint64_t(b)); });
}
static Status less(Call& c) {
  return binary(c, [](int64_t a, int64_t b) { return int64_t(a < b); });
}
static Status both(Call& c) {
  return binary(c, [](int64_t a, int64_t b) { return int64_t(a && b); });
}
static Status either(Call& c) {
  return binary(c, [](int64_t a, int64_t b) { return int64_t(a || b); });
}

static Status negate(Call& call) {
  int64_t a;
  BEVEL_RT_TRY(call.checkCount(1));
  BEVEL_RT_TRY(call.integer(0, &a));
  return call.result(Value::ofInt(!a));
}

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

/// An index that may count from the end; `end` is one past the last that is allowed.
static Status listIndex(int64_t size, int64_t end, int64_t* index) {
  if (*index < 0) *index += size;
  if (*index >= 0 && *index < end) return BEVEL_OK;
  return fail(BEVEL_ERROR_REFUSED, "index %lld into a list of %lld", static_cast<long long>(*index),
              static_cast<long long>(size));
}

/// vm.tuple_get(list, i)
static Status tupleGet(Call& call) {
  List* list;
  int64_t i;
  BEVEL_RT_TRY(call.checkCount(2));
  BEVEL_RT_TRY(call.list(0, &list));
  BEVEL_RT_TRY(number(call, 1, &i));
  int64_t size = int64_t(list->items.size());
  BEVEL_RT_TRY(listIndex(size, size, &i));
  Value item = list->items[size_t(i)];
  if (Tensor* tensor = item.tensor(); tensor && !tensor->compact) { // lists may come from the host
    auto compact = makeCompact(Ref<Tensor>::share(tensor));
    return call.result(std::move(compact));
  }
  return call.result(std::move(item));
}

static Status listLength(Call& call) {
  List* list;
  BEVEL_RT_TRY(call.checkCount(1));
  BEVEL_RT_TRY(call.list(0, &list));
  return call.result(Value::ofInt(int64_t(list->items.size())));
}

/// vm.list_append(list, x)
static Status listAppend(Call& call) {
  List* list;
  BEVEL_RT_TRY(call.checkCount(2));
  BEVEL_RT_TRY(call.list(0, &list));
  Value item = call.value(1);
  // In place where the register is both source and destination and nobody else holds the list.
  if (call.in.reg != BEVEL_NO_REGISTER && call.args[0].integer == int64_t(call.in.reg) && list->unique())
    return list->append(std::move(item));
  auto longer = Ref<List>::adopt(new List(*list));
  BEVEL_RT_TRY(longer->append(std::move(item)));
  return call.result(Value::of(std::move(longer)));
}

/// vm.list_insert(list, x, i)
static Status listInsert(Call& call) {
  List* list;
  int64_t i;
  BEVEL_RT_TRY(call.checkCount(3));
  BEVEL_RT_TRY(call.list(0, &list));
  BEVEL_RT_TRY(number(call, 2, &i));
  int64_t size = int64_t(list->items.size());
  BEVEL_RT_TRY(listIndex(size, size + 1, &i));
  auto longer = Ref<List>::adopt(new List(*list));
  BEVEL_RT_TRY(longer->insert(size_t(i), call.value(1)));
  return call.result(Value::of(std::move(longer)));
}

/// vm.list_erase(list, i)
static Status listErase(Call& call) {
  List* list;
  int64_t i;
  BEVEL_RT_TRY(call.checkCount(2));
  BEVEL_RT_TRY(call.list(0, &list));
  BEVEL_RT_TRY(number(call, 1, &i));
  int64_t size = int64_t(list->items.size());
  BEVEL_RT_TRY(listIndex(size, size, &i));
  auto shorter = Ref<List>::adopt(new List(*list));
  shorter->items.erase(shorter->items.begin() + i);
  return call.result(Value::of(std::move(shorter)));
}

/// vm.check_list(list, what)
static Status checkList(Call& call) {
  List* list;
  BEVEL_RT_TRY(call.checkCount(2));
  return call.list(0, &list);
}

static Status isNone(Call& call) {
  BEVEL_RT_TRY(call.checkCount(1));
  return call.result(Value::ofInt(call.value(0).isNone()));
}

static Status expect(Call& call) {
  BEVEL_RT_TRY(call.checkCount(1));
  Value value = call.value(0);
  if (value.isNone()) return fail(BEVEL_ERROR_REFUSED, "an optional value is empty");
  return call.result(std::move(value));
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

/// vm.fail(text)
static Status failRun(Call& call) {
  BEVEL_RT_TRY(call.checkCount(1));
  Value text = call.value(0);
  return fail(BEVEL_ERROR_REFUSED, "%s", text.string() ? text.string()->text.c_str() : "the model stopped");
}

std::span<const BuiltinEntry> valueBuiltins() {
  static const BuiltinEntry kTable[] = {
      {"vm.set_slot", setSlot},
      {"vm.to_int", toInt},
      {"vm.to_bool", toBool},
      {"vm.add", add},
      {"vm.sub", sub},
      {"vm.mul", mul},
      {"vm.less", less},
      {"vm.and", both},
      {"vm.or", either},
      {"vm.not", negate},
      {"vm.move", move},
      {"vm.kill", kill},
      {"vm.tuple", tuple},
      {"vm.tuple_get", tupleGet},
      {"vm.list_length", listLength},
      {"vm.list_append", listAppend},
      {"vm.list_insert", listInsert},
      {"vm.list_erase", listErase},
      {"vm.check_list", checkList},
      {"vm.is_none", isNone},
      {"vm.expect", expect},
      {"vm.check_equal", checkEqual},
      {"vm.fail", failRun},
  };
  return kTable;
}

} // namespace bevel::rt
