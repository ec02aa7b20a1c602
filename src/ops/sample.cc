// Sampling at coordinates that are data: grid_sample.
//
//   y[n, c, o…] = sum over taps t of weight(t) * x[n, c, floor(at[o]) + t],   at = position of grid[n, o…] in
//   x
//
// The coordinates are a tensor of their own, so that the taps of all axes share them.
#include "ops/common.h"

namespace bevel::ops {

namespace {

constexpr double kCubic = -0.75;  // Keys' a
constexpr double kFarthest = 1e9; // coordinates beyond are as good as there

Result<Type> gridSampleInfer(const OpCall& call, InferContext& context) {
  size_t rank = call.rank(0);
  BEVEL_CHECK(requireOneOf(call, "mode", {"nearest", "linear", "cubic"}));
  BEVEL_CHECK(requireOneOf(call, "padding_mode", {"zeros", "border", "reflection"}));
  if (rank < 3 || rank > 5 || call.rank(1) != rank)
    return call.unsupported("takes one to three spatial dimensions and a grid of as many axes as the input");
  const Array<Expr>&x = call.shape(0), &grid = call.shape(1);
  BEVEL_CHECK(context.require(eq(grid[rank - 1], intImm(int64_t(rank) - 2)), call,
                              "the grid's last axis holds one coordinate a spatial dimension"));
  BEVEL_CHECK(context.require(eq(grid[0], x[0]), call, "input and grid differ in batches"));
  Array<Expr> shape = {x[0], x[1]};
  for (size_t d = 1; d + 1 < rank; ++d) shape.push_back(grid[d]);
  Expr points = product(context.analyzer, grid, 0, rank - 1);
  for (size_t d = 2; d < rank; ++d)
    BEVEL_CHECK(context.require(logicalOr(x[d] > intImm(0), eq(points, intImm(0))), call,
                                "an image without elements cannot be sampled"));
  return tensorOf(call.dtype(0), shape);
}

/// x mirrored at low and high until it lies between.
Expr reflect(const Expr& x, const Expr& low, const Expr& high) {
  Expr span = high - low, period = span + span;
  Expr away = callIntrin(Intrin::kFabs, x - low);
  Expr within = away - callIntrin(Intrin::kFloor, fdiv(away, period)) * period;
  return select(span > real(x, 0), low + min(within, period - within), low);
}

struct Axis {
  Expr extent, low, high; // as float
  Expr size;              // as integer
};

Axis axisOf(const OpCall& call, DType t, const Expr& size) {
  Expr n = castTo(t, size);
  if (call.i("align_corners")) return {n, real(n, 0), n - real(n, 1), size};
  return {n, real(n, -0.5), n - real(n, 0.5), size};
}

/// Weights of the taps at fraction f behind the first whole position; their offsets begin at `first`.
std::vector<Expr> tapWeights(const std::string& mode, const Expr& f, int64_t& first) {
  auto c = [&](double v) { return real(f, v); };
  first = 0;
  if (mode == "linear") return {c(1) - f, f};
  first = -1;
  double a = kCubic;
  auto outer = [&](const Expr& x) { return ((c(a) * x - c(5 * a)) * x + c(8 * a)) * x - c(4 * a); };
  auto inner = [&](const Expr& x) { return (c(a + 2) * x - c(a + 3)) * x * x + c(1); };
  return {outer(f + c(1)), inner(f), inner(c(1) - f), outer(c(2) - f)};
}

/// One element of x at whole positions, and whether it lies inside where outside is zero.
Expr pixel(const std::string& padding, const te::Tensor& x, Array<Expr> index, const std::vector<Expr>& at,
           const std::vector<Axis>& axes, DType t) {
  Expr inside = boolImm(true);
  for (size_t d = 0; d < at.size(); ++d) {
    Expr k = at[d], last = axes[d].size - 1;
    if (padding == "zeros") inside = logicalAnd(inside, logicalAnd(k >= intImm(0), k <= last));
    if (padding == "reflection") k = castTo(kInt64, reflect(castTo(t, k), axes[d].low, axes[d].high));
    index.push_back(max(min(k, last), intImm(0)));
  }
  Expr value = castTo(t, x(index));
  return padding == "zeros" ? select(inside, value, constantFloat(t, 0)) : value;
}

Result<TeTensors> gridSampleCompute(const OpCall& call, const TeTensors& in) {
  const te::Tensor &x = in[0], &grid = in[1];
  std::string mode = call.s("mode"), padding = call.s("padding_mode");
  size_t spatial = x.rank() - 2;
  DType t = computeType(grid.dtype()).bits > computeType(x.dtype()).bits ? computeType(grid.dtype())
                                                                         : computeType(x.dtype());
  std::vector<Axis> axes;
  for (size_t d = 0; d < spatial; ++d) axes.push_back(axisOf(call, t, x.shape()[2 + d]));
  te::Tensor coordinates = te::compute(grid.shape(), "coordinates", [&](const Array<Var>& i) {
    Expr g = castTo(t, grid(exprs(i))), one = real(g, 1), half = real(g, 0.5), at = real(g, 0);
    for (size_t d = 0; d < spatial; ++d) { // the last coordinate is that of the first spatial axis
      const Axis& a = axes[d];
      Expr here =
          call.i("align_corners") ? (g + one) * half * (a.extent - one) : ((g + one) * a.extent - one) * half;
      if (mode == "nearest")
        here = callIntrin(Intrin::kNearbyInt, here);
      else if (padding == "border" && mode != "cubic") // cubic: the taps alone are clamped
        here = max(min(here, a.extent - one), real(g, 0));
      else if (padding == "reflection")
        here = reflect(here, a.low, a.high);
      at = select(eq(i.back(), intImm(int64_t(spatial - 1 - d))), here, at);
    }
    return max(min(at, real(g, kFarthest)), real(g, -kFarthest));
  });
  return TeTensors{te::compute(resultShape(call), "grid_sample", [&](const Array<Var>& i) {
    std::vector<Expr> whole, at(spatial);
    std::vector<std::vector<Expr>> weights(spatial);
    int64_t first = 0;
    for (size_t d = 0; d < spatial; ++d) {
      Array<Expr> place = {i[0]};
      for (size_t o = 2; o < i.size(); ++o) place.push_back(i[o]);
      place.push_back(intImm(int64_t(spatial - 1 - d)));
      Expr c = coordinates(place), base = callIntrin(Intrin::kFloor, c);
      whole.push_back(castTo(kInt64, base));
      if (mode == "nearest")
        weights[d] = {real(c, 1)};
      else
        weights[d] = tapWeights(mode, c - base, first);
    }
    auto along = [&](auto&& self, size_t d) -> Expr {
      if (d == spatial) return pixel(padding, x, {i[0], i[1]}, at, axes, t);
      Expr sum;
      for (size_t k = 0; k < weights[d].size(); ++k) {
        at[d] = whole[d] + intImm(first + int64_t(k));
        Expr term = self(self, d + 1);
        if (mode != "nearest") term = term * weights[d][k];
        sum = sum ? sum + term : term;
      }
      return sum;
    };
    return castTo(x.dtype(), along(along, 0));
  })};
}

} // namespace

void register_sample(OpRegistry& r) {
  r.add({.name = "image.grid_sample",
         .doc = "Elements of x [n, c, d…] at coordinates of grid [n, o…, rank - 2] in [-1, 1], innermost "
                "axis first, interpolated.\n"
                "ONNX GridSample.",
         .inputs = {OpInput("x").of(Elements::kFloats).rank(3, 64),
                    OpInput("grid").of(Elements::kFloats).rank(3, 64)},
         .attrs = {strAttr("mode", "linear"), strAttr("padding_mode", "zeros"), intAttr("align_corners", 0)},
         .infer = gridSampleInfer,
         .compute = gridSampleCompute,
         .tests = {"float32[2,3,4,5] float32[2,3,2,2]",
                   "float32[1,1,4,3] float32[1,4,3,2] mode=cubic padding_mode=border",
                   "float32[1,2,3,2,4] float32[1,2,2,2,3] padding_mode=reflection align_corners=1",
                   "float32[1,1,5,4] float32[1,6,1,2] mode=cubic padding_mode=reflection"}});
}

} // namespace bevel::ops
