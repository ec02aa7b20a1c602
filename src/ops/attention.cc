// Attention as a composition: scores, an optional bias and mask, softmax over the keys, the weighted sum of values.
#include "ops/common.h"

namespace bevel::ops {

namespace {

Result<Type> attentionInfer(const OpCall& call, InferContext& context) {
  BEVEL_CHECK(requireSameDType(call, 0, 3));
  const Array<Expr>&q = call.shape(0), &k = call.shape(1), &v = call.shape(2);
  for (size_t d : {size_t(0), size_t(2)})
    for (const auto* other : {&k, &v})
      BEVEL_CHECK(context.require(eq(q[d], (*other)[d]), call, "batch and heads of the inputs differ"));
  BEVEL_CHECK(context.require(eq(q[3], k[3]), call, "queries and keys have different widths"));
  BEVEL_CHECK(context.require(eq(k[1], v[1]), call, "there is not one value for each key"));
  if (std::string mask = call.s("causal_mask"); !mask.empty() && mask != "TopLeft" && mask != "BottomRight")
    return call.invalid("causal_mask is \"TopLeft\" or \"BottomRight\", not \"" + mask + "\"");
  return tensorOf(call.dtype(0), {q[0], q[1], q[2], v[3]});
}

Result<GraphExpr> attentionDecompose(const OpCall& call, BlockBuilder& builder) {
  DType t = call.dtype(0);
  auto emit = [&](const char* op, Array<GraphExpr> args, Dict attrs = nullptr) {
    return builder.emit(opCall(op, std::move(args), std::move(attrs)));
  };
  auto permute = [&](const GraphExpr& e, const Ints& axes) {
    return emit("permute_dims", {e}, dict({{"axes", intList(axes)}}));
  };
  auto scalar = [](DType dtype, double value) {
    auto tensor = TensorObject::zeros(dtype, {});
    tensor->setDouble(0, value);
    return GraphExpr(make<const ConstantNode>(Tensor(tensor)));
  };
  double scale = call.hasAttr("scale") ? call.f("scale") : 0;
  if (!call.hasAttr("scale")) {
    auto width = asConst(call.shape(0)[3]);
    if (!width) return call.unsupported("a scale that depends on a width that only the run knows");
    scale = 1 / std::sqrt(double(*width));
  }
  BEVEL_TRY(GraphExpr q, permute(call.args[0], {0, 2, 1, 3}));
  BEVEL_TRY(q, emit("multiply", {q, scalar(t, scale)}));
  BEVEL_TRY(GraphExpr k, permute(call.args[1], {0, 2, 3, 1}));
  BEVEL_TRY(GraphExpr v, permute(call.args[2], {0, 2, 1, 3}));
  BEVEL_TRY(GraphExpr scores, emit("matmul", {q, k}));
  if (call.has(3)) {
    BEVEL_TRY(scores, emit("add", {scores, call.args[3]}));
  }
  if (std::string mask = call.s("causal_mask"); !mask.empty()) {
    Expr queries = call.shape(0)[1], keys = call.shape(1)[1];
    Expr diagonal = mask == "TopLeft" ? intImm(0) : keys - queries;
    auto shape = [](Array<Expr> values) { return GraphExpr(make<const ShapeExprNode>(values)); };
    BEVEL_TRY(GraphExpr seen, emit("broadcast_to", {scalar(kBool, 1), shape({queries, keys})}));
    BEVEL_TRY(seen, emit("trilu", {seen, shape({diagonal})}, dict({{"upper", intImm(0)}})));
    BEVEL_TRY(scores, emit("where", {seen, scores, scalar(t, -INFINITY)}));
  }
  BEVEL_TRY(scores, emit("nn.softmax", {scores}, dict({{"axis", intImm(-1)}})));
  BEVEL_TRY(GraphExpr y, emit("matmul", {scores, v}));
  return permute(y, {0, 2, 1, 3});
}

} // namespace

void register_attention(OpRegistry& r) {
  auto heads = [](const char* name) { return OpInput(name).of(Elements::kFloats).rank(4); };
  r.add({.name = "nn.attention",
         .doc = "softmax(q k' * scale + bias) v of [batch, sequence, heads, width]; scale is 1 / sqrt(width) "
                "unless given. "
                "causal_mask: \"TopLeft\" or \"BottomRight\" says which corner the diagonal starts in.",
         .inputs = {heads("query"), heads("key"), heads("value"),
                    OpInput("bias", InputKind::kOptional).of(Elements::kFloats).rank(1, 4)},
         .attrs = {{"scale", AttrKind::kFloat, nullptr, false, "1 / sqrt(width) by default"},
                   strAttr("causal_mask", "")},
         .infer = attentionInfer,
         .decompose = attentionDecompose});
}

} // namespace bevel::ops
