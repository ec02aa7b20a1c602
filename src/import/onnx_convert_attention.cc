// Attention and rotary embeddings, as compositions of products, softmax and masks.
#include "import/onnx_helpers.h"

#include <cmath>

namespace bevel::onnx {

namespace {

// [B, S, heads*d] to [B, heads, S, d].
Result<Term> splitHeads(Node& n, size_t input, int64_t heads) {
  if (n.rank(input) == 4) return n.x(input);
  if (n.rank(input) != 3 || heads < 1)
    return n.invalid("three or four dimensions, and a number of heads for three, are expected");
  const Array<Expr>& s = n.shape(input);
  Array<Expr> split = {s[0], s[1], intImm(heads), n.analyzer().simplify(floordiv(s[2], heads))};
  return n.x(input).reshape(split).permute({0, 2, 1, 3});
}

// Keys of grouped queries: each head `times` times, neighbours together.
Term repeatHeads(Node& n, const GraphExpr& e, int64_t times) {
  if (times == 1) return {n, e};
  Array<Expr> s = shapeOfExpr(e);
  return Term(n, e)
      .unsqueeze({2})
      .broadcast({s[0], s[1], intImm(times), s[2], s[3]})
      .reshape({s[0], n.analyzer().simplify(s[1] * times), s[2], s[3]});
}

struct Attention {
  Node& n;
  GraphExpr q, k, v;
  DType t;
  Expr queries = nullptr, keys = nullptr;
  std::optional<Term> bias = {}; // additive mask

  // Positions where `allowed` fails get -inf.
  void mask(const Term& allowed) {
    Term m = where(n, allowed, Node::scalarConstant(t, 0), Node::scalarConstant(t, -INFINITY));
    bias = bias ? *bias + m : m;
  }
  // The given mask, widened to all keys.
  Status given(size_t input) {
    Term m = n.x(input);
    const Array<Expr>& shape = n.shape(input);
    size_t rank = shape.size();
    bool flags = n.dtype(input).isBool();
    Expr have = shape.back(), missing = n.analyzer().simplify(keys - have);
    BEVEL_CHECK(n.check(missing >= intImm(0), "the mask is longer than the keys"));
    Array<Expr> all = shapeOfExpr(q);
    all.set(3, keys);
    for (size_t d = 0; d + 1 < rank; ++d) {
      const Expr e = shape[d], to = all[4 - rank + d];
      BEVEL_CHECK(n.check(logicalOr(eq(e, intImm(1)), eq(e, to)), "the mask does not fit the queries"));
    }
    bool same = isConst(have, 1) && n.opset < 24; // for all keys; a shorter mask is padded from 24 on
    if (!isConst(missing, 0) && !same) {
      Array<Expr> pads = dims(Ints(2 * rank, 0));
      pads.set(2 * rank - 1, missing);
      m = n.emit("nn.pad", {m, pads, Node::scalarConstant(n.dtype(input), flags ? 0 : -INFINITY)});
    }
    if (flags)
      mask(m);
    else
      bias = m.cast(t);
    return {};
  }
  // query position plus offset, and key position, as [q, 1] or [B, 1, q, 1], and [k].
  void causal(const Term& offset, int64_t left, int64_t right, bool frontier) {
    Term row = indicesTo(n, queries).unsqueeze({1}), column = indicesTo(n, keys).unsqueeze({0});
    row = row + offset;
    if (frontier) mask(column <= row);
    if (left >= 0) mask(column >= row - double(left));
    if (right >= 0) mask(column <= row + double(right));
  }
};

// Probabilities, with rows that the mask closes altogether set to zero.
Term probabilities(Attention& a, const Term& scores, DType precision) {
  Term p = scores.cast(precision).apply("nn.softmax", {{"axis", -1}});
  if (!a.bias) return p;
  Term best = a.bias->reduce("max", Ints{-1}, true);
  Term closed = a.n.emit("equal", {best, -INFINITY});
  return where(a.n, closed, 0, p);
}

// cap * tanh(scores / cap), where there is a cap.
Term softCapped(Node& n, const Term& scores) {
  double cap = n.attrFloat("softcap", 0);
  return cap > 0 ? (scores / cap).apply("tanh") * cap : scores;
}

// The number of keys of each batch as [batch, 1, 1, 1]; nothing where it is not given.
Result<std::optional<Term>> lengthsOf(Node& n, const Expr& batch) {
  if (!n.has(6)) return std::optional<Term>{};
  BEVEL_CHECK(n.check(eq(n.shape(6)[0], batch), "there is not one number of keys for each batch"));
  return n.x(6).cast(kInt64).reshape({batch, intImm(1), intImm(1), intImm(1)});
}

// Puts keys and values behind those of the past, and returns how many the past has.
Result<Expr> appendToPast(Attention& a, int64_t heads) {
  Node& n = a.n;
  if (n.has(4) != n.has(5)) return n.invalid("past key and value come together");
  for (const GraphExpr& e : {a.k, a.v, *n.x(4), *n.x(5)})
    if (!isAbsent(e))
      BEVEL_CHECK(
          n.check(eq(shapeOfExpr(e)[0], shapeOfExpr(a.q)[0]), "queries, keys and values differ in batches"));
  BEVEL_CHECK(n.check(eq(shapeOfExpr(a.v)[1], intImm(heads)), "keys and values differ in heads"));
  Expr past = intImm(0);
  if (n.has(4)) {
    past = n.shape(4)[2];
    BEVEL_TRY(a.k, n.emit("concat", {n.x(4), a.k}, {{"axis", 2}}));
    BEVEL_TRY(a.v, n.emit("concat", {n.x(5), a.v}, {{"axis", 2}}));
  }
  return past;
}

Result<Values> attention(Node& n) { // q, k, v, mask, past key, past value, nonpad lengths
  DType given = n.dtype(0);         // small floats are computed in fp32 throughout, and rounded once
  Attention a{n, nullptr, nullptr, nullptr, given.isFloat() && given.bits < 32 ? kFloat32 : given};
  bool flat = n.rank(0) == 3;
  if (!flat && (n.hasAttr("q_num_heads") || n.hasAttr("kv_num_heads")) && n.opset >= 25)
    return n.invalid("numbers of heads are given by four-dimensional inputs");
  GraphExpr* parts[3] = {&a.q, &a.k, &a.v};
  for (size_t i = 0; i < 3; ++i) {
    BEVEL_TRY(Term e, splitHeads(n, i, n.attrInt(i == 0 ? "q_num_heads" : "kv_num_heads", 0)));
    BEVEL_TRY(*parts[i], e);
  }
  auto qHeads = asConst(shapeOfExpr(a.q)[1]), kHeads = asConst(shapeOfExpr(a.k)[1]),
       size = asConst(shapeOfExpr(a.q)[3]);
  if (!qHeads || !kHeads || !size || *kHeads < 1 || *qHeads % *kHeads != 0)
    return n.unsupported("numbers of heads, or their size, that only the run knows or that do not divide");
  BEVEL_TRY(Expr past, appendToPast(a, *kHeads));
  GraphExpr presentKey = a.k, presentValue = a.v;
  for (GraphExpr* e : parts) {
    BEVEL_TRY(*e, Term(n, *e).cast(a.t));
  }
  a.queries = shapeOfExpr(a.q)[2];
  a.keys = shapeOfExpr(a.k)[2];
  if (n.has(3)) BEVEL_CHECK(a.given(3));
  int64_t left = n.attrInt("left_window_size", -1), right = n.attrInt("right_window_size", -1);
  bool causal = n.attrInt("is_causal", 0) != 0;
  BEVEL_TRY(std::optional<Term> lengths, lengthsOf(n, shapeOfExpr(a.q)[0]));
  if (causal || left >= 0 || right >= 0) {
    Term offset = n.emit("shape_to_tensor", {Array<Expr>{lengths ? negate(a.queries) : past}});
    a.causal(lengths ? *lengths + offset : offset, left, right, causal);
  }
  if (lengths) a.mask(indicesTo(n, a.keys).unsqueeze({0}) < *lengths);
  Term k = repeatHeads(n, a.k, *qHeads / *kHeads), v = repeatHeads(n, a.v, *qHeads / *kHeads);
  double root = std::sqrt(n.attrFloat("scale", 1 / std::sqrt(double(std::max<int64_t>(*size, 1)))));
  Term q = Term(n, a.q) * root;
  Term scores = n.emit("matmul", {q, k.permute({0, 1, 3, 2}) * root}), shown = scores;
  int64_t mode = n.attrInt("qk_matmul_output_mode", 0);
  scores = softCapped(n, scores);
  if (mode == 1) shown = scores;
  if (a.bias) scores = scores + *a.bias;
  if (mode == 2) shown = scores;
  DType precision = dtypeOf(int32_t(n.attrInt("softmax_precision", 0))).value_or(a.t);
  if (precision.bits < a.t.bits) precision = a.t;
  Term p = probabilities(a, scores, precision).cast(a.t);
  if (mode == 3) shown = p;
  Term y = n.emit("matmul", {p, v});
  if (flat) {
    BEVEL_TRY(GraphExpr rows, y.permute({0, 2, 1, 3}));
    const Array<Expr>& s = shapeOfExpr(rows);
    y = Term(n, rows).reshape({s[0], s[1], n.analyzer().simplify(s[2] * s[3])});
  }
  return n.results({y.cast(given), presentKey, presentValue, shown.cast(given)});
}

// Pairs (x1, x2) turned by the angles of the caches: (c*x1 - s*x2, s*x1 + c*x2).
Result<Values> rotary(Node& n) { // x, cos, sin, positions
  bool flat = n.rank(0) == 3, interleaved = n.attrInt("interleaved", 0) != 0;
  GraphExpr x;
  if (flat) {
    int64_t heads = n.attrInt("num_heads", 0);
    if (heads < 1) return n.invalid("num_heads is missing");
    const Array<Expr>& s = n.shape(0);
    BEVEL_TRY(x, n.x(0).reshape({s[0], s[1], intImm(heads), n.analyzer().simplify(floordiv(s[2], heads))}));
  } else {
    BEVEL_TRY(x, n.x(0).permute({0, 2, 1, 3}));
  }
  Array<Expr> full = shapeOfExpr(x);
  auto size = asConst(full[3]);
  if (!size) return n.unsupported("a head size that only the run knows");
  int64_t rotated = n.attrInt("rotary_embedding_dim", 0);
  if (rotated == 0) rotated = *size;
  if (rotated < 2 || rotated > *size || rotated % 2) return n.invalid("rotary_embedding_dim is out of range");
  Term part = Term(n, x).slice(3, intImm(0), intImm(rotated));
  Term rest = Term(n, x).slice(3, intImm(rotated), full[3]);
  int64_t half = rotated / 2;
  std::vector<Term> angle, pair;
  for (size_t k = 0; k < 2; ++k) {
    BEVEL_TRY(GraphExpr cache, n.has(3) ? n.emit("take", {n.x(1 + k), n.x(3)}) : n.x(1 + k));
    if (rankOf(cache) != 3) return n.invalid("a cache has as many dimensions as the positions ask for");
    const Array<Expr>& s = shapeOfExpr(cache);
    Expr fits = logicalAnd(eq(s[0], full[0]), logicalAnd(eq(s[1], full[1]), eq(s[2], intImm(half))));
    BEVEL_CHECK(n.check(fits, "a cache does not fit batch, positions and half of what is rotated"));
    angle.push_back(Term(n, cache).unsqueeze({2}));
  }
  Array<Expr> pairs = {full[0], full[1], full[2], interleaved ? intImm(half) : intImm(2),
                       interleaved ? intImm(2) : intImm(half)};
  Term both = part.reshape(pairs);
  int64_t axis = interleaved ? 4 : 3;
  for (int64_t k = 0; k < 2; ++k) pair.push_back(both.slice(axis, intImm(k), intImm(k + 1)).squeeze({axis}));
  auto turned = [&](const char* op, const Term& a, const Term& b) {
    Term left = a * pair[0], right = b * pair[1];
    return Term::binary(op, left, right).unsqueeze({axis});
  };
  Term real = turned("subtract", angle[0], angle[1]), imaginary = turned("add", angle[1], angle[0]);
  Term y = n.emit("concat", {real, imaginary}, {{"axis", axis}});
  y = y.reshape({full[0], full[1], full[2], intImm(rotated)});
  if (rotated < *size) y = n.emit("concat", {y, rest}, {{"axis", 3}});
  return flat ? y.reshape(n.shape(0)) : y.permute({0, 2, 1, 3});
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
           0,
           "",
           {floats("Q", 3, 4), floats("K", 3, 4), floats("V", 3, 4), OpInput("attn_mask", some).rank(1, 4),
            floats("past_key", 4, 4, some), floats("past_value", 4, 4, some),
            OpInput("nonpad_kv_seqlen", some).of(Elements::kInts).rank(1)}},
          {"RotaryEmbedding",
           23,
           rotary,
           0,
           "",
           {floats("X", 3, 4), floats("cos_cache", 2, 3), floats("sin_cache", 2, 3),
            OpInput("position_ids", some).of(Elements::kInts).rank(2)}}};
}

} // namespace bevel::onnx
