// bevel.topk and bevel.sort: elements of an axis in order.
#include "runtime/ops/access.h"
#include "runtime/ops/entries.h"

#include <numeric>

namespace bevel::rt {

/// The first k of each line along the axis; equal elements in the order of their indices, NaN as the largest.
static Status orderedPrefix(const Tensor& x, int32_t axis, int64_t k, bool descending, bool sorted,
                            bevel_value* result) {
  Keys keys;
  BEVEL_RT_TRY(Keys::read(x, &keys));
  AroundAxis a(x, axis);
  std::vector<int64_t> shape = shapeOf(x);
  shape[size_t(axis)] = k;
  auto values = Tensor::make(x.dl.dtype, shape), indices = Tensor::make(kInt64, shape);
  if (!values || !indices) return lastStatus();
  std::vector<int64_t> order(static_cast<size_t>(a.outer ? a.extent : 0));
  for (int64_t o = 0; o < a.outer; ++o)
    for (int64_t i = 0; i < a.inner; ++i) {
      auto at = [&](int64_t e) { return (o * a.extent + e) * a.inner + i; };
      auto before = [&](int64_t p, int64_t q) {
        bool less = keys.less(at(p), at(q)), greater = keys.less(at(q), at(p));
        return less != greater ? (descending ? greater : less) : p < q;
      };
      std::iota(order.begin(), order.end(), int64_t(0));
      if (sorted)
        std::partial_sort(order.begin(), order.begin() + k, order.end(), before);
      else if (k < a.extent)
        std::nth_element(order.begin(), order.begin() + k, order.end(), before);
      for (int64_t e = 0; e < k; ++e) {
        int64_t to = (o * k + e) * a.inner + i;
        copyElement(x, at(order[size_t(e)]), *values, to);
        indices->data<int64_t>()[to] = order[size_t(e)];
      }
    }
  return give(result, {values, indices});
}

/// topk(x, k, axis = -1, largest = 1, sorted = 1) → [values, indices]. ONNX TopK-11.
int32_t topk(const bevel_ctx*, void*, const bevel_value* raw, int32_t count, bevel_value* result) {
  Args args("topk", raw, count);
  Ref<Tensor> x;
  int32_t axis;
  int64_t k, largest, sorted;
  BEVEL_RT_TRY(args.tensor(0, &x));
  BEVEL_RT_TRY(args.integer(1, -1, &k));
  if (x->dl.ndim == 0) return args.refuse("the input is a scalar");
  BEVEL_RT_TRY(args.axis(2, -1, x->dl.ndim, &axis));
  BEVEL_RT_TRY(args.integer(3, 1, &largest));
  BEVEL_RT_TRY(args.integer(4, 1, &sorted));
  if (k < 0 || k > x->dl.shape[axis]) return args.refuse("k is negative or larger than the axis");
  return orderedPrefix(*x, axis, k, largest != 0, sorted != 0, result);
}

/// sort(x, axis = -1, descending = 0) → [values, indices], stable.
int32_t sort(const bevel_ctx*, void*, const bevel_value* raw, int32_t count, bevel_value* result) {
  Args args("sort", raw, count);
  Ref<Tensor> x;
  int32_t axis;
  int64_t descending;
  BEVEL_RT_TRY(args.tensor(0, &x));
  if (x->dl.ndim == 0) return args.refuse("the input is a scalar");
  BEVEL_RT_TRY(args.axis(1, -1, x->dl.ndim, &axis));
  BEVEL_RT_TRY(args.integer(2, 0, &descending));
  return orderedPrefix(*x, axis, x->dl.shape[axis], descending != 0, true, result);
}

} // namespace bevel::rt
