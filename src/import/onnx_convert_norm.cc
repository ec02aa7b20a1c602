// Normalisations and losses.
#include "import/onnx_helpers.h"

namespace bevel::onnx {

namespace {

Attr epsilonOf(Node& n) {
  return {"epsilon", n.attrFloat("epsilon", 1e-5)};
}

// Statistics of the batch, and the running ones moved towards them.
Result<Values> batchNormTraining(Node& n) {
  Ints axes = {0};
  for (size_t d = 2; d < n.rank(0); ++d) axes.push_back(int64_t(d));
  Term x = n.x(0).cast(kFloat32), mean = x.reduce("mean", axes, true), variance = x - mean;
  variance = (variance * variance).reduce("mean", axes);
  mean = mean.squeeze(axes);
  Term batch[2] = {mean, variance};
  BEVEL_TRY(Values out,
            n.results({n.emit("nn.batch_norm", {n.x(0), n.x(1), n.x(2), mean, variance}, {epsilonOf(n)})}));
  double momentum = n.attrFloat("momentum", 0.9);
  for (size_t k = 0; k < 2; ++k) {
    Term before = n.x(3 + k).cast(kFloat32) * momentum;
    Term moved = batch[k] * (1 - momentum);
    BEVEL_TRY(GraphExpr e, (before + moved).cast(n.dtype(3 + k)));
    out.push_back(n.value(e));
  }
  return out;
}

Result<Values> batchNorm(Node& n) {
  if (n.rank(0) < 2) return n.unsupported("an input without channels");
  if (n.attrInt("training_mode", 0) != 0) return batchNormTraining(n);
  if (n.opset < 7 && n.attrInt("is_test", 0) == 0 && n.proto.outputs.size() > 1)
    return n.unsupported("batch normalisation while training before opset 14");
  return n.emit("nn.batch_norm", {n.x(0), n.x(1), n.x(2), n.x(3), n.x(4)}, {epsilonOf(n)});
}

Result<Values> instanceNorm(Node& n) {
  if (n.rank(0) < 2) return n.invalid("an input without channels");
  auto c = asConst(n.shape(0)[1]);
  if (!c) return n.unsupported("a channel count that only the run knows");
  return n.emit("nn.group_norm", n.all(), {{"num_groups", *c}, epsilonOf(n)});
}

Result<Values> groupNorm(Node& n) {
  int64_t groups = n.attrInt("num_groups", 0);
  auto c = n.rank(0) < 2 ? std::nullopt : asConst(n.shape(0)[1]);
  if (!c || groups < 1 || *c % groups != 0) return n.invalid("the channels do not divide into the groups");
  Array<GraphExpr> args = n.all();
  if (n.opset < 21) // scale and bias per group
    for (size_t i = 1; i < 3; ++i) {
      Term wide = n.x(i).unsqueeze({1}).broadcast(dims({groups, *c / groups}));
      BEVEL_TRY(GraphExpr e, wide.reshape(dims({*c})));
      args.set(i, e);
    }
  return n.emit("nn.group_norm", args, {{"num_groups", groups}, epsilonOf(n)});
}

// Mean and InvStdDev are computed again when they are asked for.
Result<Values> layerNorm(Node& n) {
  BEVEL_TRY(int64_t axis, axisOf(n, n.attrInt("axis", -1), n.rank(0)));
  Term y = n.emit("nn.layer_norm", {n.x(0), n.x(1), n.x(2)}, {{"axis", axis}, epsilonOf(n)});
  if (n.proto.outputs.size() < 2) return y;
  Ints axes = upTo(axis, int64_t(n.rank(0)));
  Term x = n.x(0).cast(kFloat32), mean = x.reduce("mean", axes, true), d = x - mean;
  Term v = (d * d).reduce("mean", axes, true) + n.attrFloat("epsilon", 1e-5);
  return n.results({y, mean, v.apply("sqrt").apply("reciprocal")});
}

// The result has the type of the scale.
Result<Values> rmsNorm(Node& n) {
  Term x = n.dtype(1).bits > n.dtype(0).bits ? n.x(0).cast(n.dtype(1)) : n.x(0);
  Term y = n.emit("nn.rms_norm", {x, n.x(1)}, {{"axis", n.attrInt("axis", -1)}, epsilonOf(n)});
  return y.cast(n.dtype(1));
}

Result<Values> lpNorm(Node& n) {
  int64_t p = n.attrInt("p", 2);
  if (p != 1 && p != 2) return n.invalid("p must be 1 or 2");
  Term x = n.x(0), e = p == 1 ? x.apply("abs") : x * x;
  e = e.reduce("sum", Ints{n.attrInt("axis", -1)}, true);
  if (p == 2) e = e.apply("sqrt");
  Term empty = n.emit("equal", {e, 0});
  return where(n, empty, 0, x / e);
}

Result<Values> meanVarianceNorm(Node& n) {
  Ints axes = n.hasAttr("axes") ? n.attrInts("axes") : Ints{0, 2, 3};
  Term x = n.x(0), d = x - x.reduce("mean", axes, true);
  return d / ((d * d).reduce("mean", axes, true).apply("sqrt") + 1e-9);
}

// ---- losses: input [N, C, d…], labels [N, d…], optional weights [C]

// -w[label] * logp[label] per element, then the reduction.
Result<Term> negativeLikelihood(Node& n, const Term& logp) {
  Term labels = n.x(1).cast(kInt64), kept = absent(), w = absent();
  bool ignores = n.hasAttr("ignore_index"), weighted = n.has(2) || ignores;
  if (ignores) {
    kept = n.emit("not_equal", {labels, double(n.attrInt("ignore_index", 0))});
    labels = where(n, kept, labels, 0);
  }
  Term e = n.emit("gather_elements", {logp, labels.unsqueeze({1})}, {{"axis", 1}});
  e = e.squeeze({1}).apply("negative");
  if (n.has(2))
    w = n.emit("take", {n.x(2), labels});
  else if (ignores)
    w = n.emit("broadcast_to", {Node::scalarConstant(n.dtype(0), 1), n.shape(1)});
  if (ignores) w = where(n, kept, w, 0);
  if (weighted) e = e * w;
  std::string reduction = n.attrStr("reduction", "mean");
  if (reduction != "none" && reduction != "sum" && reduction != "mean")
    return n.invalid("unknown reduction " + reduction);
  if (reduction == "none") return e;
  if (reduction == "sum") return e.reduce("sum");
  if (!weighted) return e.reduce("mean");
  e = e.reduce("sum");
  return e / w.reduce("sum");
}

Result<Values> nllLoss(Node& n) {
  BEVEL_TRY(Term e, negativeLikelihood(n, n.x(0)));
  return e;
}
Result<Values> crossEntropy(Node& n) {
  Term logp = n.x(0).apply("nn.log_softmax", {{"axis", 1}});
  BEVEL_TRY(Term e, negativeLikelihood(n, logp));
  return n.results({e, logp});
}

} // namespace

std::vector<Conversion> normConversions() {
  return {{"BatchNormalization", 1, batchNorm, 5},
          {"InstanceNormalization", 1, instanceNorm, 3},
          {"GroupNormalization", 18, groupNorm, 3},
          {"LayerNormalization", 17, layerNorm, 2},
          {"RMSNormalization", 23, rmsNorm, 2},
          {"LpNormalization", 1, lpNorm, 1},
          {"MeanVarianceNormalization", 9, meanVarianceNorm, 1},
          {"NegativeLogLikelihoodLoss", 12, nllLoss, 2},
          {"SoftmaxCrossEntropyLoss", 12, crossEntropy, 2}};
}

} // namespace bevel::onnx
