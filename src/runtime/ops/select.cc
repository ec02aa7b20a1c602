// Operators that pick elements: bevel.unique.
#include "runtime/ops/access.h"
#include "runtime/ops/entries.h"

#include <algorithm>
#include <numeric>

namespace bevel::rt {

/// The slices `chosen` of an axis.
static Ref<Tensor> takeSlices(const Tensor& x, int32_t axis, const std::vector<int64_t>& chosen) {
  AroundAxis a(x, axis);
  std::vector<int64_t> shape = shapeOf(x);
  shape[size_t(axis)] = int64_t(chosen.size());
  auto out = Tensor::make(x.dl.dtype, shape);
  if (!out) return {};
  for (int64_t o = 0, to = 0; o < a.outer; ++o)
    for (int64_t e : chosen)
      for (int64_t i = 0; i < a.inner; ++i, ++to) copyElement(x, (o * a.extent + e) * a.inner + i, *out, to);
  return out;
}

/// The tensor itself, or as one axis where `flatten`.
static Ref<Tensor> flattened(Ref<Tensor> x, bool flatten) {
  int64_t n = x->elements();
  return flatten ? Tensor::reshape(*x, 1, &n) : x;
}

namespace {
/// Order of the slices of an axis, element by element.
class Slices {
public:
  Slices(const Tensor& x, int32_t axis) : x_(x), around_(x, axis) {}
  Status read() { return x_.isText() ? Status(BEVEL_OK) : Keys::read(x_, &keys_); }
  int64_t count() const { return around_.extent; }
  bool less(int64_t a, int64_t b) const {
    for (int64_t o = 0; o < around_.outer; ++o)
      for (int64_t i = 0; i < around_.inner; ++i) {
        int64_t p = (o * around_.extent + a) * around_.inner + i,
                q = (o * around_.extent + b) * around_.inner + i;
        if (elementLess(p, q)) return true;
        if (elementLess(q, p)) return false;
      }
    return false;
  }

private:
  bool elementLess(int64_t p, int64_t q) const {
    if (!x_.isText()) return keys_.less(p, q);
    return x_.storage->strings[size_t(p)] < x_.storage->strings[size_t(q)];
  }
  const Tensor& x_;
  AroundAxis around_;
  Keys keys_;
};
} // namespace

/// unique(x, axis = none, sorted = 1) → [values, first indices, inverse, counts]. ONNX Unique-11; all NaN are
/// equal.
int32_t unique(const bevel_ctx*, void*, const bevel_value* raw, int32_t count, bevel_value* result) {
  Args args("unique", raw, count);
  Ref<Tensor> x;
  int32_t axis = 0;
  int64_t sorted;
  BEVEL_RT_TRY(args.tensor(0, &x));
  x = flattened(x, !args.has(1));
  if (args.has(1)) BEVEL_RT_TRY(args.axis(1, 0, x->dl.ndim, &axis));
  BEVEL_RT_TRY(args.integer(2, 1, &sorted));
  Slices slices(*x, axis);
  BEVEL_RT_TRY(slices.read());
  std::vector<int64_t> order(static_cast<size_t>(slices.count()));
  std::iota(order.begin(), order.end(), int64_t(0));
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return slices.less(a, b); });
  // Groups of equal slices; the first of each has the lowest index because the sort is stable.
  std::vector<int64_t> first, counts, groupOf(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || slices.less(order[i - 1], order[i])) first.push_back(order[i]), counts.push_back(0);
    groupOf[size_t(order[i])] = int64_t(first.size()) - 1;
    ++counts.back();
  }
  if (!sorted) { // by first occurrence
    std::vector<int64_t> byFirst(first.size()), rank(first.size()), movedFirst, movedCounts;
    std::iota(byFirst.begin(), byFirst.end(), int64_t(0));
    std::sort(byFirst.begin(), byFirst.end(),
              [&](int64_t a, int64_t b) { return first[size_t(a)] < first[size_t(b)]; });
    for (size_t i = 0; i < byFirst.size(); ++i) {
      rank[size_t(byFirst[i])] = int64_t(i);
      movedFirst.push_back(first[size_t(byFirst[i])]);
      movedCounts.push_back(counts[size_t(byFirst[i])]);
    }
    for (int64_t& group : groupOf) group = rank[size_t(group)];
    first = movedFirst, counts = movedCounts;
  }
  return give(result, {takeSlices(*x, axis, first), Tensor::fromInts(first), Tensor::fromInts(groupOf),
                       Tensor::fromInts(counts)});
}

} // namespace bevel::rt
