// Attention and rotary embeddings, as compositions of products, softmax and masks.
#include "import/onnx_helpers.h"

#include <cmath>

namespace bevel::onnx {

namespace {

// [B, S, heads*d] to [B, heads, S, d].
Result<GraphExpr> splitHeads(Node& n, const GraphExpr& e, int64_t heads) {
  if (rankOf(e) == 4) return e;
  if (rankOf(e) != 3 || heads < 1)
    return n.invalid("three or four dimensions, and a number of heads for three, are expected");
  const Array<Expr>& s = shapeOfExpr(e);
  BEVEL_TRY(GraphExpr r,
            reshapeTo(n, e, {s[0], s[1], intImm(heads), n.analyzer().simplify(floordiv(s[2], heads))}));
  return permute(n, r, {0, 2, 1, 3});
}

// Keys of grouped queries: each head `times` times, neighbours together.
Result<GraphExpr> repeatHeads(Node& n, const GraphExpr& e, int64_t times) {
  if (times == 1) return e;
  Array<Expr> s = shapeOfExpr(e);
  BEVEL_TRY(GraphExpr r, unsqueeze(n, e, {2}));
  BEVEL_TRY(r, n.emit("broadcast_to", {r, Node::shapeArg({s[0], s[1], intImm(times), s[2], s[3]})}));
  return reshapeTo(n, r, {s[0], n.analyzer().simplify(s[1] * times), s[2], s[3]});
}

struct Attention {
  Node& n;
  GraphExpr q, k, v, bias; // bias: additive mask, or null
  DType t;
  Expr queries, keys;
  GraphExpr zero() const { return Node::scalarConstant(t, 0); }
  GraphExpr minus() const { return Node::scalarConstant(t, -INFINITY); }

  Result<GraphExpr> indices(const Expr& count, const Ints& axes) {
    BEVEL_TRY(GraphExpr e, n.emit("arange", {Node::scalarConstant(kInt64, 0), Node::scalarConstant(kInt64, 1),
                                             Node::shapeArg({count})}));
    return unsqueeze(n, e, axes);
  }
  // Positions where `allowed` fails get -inf.
  Status mask(const GraphExpr& allowed) {
    BEVEL_TRY(GraphExpr m, n.emit("where", {allowed, zero(), minus()}));
    if (bias) {
      BEVEL_TRY(m, binaryOp(n, "add", bias, m));
    }
    bias = m;
    return {};
  }
  // The given mask, widened to all keys.
  Status given(size_t input) {
    GraphExpr m = n.x(input);
    bool flags = n.dtype(input).isBool();
    Expr have = shapeOfExpr(m).back(), missing = n.analyzer().simplify(keys - have);
    BEVEL_CHECK(n.check(missing >= intImm(0), "the mask is longer than the keys"));
    Array<Expr> all = shapeOfExpr(q);
    all.set(3, keys);
    for (size_t d = 0; d + 1 < rankOf(m); ++d) {
      const Expr e = shapeOfExpr(m)[d], to = all[4 - rankOf(m) + d];
      BEVEL_CHECK(n.check(logicalOr(eq(e, intImm(1)), eq(e, to)), "the mask does not fit the queries"));
    }
    bool same = isConst(have, 1) && n.opset < 24; // for all keys; a shorter mask is padded from 24 on
    if (!isConst(missing, 0) && !same) {
      Array<Expr> pads;
      for (size_t d = 0; d < 2 * rankOf(m); ++d) pads.push_back(intImm(0));
      pads.set(2 * rankOf(m) - 1, missing);
      GraphExpr fill = Node::scalarConstant(n.dtype(input), flags ? 0 : -INFINITY);
      BEVEL_TRY(m, n.emit("nn.pad", {m, Node::shapeArg(pads), fill}));
    }
    if (flags) return mask(m);
    BEVEL_TRY(m, n.castTo(m, t));
    bias = m;
    return {};
  }
  // query position plus offset, and key position, as [q, 1] or [B, 1, q, 1], and [k].
  Status causal(const GraphExpr& offset, int64_t left, int64_t right, bool frontier) {
    BEVEL_TRY(GraphExpr row, indices(queries, {1}));
    BEVEL_TRY(GraphExpr column, indices(keys, {0}));
    BEVEL_TRY(row, binaryOp(n, "add", row, offset));
    if (frontier) {
      BEVEL_TRY(GraphExpr ok, binaryOp(n, "less_equal", column, row));
      BEVEL_CHECK(mask(ok));
    }
    if (left >= 0) {
      BEVEL_TRY(GraphExpr first, binaryOp(n, "subtract", row, Node::scalarConstant(kInt64, double(left))));
      BEVEL_TRY(GraphExpr ok, binaryOp(n, "greater_equal", column, first));
      BEVEL_CHECK(mask(ok));
    }
    if (right >= 0) {
      BEVEL_TRY(GraphExpr last, binaryOp(n, "add", row, Node::scalarConstant(kInt64, double(right))));
      BEVEL_TRY(GraphExpr ok, binaryOp(n, "less_equal", column, last));
      BEVEL_CHECK(mask(ok));
    }
    return {};
  }
};

// Probabilities, with rows that the mask closes altogether set to zero.
Result<GraphExpr> probabilities(Attention& a, GraphExpr scores, DType precision) {
  Node& n = a.n;
  BEVEL_TRY(scores, n.castTo(scores, precision));
  BEVEL_TRY(GraphExpr p, n.emit("nn.softmax", {scores}, {{"axis", intImm(-1)}}));
  if (a.bias) {
    BEVEL_TRY(GraphExpr best, reduceOver(n, "max", a.bias, Ints{-1}, true));
    BEVEL_TRY(GraphExpr closed, binaryOp(n, "equal", best, a.minus()));
    BEVEL_TRY(p, n.emit("where", {closed, Node::scalarConstant(precision, 0), p}));
  }
  return p;
}

// cap * tanh(scores / cap), where there is a cap.
Result<GraphExpr> softCapped(Node& n, GraphExpr scores) {
  double cap = n.attrFloat("softcap", 0);
  if (!(cap > 0)) return scores;
  GraphExpr limit = Node::scalarConstant(dtypeOfExpr(scores), cap);
  BEVEL_TRY(scores, binaryOp(n, "divide", scores, limit));
  BEVEL_TRY(scores, unaryOp(n, "tanh", scores));
  return binaryOp(n, "multiply", scores, limit);
}

// The number of keys of each batch as [batch, 1, 1, 1]; null where it is not given.
Result<GraphExpr> lengthsOf(Node& n, const Expr& batch) {
  if (!n.has(6)) return GraphExpr();
  BEVEL_CHECK(n.check(eq(n.shape(6)[0], batch), "there is not one number of keys for each batch"));
  BEVEL_TRY(GraphExpr lengths, n.castTo(n.x(6), kInt64));
  return reshapeTo(n, lengths, {batch, intImm(1), intImm(1), intImm(1)});
}

// Puts keys and values behind those of the past, and returns how many the past has.
Result<Expr> appendToPast(Attention& a, int64_t heads) {
  Node& n = a.n;
  if (n.has(4) != n.has(5)) return n.invalid("past key and value come together");
  for (const GraphExpr& e : {a.k, a.v, n.x(4), n.x(5)})
    if (!isAbsent(e))
      BEVEL_CHECK(
          n.check(eq(shapeOfExpr(e)[0], shapeOfExpr(a.q)[0]), "queries, keys and values differ in batches"));
  BEVEL_CHECK(n.check(eq(shapeOfExpr(a.v)[1], intImm(heads)), "keys and values differ in heads"));
  Expr past = intImm(0);
  if (n.has(4)) {
    past = n.shape(4)[2];
    BEVEL_TRY(a.k, n.emit("concat", {n.x(4), a.k}, {{"axis", intImm(2)}}));
    BEVEL_TRY(a.v, n.emit("concat", {n.x(5), a.v}, {{"axis", intImm(2)}}));
  }
  return past;
}

Result<Values> attention(Node& n) { // q, k, v, mask, past key, past value, nonpad lengths
  DType given = n.dtype(0);         // small floats are computed in fp32 throughout, and rounded once
  Attention a{n,       nullptr, nullptr,
              nullptr, nullptr, given.isFloat() && given.bits < 32 ? kFloat32 : given,
              nullptr, nullptr};
  bool flat = n.rank(0) == 3;
  if (!flat && (n.hasAttr("q_num_heads") || n.hasAttr("kv_num_heads")) && n.opset >= 25)
    return n.invalid("numbers of heads are given by four-dimensional inputs");
  BEVEL_TRY(a.q, splitHeads(n, n.x(0), n.attrInt("q_num_heads", 0)));
  BEVEL_TRY(a.k, splitHeads(n, n.x(1), n.attrInt("kv_num_heads", 0)));
  BEVEL_TRY(a.v, splitHeads(n, n.x(2), n.attrInt("kv_num_heads", 0)));
  auto qHeads = asConst(shapeOfExpr(a.q)[1]), kHeads = asConst(shapeOfExpr(a.k)[1]),
       size = asConst(shapeOfExpr(a.q)[3]);
  if (!qHeads || !kHeads || !size || *kHeads < 1 || *qHeads % *kHeads != 0)
    return n.unsupported("numbers of heads, or their size, that only the run knows or that do not divide");
  BEVEL_TRY(Expr past, appendToPast(a, *kHeads));
  GraphExpr presentKey = a.k, presentValue = a.v;
  for (GraphExpr* e : {&a.q, &a.k, &a.v}) {
    BEVEL_TRY(*e, n.castTo(*e, a.t));
  }
  a.queries = shapeOfExpr(a.q)[2];
  a.keys = shapeOfExpr(a.k)[2];
  if (n.has(3)) BEVEL_CHECK(a.given(3));
  int64_t left = n.attrInt("left_window_size", -1), right = n.attrInt("right_window_size", -1);
  bool causal = n.attrInt("is_causal", 0) != 0;
  BEVEL_TRY(GraphExpr lengths, lengthsOf(n, shapeOfExpr(a.q)[0]));
  if (causal || left >= 0 || right >= 0) {
    BEVEL_TRY(GraphExpr offset,
              n.emit("shape_to_tensor", {Node::shapeArg({lengths ? negate(a.queries) : past})}));
    if (lengths) {
      BEVEL_TRY(offset, binaryOp(n, "add", lengths, offset));
    }
    BEVEL_CHECK(a.causal(offset, left, right, causal));
  }
  if (lengths) {
    BEVEL_TRY(GraphExpr column, a.indices(a.keys, {0}));
    BEVEL_TRY(GraphExpr ok, binaryOp(n, "less", column, lengths));
    BEVEL_CHECK(a.mask(ok));
  }
  BEVEL_TRY(GraphExpr k, repeatHeads(n, a.k, *qHeads / *kHeads));
  BEVEL_TRY(GraphExpr v, repeatHeads(n, a.v, *qHeads / *kHeads));
  GraphExpr root = Node::scalarConstant(
      a.t, std::sqrt(n.attrFloat("scale", 1 / std::sqrt(double(std::max<int64_t>(*size, 1))))));
  BEVEL_TRY(GraphExpr q, binaryOp(n, "multiply", a.q, root));
  BEVEL_TRY(k, permute(n, k, {0, 1, 3, 2}));
  BEVEL_TRY(k, binaryOp(n, "multiply", k, root));
  BEVEL_TRY(GraphExpr scores, binaryOp(n, "matmul", q, k));
  GraphExpr shown = scores;
  int64_t mode = n.attrInt("qk_matmul_output_mode", 0);
  BEVEL_TRY(scores, softCapped(n, scores));
  if (mode == 1) shown = scores;
  if (a.bias) {
    BEVEL_TRY(scores, binaryOp(n, "add", scores, a.bias));
  }
  if (mode == 2) shown = scores;
  DType precision = n.hasAttr("softmax_precision")
                        ? dtypeOf(int32_t(n.attrInt("softmax_precision", 1))).value_or(a.t)
                        : a.t;
  if (precision.bits < a.t.bits) precision = a.t;
  BEVEL_TRY(GraphExpr p, probabilities(a, scores, precision));
  BEVEL_TRY(p, n.castTo(p, a.t));
  if (mode == 3) shown = p;
  BEVEL_TRY(GraphExpr y, binaryOp(n, "matmul", p, v));
  if (flat) {
    BEVEL_TRY(y, permute(n, y, {0, 2, 1, 3}));
    const Array<Expr>& s = shapeOfExpr(y);
    BEVEL_TRY(y, reshapeTo(n, y, {s[0], s[1], n.analyzer().simplify(s[2] * s[3])}));
  }
  BEVEL_TRY(y, n.castTo(y, given));
  BEVEL_TRY(shown, n.castTo(shown, given));
  return Values{n.value(y), n.value(presentKey), n.value(presentValue), n.value(shown)};
}

// Pairs (x1, x2) turned by the angles of the caches: (c*x1 - s*x2, s*x1 + c*x2).
Result<Values> rotary(Node& n) { // x, cos, sin, positions
  bool flat = n.rank(0) == 3, interleaved = n.attrInt("interleaved", 0) != 0;
  GraphExpr x = n.x(0);
  if (flat) {
    int64_t heads = n.attrInt("num_heads", 0);
    if (heads < 1) return n.invalid("num_heads is missing");
    const Array<Expr>& s = n.shape(0);
    BEVEL_TRY(x, reshapeTo(n, x, {s[0], s[1], intImm(heads), n.analyzer().simplify(floordiv(s[2], heads))}));
  } else {
    BEVEL_TRY(x, permute(n, x, {0, 2, 1, 3}));
  }
  Array<Expr> full = shapeOfExpr(x);
  auto size = asConst(full[3]);
  if (!size) return n.unsupported("a head size that only the run knows");
  int64_t rotated = n.attrInt("rotary_embedding_dim", 0);
  if (rotated == 0) rotated = *size;
  if (rotated < 2 || rotated > *size || rotated % 2) return n.invalid("rotary_embedding_dim is out of range");
  BEVEL_TRY(GraphExpr part, sliceAxis(n, x, 3, intImm(0), intImm(rotated)));
  BEVEL_TRY(GraphExpr rest, sliceAxis(n, x, 3, intImm(rotated), full[3]));
  int64_t half = rotated / 2;
  GraphExpr angle[2];
  for (size_t k = 0; k < 2; ++k) {
    angle[k] = n.x(1 + k);
    if (n.has(3)) {
      BEVEL_TRY(angle[k], n.emit("take", {angle[k], n.x(3)}));
    }
    if (rankOf(angle[k]) != 3) return n.invalid("a cache has as many dimensions as the positions ask for");
    const Array<Expr> s = shapeOfExpr(angle[k]);
    Expr fits = logicalAnd(eq(s[0], full[0]), logicalAnd(eq(s[1], full[1]), eq(s[2], intImm(half))));
    BEVEL_CHECK(n.check(fits, "a cache does not fit batch, positions and half of what is rotated"));
    BEVEL_TRY(angle[k], unsqueeze(n, angle[k], {2}));
  }
  GraphExpr pair[2];
  Array<Expr> pairs = {full[0], full[1], full[2], interleaved ? intImm(half) : intImm(2),
                       interleaved ? intImm(2) : intImm(half)};
  BEVEL_TRY(GraphExpr both, reshapeTo(n, part, pairs));
  int64_t axis = interleaved ? 4 : 3;
  for (int64_t k = 0; k < 2; ++k) {
    BEVEL_TRY(pair[k], sliceAxis(n, both, axis, intImm(k), intImm(k + 1)));
    BEVEL_TRY(pair[k], n.emit("squeeze", {pair[k]}, {{"axis", intList({axis})}}));
  }
  auto turned = [&](const char* op, const GraphExpr& a, const GraphExpr& b) -> Result<GraphExpr> {
    BEVEL_TRY(GraphExpr l, binaryOp(n, "multiply", a, pair[0]));
    BEVEL_TRY(GraphExpr r, binaryOp(n, "multiply", b, pair[1]));
    BEVEL_TRY(GraphExpr e, binaryOp(n, op, l, r));
    return unsqueeze(n, e, {axis});
  };
  BEVEL_TRY(GraphExpr real, turned("subtract", angle[0], angle[1]));
  BEVEL_TRY(GraphExpr imaginary, turned("add", angle[1], angle[0]));
  BEVEL_TRY(GraphExpr y, n.emit("concat", {real, imaginary}, {{"axis", intImm(axis)}}));
  BEVEL_TRY(y, reshapeTo(n, y, {full[0], full[1], full[2], intImm(rotated)}));
  if (rotated < *size) {
    BEVEL_TRY(y, n.emit("concat", {y, rest}, {{"axis", intImm(3)}}));
  }
  if (!flat) return n.one("permute_dims", {y}, {{"axes", intList({0, 2, 1, 3})}});
  return n.one("reshape", {y, Node::shapeArg(n.shape(0))});
}

} // namespace

std::vector<Conversion> attentionConversions() {
  auto floats = [](const char* name, int least, int most, InputKind kind = InputKind::kTensor) {
    return OpInput(name, kind).of(Elements::kFloats).rank(least, most);
  };
  const InputKind some = InputKind::kOptional;
  return {{"Attention",
           23,
           attention,
           "",
           {floats("Q", 3, 4), floats("K", 3, 4), floats("V", 3, 4), OpInput("attn_mask", some).rank(1, 4),
            floats("past_key", 4, 4, some), floats("past_value", 4, 4, some),
            OpInput("nonpad_kv_seqlen", some).of(Elements::kInts).rank(1)}},
          {"RotaryEmbedding",
           23,
           rotary,
           "",
           {floats("X", 3, 4), floats("cos_cache", 2, 3), floats("sin_cache", 2, 3),
            OpInput("position_ids", some).of(Elements::kInts).rank(2)}}};
}

} // namespace bevel::onnx
