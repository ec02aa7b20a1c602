// Small integer tensors as expressions over symbolic dimensions.
//
//   Shape(x: [n, 4]) → Gather 0 → Mul 2 → Concat with -1    is the int list [n*2, -1]: no operator runs.
//
// Operators that only move elements run once on positions instead of values (their own converter, evaluated
// on constants), and the result says which expression goes where. Arithmetic and comparisons work element by
// element.
#include "arith/analyzer.h"
#include "import/onnx_importer.h"

#include <algorithm>

namespace bevel::onnx {

namespace {

// Operators that move elements of the inputs in `data` (bit i: input i; ~0: all).
struct Mover {
  const char* op;
  uint32_t data;
};
constexpr Mover kMovers[] = {
    {"Gather", 1},   {"Slice", 1},   {"Concat", ~0u},       {"Unsqueeze", 1}, {"Squeeze", 1},
    {"Reshape", 1},  {"Split", 1},   {"Transpose", 1},      {"Expand", 1},    {"Tile", 1},
    {"Identity", 1}, {"Flatten", 1}, {"GatherElements", 1}, {"ScatterND", 5}, {"ScatterElements", 5},
};

bool isIntType(const Value& v) {
  const auto* t = v->type.as<TensorTypeNode>();
  return t && (t->dtype.isInteger() || t->dtype.isBool());
}

bool symbolic(const Value& v) {
  return v && v->known && !v->expr;
}

// int32 wraps, expressions do not. A value that stays in range is its expression. One that is in range for small
// dimensions stays as well, and the run checks it (a batch times a length, say): proofs on such expressions are
// what tracking is for. Any other wraps.
Result<Expr> inWidth(Node& node, DType dtype, const Expr& e) {
  constexpr int64_t kHalf = int64_t(1) << 31, kSmallDim = 64;
  if (dtype != kInt32) return e;
  if (auto c = asConst(e)) return intImm(int32_t(*c));
  if (node.analyzer().bound(e).within(-kHalf, kHalf - 1)) return e;
  Analyzer small;
  for (const NodeRef& v : freeVars(e)) small.bind(cast<VarNode>(v), ConstBound{-kSmallDim, kSmallDim});
  if (!small.bound(e).within(-kHalf, kHalf - 1))
    return node.analyzer().simplify(floormod(e + intImm(kHalf), intImm(2 * kHalf)) - intImm(kHalf));
  BEVEL_CHECK(
      node.check(logicalAnd(e >= intImm(-kHalf), e < intImm(kHalf)), "a value leaves the range of int32"));
  return e;
}

// Runs the node's converter on positions, and reads the result as a map.
Result<std::optional<Values>> move(Node& node, uint32_t data) {
  std::vector<Expr> pool;
  Values saved = node.inputs;
  DType dtype;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    bool moved = i >= 32 || (data >> i & 1);
    const Value& v = saved[i];
    if (!v) continue;
    if (!moved) {
      if (!node.constant(i)) { // an index that is not constant: the node runs as usual
        node.inputs = saved;
        return std::optional<Values>{};
      }
      continue;
    }
    if (!v->known) {
      node.inputs = saved;
      return std::optional<Values>{};
    }
    dtype = v->type.as<TensorTypeNode>()->dtype;
    auto positions = TensorObject::zeros(kInt64, *constDims(v->type.as<TensorTypeNode>()->shape));
    for (size_t k = 0; k < v->ints.size(); ++k) {
      positions->setInt(int64_t(k), int64_t(pool.size()));
      pool.push_back(v->ints[k]);
    }
    node.inputs[i] = node.value(make<const ConstantNode>(Tensor(positions)));
  }
  Result<Values> results = convertNode(node);
  node.inputs = saved;
  if (!results) return fail(std::move(results.error()));
  Values out;
  for (const Value& r : *results) {
    const auto* constant = r->expr.as<ConstantNode>();
    if (!constant || constant->value->dtype != kInt64 || constant->value->size() > int64_t(kTrackLimit))
      return std::optional<Values>{};
    Array<Expr> ints;
    for (int64_t k = 0; k < constant->value->size(); ++k) {
      int64_t at = constant->value->asInt(k);
      if (at < 0 || size_t(at) >= pool.size()) return std::optional<Values>{};
      ints.push_back(pool[size_t(at)]);
    }
    out.push_back(knownInts(ints, constant->value->shape, dtype));
  }
  return std::optional<Values>(std::move(out));
}

// Division that truncates, of values that may be negative.
Expr divide(Analyzer& an, const Expr& a, const Expr& b) {
  bool nonNegative = an.prove(a >= intImm(0)) && an.prove(b >= intImm(0));
  return nonNegative ? floordiv(a, b) : truncdiv(a, b);
}

std::optional<Expr> arithmetic(Node& node, const std::string& op, const Expr& a, const Expr& b) {
  Analyzer& an = node.analyzer();
  if (op == "Add" || op == "Sum") return a + b;
  if (op == "Sub") return a - b;
  if (op == "Mul") return a * b;
  if (op == "Max") return max(a, b);
  if (op == "Min") return min(a, b);
  bool divisor = an.prove(b > intImm(0)) || an.prove(b < intImm(0));
  if (op == "Div" && divisor) return divide(an, a, b);
  if (op == "Mod" && divisor) return node.attrInt("fmod", 0) ? truncmod(a, b) : floormod(a, b);
  return std::nullopt;
}

// Comparisons are tracked when their outcome is certain, else as 0/1 expressions.
std::optional<Expr> comparison(Node& node, const std::string& op, const Expr& a, const Expr& b) {
  Expr e;
  if (op == "Equal")
    e = eq(a, b);
  else if (op == "Less")
    e = a < b;
  else if (op == "LessOrEqual")
    e = a <= b;
  else if (op == "Greater")
    e = a > b;
  else if (op == "GreaterOrEqual")
    e = a >= b;
  else if (op == "And")
    e = logicalAnd(ne(a, intImm(0)), ne(b, intImm(0)));
  else if (op == "Or")
    e = logicalOr(ne(a, intImm(0)), ne(b, intImm(0)));
  else
    return std::nullopt;
  Analyzer& an = node.analyzer();
  if (an.prove(e)) return intImm(1);
  if (an.prove(logicalNot(e))) return intImm(0);
  return castTo(kInt64, an.simplify(e));
}

struct Elementwise {
  std::vector<int64_t> shape;
  std::vector<std::vector<int64_t>> offsets; // per input, per element
};

std::optional<Elementwise> broadcast(const Values& in) {
  Elementwise e;
  for (const Value& v : in) {
    auto d = constDims(v->type.as<TensorTypeNode>()->shape);
    if (!d) return std::nullopt;
    if (d->size() > e.shape.size()) e.shape.insert(e.shape.begin(), d->size() - e.shape.size(), 1);
    for (size_t i = 0, o = e.shape.size() - d->size(); i < d->size(); ++i) {
      if (e.shape[o + i] == 1)
        e.shape[o + i] = (*d)[i];
      else if ((*d)[i] != 1 && (*d)[i] != e.shape[o + i])
        return std::nullopt;
    }
  }
  auto n = elementCount(e.shape);
  if (!n || *n > int64_t(kTrackLimit)) return std::nullopt;
  for (const Value& v : in) {
    auto d = *constDims(v->type.as<TensorTypeNode>()->shape);
    std::vector<int64_t> offsets;
    for (int64_t k = 0; k < *n; ++k) {
      int64_t rest = k, at = 0, stride = 1;
      for (size_t i = e.shape.size(), j = d.size(); i-- > 0;) {
        int64_t index = rest % e.shape[i];
        rest /= e.shape[i];
        if (j == 0) continue;
        --j;
        if (d[j] != 1) at += index * stride;
        stride *= d[j];
      }
      offsets.push_back(at);
    }
    e.offsets.push_back(std::move(offsets));
  }
  return e;
}

Result<std::optional<Values>> elementwise(Node& node) {
  const std::string& op = node.proto.opType;
  auto e = broadcast(node.inputs);
  if (!e) return std::optional<Values>{};
  DType dtype = node.inputs.back()->type.as<TensorTypeNode>()->dtype;
  Array<Expr> out;
  bool compares = false;
  size_t n = e->offsets[0].size();
  for (size_t k = 0; k < n; ++k) {
    auto at = [&](size_t i) { return node.inputs[i]->ints[size_t(e->offsets[i][k])]; };
    Expr r = at(0);
    if (op == "Where")
      r = select(ne(at(0), intImm(0)), at(1), at(2));
    else
      for (size_t i = 1; i < node.inputs.size(); ++i) {
        auto next = arithmetic(node, op, r, at(i));
        if (!next) {
          next = comparison(node, op, r, at(i));
          compares = true;
        }
        if (!next) return std::optional<Values>{};
        BEVEL_TRY(r, inWidth(node, compares ? kBool : dtype, *next));
      }
    out.push_back(asConst(r) ? r : node.analyzer().simplify(r));
  }
  return std::optional(Values{knownInts(out, e->shape, compares ? kBool : dtype)});
}

Result<std::optional<Values>> unary(Node& node) {
  const std::string& op = node.proto.opType;
  const auto* t = node.inputs[0]->type.as<TensorTypeNode>();
  Array<Expr> out;
  DType dtype = t->dtype;
  for (const Expr& e : node.inputs[0]->ints) {
    if (op == "Neg")
      out.push_back(node.analyzer().simplify(negate(e)));
    else if (op == "Abs")
      out.push_back(node.analyzer().simplify(max(e, negate(e))));
    else if (op == "Not")
      out.push_back(node.analyzer().simplify(castTo(kInt64, eq(e, intImm(0)))));
    else if (op == "Cast") {
      auto to = dtypeOf(int32_t(node.attrInt("to", 0)));
      if (!to || (*to != kInt64 && *to != kInt32) || dtype.isUInt()) return std::optional<Values>{};
      dtype = *to;
      out.push_back(e);
    } else
      return std::optional<Values>{};
    BEVEL_TRY(Expr kept, inWidth(node, dtype, out.back()));
    out.set(out.size() - 1, kept);
  }
  return std::optional(Values{knownInts(out, *constDims(t->shape), dtype)});
}

Result<std::optional<Values>> reduceAll(Node& node) {
  bool product = node.proto.opType == "ReduceProd";
  const auto* t = node.inputs[0]->type.as<TensorTypeNode>();
  if (t->ndim != 1 || node.attrInt("noop_with_empty_axes", 0)) return std::optional<Values>{};
  Expr r = intImm(product ? 1 : 0);
  for (const Expr& e : node.inputs[0]->ints) r = product ? r * e : r + e;
  BEVEL_TRY(r, inWidth(node, t->dtype, node.analyzer().simplify(r)));
  bool keep = node.attrInt("keepdims", 1) != 0;
  return std::optional(
      Values{knownInts({r}, keep ? std::vector<int64_t>{1} : std::vector<int64_t>{}, t->dtype)});
}

bool oneOf(const std::string& op, std::initializer_list<const char*> names) {
  return std::any_of(names.begin(), names.end(), [&](const char* n) { return op == n; });
}

} // namespace

Result<std::optional<Values>> trackInts(Node& node) {
  if (!node.proto.domain.empty() || node.inputs.empty()) return std::optional<Values>{};
  bool any = false;
  for (const Value& v : node.inputs) any |= symbolic(v);
  if (!any) return std::optional<Values>{};
  const std::string& op = node.proto.opType;
  // Updates that are combined with what they meet are arithmetic, not moves.
  bool combines = node.attrStr("reduction", "none") != "none";
  for (const Mover& m : kMovers)
    if (op == m.op) return combines ? std::optional<Values>{} : move(node, m.data);
  bool all = std::all_of(node.inputs.begin(), node.inputs.end(),
                         [](const Value& v) { return v && v->known && isIntType(v); });
  if (!all) return std::optional<Values>{};
  if (oneOf(op, {"Neg", "Abs", "Not", "Cast"})) return unary(node);
  if (oneOf(op, {"ReduceProd", "ReduceSum"}) && node.inputs.size() == 1) return reduceAll(node);
  if (oneOf(op, {"Add", "Sub", "Mul", "Div", "Mod", "Max", "Min", "Sum", "Equal", "Less", "LessOrEqual",
                 "Greater", "GreaterOrEqual", "And", "Or", "Where"}))
    return elementwise(node);
  return std::optional<Values>{};
}

} // namespace bevel::onnx
