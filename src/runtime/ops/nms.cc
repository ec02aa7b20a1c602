// bevel.non_max_suppression: ONNX NonMaxSuppression-11.
#include "runtime/ops/access.h"
#include "runtime/ops/entries.h"

#include <algorithm>

namespace bevel::rt {

namespace {
struct Box {
  float x0, y0, x1, y1;
};

Box readBox(const float* b, bool center) {
  if (center) return {b[0] - b[2] / 2, b[1] - b[3] / 2, b[0] + b[2] / 2, b[1] + b[3] / 2};
  return {std::min(b[1], b[3]), std::min(b[0], b[2]), std::max(b[1], b[3]), std::max(b[0], b[2])};
}

bool overlaps(const Box& a, const Box& b, float threshold) {
  float w = std::min(a.x1, b.x1) - std::max(a.x0, b.x0), h = std::min(a.y1, b.y1) - std::max(a.y0, b.y0);
  if (!(w > 0 && h > 0)) return false;
  float both = w * h, areaA = (a.x1 - a.x0) * (a.y1 - a.y0), areaB = (b.x1 - b.x0) * (b.y1 - b.y0);
  float all = areaA + areaB - both;
  return areaA > 0 && areaB > 0 && all > 0 && both / all > threshold;
}
} // namespace

/// non_max_suppression(boxes [n, b, 4], scores [n, c, b], max_output = 0, iou_threshold = 0, score_threshold
/// = none, center_point_box = 0) → int64 [selected, 3] of batch, class, box; by score, ties by box.
int32_t nonMaxSuppression(const bevel_ctx*, void*, const bevel_value* raw, int32_t count,
                          bevel_value* result) {
  Args args("non_max_suppression", raw, count);
  Ref<Tensor> boxes, scores;
  int64_t maxOutput, center;
  double iou, minScore;
  BEVEL_RT_TRY(args.tensor(0, &boxes));
  BEVEL_RT_TRY(args.tensor(1, &scores));
  BEVEL_RT_TRY(args.integer(2, 0, &maxOutput));
  BEVEL_RT_TRY(args.number(3, 0, &iou));
  BEVEL_RT_TRY(args.number(4, 0, &minScore));
  BEVEL_RT_TRY(args.integer(5, 0, &center));
  const int64_t *b = boxes->dl.shape, *s = scores->dl.shape;
  if (boxes->dl.ndim != 3 || scores->dl.ndim != 3 || !(boxes->dl.dtype == kFloat32) ||
      !(scores->dl.dtype == kFloat32) || b[2] != 4 || b[0] != s[0] || b[1] != s[2])
    return args.refuse("expected float32 boxes [n, b, 4] and scores [n, c, b]");
  if (!(iou >= 0 && iou <= 1)) return args.refuse("the IoU threshold is not between 0 and 1");
  std::vector<int64_t> selected;
  std::vector<int64_t> order;
  std::vector<Box> kept;
  for (int64_t n = 0; n < (s[2] ? s[0] : 0); ++n)
    for (int64_t c = 0; c < s[1]; ++c) {
      const float* line = scores->data<float>() + (n * s[1] + c) * s[2];
      order.clear(), kept.clear();
      for (int64_t i = 0; i < s[2]; ++i)
        if (!args.has(4) || line[i] > float(minScore)) order.push_back(i);
      std::stable_sort(order.begin(), order.end(), [&](int64_t p, int64_t q) { return line[p] > line[q]; });
      for (size_t i = 0; i < order.size() && int64_t(kept.size()) < maxOutput; ++i) {
        Box box = readBox(boxes->data<float>() + (n * b[1] + order[i]) * 4, center != 0);
        if (std::any_of(kept.begin(), kept.end(), [&](const Box& k) { return overlaps(box, k, float(iou)); }))
          continue;
        kept.push_back(box);
        selected.insert(selected.end(), {n, c, order[i]});
      }
    }
  auto out = Tensor::fromInts(selected);
  if (!out) return lastStatus();
  int64_t shape[] = {int64_t(selected.size()) / 3, 3};
  return give(result, Tensor::reshape(*out, 2, shape));
}

} // namespace bevel::rt
