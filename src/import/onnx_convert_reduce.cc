// Reductions: axes are an attribute before opset 13 (ReduceSum) or 18 (the others), an input from then on.
#include "import/onnx_helpers.h"

#include <algorithm>
#include <cctype>

namespace bevel::onnx {

namespace {

struct Domain {
  std::optional<Ints> axes; // nothing: all
  bool keep;
  bool noop = false;        // nothing is reduced
  Array<Expr> unknown = {}; // axes that only the run knows
};

Result<Domain> domainOf(Node& n) {
  Domain d{std::nullopt, n.attrInt("keepdims", 1) != 0};
  bool empty = n.has(1) && n.in(1)->type.is<TensorTypeNode>() && n.rank(1) == 1 && isConst(n.shape(1)[0], 0);
  if (!n.hasAttr("axes") && n.has(1) && !n.constInts(1) && !empty) {
    BEVEL_TRY(d.unknown, n.ints(1));
    return d;
  }
  if (!empty) {
    BEVEL_TRY(d.axes, axesOf(n, 1));
  }
  if (!d.axes || d.axes->empty()) {
    d.noop = n.attrInt("noop_with_empty_axes", 0) != 0;
    d.axes = std::nullopt;
  }
  return d;
}

Result<Term> reduced(Node& n, const char* op, const Term& e, const Domain& d) {
  if (d.noop) return e;
  if (d.unknown.empty()) return e.reduce(op, d.axes, d.keep);
  BEVEL_TRY(GraphExpr in, e);
  const Array<Expr>& shape = shapeOfExpr(in);
  BEVEL_TRY(Array<Expr> flags, namedAxes(n, d.unknown, int64_t(shape.size())));
  Array<Expr> stays, goes;
  for (size_t k = 0; k < shape.size(); ++k) {
    Expr among = eq(flags[k], intImm(1));
    stays.push_back(select(among, intImm(1), shape[k]));
    goes.push_back(select(among, shape[k], intImm(1)));
  }
  Term wide = n.emit(std::string(op) + "_at", {e, named(n, stays), named(n, goes)});
  if (d.keep) return wide;
  BEVEL_TRY(Array<Expr> kept, keptDims(n, d.unknown, shape));
  return wide.reshape(kept);
}

// A reduction of a function of x, and a function of its result: computed as floats where a function gives such.
struct Reduction {
  const char* op;
  const char* before = nullptr;
  const char* after = nullptr;
};
Result<Values> reduceNode(const Reduction& r, Node& n) {
  BEVEL_TRY(Domain d, domainOf(n));
  DType t = n.dtype(0);
  Term e = r.after && !t.isFloat() ? n.x(0).cast(DType::Float(64)) : n.x(0);
  if (r.before) e = std::string_view(r.before) == "square" ? e * e : e.apply(r.before);
  BEVEL_TRY(e, reduced(n, r.op, e, d));
  return r.after ? e.apply(r.after).cast(t) : e;
}

// max + log(sum(exp(x - max))); where the maximum is infinite, nothing is subtracted.
Result<Values> logSumExp(Node& n) {
  BEVEL_TRY(Domain d, domainOf(n));
  DType t = n.dtype(0);
  if (d.noop) return Values{n.in(0)};
  Term x = n.x(0).cast(t.isFloat() ? t : DType::Float(64));
  Domain keep = d;
  keep.keep = true;
  BEVEL_TRY(Term top, reduced(n, "max", x, keep));
  top = where(n, top.apply("isfinite"), top, 0);
  BEVEL_TRY(Term e, reduced(n, "sum", (x - top).apply("exp"), keep));
  e = e.apply("log") + top;
  if (!d.keep) {
    BEVEL_TRY(e, reduced(n, "max", e, d));
  }
  return e.cast(t);
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
Result<GraphExpr> diagonal(Node& n, const GraphExpr& e, std::string& labels) {
  for (size_t i = 0; i < labels.size(); ++i) {
    size_t j = labels.find(labels[i], i + 1);
    if (j == std::string::npos) continue;
    Expr size = shapeOfExpr(e)[i];
    Ints tail; // eye's axes to positions i and j of the operand
    for (size_t d = 0; d < labels.size(); ++d)
      if (d != i && d != j) tail.push_back(int64_t(d));
    Term eye = n.emit("eye", {Array<Expr>{size, size}}, {{"dtype", kBool}}).unsqueeze(tail);
    BEVEL_TRY(GraphExpr rest, where(n, eye, e, 0).reduce("sum", Ints{int64_t(j)}));
    labels.erase(j, 1);
    return diagonal(n, rest, labels);
  }
  return e;
}

// e with axes in the order of `order`, absent letters as axes of one.
Term arrange(Node& n, const GraphExpr& e, const std::string& labels, const std::string& order) {
  Ints axes, missing;
  for (size_t k = 0; k < order.size(); ++k) {
    size_t at = labels.find(order[k]);
    if (at == std::string::npos)
      missing.push_back(int64_t(k));
    else
      axes.push_back(int64_t(at));
  }
  Term in(n, e);
  return (axes == upTo(0, int64_t(axes.size())) ? in : in.permute(axes)).unsqueeze(missing);
}

Term sumAway(Node& n, const GraphExpr& e, std::string& labels, const std::string& keep) {
  Ints axes;
  std::string left;
  for (size_t i = 0; i < labels.size(); ++i)
    if (keep.find(labels[i]) == std::string::npos)
      axes.push_back(int64_t(i));
    else
      left += labels[i];
  labels = left;
  Term all(n, e);
  return axes.empty() ? all : all.reduce("sum", axes);
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
  Array<Expr> sa = shapeOfExpr(a), sb = shapeOfExpr(b);
  auto matrices = [&](const GraphExpr& e, size_t middle) {
    const Array<Expr>& s = shapeOfExpr(e);
    Array<Expr> to = s.slice(0, nb);
    to.push_back(product(n.analyzer(), s, nb, nb + middle));
    to.push_back(product(n.analyzer(), s, nb + middle));
    return Term(n, e).reshape(to);
  };
  Term ma = matrices(a, nr), mb = matrices(b, ni);
  BEVEL_TRY(GraphExpr y, n.emit("matmul", {ma, mb}));
  Array<Expr> shape = shapeOfExpr(y).slice(0, nb);
  shape.append(sa.slice(nb, nb + nr));
  shape.append(sb.slice(nb + ni, sb.size()));
  out = batch + rows + columns;
  return Term(n, y).reshape(shape);
}

Result<Values> einsum(Node& n) {
  BEVEL_CHECK(n.require(n.size()));
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
  std::string ly = labels[0];
  BEVEL_TRY(GraphExpr y, diagonal(n, *n.x(0), ly));
  for (size_t i = 1; i <= terms.size(); ++i) {
    std::string later = result;
    for (size_t k = i; k < terms.size(); ++k) later += labels[k];
    BEVEL_TRY(y, sumAway(n, y, ly, later));
    if (i == terms.size()) break;
    std::string lb = labels[i], keep = result, out;
    BEVEL_TRY(GraphExpr b, diagonal(n, *n.x(i), lb));
    for (size_t k = i + 1; k < terms.size(); ++k) keep += labels[k];
    BEVEL_TRY(b, sumAway(n, b, lb, keep + ly));
    BEVEL_TRY(y, contract(n, y, ly, b, lb, keep, out));
    ly = out;
  }
  return arrange(n, y, ly, result);
}

} // namespace

std::vector<Conversion> reduceConversions() {
  std::vector<Conversion> rows = {{"ReduceLogSumExp", 1, logSumExp, 1}, {"Einsum", 12, einsum, 1}};
  const std::pair<const char*, Reduction> plain[] = {{"ReduceSum", {"sum"}},
                                                     {"ReduceProd", {"prod"}},
                                                     {"ReduceMax", {"max"}},
                                                     {"ReduceMin", {"min"}},
                                                     {"ReduceMean", {"mean"}},
                                                     {"ReduceSumSquare", {"sum", "square"}},
                                                     {"ReduceL1", {"sum", "abs"}},
                                                     {"ReduceL2", {"sum", "square", "sqrt"}},
                                                     {"ReduceLogSum", {"sum", nullptr, "log"}}};
  for (const auto& [op, reduction] : plain)
    rows.push_back({op, 1, std::bind_front(reduceNode, reduction), 1});
  return rows;
}

} // namespace bevel::onnx
