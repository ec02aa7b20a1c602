// Which algorithm computes an operator.
//
// A transposed convolution whose windows do not overlap is a matrix product a pixel, and a move of its
// results. With x [n, c, h, w] and W [c, o, 2, 2]:
//
//   y = R.nn.conv_transpose2d(x, W, strides=[2, 2])
//   →   lv = R.nn.conv2d(x, W')             4*o outputs, kernel 1
//       lv1 = R.reshape(lv, (n, 2, 2, o, h, w))
//       lv2 = R.permute_dims(lv1, axes=[0, 3, 4, 1, 5, 2])
//       y = R.reshape(lv2, (n, o, 2*h, 2*w))
#include "graph/op.h"
#include "graph/rewrite.h"
#include "select/passes.h"

namespace bevel {
namespace {

using Ints = std::vector<int64_t>;

bool allEqual(const Ints& v, int64_t value) {
  for (int64_t x : v)
    if (x != value) return false;
  return true;
}

// W [c, o, taps…] as the weight [taps * o, c, 1…] of a convolution.
GraphExpr pixelWeight(const ConstantNode& w) {
  const Ints& from = w.value->shape;
  int64_t c = from[0], o = from[1], taps = w.value->size() / std::max<int64_t>(c * o, 1);
  Ints to(from.size(), 1);
  to[0] = taps * o;
  to[1] = c;
  auto out = TensorObject::zeros(w.value->dtype, to);
  for (int64_t t = 0; t < taps; ++t)
    for (int64_t j = 0; j < o; ++j)
      for (int64_t k = 0; k < c; ++k)
        out->setDouble((t * o + j) * c + k, w.value->asDouble((k * o + j) * taps + t));
  return make<const ConstantNode>(out, w.name);
}

// Nothing where windows overlap, or the call has padding or groups.
GraphExpr pixels(const GraphCallNode& c, const ConstantNode& w) {
  const auto *x = knownTensor(c.args[0]), *y = c.type.as<TensorTypeNode>();
  if (!x || w.value->size() == 0 || !w.value->dtype.isFloat()) return nullptr;
  size_t n = x->shape.size() - 2;
  Ints kernel(w.value->shape.begin() + 2, w.value->shape.end());
  bool apart = attrInts(c.attrs, "strides") == kernel && allEqual(attrInts(c.attrs, "dilation"), 1) &&
               allEqual(attrInts(c.attrs, "padding"), 0) &&
               allEqual(attrInts(c.attrs, "output_padding"), 0) && attrInt(c.attrs, "groups", 1) == 1 &&
               attrStr(c.attrs, "data_layout", "NCHW") == "NCHW";
  if (!apart || allEqual(kernel, 1)) return nullptr;
  Array<Expr> split = {x->shape[0]};
  Ints axes = {0, int64_t(n) + 1};
  for (size_t d = 0; d < n; ++d) {
    split.push_back(intImm(kernel[d]));
    axes.push_back(int64_t(n + 2 + d));
    axes.push_back(int64_t(1 + d));
  }
  split.push_back(intImm(w.value->shape[1]));
  for (size_t d = 0; d < n; ++d) split.push_back(x->shape[d + 2]);
  GraphExpr product = opCall("nn.conv" + std::to_string(n) + "d", {c.args[0], pixelWeight(w)});
  GraphExpr parts = opCall("reshape", {product, make<const ShapeExprNode>(split)});
  GraphExpr moved = opCall("permute_dims", {parts}, dict({{"axes", intList(axes)}}));
  return opCall("reshape", {moved, make<const ShapeExprNode>(y->shape)});
}

} // namespace

Result<Module> chooseAlgorithm(const Module& module, const Ask& ask) {
  Pattern weight = constantTensor();
  Pattern conv =
      callAny({"nn.conv_transpose1d", "nn.conv_transpose2d", "nn.conv_transpose3d"}, {anything(), weight});
  Rules rules = {{"pixel products", conv,
                  [=](const Match& m) { return pixels(m.root(), *m[weight].as<ConstantNode>()); },
                  "its windows do not overlap"}};
  return rewriteGraph(module, withAddedRules("choose_algorithm", std::move(rules)), ask);
}

} // namespace bevel
