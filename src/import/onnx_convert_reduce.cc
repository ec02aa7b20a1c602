// Reductions: axes are an attribute before opset 13 (ReduceSum) or 18 (the others), an input from then on.
#include "import/onnx_helpers.h"

#include <algorithm>
#include <cctype>

namespace bevel::onnx {

namespace {

struct Domain {
  std::optional<Ints> axes; // nothing: all
  bool keep;
  bool noop;                // nothing is reduced
  Array<Expr> unknown = {}; // axes that only the run knows
};

Result<Domain> domainOf(Node& n) {
  BEVEL_CHECK(n.require(1));
  bool empty = n.has(1) && n.in(1)->type.is<TensorTypeNode>() && n.rank(1) == 1 && isConst(n.shape(1)[0], 0);
  if (!n.hasAttr("axes") && n.has(1) && !n.constInts(1) && !empty) {
    Domain d{std::nullopt, n.attrInt("keepdims", 1) != 0, false};
    BEVEL_TRY(d.unknown, n.ints(1));
    return d;
  }
  if (empty)
    return Domain{std::nullopt, n.attrInt("keepdims", 1) != 0, n.attrInt("noop_with_empty_axes", 0) != 0};
  BEVEL_TRY(std::optional<Ints> axes, axesOf(n, 1));
  Domain d{axes, n.attrInt("keepdims", 1) != 0, false};
  if (!axes || axes->empty()) {
    d.noop = n.attrInt("noop_with_empty_axes", 0) != 0;
    d.axes = std::nullopt;
  }
  return d;
}

Result<GraphExpr> reduced(Node& n, const char* op, const GraphExpr& e, const Domain& d) {
  if (d.noop) return e;
  if (d.unknown.empty()) return reduceOver(n, op, e, d.axes, d.keep);
  const Array<Expr>& shape = shapeOfExpr(e);
  BEVEL_TRY(Array<Expr> flags, namedAxes(n, d.unknown, int64_t(shape.size())));
  Array<Expr> stays, goes;
  for (size_t k = 0; k < shape.size(); ++k) {
    Expr among = eq(flags[k], intImm(1));
    stays.push_back(select(among, intImm(1), shape[k]));
    goes.push_back(select(among, shape[k], intImm(1)));
  }
  BEVEL_TRY(GraphExpr wide, n.emit(std::string(op) + "_at",
                                   {e, Node::shapeArg(named(n, stays)), Node::shapeArg(named(n, goes))}));
  if (d.keep) return wide;
  BEVEL_TRY(Array<Expr> kept, keptDims(n, d.unknown, shapeOfExpr(e)));
  return reshapeTo(n, wide, kept);
}

Result<Values> plain(const char* op, Node& n) {
  BEVEL_TRY(Domain d, domainOf(n));
  BEVEL_TRY(GraphExpr e, reduced(n, op, n.x(0), d));
  return Values{n.value(e)};
}

Result<Values> sumSquare(Node& n) {
  BEVEL_TRY(Domain d, domainOf(n));
  BEVEL_TRY(GraphExpr e, binaryOp(n, "multiply", n.x(0), n.x(0)));
  BEVEL_TRY(e, reduced(n, "sum", e, d));
  return Values{n.value(e)};
}
Result<Values> l1(Node& n) {
  BEVEL_TRY(Domain d, domainOf(n));
  BEVEL_TRY(GraphExpr e, unaryOp(n, "abs", n.x(0)));
  BEVEL_TRY(e, reduced(n, "sum", e, d));
  return Values{n.value(e)};
}
Result<Values> l2(Node& n) {
  BEVEL_TRY(Domain d, domainOf(n));
  DType t = n.dtype(0);
  BEVEL_TRY(GraphExpr e, n.castTo(n.x(0), t.isFloat() ? t : DType::Float(64)));
  BEVEL_TRY(e, binaryOp(n, "multiply", e, e));
  BEVEL_TRY(e, reduced(n, "sum", e, d));
  BEVEL_TRY(e, unaryOp(n, "sqrt", e));
  BEVEL_TRY(e, n.castTo(e, t));
  return Values{n.value(e)};
}
Result<Values> logSum(Node& n) {
  BEVEL_TRY(Domain d, domainOf(n));
  DType t = n.dtype(0);
  BEVEL_TRY(GraphExpr e, n.castTo(n.x(0), t.isFloat() ? t : DType::Float(64)));
  BEVEL_TRY(e, reduced(n, "sum", e, d));
  BEVEL_TRY(e, unaryOp(n, "log", e));
  BEVEL_TRY(e, n.castTo(e, t));
  return Values{n.value(e)};
}

// max + log(sum(exp(x - max))); where the maximum is infinite, nothing is subtracted.
Result<Values> logSumExp(Node& n) {
  BEVEL_TRY(Domain d, domainOf(n));
  DType t = n.dtype(0);
  if (d.noop) return Values{n.in(0)};
  BEVEL_TRY(GraphExpr x, n.castTo(n.x(0), t.isFloat() ? t : DType::Float(64)));
  Domain keep = d;
  keep.keep = true;
  BEVEL_TRY(GraphExpr top, reduced(n, "max", x, keep));
  BEVEL_TRY(GraphExpr finite, unaryOp(n, "isfinite", top));
  BEVEL_TRY(top, n.emit("where", {finite, top, Node::scalarConstant(dtypeOfExpr(x), 0)}));
  BEVEL_TRY(GraphExpr e, binaryOp(n, "subtract", x, top));
  BEVEL_TRY(e, unaryOp(n, "exp", e));
  BEVEL_TRY(e, reduced(n, "sum", e, keep));
  BEVEL_TRY(e, unaryOp(n, "log", e));
  BEVEL_TRY(e, binaryOp(n, "add", e, top));
  if (!d.keep) {
    BEVEL_TRY(e, reduced(n, "max", e, d));
  }
  BEVEL_TRY(e, n.castTo(e, t));
  return Values{n.value(e)};
}

// ---- einsum

// Letters of one operand; "..." becomes digits for its axes, aligned at the right.
Result<std::string> labelsOf(Node& n, std::string term, size_t rank, size_t ellipsisRank) {
  size_t dots = term.find("...");
  if (dots == std::string::npos) {
    if (term.size() != rank) return n.invalid("a term of the equation does not fit its operand");
    return term;
  }
  if (term.size() - 3 > rank) return n.invalid("a term of the equation does not fit its operand");
  size_t count = rank - (term.size() - 3);
  std::string digits;
  for (size_t i = 0; i < count; ++i) digits += char('0' + (ellipsisRank - count + i));
  return term.replace(dots, 3, digits);
}

// The diagonal over repeated letters of an operand.
Result<GraphExpr> diagonal(Node& n, GraphExpr e, std::string& labels) {
  for (size_t i = 0; i < labels.size(); ++i) {
    size_t j = labels.find(labels[i], i + 1);
    if (j == std::string::npos) continue;
    Expr size = shapeOfExpr(e)[i];
    BEVEL_TRY(GraphExpr eye, n.emit("eye", {Node::shapeArg({size, size})}, {{"dtype", dtypeNode(kBool)}}));
    Ints tail;
    // eye's axes to positions i and j of the operand
    for (size_t d = 0; d < labels.size(); ++d)
      if (d != i && d != j) tail.push_back(int64_t(d));
    BEVEL_TRY(eye, unsqueeze(n, eye, tail));
    BEVEL_TRY(e, n.emit("where", {eye, e, Node::scalarConstant(dtypeOfExpr(e), 0)}));
    BEVEL_TRY(e, reduceOver(n, "sum", e, Ints{int64_t(j)}, false));
    labels.erase(j, 1);
    return diagonal(n, e, labels);
  }
  return e;
}

// e with axes in the order of `order`, absent letters as axes of one.
Result<GraphExpr> arrange(Node& n, GraphExpr e, const std::string& labels, const std::string& order) {
  Ints axes, missing;
  for (size_t k = 0; k < order.size(); ++k) {
    size_t at = labels.find(order[k]);
    if (at == std::string::npos)
      missing.push_back(int64_t(k));
    else
      axes.push_back(int64_t(at));
  }
  bool sorted = true;
  for (size_t k = 0; k < axes.size(); ++k) sorted = sorted && axes[k] == int64_t(k);
  if (!sorted) {
    BEVEL_TRY(e, permute(n, e, axes));
  }
  return unsqueeze(n, e, missing);
}

Result<GraphExpr> sumAway(Node& n, GraphExpr e, std::string& labels, const std::string& keep) {
  Ints axes;
  std::string left;
  for (size_t i = 0; i < labels.size(); ++i)
    if (keep.find(labels[i]) == std::string::npos)
      axes.push_back(int64_t(i));
    else
      left += labels[i];
  labels = left;
  return axes.empty() ? Result<GraphExpr>(e) : reduceOver(n, "sum", e, axes, false);
}

// Two operands as a batched matrix product: batch, rows, columns and contracted letters.
Result<GraphExpr> contract(Node& n, GraphExpr a, std::string la, GraphExpr b, std::string lb,
                           const std::string& keep, std::string& out) {
  std::string batch, rows, columns, inner;
  for (char c : la)
    (lb.find(c) == std::string::npos ? rows : keep.find(c) == std::string::npos ? inner : batch) += c;
  for (char c : lb)
    if (la.find(c) == std::string::npos) columns += c;
  BEVEL_TRY(a, arrange(n, a, la, batch + rows + inner));
  BEVEL_TRY(b, arrange(n, b, lb, batch + inner + columns));
  size_t nb = batch.size(), nr = rows.size(), ni = inner.size();
  Array<Expr> sa = shapeOfExpr(a), sb = shapeOfExpr(b), batchA = sa.slice(0, nb), batchB = sb.slice(0, nb);
  Analyzer& an = n.analyzer();
  Array<Expr> toA = batchA, toB = batchB;
  toA.push_back(product(an, sa, nb, nb + nr));
  toA.push_back(product(an, sa, nb + nr));
  toB.push_back(product(an, sb, nb, nb + ni));
  toB.push_back(product(an, sb, nb + ni));
  BEVEL_TRY(GraphExpr ma, reshapeTo(n, a, toA));
  BEVEL_TRY(GraphExpr mb, reshapeTo(n, b, toB));
  BEVEL_TRY(GraphExpr y, binaryOp(n, "matmul", ma, mb));
  Array<Expr> shape = shapeOfExpr(y).slice(0, nb);
  shape.append(sa.slice(nb, nb + nr));
  shape.append(sb.slice(nb + ni, sb.size()));
  out = batch + rows + columns;
  return reshapeTo(n, y, shape);
}

Result<Values> einsum(Node& n) {
  BEVEL_CHECK(n.require(std::max<size_t>(n.size(), 1)));
  std::string equation;
  for (char c : n.attrStr("equation", ""))
    if (c != ' ') equation += c;
  if (equation.size() > 1000) return n.invalid("the equation is too long");
  size_t arrow = equation.find("->");
  std::string left = equation.substr(0, arrow);
  std::vector<std::string> terms(1);
  for (char c : left)
    if (c == ',')
      terms.emplace_back();
    else
      terms.back() += c;
  if (terms.size() != n.size()) return n.invalid("the equation has another number of operands");
  size_t ellipsis = 0;
  for (size_t i = 0; i < terms.size(); ++i)
    if (terms[i].find("...") != std::string::npos && n.rank(i) + 3 >= terms[i].size())
      ellipsis = std::max(ellipsis, n.rank(i) + 3 - terms[i].size());
  if (ellipsis > 9) return n.unsupported("an ellipsis of more than nine axes");
  std::string digits, all, result;
  for (size_t i = 0; i < ellipsis; ++i) digits += char('0' + i);
  std::vector<std::string> labels;
  for (size_t i = 0; i < terms.size(); ++i) {
    BEVEL_TRY(std::string l, labelsOf(n, terms[i], n.rank(i), ellipsis));
    for (char c : l)
      if (!std::isalnum(static_cast<unsigned char>(c)))
        return n.invalid("the equation has a character that is no letter");
    labels.push_back(l);
    all += l;
  }
  if (arrow == std::string::npos) {
    result = digits;
    for (char c = 'A'; c <= 'z'; ++c)
      if (std::isalpha(static_cast<unsigned char>(c)) && std::count(all.begin(), all.end(), c) == 1)
        result += c;
  } else {
    result = equation.substr(arrow + 2);
    if (size_t dots = result.find("..."); dots != std::string::npos) result.replace(dots, 3, digits);
  }
  for (char c : result)
    if (all.find(c) == std::string::npos || std::count(result.begin(), result.end(), c) != 1)
      return n.invalid("the result of the equation is malformed");
  GraphExpr y = n.x(0);
  std::string ly = labels[0];
  BEVEL_TRY(y, diagonal(n, y, ly));
  for (size_t i = 1; i <= terms.size(); ++i) {
    std::string later = result;
    for (size_t k = i; k < terms.size(); ++k) later += labels[k];
    BEVEL_TRY(y, sumAway(n, y, ly, later));
    if (i == terms.size()) break;
    GraphExpr b = n.x(i);
    std::string lb = labels[i], keep = result, out;
    BEVEL_TRY(b, diagonal(n, b, lb));
    for (size_t k = i + 1; k < terms.size(); ++k) keep += labels[k];
    BEVEL_TRY(b, sumAway(n, b, lb, keep + ly));
    BEVEL_TRY(y, contract(n, y, ly, b, lb, keep, out));
    ly = out;
  }
  BEVEL_TRY(y, arrange(n, y, ly, result));
  return Values{n.value(y)};
}

} // namespace

std::vector<Conversion> reduceConversions() {
  return {{"ReduceSum", 1, std::bind_front(plain, "sum")},
          {"ReduceProd", 1, std::bind_front(plain, "prod")},
          {"ReduceMax", 1, std::bind_front(plain, "max")},
          {"ReduceMin", 1, std::bind_front(plain, "min")},
          {"ReduceMean", 1, std::bind_front(plain, "mean")},
          {"ReduceSumSquare", 1, sumSquare},
          {"ReduceL1", 1, l1},
          {"ReduceL2", 1, l2},
          {"ReduceLogSum", 1, logSum},
          {"ReduceLogSumExp", 1, logSumExp},
          {"Einsum", 12, einsum}};
}

} // namespace bevel::onnx
