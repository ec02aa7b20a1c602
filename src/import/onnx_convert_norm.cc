// Normalisations and losses.
#include "import/onnx_helpers.h"

namespace bevel::onnx {

namespace {

// Statistics of the batch, and the running ones moved towards them.
Result<Values> batchNormTraining(Node& n) {
  Ints axes = {0};
  for (size_t d = 2; d < n.rank(0); ++d) axes.push_back(int64_t(d));
  BEVEL_TRY(GraphExpr x, n.castTo(n.x(0), kFloat32));
  BEVEL_TRY(GraphExpr mean, reduceOver(n, "mean", x, axes, true));
  BEVEL_TRY(GraphExpr variance, binaryOp(n, "subtract", x, mean));
  BEVEL_TRY(variance, binaryOp(n, "multiply", variance, variance));
  BEVEL_TRY(variance, reduceOver(n, "mean", variance, axes, false));
  BEVEL_TRY(mean, n.emit("squeeze", {mean}, {{"axis", intList(axes)}}));
  Array<GraphExpr> batch = {mean, variance};
  BEVEL_TRY(Values out, n.one("nn.batch_norm", {n.x(0), n.x(1), n.x(2), mean, variance},
                              {{"epsilon", floatNode(n.attrFloat("epsilon", 1e-5))}}));
  double momentum = n.attrFloat("momentum", 0.9);
  for (size_t k = 0; k < 2; ++k) {
    DType own = n.dtype(3 + k);
    BEVEL_TRY(GraphExpr before, n.castTo(n.x(3 + k), kFloat32));
    BEVEL_TRY(before, binaryOp(n, "multiply", before, Node::scalarConstant(kFloat32, momentum)));
    BEVEL_TRY(GraphExpr moved,
              binaryOp(n, "multiply", batch[k], Node::scalarConstant(kFloat32, 1 - momentum)));
    BEVEL_TRY(moved, binaryOp(n, "add", before, moved));
    BEVEL_TRY(moved, n.castTo(moved, own));
    out.push_back(n.value(moved));
  }
  return out;
}

Result<Values> batchNorm(Node& n) {
  BEVEL_CHECK(n.require(5));
  if (n.rank(0) < 2) return n.unsupported("an input without channels");
  if (n.attrInt("training_mode", 0) != 0) return batchNormTraining(n);
  if (n.opset < 7 && n.attrInt("is_test", 0) == 0 && n.proto.outputs.size() > 1)
    return n.unsupported("batch normalisation while training before opset 14");
  return n.one("nn.batch_norm", {n.x(0), n.x(1), n.x(2), n.x(3), n.x(4)},
               {{"epsilon", floatNode(n.attrFloat("epsilon", 1e-5))}});
}

Result<Values> instanceNorm(Node& n) {
  BEVEL_CHECK(n.require(3));
  if (n.rank(0) < 2) return n.invalid("an input without channels");
  auto c = asConst(n.shape(0)[1]);
  if (!c) return n.unsupported("a channel count that only the run knows");
  return n.one("nn.group_norm", n.all(),
               {{"num_groups", intImm(*c)}, {"epsilon", floatNode(n.attrFloat("epsilon", 1e-5))}});
}

Result<Values> groupNorm(Node& n) {
  BEVEL_CHECK(n.require(3));
  int64_t groups = n.attrInt("num_groups", 0);
  auto c = n.rank(0) < 2 ? std::nullopt : asConst(n.shape(0)[1]);
  if (!c || groups < 1 || *c % groups != 0) return n.invalid("the channels do not divide into the groups");
  Array<GraphExpr> args = n.all();
  if (n.opset < 21) // scale and bias per group
    for (size_t i = 1; i < 3; ++i) {
      BEVEL_TRY(GraphExpr e, unsqueeze(n, args[i], {1}));
      BEVEL_TRY(e, n.emit("broadcast_to", {e, Node::shapeArg(dims({groups, *c / groups}))}));
      BEVEL_TRY(e, reshapeTo(n, e, dims({*c})));
      args.set(i, e);
    }
  return n.one("nn.group_norm", args,
               {{"num_groups", intImm(groups)}, {"epsilon", floatNode(n.attrFloat("epsilon", 1e-5))}});
}

// Mean and InvStdDev are computed again when they are asked for.
Result<Values> layerNorm(Node& n) {
  BEVEL_CHECK(n.require(2));
  BEVEL_TRY(int64_t axis, axisOf(n, n.attrInt("axis", -1), n.rank(0)));
  double epsilon = n.attrFloat("epsilon", 1e-5);
  BEVEL_TRY(Values out, n.one("nn.layer_norm", {n.x(0), n.x(1), n.x(2)},
                              {{"axis", intImm(axis)}, {"epsilon", floatNode(epsilon)}}));
  if (n.proto.outputs.size() < 2) return out;
  Ints axes;
  for (size_t d = size_t(axis); d < n.rank(0); ++d) axes.push_back(int64_t(d));
  BEVEL_TRY(GraphExpr x, n.castTo(n.x(0), kFloat32));
  BEVEL_TRY(GraphExpr mean, reduceOver(n, "mean", x, axes, true));
  BEVEL_TRY(GraphExpr d, binaryOp(n, "subtract", x, mean));
  BEVEL_TRY(d, binaryOp(n, "multiply", d, d));
  BEVEL_TRY(GraphExpr v, reduceOver(n, "mean", d, axes, true));
  BEVEL_TRY(v, binaryOp(n, "add", v, Node::scalarConstant(kFloat32, epsilon)));
  BEVEL_TRY(v, unaryOp(n, "sqrt", v));
  BEVEL_TRY(v, unaryOp(n, "reciprocal", v));
  out.push_back(n.value(mean));
  out.push_back(n.value(v));
  return out;
}

// The result has the type of the scale.
Result<Values> rmsNorm(Node& n) {
  BEVEL_CHECK(n.require(2));
  GraphExpr x = n.x(0);
  if (n.dtype(1).bits > n.dtype(0).bits) {
    BEVEL_TRY(x, n.castTo(x, n.dtype(1)));
  }
  BEVEL_TRY(GraphExpr y, n.emit("nn.rms_norm", {x, n.x(1)},
                                {{"axis", intImm(n.attrInt("axis", -1))},
                                 {"epsilon", floatNode(n.attrFloat("epsilon", 1e-5))}}));
  BEVEL_TRY(y, n.castTo(y, n.dtype(1)));
  return Values{n.value(y)};
}

Result<Values> lpNorm(Node& n) {
  BEVEL_CHECK(n.require(1));
  int64_t p = n.attrInt("p", 2);
  if (p != 1 && p != 2) return n.invalid("p must be 1 or 2");
  Ints axes = {n.attrInt("axis", -1)};
  GraphExpr e;
  if (p == 1) {
    BEVEL_TRY(e, unaryOp(n, "abs", n.x(0)));
  } else {
    BEVEL_TRY(e, binaryOp(n, "multiply", n.x(0), n.x(0)));
  }
  BEVEL_TRY(e, reduceOver(n, "sum", e, axes, true));
  if (p == 2) {
    BEVEL_TRY(e, unaryOp(n, "sqrt", e));
  }
  GraphExpr zero = Node::scalarConstant(n.dtype(0), 0);
  BEVEL_TRY(GraphExpr empty, binaryOp(n, "equal", e, zero));
  BEVEL_TRY(GraphExpr y, binaryOp(n, "divide", n.x(0), e));
  return n.one("where", {empty, zero, y});
}

Result<Values> meanVarianceNorm(Node& n) {
  BEVEL_CHECK(n.require(1));
  Ints axes = n.hasAttr("axes") ? n.attrInts("axes") : Ints{0, 2, 3};
  BEVEL_TRY(GraphExpr mean, reduceOver(n, "mean", n.x(0), axes, true));
  BEVEL_TRY(GraphExpr d, binaryOp(n, "subtract", n.x(0), mean));
  BEVEL_TRY(GraphExpr v, binaryOp(n, "multiply", d, d));
  BEVEL_TRY(v, reduceOver(n, "mean", v, axes, true));
  BEVEL_TRY(v, unaryOp(n, "sqrt", v));
  BEVEL_TRY(v, binaryOp(n, "add", v, Node::scalarConstant(n.dtype(0), 1e-9)));
  return n.one("divide", {d, v});
}

// ---- losses: input [N, C, d…], labels [N, d…], optional weights [C]

// -w[label] * logp[label] per element, then the reduction.
Result<GraphExpr> negativeLikelihood(Node& n, const GraphExpr& logp, size_t weights) {
  DType t = dtypeOfExpr(logp);
  BEVEL_TRY(GraphExpr labels, n.castTo(n.x(1), kInt64));
  bool ignores = n.hasAttr("ignore_index");
  GraphExpr zero = Node::scalarConstant(t, 0), kept;
  if (ignores) {
    BEVEL_TRY(kept, binaryOp(n, "not_equal", labels,
                             Node::scalarConstant(kInt64, double(n.attrInt("ignore_index", 0)))));
    BEVEL_TRY(labels, n.emit("where", {kept, labels, Node::scalarConstant(kInt64, 0)}));
  }
  BEVEL_TRY(GraphExpr at, unsqueeze(n, labels, {1}));
  BEVEL_TRY(GraphExpr e, n.emit("gather_elements", {logp, at}, {{"axis", intImm(1)}}));
  BEVEL_TRY(e, n.emit("squeeze", {e}, {{"axis", intList({1})}}));
  BEVEL_TRY(e, unaryOp(n, "negative", e));
  GraphExpr w;
  if (n.has(weights)) {
    BEVEL_TRY(w, n.emit("take", {n.x(weights), labels}));
  } else if (ignores) {
    BEVEL_TRY(w, n.emit("broadcast_to", {Node::scalarConstant(t, 1), Node::shapeArg(shapeOfExpr(labels))}));
  }
  if (ignores) {
    BEVEL_TRY(w, n.emit("where", {kept, w, zero}));
  }
  if (w) {
    BEVEL_TRY(e, binaryOp(n, "multiply", e, w));
  }
  std::string reduction = n.attrStr("reduction", "mean");
  if (reduction != "none" && reduction != "sum" && reduction != "mean")
    return n.invalid("unknown reduction " + reduction);
  if (reduction == "none") return e;
  if (reduction == "sum") return reduceOver(n, "sum", e, std::nullopt, false);
  if (!w) return reduceOver(n, "mean", e, std::nullopt, false);
  BEVEL_TRY(e, reduceOver(n, "sum", e, std::nullopt, false));
  BEVEL_TRY(w, reduceOver(n, "sum", w, std::nullopt, false));
  return binaryOp(n, "divide", e, w);
}

Result<Values> nllLoss(Node& n) {
  BEVEL_CHECK(n.require(2));
  BEVEL_TRY(GraphExpr e, negativeLikelihood(n, n.x(0), 2));
  return Values{n.value(e)};
}
Result<Values> crossEntropy(Node& n) {
  BEVEL_CHECK(n.require(2));
  BEVEL_TRY(GraphExpr logp, n.emit("nn.log_softmax", {n.x(0)}, {{"axis", intImm(1)}}));
  BEVEL_TRY(GraphExpr e, negativeLikelihood(n, logp, 2));
  return Values{n.value(e), n.value(logp)};
}

} // namespace

std::vector<Conversion> normConversions() {
  return {{"BatchNormalization", 1, batchNorm},
          {"InstanceNormalization", 1, instanceNorm},
          {"GroupNormalization", 18, groupNorm},
          {"LayerNormalization", 17, layerNorm},
          {"RMSNormalization", 23, rmsNorm},
          {"LpNormalization", 1, lpNorm},
          {"MeanVarianceNormalization", 9, meanVarianceNorm},
          {"NegativeLogLikelihoodLoss", 12, nllLoss},
          {"SoftmaxCrossEntropyLoss", 12, crossEntropy}};
}

} // namespace bevel::onnx
