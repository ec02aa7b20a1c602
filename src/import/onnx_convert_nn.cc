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

std::vector<std::pair<std::string, NodeRef>> convAttrs(Node& n, const WindowAttrs& w) {
  return {{"strides", intList(w.strides)},
          {"padding", intList(w.pads)},
          {"dilation", intList(w.dilations)},
          {"groups", intImm(n.attrInt("group", 1))}};
}

// A vector of the channels that broadcasts over the spatial dimensions.
Result<GraphExpr> perChannel(Node& n, const GraphExpr& v, size_t spatial) {
  Ints tail;
  for (size_t d = 1; d <= spatial; ++d) tail.push_back(int64_t(d));
  return unsqueeze(n, v, tail);
}

Result<GraphExpr> withBias(Node& n, GraphExpr y, size_t bias) {
  if (!n.has(bias)) return y;
  if (n.rank(bias) != 1) return n.invalid("the bias must be a vector");
  BEVEL_CHECK(n.check(eq(n.shape(bias)[0], shapeOfExpr(y)[1]), "the bias does not fit the channels"));
  BEVEL_TRY(GraphExpr b, perChannel(n, n.x(bias), rankOf(y) - 2));
  return binaryOp(n, "add", y, b);
}

Result<Values> conv(Node& n) {
  BEVEL_CHECK(n.require(2));
  size_t rank = n.rank(0) < 2 ? 0 : n.rank(0) - 2;
  if (rank < 1 || rank > 3) return n.unsupported(fmt::format("a convolution of {} spatial dimensions", rank));
  BEVEL_TRY(Ints kernel, kernelOf(n, 1));
  BEVEL_TRY(WindowAttrs w, windowOf(n, kernel));
  BEVEL_TRY(GraphExpr y, n.emit(fmt::format("nn.conv{}d", rank), {n.x(0), n.x(1)}, dict(convAttrs(n, w))));
  BEVEL_TRY(y, withBias(n, y, 2));
  return Values{n.value(y)};
}

// A depthwise convolution over the state of the last call and the input; the new state is the end of both.
Result<Values> causalConv(Node& n) { // input, weight, bias, past state
  BEVEL_CHECK(n.require(2));
  if (n.rank(0) != 3 || n.rank(1) != 3) return n.invalid("three dimensions are expected");
  std::string activation = n.attrStr("activation", "none");
  if (activation != "none" && activation != "silu" && activation != "swish")
    return n.invalid("unknown activation " + activation);
  auto channels = asConst(n.shape(0)[1]), k = asConst(n.shape(1)[2]);
  if (!channels || !k || *k < 1) return n.unsupported("channels or a kernel that only the run knows");
  GraphExpr past = n.x(3);
  if (!n.has(3)) {
    BEVEL_TRY(past, n.emit("broadcast_to", {Node::scalarConstant(n.dtype(0), 0),
                                            Node::shapeArg({n.shape(0)[0], n.shape(0)[1], intImm(*k - 1)})}));
  }
  BEVEL_TRY(GraphExpr all, n.emit("concat", {past, n.x(0)}, {{"axis", intImm(2)}}));
  WindowAttrs w{{*k}, {1}, {1}, {0, 0}};
  auto attrs = convAttrs(n, w);
  attrs.back().second = intImm(*channels);
  BEVEL_TRY(GraphExpr y, n.emit("nn.conv1d", {all, n.x(1)}, dict(attrs)));
  BEVEL_TRY(y, withBias(n, y, 2));
  if (activation != "none") {
    BEVEL_TRY(y, unaryOp(n, "nn.silu", y));
  }
  const Expr length = shapeOfExpr(all)[2];
  BEVEL_TRY(GraphExpr state, sliceAxis(n, all, 2, n.analyzer().simplify(length - (*k - 1)), length));
  return Values{n.value(y), n.value(state)};
}

Result<GraphExpr> minusZero(Node& n, size_t x, size_t zero, bool weights) {
  BEVEL_TRY(GraphExpr e, n.castTo(n.x(x), kInt32));
  if (!n.has(zero)) return e;
  BEVEL_TRY(GraphExpr z, n.castTo(n.x(zero), kInt32));
  if (weights && rankOf(z) == 1) {
    BEVEL_TRY(z, perChannel(n, z, rankOf(e) - 1));
  }
  return binaryOp(n, "subtract", e, z);
}

Result<GraphExpr> integerConv(Node& n, size_t weight, size_t zeroX, size_t zeroW) {
  size_t rank = n.rank(0) < 2 ? 0 : n.rank(0) - 2;
  if (rank < 1 || rank > 3) return n.unsupported(fmt::format("a convolution of {} spatial dimensions", rank));
  BEVEL_TRY(Ints kernel, kernelOf(n, weight));
  BEVEL_TRY(WindowAttrs w, windowOf(n, kernel));
  BEVEL_TRY(GraphExpr x, minusZero(n, 0, zeroX, false));
  BEVEL_TRY(GraphExpr k, minusZero(n, weight, zeroW, true));
  return n.emit(fmt::format("nn.conv{}d", rank), {x, k}, dict(convAttrs(n, w)));
}

Result<Values> convInteger(Node& n) {
  BEVEL_CHECK(n.require(2));
  BEVEL_TRY(GraphExpr y, integerConv(n, 1, 2, 3));
  return Values{n.value(y)};
}

Result<Values> qlinearConv(Node& n) { // x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, B
  BEVEL_CHECK(n.require(8));
  BEVEL_TRY(GraphExpr acc, integerConv(n, 3, 2, 5));
  BEVEL_TRY(acc, withBias(n, acc, 8));
  GraphExpr ws = n.x(4);
  if (rankOf(ws) == 1) {
    BEVEL_TRY(ws, perChannel(n, ws, rankOf(acc) - 2));
  }
  BEVEL_TRY(GraphExpr factor, binaryOp(n, "multiply", n.x(1), ws));
  BEVEL_TRY(factor, binaryOp(n, "divide", factor, n.x(6)));
  BEVEL_TRY(GraphExpr y, n.castTo(acc, kFloat32));
  BEVEL_TRY(y, binaryOp(n, "multiply", y, factor));
  BEVEL_TRY(y, unaryOp(n, "round", y));
  DType t = n.dtype(7);
  BEVEL_TRY(GraphExpr zero, n.castTo(n.x(7), kFloat32));
  BEVEL_TRY(y, binaryOp(n, "add", y, zero));
  BEVEL_TRY(y, n.emit("clip", {y, Node::scalarConstant(kFloat32, double(minValue(t))),
                               Node::scalarConstant(kFloat32, double(maxValue(t)))}));
  BEVEL_TRY(y, n.castTo(y, t));
  return Values{n.value(y)};
}

Result<Values> convTranspose(Node& n) {
  BEVEL_CHECK(n.require(2));
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
  auto attrs = convAttrs(n, w);
  attrs.emplace_back("output_padding", intList(extra));
  BEVEL_TRY(GraphExpr y, n.emit(fmt::format("nn.conv_transpose{}d", rank), {n.x(0), n.x(1)}, dict(attrs)));
  BEVEL_TRY(y, withBias(n, y, 2));
  return Values{n.value(y)};
}

std::vector<std::pair<std::string, NodeRef>> poolAttrs(Node& n, const WindowAttrs& w) {
  return {{"kernel", intList(w.kernel)},
          {"strides", intList(w.strides)},
          {"dilation", intList(w.dilations)},
          {"padding", intList(w.pads)},
          {"ceil_mode", intImm(n.attrInt("ceil_mode", 0))}};
}

Result<Values> maxPool(Node& n) {
  BEVEL_CHECK(n.require(1));
  BEVEL_TRY(WindowAttrs w, windowOf(n, n.attrInts("kernel_shape")));
  auto attrs = poolAttrs(n, w);
  if (n.proto.outputs.size() < 2 || n.proto.outputs[1].empty()) return n.one("nn.max_pool", {n.x(0)}, attrs);
  attrs.emplace_back("storage_order", intImm(n.attrInt("storage_order", 0)));
  BEVEL_TRY(GraphExpr both, n.emit("nn.max_pool_with_indices", {n.x(0)}, dict(attrs)));
  return n.fields(both);
}

Result<Values> averagePool(Node& n) {
  BEVEL_CHECK(n.require(1));
  BEVEL_TRY(WindowAttrs w, windowOf(n, n.attrInts("kernel_shape")));
  auto attrs = poolAttrs(n, w);
  attrs.emplace_back("count_include_pad", intImm(n.attrInt("count_include_pad", 0)));
  return n.one("nn.avg_pool", {n.x(0)}, attrs);
}

// (sum |x|^p)^(1/p): through the average, times the window's size.
Result<Values> lpPool(Node& n) {
  BEVEL_CHECK(n.require(1));
  double p = n.opset < 2 ? n.attrFloat("p", 2) : double(n.attrInt("p", 2));
  BEVEL_TRY(WindowAttrs w, windowOf(n, n.attrInts("kernel_shape")));
  DType t = n.dtype(0);
  BEVEL_TRY(GraphExpr e, unaryOp(n, "abs", n.x(0)));
  BEVEL_TRY(e, binaryOp(n, "power", e, Node::scalarConstant(t, p)));
  Array<Expr> pads;
  size_t rank = w.kernel.size();
  for (size_t side = 0; side < 2; ++side)
    for (size_t d = 0; d < rank + 2; ++d) pads.push_back(intImm(d < 2 ? 0 : w.pads[side * rank + d - 2]));
  BEVEL_TRY(e, n.emit("nn.pad", {e, Node::shapeArg(pads)}));
  w.pads.assign(2 * rank, 0);
  double cells = 1;
  for (int64_t k : w.kernel) cells *= double(k);
  if (n.attrInt("ceil_mode", 0)) return n.unsupported("ceil_mode of LpPool");
  BEVEL_TRY(e, n.emit("nn.avg_pool", {e}, dict(poolAttrs(n, w))));
  BEVEL_TRY(e, binaryOp(n, "multiply", e, Node::scalarConstant(t, cells)));
  return n.one("power", {e, Node::scalarConstant(t, 1 / p)});
}

Result<GraphExpr> overSpatial(Node& n, const char* op, const GraphExpr& e) {
  Ints axes;
  for (size_t d = 2; d < rankOf(e); ++d) axes.push_back(int64_t(d));
  if (axes.empty()) return e;
  return reduceOver(n, op, e, axes, true);
}
Result<Values> globalAverage(Node& n) {
  BEVEL_CHECK(n.require(1));
  BEVEL_TRY(GraphExpr e, overSpatial(n, "mean", n.x(0)));
  return Values{n.value(e)};
}
Result<Values> globalMax(Node& n) {
  BEVEL_CHECK(n.require(1));
  BEVEL_TRY(GraphExpr e, overSpatial(n, "max", n.x(0)));
  return Values{n.value(e)};
}
Result<Values> globalLp(Node& n) {
  BEVEL_CHECK(n.require(1));
  double p = n.opset < 2 ? n.attrFloat("p", 2) : double(n.attrInt("p", 2));
  BEVEL_TRY(GraphExpr e, unaryOp(n, "abs", n.x(0)));
  BEVEL_TRY(e, binaryOp(n, "power", e, Node::scalarConstant(n.dtype(0), p)));
  BEVEL_TRY(e, overSpatial(n, "sum", e));
  return n.one("power", {e, Node::scalarConstant(n.dtype(0), 1 / p)});
}

} // namespace

std::vector<Conversion> nnConversions() {
  return {{"CausalConvWithState", 27, causalConv},
          {"Conv", 1, conv},
          {"ConvTranspose", 1, convTranspose},
          {"ConvInteger", 10, convInteger},
          {"QLinearConv", 10, qlinearConv},
          {"MaxPool", 1, maxPool},
          {"AveragePool", 1, averagePool},
          {"LpPool", 1, lpPool},
          {"GlobalAveragePool", 1, globalAverage},
          {"GlobalMaxPool", 1, globalMax},
          {"GlobalLpPool", 1, globalLp}};
}

} // namespace bevel::onnx
