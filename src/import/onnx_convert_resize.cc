// Resize and Upsample: output extents from scales or sizes, then one resampling an axis. GridSample.
#include "import/onnx_helpers.h"

#include <algorithm>
#include <cmath>

namespace bevel::onnx {

namespace {

struct Plan {
  Ints axes;
  Array<Expr> extents = {};                       // parallel to axes
  std::vector<double> scales = {};                // given and constant: parallel to axes
  GraphExpr scaleTensor = nullptr, roi = nullptr; // of the run, or null
};

// The extents along the plan's axes, as floats.
Term inputExtents(Node& n, const Plan& p) {
  Array<Expr> extents;
  for (int64_t a : p.axes) extents.push_back(n.shape(0)[size_t(a)]);
  return n.emit("shape_to_tensor", {extents}).cast(kFloat32);
}

// floor(extent * scale) in single precision, as exporters compute it: 10 * 0.7 is 7.
Result<Array<Expr>> scaledExtents(Node& n, const Plan& p) {
  Array<Expr> out;
  bool exact = !p.scales.empty();
  for (size_t k = 0; exact && k < p.axes.size(); ++k) {
    const Expr& in = n.shape(0)[size_t(p.axes[k])];
    auto c = asConst(in);
    if (!(p.scales[k] > 0 && p.scales[k] < 1e6)) return n.invalid("a scale is out of range");
    if (c)
      out.push_back(intImm(int64_t(std::floor(float(*c) * float(p.scales[k])))));
    else if (p.scales[k] == std::floor(p.scales[k]))
      out.push_back(n.analyzer().simplify(in * int64_t(p.scales[k])));
    else
      exact = false;
  }
  if (exact) return out;
  GraphExpr scales = p.scaleTensor;
  if (!scales)
    scales =
        make<const ConstantNode>(Tensor(TensorObject::of(kFloat32, {int64_t(p.scales.size())}, p.scales)));
  return n.ints((inputExtents(n, p) * scales).apply("floor").cast(kInt64));
}

// The same of sizes that only the run knows.
Status keepUnknownAspect(Node& n, Plan& p, bool smallest) {
  Term in = inputExtents(n, p), sizes = n.x(3).cast(kFloat32);
  Term scale = (sizes / in).reduce(smallest ? "min" : "max", std::nullopt, true);
  BEVEL_TRY(p.extents, n.ints((in * scale + 0.5).apply("floor").cast(kInt64)));
  BEVEL_TRY(p.scaleTensor, scale.broadcast({intImm(int64_t(p.axes.size()))}));
  return {};
}

// keep_aspect_ratio_policy: one scale for all axes, sizes rounded half up.
Status keepAspect(Node& n, Plan& p) {
  std::string policy = n.attrStr("keep_aspect_ratio_policy", "stretch");
  if (policy == "stretch") return {};
  double scale = policy == "not_larger" ? INFINITY : 0;
  for (size_t k = 0; k < p.axes.size(); ++k) {
    auto in = asConst(n.shape(0)[size_t(p.axes[k])]), size = asConst(p.extents[k]);
    if (!in || !size || *in == 0) return keepUnknownAspect(n, p, policy == "not_larger");
    double s = double(*size) / double(*in);
    scale = policy == "not_larger" ? std::min(scale, s) : std::max(scale, s);
  }
  for (size_t k = 0; k < p.axes.size(); ++k) {
    double size = std::floor(scale * double(*asConst(n.shape(0)[size_t(p.axes[k])])) + 0.5);
    p.extents.set(k, intImm(int64_t(size)));
    p.scales.push_back(scale);
  }
  return {};
}

Status constantScales(Node& n, size_t input, Plan& p) {
  if (!n.has(input) || !n.inputs[input]->type.is<TensorTypeNode>())
    return n.invalid("the scales are missing");
  if (n.rank(input) != 1) return n.invalid("the scales must be a vector");
  auto count = asConst(n.shape(input)[0]);
  if (!count || size_t(*count) != p.axes.size()) return n.invalid("one scale an axis is needed");
  if (Tensor t = n.constant(input))
    for (int64_t k = 0; k < t->size(); ++k) p.scales.push_back(t->asDouble(k));
  else { // NaN is not positive either
    BEVEL_TRY(p.scaleTensor, n.x(input).cast(kFloat32));
    Term good = n.emit("greater", {p.scaleTensor, 0});
    BEVEL_CHECK(checkElements(n, good, intImm(1), intImm(1), "a scale is not positive"));
  }
  return {};
}

Term element(Node& n, const GraphExpr& vector, const Ints& at) {
  auto index = TensorObject::of(kInt64, at.size() == 1 ? Ints{} : Ints{int64_t(at.size())}, at);
  return n.emit("take", {vector, make<const ConstantNode>(Tensor(index))});
}

// Resamples every axis that changes. `transform` and `nearest` as the version says.
Result<Values> resample(Node& n, const Plan& p, const std::string& transform, const std::string& nearest) {
  std::string mode = n.attrStr("mode", "nearest");
  if (mode == "bilinear" || mode == "trilinear") mode = "linear";
  if (mode != "nearest" && mode != "linear" && mode != "cubic") return n.unsupported("mode " + mode);
  Term e = n.x(0);
  bool changed = false;
  // What is interpolated along several axes is rounded once, at the end.
  DType given = n.dtype(0), wide = given.isInteger()                    ? DType::Float(64)
                                   : given.isFloat() && given.bits < 32 ? kFloat32
                                                                        : given;
  bool widened = mode != "nearest" && wide != given && p.axes.size() > 1;
  if (widened) e = e.cast(wide);
  for (size_t k = 0; k < p.axes.size(); ++k) {
    const Expr& in = n.shape(0)[size_t(p.axes[k])];
    bool same = provedEqual(n.analyzer(), in, p.extents[k]) && !p.scaleTensor &&
                (p.scales.empty() || p.scales[k] == 1) && transform != "tf_crop_and_resize";
    if (same) continue;
    Term scale = p.scaleTensor ? element(n, p.scaleTensor, {int64_t(k)}) : absent(), roi = absent();
    if (transform == "tf_crop_and_resize") {
      if (!p.roi) return n.invalid("the region of interest is missing");
      if (!dtypeOfExpr(p.roi).isFloat()) return n.invalid("the region of interest must be floats");
      roi = element(n, p.roi, {int64_t(k), int64_t(k + p.axes.size())});
    }
    Attrs attrs = {{"axis", p.axes[k]},
                   {"mode", mode},
                   {"coordinate_transformation_mode", transform},
                   {"nearest_mode", nearest},
                   {"cubic_coeff_a", n.attrFloat("cubic_coeff_a", -0.75)},
                   {"exclude_outside", n.attrInt("exclude_outside", 0)},
                   {"extrapolation_value", n.attrFloat("extrapolation_value", 0)},
                   {"antialias", n.attrInt("antialias", 0)}};
    if (!p.scales.empty()) attrs.emplace_back("scale", p.scales[k]);
    e = n.emit("image.resize_axis", {e, Array<Expr>{p.extents[k]}, scale, roi}, attrs);
    changed = true;
  }
  if (!changed && !widened) return Values{n.in(0)};
  // Sums of weights such as 0.3 + 0.7 are one.
  if (widened && given.isInteger() && given.bits <= 16) e = e.cast(kFloat32);
  return e.cast(given);
}

Plan allAxes(Node& n) {
  return {upTo(0, int64_t(n.rank(0)))};
}

Result<Values> resize11(Node& n) { // x, roi, scales, sizes
  Plan p = allAxes(n);
  if (n.hasAttr("axes")) {
    p.axes = n.attrInts("axes");
    for (int64_t& a : p.axes) {
      BEVEL_TRY(a, axisOf(n, a, n.rank(0)));
    }
  }
  if (n.has(1)) p.roi = *n.x(1);
  bool sizes = n.has(3), emptyScales = !n.has(2) || (n.rank(2) == 1 && isConst(n.shape(2)[0], 0));
  if (sizes) {
    BEVEL_TRY(p.extents, n.ints(3));
    if (p.extents.size() != p.axes.size()) return n.invalid("one size an axis is needed");
    BEVEL_CHECK(keepAspect(n, p));
  } else if (emptyScales)
    return n.invalid("neither scales nor sizes are given");
  else {
    BEVEL_CHECK(constantScales(n, 2, p));
    BEVEL_TRY(p.extents, scaledExtents(n, p));
  }
  return resample(n, p, n.attrStr("coordinate_transformation_mode", "half_pixel"),
                  n.attrStr("nearest_mode", "round_prefer_floor"));
}

// Before opset 11 coordinates are divided by the scale, and nearest is the element below.
Result<Values> resize10(Node& n) {
  Plan p = allAxes(n);
  BEVEL_CHECK(constantScales(n, 1, p));
  BEVEL_TRY(p.extents, scaledExtents(n, p));
  return resample(n, p, "asymmetric", "floor");
}

Result<Values> upsample7(Node& n) {
  Plan p = allAxes(n);
  p.scales = n.attrFloats("scales");
  if (p.scales.size() != p.axes.size()) return n.invalid("one scale an axis is needed");
  BEVEL_TRY(p.extents, scaledExtents(n, p));
  return resample(n, p, "asymmetric", "floor");
}

Result<Values> gridSample(Node& n) {
  std::string mode = n.attrStr("mode", "linear");
  if (mode == "bilinear") mode = "linear";
  if (mode == "bicubic") mode = "cubic";
  return n.emit("image.grid_sample", {n.x(0), n.x(1)},
                {{"mode", mode},
                 {"padding_mode", n.attrStr("padding_mode", "zeros")},
                 {"align_corners", n.attrInt("align_corners", 0)}});
}

} // namespace

std::vector<Conversion> resizeConversions() {
  return {{"GridSample", 16, gridSample, 2},
          {"Resize", 10, resize10, 1},
          {"Resize", 11, resize11, 1},
          {"Upsample", 7, upsample7, 1},
          {"Upsample", 9, resize10, 1}};
}

} // namespace bevel::onnx
