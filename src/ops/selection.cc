// Selection and reinterpretation: topk, nonzero, unique, non_max_suppression, bitcast.
#include "ops/common.h"

namespace bevel::ops {

namespace {

// ---- topk

Result<Type> topkInfer(const OpCall& call, InferContext& context) {
  BEVEL_TRY(size_t axis, checkedAxis(call));
  if (call.values(1).size() != 1) return call.invalid("one k is expected");
  Expr k = call.values(1)[0];
  BEVEL_CHECK(
      context.require(logicalAnd(k >= intImm(0), k <= call.shape(0)[axis]), call, "k is out of range"));
  Array<Expr> shape = call.shape(0);
  shape.set(axis, k);
  return tupleOf({tensorOf(call.dtype(0), shape), tensorOf(kInt64, shape)});
}

// k is a value of the run, so it is only known behind the call.
Result<Type> topkLargeInfer(const OpCall& call, InferContext& context) {
  BEVEL_TRY(size_t axis, checkedAxis(call));
  Array<Expr> shape = call.shape(0);
  shape.set(axis, context.unknownDim("k"));
  return tupleOf({tensorOf(call.dtype(0), shape), tensorOf(kInt64, shape)});
}

// k passes over the axis, each for the first element behind the one chosen before.
Result<TeTensors> topkCompute(const OpCall& call, const TeTensors& in) {
  size_t a = axisOf(call);
  bool largest = call.i("largest") != 0;
  const te::Tensor& x = in[0];
  Array<Expr> shape = x.shape(), zero = {intImm(0)};
  shape.set(a, call.values(1)[0]);
  Buffer values = buffer("values", x.dtype(), shape), indices = buffer("indices", kInt64, shape);
  Buffer best = buffer("best", kInt64, {intImm(1)}), last = buffer("last", kInt64, {intImm(1)});
  DType t = computeType(x.dtype());
  auto chooseAlong = [&](const std::vector<Var>& loops) {
    Array<Expr> index(loops.begin(), loops.end());
    auto before = [&](const Expr& i, const Expr& k) {
      Array<Expr> left = index, right = index;
      left.set(a, i);
      right.set(a, k);
      return comesBefore(largest, largest, castTo(t, x(left)), i, castTo(t, x(right)), k);
    };
    Var i = var("candidate", kInt64);
    Expr lastAt = load(last, zero), bestAt = load(best, zero), none = intImm(-1);
    Expr fresh = logicalOr(eq(lastAt, none), before(max(lastAt, intImm(0)), i));
    Expr wins = logicalOr(eq(bestAt, none), before(i, max(bestAt, intImm(0))));
    Stmt scan = forLoop(i, x.shape()[a], make<const IfNode>(logicalAnd(fresh, wins), store(best, i, zero)));
    Expr chosen = max(bestAt, intImm(0));
    Array<Expr> source = index;
    source.set(a, chosen);
    Stmt put =
        seq({store(values, x(source), index), store(indices, chosen, index), store(last, chosen, zero)});
    Stmt body = forLoop(loops[a], shape[a], seq({store(best, none, zero), scan, put}));
    body = seq({store(last, none, zero), body});
    return Stmt(make<const AllocNode>(best, make<const AllocNode>(last, body)));
  };
  return te::externOp({values, indices}, {x}, "topk", loopNest(x.shape(), chooseAlong, "i", a));
}

// ---- nonzero

// The count comes from outside: it is read into a shape before.
Result<Type> nonzeroInfer(const OpCall& call, InferContext&) {
  if (call.values(1).size() != 1) return call.invalid("one count is expected");
  return tensorOf(kInt64, {intImm(int64_t(call.rank(0))), call.values(1)[0]});
}

// One walk over the elements; column `at` of the result gets the position of the next one that is not zero.
Result<TeTensors> nonzeroCompute(const OpCall& call, const TeTensors& in) {
  const te::Tensor& x = in[0];
  Expr n = call.values(1)[0];
  Buffer out = buffer("nonzero", kInt64, {intImm(int64_t(x.rank())), n}),
         at = buffer("at", kInt64, {intImm(1)});
  Array<Expr> zero = {intImm(0)};
  DType t = computeType(x.dtype());
  Stmt body = loopNest(x.shape(), [&](const std::vector<Var>& loops) {
    Expr here = load(at, zero), value = x(Array<Expr>(loops.begin(), loops.end()));
    std::vector<Stmt> stores;
    for (size_t d = 0; d < x.rank(); ++d) stores.push_back(store(out, loops[d], {intImm(int64_t(d)), here}));
    stores.push_back(store(at, here + 1, zero));
    Expr set = x.dtype().isBool() ? value : ne(castTo(t, value), constant(t, 0));
    return Stmt(make<const IfNode>(logicalAnd(set, here < n), seq(stores)));
  });
  body = make<const AllocNode>(at, seq({store(at, intImm(0), zero), body}));
  return te::externOp({out}, {x}, "nonzero", body);
}

// ---- unique, non_max_suppression: functions of the run time

Result<Type> uniqueInfer(const OpCall& call, InferContext& context) {
  Expr found = context.unknownDim("unique"), length;
  Array<Expr> shape = {found};
  if (call.hasAttr("axis")) {
    BEVEL_TRY(size_t axis, checkedAxis(call));
    shape = call.shape(0);
    length = shape[axis];
    shape.set(axis, found);
  } else
    length = product(context.analyzer, call.shape(0));
  return tupleOf({tensorOf(call.dtype(0), shape), tensorOf(kInt64, {found}), tensorOf(kInt64, {length}),
                  tensorOf(kInt64, {found})});
}

Result<Type> nmsInfer(const OpCall& call, InferContext& context) {
  if (call.dtype(0) != kFloat32 || call.dtype(1) != kFloat32)
    return call.unsupported("takes float32 boxes and scores");
  const Array<Expr>&boxes = call.shape(0), &scores = call.shape(1);
  BEVEL_CHECK(context.require(eq(boxes[2], intImm(4)), call, "a box has four coordinates"));
  BEVEL_CHECK(context.require(logicalAnd(eq(boxes[0], scores[0]), eq(boxes[1], scores[2])), call,
                              "boxes and scores differ in number"));
  return tensorOf(kInt64, {context.unknownDim("selected"), intImm(3)});
}

// ---- bitcast

Result<Type> bitcastInfer(const OpCall& call, InferContext&) {
  DType t = call.dtypeAttr("dtype");
  if (t.bits != call.dtype(0).bits || t.bits < 8) return call.invalid("the dtypes have different widths");
  return tensorOf(t, call.shape(0));
}
Expr bitcastElement(const OpCall& call, const TeTensors& in, const Array<Var>& i) {
  DType t = call.dtypeAttr("dtype");
  Expr x = in[0](exprs(i));
  return x->dtype == t ? x : callAs(t, Intrin::kReinterpret, {x});
}

} // namespace

void register_selection(OpRegistry& r) {
  r.add(
      {.name = "topk",
       .doc = "The k largest (or smallest) elements along an axis in order, and their int64 indices; ties by "
              "smaller index. ONNX TopK.",
       .inputs = {OpInput("x").of(Elements::kNumbers), {"k", InputKind::kShape}},
       .attrs = {intAttr("axis", -1), intAttr("largest", 1)},
       .infer = topkInfer,
       .compute = topkCompute,
       .tests = {"float32[3,7] shape(3)", "int32[9]:idx5 shape(9)", "float32[4,5] shape(2) axis=0 largest=0",
                 "float32[9]:special shape(9)", "float32[3] shape(0)"}});
  r.add({.name = "topk_large",
         .doc = "topk by sorting: for a k that is large, or that only the run knows. ONNX TopK.",
         .inputs = {OpInput("x").of(Elements::kNumbers), OpInput("k").of(Elements::kInts)},
         .attrs = {intAttr("axis", -1), intAttr("largest", 1)},
         .infer = topkLargeInfer,
         .packed = "bevel.topk",
         .dataDependent = true});
  r.add({.name = "nonzero",
         .doc = "Positions of the elements that are not zero, in order: [rank, count]; their count is given. "
                "ONNX NonZero.",
         .inputs = {"x", {"count", InputKind::kShape}},
         .infer = nonzeroInfer,
         .compute = nonzeroCompute,
         .tests = {"float32[2,3]:pos shape(6)", "float32[0] shape(0)", "int32[4]:pos shape(4)"}});
  r.add({.name = "unique",
         .doc = "The different elements (slices along axis, where given), sorted or by first occurrence; "
                "where each occurs first, which of\n"
                "them each element is, and how often each occurs. ONNX Unique.",
         .inputs = {OpInput("x").of(Elements::kAll)},
         .attrs = {{"axis", AttrKind::kInt, nullptr}, intAttr("sorted", 1)},
         .infer = uniqueInfer,
         .packed = "bevel.unique",
         .dataDependent = true,
         .onnx = {{"Unique", 11}}});
  r.add({.name = "non_max_suppression",
         .doc = "Batch, class and index of boxes in order of their scores, without those that overlap a "
                "better one by more than iou_threshold.\n"
                "ONNX NonMaxSuppression.",
         .inputs = {OpInput("boxes").of(Elements::kFloats).rank(3),
                    OpInput("scores").of(Elements::kFloats).rank(3),
                    OpInput("max_output", InputKind::kOptional).of(Elements::kInts).rank(0, 1),
                    OpInput("iou_threshold", InputKind::kOptional).of(Elements::kFloats).rank(0, 1),
                    OpInput("score_threshold", InputKind::kOptional).of(Elements::kFloats).rank(0, 1)},
         .attrs = {intAttr("center_point_box", 0)},
         .infer = nmsInfer,
         .packed = "bevel.non_max_suppression",
         .dataDependent = true,
         .onnx = {{"NonMaxSuppression", 10}}});
  r.add({.name = "bitcast",
         .doc = "The same bits as another dtype of the same width. ONNX BitCast.",
         .inputs = {"x"},
         .attrs = {required(dtypeAttr("dtype"))},
         .infer = bitcastInfer,
         .compute = elements("bitcast", bitcastElement),
         .layout = LayoutKind::kAny,
         .tests = {"float32[5] dtype=int32", "uint8[5] dtype=int8", "bool[5] dtype=uint8"}});
}

} // namespace bevel::ops
