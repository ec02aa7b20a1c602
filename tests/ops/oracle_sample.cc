// Naive host evaluation of the operators of src/ops/sample.cc.
#include "ops/oracle.h"

namespace bevel::test {
namespace {

constexpr double kCubic = -0.75; // Keys' a

// ---- host
// ------------------------------------------------------------------------------------------------------------

double reflectHost(double x, double low, double high) {
  if (!(high > low)) return low;
  while (x < low || x > high) x = x < low ? 2 * low - x : 2 * high - x;
  return x;
}

double cubicHost(double x) {
  x = std::fabs(x);
  if (x <= 1) return ((kCubic + 2) * x - (kCubic + 3)) * x * x + 1;
  return x < 2 ? ((x - 5) * x + 8) * x * kCubic - 4 * kCubic : 0;
}

struct SampleHost {
  const OpCall& call;
  const TensorObject& x;
  std::string mode, padding;
  Ints strides;

  /// The interpolation over axes 2 + d and behind, at `at`.
  double value(size_t d, int64_t offset, const std::vector<double>& at) const {
    if (d == at.size()) return x.asDouble(offset);
    int64_t n = x.shape[2 + d];
    double low = call.i("align_corners") ? 0 : -0.5,
           high = call.i("align_corners") ? double(n - 1) : double(n) - 0.5, total = 0;
    int64_t base = int64_t(std::floor(at[d]));
    for (int64_t k = base - 1; k <= base + 2; ++k) {
      double distance = at[d] - double(k);
      double weight = mode == "nearest"  ? double(k == base)
                      : mode == "linear" ? std::max(0.0, 1 - std::fabs(distance))
                                         : cubicHost(distance);
      int64_t p = k;
      if (padding == "reflection") p = int64_t(reflectHost(double(k), low, high));
      if (padding != "zeros") p = std::clamp<int64_t>(p, 0, n - 1);
      if (weight != 0 && p >= 0 && p < n) total += weight * value(d + 1, offset + p * strides[2 + d], at);
    }
    return total;
  }
};

Result<HostTensors> gridSampleEval(const OpCall& call, const HostTensors& in) {
  const TensorObject &x = *in[0], &grid = *in[1];
  SampleHost s{call, x, call.s("mode"), call.s("padding_mode"), stridesOf(x.shape)};
  size_t spatial = x.shape.size() - 2;
  auto y = TensorObject::zeros(x.dtype, hostShape(call));
  int64_t at = 0, points = count(y->shape) / std::max<int64_t>(1, y->shape[0] * y->shape[1]);
  for (int64_t n = 0; n < y->shape[0]; ++n)
    for (int64_t c = 0; c < y->shape[1]; ++c)
      for (int64_t o = 0; o < points; ++o) {
        std::vector<double> where;
        for (size_t d = 0; d < spatial; ++d) {
          double g = grid.asDouble((n * points + o) * int64_t(spatial) + int64_t(spatial - 1 - d)),
                 size = double(x.shape[2 + d]);
          bool align = call.i("align_corners") != 0;
          double p = align ? (g + 1) / 2 * (size - 1) : ((g + 1) * size - 1) / 2;
          if (s.mode == "nearest")
            p = std::nearbyint(p);
          else if (s.padding == "border" && s.mode != "cubic")
            p = std::clamp(p, 0.0, size - 1);
          else if (s.padding == "reflection")
            p = reflectHost(p, align ? 0 : -0.5, align ? size - 1 : size - 0.5);
          where.push_back(p);
        }
        y->setDouble(at++, s.value(0, n * s.strides[0] + c * s.strides[1], where));
      }
  return HostTensors{y};
}

} // namespace

void add_sample(Oracles& oracles) {
  oracles["image.grid_sample"] = gridSampleEval;
}

} // namespace bevel::test
