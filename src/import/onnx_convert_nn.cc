// Convolutions and pooling: auto_pad, bias, versions of ceil_mode.
#include "import/onnx_helpers.h"

#include <algorithm>

namespace bevel::onnx {

namespace {

struct WindowAttrs {
  Ints kernel, strides, dilations, pads;
};

// Pads of SAME_UPPER and SAME_LOWER; input extents must be constants unless the stride is 1.
Status autoPad(Node& n, WindowAttrs& w) {
  std::string mode = n.attrStr("auto_pad", "NOTSET");
  size_t rank = w.kernel.size();
  if (mode == "NOTSET" || mode.empty()) return {};
  w.pads.assign(2 * rank, 0);
  if (mode == "VALID") return {};
  if (mode != "SAME_UPPER" && mode != "SAME_LOWER") return n.invalid("unknown auto_pad " + mode);
  for (size_t d = 0; d < rank; ++d) {
    int64_t span = (w.kernel[d] - 1) * w.dilations[d] + 1, total = span - 1;
    if (w.strides[d] != 1) {
      auto in = asConst(n.shape(0)[d + 2]);
      if (!in) return n.unsupported("auto_pad with a stride over a dimension that only the run knows");
      int64_t out = *in == 0 ? 0 : (*in - 1) / w.strides[d] + 1;
      total = (out - 1) * w.strides[d] + span - *in;
    }
    total = std::max<int64_t>(total, 0);
    w.pads[d] = mode == "SAME_UPPER" ? total / 2 : total - total / 2;
    w.pads[rank + d] = total - w.pads[d];
  }
  return {};
}

Result<WindowAttrs> windowOf(Node& n, Ints kernel, bool transposed = false) {
  size_t rank = n.rank(0) < 2 ? 0 : n.rank(0) - 2;
  WindowAttrs w{std::move(kernel), n.attrInts("strides"), n.attrInts("dilations"), n.attrInts("pads")};
  if (w.strides.empty()) w.strides.assign(rank, 1);
  if (w.dilations.empty()) w.dilations.assign(rank, 1);
  if (w.pads.empty()) w.pads.assign(2 * rank, 0);
  if (rank == 0 || w.kernel.size() != rank || w.strides.size() != rank || w.dilations.size() != rank ||
      w.pads.size() != 2 * rank)
    return n.invalid(fmt::format("kernel, strides, dilations and pads must fit {} spatial dimensions", rank));
  constexpr int64_t kMost = int64_t(1) << 31;
  for (size_t d = 0; d < rank; ++d)
    if (w.kernel[d] < 1 || w.strides[d] < 1 || w.dilations[d] < 1 || w.kernel[d] > kMost ||
        w.strides[d] > kMost || w.dilations[d] > kMost)
      return n.invalid("kernel, strides and dilations must be positive");
  if (!transposed) BEVEL_CHECK(autoPad(n, w));
  return w;
}

Result<Ints> kernelOf(Node& n, size_t weight) {
  Ints kernel;
  for (size_t d = 2; d < n.rank(weight); ++d) {
    auto k = asConst(n.shape(weight)[d]);
    if (!k) return n.unsupported("a kernel whose size only the run knows");
    kernel.push_back(*k);
  }
  if (n.hasAttr("kernel_shape") && n.attrInts("kernel_shape") != kernel)
    return n.invalid("kernel_shape differs from the weight's shape");
  return kernel;
}

Attrs convAttrs(Node& n, const WindowAttrs& w) {
  return {{"strides", w.strides},
          {"padding", w.pads},
          {"dilation", w.dilations},
          {"groups", n.attrInt("group", 1)}};
}

// A vector of the channels that broadcasts over the spatial dimensions.
Term perChannel(Node& n, size_t vector, size_t spatial) {
  return n.x(vector).unsqueeze(upTo(1, int64_t(spatial) + 1));
}

Result<Term> withBias(Node& n, Term y, size_t bias) {
  if (!n.has(bias)) return y;
  if (n.rank(bias) != 1) return n.invalid("the bias must be a vector");
  BEVEL_TRY(GraphExpr sums, y);
  BEVEL_CHECK(n.check(eq(n.shape(bias)[0], shapeOfExpr(sums)[1]), "the bias does not fit the channels"));
  return y + perChannel(n, bias, rankOf(sums) - 2);
}

// A convolution of x with the weight of input `weight`, by the node's attributes.
Result<Term> convolved(Node& n, const Term& x, size_t weight, const Term& w) {
  size_t rank = n.rank(0) < 2 ? 0 : n.rank(0) - 2;
  if (rank < 1 || rank > 3) return n.unsupported(fmt::format("a convolution of {} spatial dimensions", rank));
  BEVEL_TRY(Ints kernel, kernelOf(n, weight));
  BEVEL_TRY(WindowAttrs window, windowOf(n, kernel));
  return n.emit(fmt::format("nn.conv{}d", rank), {x, w}, convAttrs(n, window));
}

Result<Values> conv(Node& n) {
  BEVEL_TRY(Term y, convolved(n, n.x(0), 1, n.x(1)));
  BEVEL_TRY(y, withBias(n, y, 2));
  return y;
}

// A depthwise convolution over the state of the last call and the input; the new state is the end of both.
Result<Values> causalConv(Node& n) { // input, weight, bias, past state
  if (n.rank(0) != 3 || n.rank(1) != 3) return n.invalid("three dimensions are expected");
  std::string activation = n.attrStr("activation", "none");
  if (activation != "none" && activation != "silu" && activation != "swish")
    return n.invalid("unknown activation " + activation);
  auto channels = asConst(n.shape(0)[1]), k = asConst(n.shape(1)[2]);
  if (!channels || !k || *k < 1) return n.unsupported("channels or a kernel that only the run knows");
  Array<Expr> state = {n.shape(0)[0], n.shape(0)[1], intImm(*k - 1)};
  Term past = n.has(3) ? n.x(3) : n.emit("broadcast_to", {Node::scalarConstant(n.dtype(0), 0), state});
  BEVEL_TRY(GraphExpr all, n.emit("concat", {past, n.x(0)}, {{"axis", 2}}));
  Attrs attrs = convAttrs(n, {{*k}, {1}, {1}, {0, 0}});
  attrs.emplace_back("groups", *channels);
  BEVEL_TRY(Term y, withBias(n, n.emit("nn.conv1d", {all, n.x(1)}, attrs), 2));
  if (activation != "none") y = y.apply("nn.silu");
  const Expr length = shapeOfExpr(all)[2];
  return n.results({y, Term(n, all).slice(2, n.analyzer().simplify(length - (*k - 1)), length)});
}

Result<Term> integerConv(Node& n, size_t weight, size_t zeroX, size_t zeroW) {
  Term x = centred(n, 0, zeroX, int64_t(n.rank(0)) - 1);
  return convolved(n, x, weight, centred(n, weight, zeroW, 0));
}

Result<Values> convInteger(Node& n) {
  BEVEL_TRY(Term y, integerConv(n, 1, 2, 3));
  return y;
}

Result<Values> qlinearConv(Node& n) { // x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, B
  BEVEL_TRY(Term acc, integerConv(n, 3, 2, 5));
  BEVEL_TRY(acc, withBias(n, acc, 8));
  Term factor = n.x(1) * (n.rank(4) == 1 ? perChannel(n, 4, n.rank(0) - 2) : n.x(4)) / n.x(6);
  return requantized(n, acc, factor, 7);
}

Result<Values> convTranspose(Node& n) {
  size_t rank = n.rank(0) < 2 ? 0 : n.rank(0) - 2;
  if (rank < 1 || rank > 3) return n.unsupported(fmt::format("a convolution of {} spatial dimensions", rank));
  BEVEL_TRY(Ints kernel, kernelOf(n, 1));
  BEVEL_TRY(WindowAttrs w, windowOf(n, kernel, true));
  Ints extra = n.attrInts("output_padding"), shape = n.attrInts("output_shape");
  if (extra.empty()) extra.assign(rank, 0);
  if (extra.size() != rank) return n.invalid("output_padding does not fit the spatial dimensions");
  std::string mode = n.attrStr("auto_pad", "NOTSET");
  if (shape.size() == rank + 2) shape.erase(shape.begin(), shape.begin() + 2);
  if (!shape.empty() && shape.size() != rank)
    return n.invalid("output_shape does not fit the spatial dimensions");
  bool same = mode == "SAME_UPPER" || mode == "SAME_LOWER";
  if (mode == "VALID") w.pads.assign(2 * rank, 0);
  for (size_t d = 0; d < rank && (same || !shape.empty()); ++d) {
    auto in = asConst(n.shape(0)[d + 2]);
    if (!in) return n.unsupported("an output shape over a dimension that only the run knows");
    using Wide = __int128; // attributes are any numbers
    Wide wanted = shape.empty() ? Wide(*in) * w.strides[d] : shape[d],
         reach = Wide(w.kernel[d] - 1) * w.dilations[d] + 1;
    Wide exact = Wide(w.strides[d]) * (*in - 1) + extra[d] + reach - wanted;
    constexpr Wide kMost = Wide(1) << 40;
    if (exact > kMost || exact < -kMost) return n.invalid("the output shape is out of range");
    int64_t total = int64_t(exact);
    if (total < 0) { // more output than the windows reach: filled at the end
      extra[d] -= total;
      total = 0;
    }
    w.pads[d] = mode == "SAME_UPPER" ? total / 2 : total - total / 2;
    w.pads[rank + d] = total - w.pads[d];
  }
  Attrs attrs = convAttrs(n, w);
  attrs.emplace_back("output_padding", extra);
  BEVEL_TRY(Term y,
            withBias(n, n.emit(fmt::format("nn.conv_transpose{}d", rank), {n.x(0), n.x(1)}, attrs), 2));
  return y;
}

Attrs poolAttrs(Node& n, const WindowAttrs& w) {
  return {{"kernel", w.kernel},
          {"strides", w.strides},
          {"dilation", w.dilations},
          {"padding", w.pads},
          {"ceil_mode", n.attrInt("ceil_mode", 0)}};
}

Result<Values> maxPool(Node& n) {
  BEVEL_TRY(WindowAttrs w, windowOf(n, n.attrInts("kernel_shape")));
  Attrs attrs = poolAttrs(n, w);
  if (n.proto.outputs.size() < 2 || n.proto.outputs[1].empty()) return n.x(0).apply("nn.max_pool", attrs);
  attrs.emplace_back("storage_order", n.attrInt("storage_order", 0));
  return n.fields(n.x(0).apply("nn.max_pool_with_indices", attrs));
}

Result<Values> averagePool(Node& n) {
  BEVEL_TRY(WindowAttrs w, windowOf(n, n.attrInts("kernel_shape")));
  Attrs attrs = poolAttrs(n, w);
  attrs.emplace_back("count_include_pad", n.attrInt("count_include_pad", 0));
  return n.x(0).apply("nn.avg_pool", attrs);
}

double exponentOf(Node& n) {
  return n.opset < 2 ? n.attrFloat("p", 2) : double(n.attrInt("p", 2));
}
// |x|^p, and the root of a sum of such.
Term powers(Node& n, double p) {
  return Term::binary("power", n.x(0).apply("abs"), p);
}
Term root(const Term& sum, double p) {
  return Term::binary("power", sum, 1 / p);
}

// (sum |x|^p)^(1/p): through the average, times the window's size.
Result<Values> lpPool(Node& n) {
  double p = exponentOf(n), cells = 1;
  BEVEL_TRY(WindowAttrs w, windowOf(n, n.attrInts("kernel_shape")));
  Term e = powers(n, p);
  Array<Expr> pads;
  size_t rank = w.kernel.size();
  for (size_t side = 0; side < 2; ++side)
    for (size_t d = 0; d < rank + 2; ++d) pads.push_back(intImm(d < 2 ? 0 : w.pads[side * rank + d - 2]));
  e = n.emit("nn.pad", {e, pads});
  w.pads.assign(2 * rank, 0);
  for (int64_t k : w.kernel) cells *= double(k);
  if (n.attrInt("ceil_mode", 0)) return n.unsupported("ceil_mode of LpPool");
  return root(e.apply("nn.avg_pool", poolAttrs(n, w)) * cells, p);
}

Term overSpatial(Node& n, const char* op, const Term& e) {
  return n.rank(0) <= 2 ? e : e.reduce(op, upTo(2, int64_t(n.rank(0))), true);
}
Result<Values> globalPool(const char* op, Node& n) {
  return overSpatial(n, op, n.x(0));
}
Result<Values> globalLp(Node& n) {
  double p = exponentOf(n);
  return root(overSpatial(n, "sum", powers(n, p)), p);
}

} // namespace

std::vector<Conversion> nnConversions() {
  return {{"CausalConvWithState", 27, causalConv, 2},
          {"Conv", 1, conv, 2},
          {"ConvTranspose", 1, convTranspose, 2},
          {"ConvInteger", 10, convInteger, 2},
          {"QLinearConv", 10, qlinearConv, 8},
          {"MaxPool", 1, maxPool, 1},
          {"AveragePool", 1, averagePool, 1},
          {"LpPool", 1, lpPool, 1},
          {"GlobalAveragePool", 1, std::bind_front(globalPool, "mean"), 1},
          {"GlobalMaxPool", 1, std::bind_front(globalPool, "max"), 1},
          {"GlobalLpPool", 1, globalLp, 1}};
}

} // namespace bevel::onnx
