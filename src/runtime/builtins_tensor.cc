// Builtins on tensors and shapes.
#include "runtime/builtins.h"

#include <cstring>

namespace bevel::rt {

static std::string nameOf(const Call& call) {
  Value name = call.value(1);
  return name.string() ? name.string()->text : "a tensor";
}

/// Says which tensor does not fit, what was expected and what was given.
static Status mismatch(const Call& call, const Tensor& tensor, const char* reason) {
  const Function& f = call.frame.function;
  std::string given = describeTensor(tensor.dl);
  const Arg& what = call.args[1];
  if (what.kind == BEVEL_ARG_INT && what.integer >= 0 && uint64_t(what.integer) < f.params.size()) {
    const Param& param = f.params[size_t(what.integer)];
    return fail(BEVEL_ERROR_REFUSED, "input '%s' of '%s': expected %s, given %s: %s", param.name, f.name,
                param.describe().c_str(), given.c_str(), reason);
  }
  return fail(BEVEL_ERROR_REFUSED, "%s in '%s': given %s: %s", nameOf(call).c_str(), f.name, given.c_str(),
              reason);
}

static Status matchDim(const Call& call, const Tensor& tensor, int32_t axis, int64_t code, int64_t value) {
  int64_t extent = tensor.dl.shape[axis];
  bool slot = code == BEVEL_DIM_BIND || code == BEVEL_DIM_EQUAL_SLOT;
  if (slot && (value < 0 || uint64_t(value) >= call.frame.slots.size()))
    return fail(BEVEL_ERROR_REFUSED, "vm.match_shape: a slot out of range");
  if (code == BEVEL_DIM_BIND) call.frame.slots[size_t(value)] = extent;
  if (code == BEVEL_DIM_EQUAL_SLOT) value = call.frame.slots[size_t(value)];
  if ((code == BEVEL_DIM_EQUAL || code == BEVEL_DIM_EQUAL_SLOT) && extent != value) {
    char reason[128];
    snprintf(reason, sizeof reason, "dimension %d is %lld and should be %lld", axis,
             static_cast<long long>(extent), static_cast<long long>(value));
    return mismatch(call, tensor, reason);
  }
  if (code < BEVEL_DIM_ANY || code > BEVEL_DIM_EQUAL_SLOT)
    return fail(BEVEL_ERROR_REFUSED, "vm.match_shape: an unknown code");
  return BEVEL_OK;
}

/// vm.match_shape(tensor, what, dtype, rank, code0, value0, …)
static Status matchShape(Call& call) {
  Tensor* tensor;
  int64_t dtype, rank;
  BEVEL_RT_TRY(call.checkCount(4, 4 + 2 * 64));
  if (call.tensor(0, &tensor))
    return fail(BEVEL_ERROR_REFUSED, "%s in '%s': given %s, expected a tensor", nameOf(call).c_str(),
                call.frame.function.name, kindName(call.value(0).kind()));
  BEVEL_RT_TRY(call.integer(2, &dtype));
  BEVEL_RT_TRY(call.integer(3, &rank));
  if (dtype >= 0 && dtype != packDtype(tensor->dl.dtype))
    return mismatch(call, *tensor,
                    ("the dtype should be " + dtypeName(unpackDtype(uint32_t(dtype)))).c_str());
  if (rank >= 0 && rank != tensor->dl.ndim)
    return mismatch(call, *tensor, ("the rank should be " + std::to_string(rank)).c_str());
  if (call.count() != 4 + (rank < 0 ? 0 : 2 * rank))
    return fail(BEVEL_ERROR_REFUSED, "vm.match_shape: not a pair a dim");
  for (int32_t i = 0; i < rank; ++i) {
    int64_t code, value;
    BEVEL_RT_TRY(call.integer(4 + 2 * uint32_t(i), &code));
    BEVEL_RT_TRY(call.integer(5 + 2 * uint32_t(i), &value));
    BEVEL_RT_TRY(matchDim(call, *tensor, i, code, value));
  }
  return BEVEL_OK;
}

static Status intsResult(Call& call, const int64_t* values, int64_t count) {
  Ref<Tensor> tensor;
  BEVEL_RT_TRY(freshTensor(call, kInt64, 1, &count, &tensor));
  if (count) memcpy(tensor->dl.data, values, size_t(count) * 8);
  return call.result(std::move(tensor));
}

/// vm.shape_of(tensor)
static Status shapeOf(Call& call) {
  Tensor* tensor;
  BEVEL_RT_TRY(call.checkCount(1));
  BEVEL_RT_TRY(call.tensor(0, &tensor));
  // The result may replace the tensor: its shape is needed after that.
  std::vector<int64_t> shape(tensor->dl.shape, tensor->dl.shape + tensor->dl.ndim);
  return intsResult(call, shape.data(), int64_t(shape.size()));
}

/// vm.make_shape(values…)
static Status makeShape(Call& call) {
  std::vector<int64_t> values;
  BEVEL_RT_TRY(call.integers(0, &values));
  return intsResult(call, values.data(), int64_t(values.size()));
}

/// vm.load_slots(tensor, first, count)
static Status loadSlots(Call& call) {
  Tensor* tensor;
  int64_t first, count;
  BEVEL_RT_TRY(call.checkCount(3));
  BEVEL_RT_TRY(call.tensor(0, &tensor));
  BEVEL_RT_TRY(call.integer(1, &first));
  BEVEL_RT_TRY(call.integer(2, &count));
  int64_t slots = int64_t(call.frame.slots.size());
  if (first < 0 || count < 0 || first > slots || count > slots - first)
    return fail(BEVEL_ERROR_REFUSED, "vm.load_slots: slots out of range");
  if (tensor->elements() != count || !tensor->compact)
    return fail(BEVEL_ERROR_REFUSED, "expected %lld integers, given %s", static_cast<long long>(count),
                describeTensor(tensor->dl).c_str());
  for (int64_t i = 0; i < count; ++i)
    BEVEL_RT_TRY(elementInt(*tensor, i, &call.frame.slots[size_t(first + i)]));
  return BEVEL_OK;
}

std::span<const BuiltinEntry> tensorBuiltins() {
  static const BuiltinEntry kTable[] = {
      {"vm.match_shape", matchShape},
      {"vm.shape_of", shapeOf},
      {"vm.make_shape", makeShape},
      {"vm.load_slots", loadSlots},
  };
  return kTable;
}

} // namespace bevel::rt
