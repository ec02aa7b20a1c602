// Builders of expressions and attributes, with local constant folding.
#include "ir/build.h"

#include "ir/evaluate.h"

#include <algorithm>
#include <cmath>

namespace bevel {

Expr constant(DType dtype, int64_t value) {
  if (dtype.lanes > 1) return make<const BroadcastNode>(constant(dtype.scalar(), value), dtype.lanes);
  if (dtype.isFloat()) return constantFloat(dtype, double(value));
  return make<const IntImmNode>(dtype, dtype.isBool() ? value != 0 : value);
}

Expr constantFloat(DType dtype, double value) {
  if (dtype.lanes > 1) return make<const BroadcastNode>(constantFloat(dtype.scalar(), value), dtype.lanes);
  // The value is one of the dtype's, so that equality and text are exact.
  if (dtype.isFloat()) return make<const FloatImmNode>(dtype, roundFloat(dtype, value, false));
  return constant(dtype, floatToInt(dtype, value));
}

std::optional<int64_t> asConst(const Expr& e) {
  if (!e) return std::nullopt;
  if (const auto* b = e.as<BroadcastNode>()) return asConst(b->value);
  if (const auto* i = e.as<IntImmNode>()) return i->value;
  return std::nullopt;
}

bool isConst(const Expr& e, int64_t value) {
  auto c = asConst(e);
  return c && *c == value;
}

int64_t floorDivide(int64_t a, int64_t b) {
  if (b == -1) return int64_t(0 - uint64_t(a)); // INT64_MIN / -1 wraps
  int64_t q = a / b;
  return q - (a % b != 0 && (a < 0) != (b < 0));
}

int64_t floorModulo(int64_t a, int64_t b) {
  if (b == -1) return 0;
  int64_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

namespace {

// Brings both operands to one dtype: lanes broadcast, integer constants follow the other side, the narrower
// index widens.
void unify(Expr& a, Expr& b) {
  if (a->dtype.lanes != b->dtype.lanes) {
    if (a->dtype.lanes == 1)
      a = make<const BroadcastNode>(a, b->dtype.lanes);
    else if (b->dtype.lanes == 1)
      b = make<const BroadcastNode>(b, a->dtype.lanes);
  }
  if (a->dtype == b->dtype) return;
  DType ta = a->dtype, tb = b->dtype;
  auto follows = [](const Expr& e, DType t) {
    auto c = asConst(e);
    bool wrapped = c && *c < 0 && e->dtype.isUInt(); // stands for a value above int64's
    return c && !wrapped && t.isInteger() && *c >= minValue(t) && *c <= maxValue(t);
  };
  if (asConst(a) && !asConst(b) && follows(a, tb))
    a = constant(tb, *asConst(a));
  else if (asConst(b) && !asConst(a) && follows(b, ta))
    b = constant(ta, *asConst(b));
  else if (ta.isInt() && tb.isInt() && ta.lanes == tb.lanes)
    (ta.bits < tb.bits ? a : b) = castTo(ta.bits < tb.bits ? tb : ta, ta.bits < tb.bits ? a : b);
}

// Neutral and absorbing elements of integer operations, and x op x where it is exact.
Expr foldNeutral(BinaryOp op, const Expr& a, const Expr& b) {
  auto zero = [&] { return constant(a->dtype, 0); };
  switch (op) {
  case BinaryOp::kAdd:
    return isConst(a, 0) ? b : isConst(b, 0) ? a : nullptr;
  case BinaryOp::kSub:
    return isConst(b, 0) ? a : a == b ? zero() : nullptr;
  case BinaryOp::kMul:
    if (isConst(a, 0) || isConst(b, 0)) return zero();
    return isConst(a, 1) ? b : isConst(b, 1) ? a : nullptr;
  case BinaryOp::kDiv:
  case BinaryOp::kFloorDiv:
    return isConst(b, 1) ? a : nullptr;
  case BinaryOp::kMod:
  case BinaryOp::kFloorMod:
    return isConst(b, 1) ? zero() : nullptr;
  case BinaryOp::kMin:
  case BinaryOp::kMax:
    return a == b ? a : nullptr;
  default:
    return nullptr;
  }
}

Expr foldBool(BinaryOp op, const Expr& a, const Expr& b) {
  bool isAnd = op == BinaryOp::kAnd;
  if (isConst(a, isAnd)) return b;
  if (isConst(b, isAnd)) return a;
  if (isConst(a, !isAnd)) return a;
  if (isConst(b, !isAnd)) return b;
  return nullptr;
}

} // namespace

Expr binary(BinaryOp op, Expr a, Expr b) {
  unify(a, b);
  BEVEL_ASSERT(a->dtype == b->dtype,
               "operands of different types: " + a->dtype.str() + " and " + b->dtype.str());
  bool integer = a->dtype.isInteger() || a->dtype.isBool();
  if (integer) {
    auto ca = asConst(a), cb = asConst(b);
    if (ca && cb)
      if (auto r = exactInt(op, *ca, *cb, a->dtype.scalar()))
        return constant(isComparison(op) ? DType::Bool(a->dtype.lanes) : a->dtype, *r);
  }
  Expr folded;
  if (a->dtype.isInteger())
    folded = foldNeutral(op, a, b);
  else if (a->dtype.isBool() && (op == BinaryOp::kAnd || op == BinaryOp::kOr))
    folded = foldBool(op, a, b);
  if (folded) return folded;
  return make<const BinaryNode>(op, std::move(a), std::move(b));
}

Expr logicalNot(const Expr& a) {
  if (auto c = asConst(a)) return constant(a->dtype, !*c);
  if (const auto* u = a.as<UnaryNode>(); u && u->op == UnaryOp::kNot) return u->a;
  return make<const UnaryNode>(UnaryOp::kNot, a);
}

Expr negate(const Expr& a) {
  if (const auto* f = a.as<FloatImmNode>()) return constantFloat(a->dtype, -f->value);
  if (auto c = asConst(a); c && a->dtype.isInt() && *c != minValue(a->dtype)) return constant(a->dtype, -*c);
  return make<const UnaryNode>(UnaryOp::kNeg, a);
}

Expr select(Expr condition, Expr a, Expr b) {
  unify(a, b);
  BEVEL_ASSERT(a->dtype == b->dtype, "sides of a select of different types");
  if (auto c = asConst(condition)) return *c ? a : b;
  if (condition->dtype.lanes == 1 && a->dtype.lanes > 1)
    condition = make<const BroadcastNode>(condition, a->dtype.lanes);
  return make<const SelectNode>(std::move(condition), std::move(a), std::move(b));
}

Expr castTo(DType dtype, Expr value) {
  if (value->dtype == dtype) return value;
  if (dtype.lanes > 1 && value->dtype.lanes == 1)
    return make<const BroadcastNode>(castTo(dtype.scalar(), value), dtype.lanes);
  BEVEL_ASSERT(dtype.lanes == value->dtype.lanes, "cast between different lanes");
  if (const auto* i = value.as<IntImmNode>()) {
    bool fits = i->value >= minValue(dtype) && i->value <= maxValue(dtype);
    if (dtype.isBool() || (dtype.isInteger() && fits)) return constant(dtype, i->value);
    bool exact = i->value >= -(int64_t(1) << 24) && i->value <= (int64_t(1) << 24) && value->dtype.isInt();
    if ((dtype.isIeee(32) || dtype.isIeee(64)) && exact) return constantFloat(dtype, double(i->value));
  }
  if (const auto* f = value.as<FloatImmNode>();
      f && (dtype.isIeee(64) || dtype.isIeee(32)) && double(float(f->value)) == f->value)
    return constantFloat(dtype, f->value);
  return make<const CastNode>(dtype, std::move(value));
}

Expr call(Intrin op, Array<NodeRef> args) {
  DType t = impliedDType(op, args);
  return make<const CallNode>(t, op, std::move(args));
}

Expr callAs(DType dtype, Intrin op, Array<NodeRef> args, Dict attrs) {
  return make<const CallNode>(dtype, op, std::move(args), std::move(attrs));
}

Expr ifThenElse(Expr condition, Expr a, Expr b) {
  unify(a, b);
  BEVEL_ASSERT(a->dtype == b->dtype, "sides of if_then_else of different types");
  if (auto c = asConst(condition)) return *c ? a : b;
  DType t = a->dtype;
  return make<const CallNode>(t, Intrin::kIfThenElse, Array<NodeRef>{condition, a, b});
}

Buffer buffer(std::string name, DType dtype, Array<Expr> shape, std::string scope) {
  auto data = make<VarNode>(name, DType::Handle());
  data->pointee = dtype.scalar();
  data->scope = scope == "global" ? "" : scope;
  auto b = make<BufferNode>(Var(data), dtype, std::move(shape), std::move(name));
  b->scope = std::move(scope);
  return b;
}

BufferRegion fullRegion(const Buffer& b) {
  Array<Range> ranges;
  for (const Expr& d : b->shape) ranges.push_back(range(constant(d->dtype, 0), d));
  return make<const BufferRegionNode>(b, ranges);
}

IterVar iter(std::string name, Expr extent, IterType type) {
  Var v = var(std::move(name), extent->dtype);
  return make<const IterVarNode>(range(constant(extent->dtype, 0), extent), v, type);
}

Dict dict(std::vector<std::pair<std::string, NodeRef>> entries) {
  std::stable_sort(entries.begin(), entries.end(),
                   [](const auto& x, const auto& y) { return x.first < y.first; });
  auto d = make<DictNode>();
  for (auto& [key, value] : entries) {
    if (!value) continue;
    if (!d->keys.empty() && d->keys.back() == key) {
      d->values.set(d->values.size() - 1, std::move(value));
      continue;
    }
    d->keys.push_back(key);
    d->values.push_back(std::move(value));
  }
  return d;
}

Dict withAttr(const Dict& d, const std::string& key, NodeRef value) {
  std::vector<std::pair<std::string, NodeRef>> entries;
  if (d)
    for (size_t i = 0; i < d->keys.size(); ++i)
      if (d->keys[i] != key) entries.emplace_back(d->keys[i], d->values[i]);
  if (value) entries.emplace_back(key, std::move(value));
  return dict(std::move(entries));
}

NodeRef attr(const Dict& d, std::string_view key) {
  return d ? d->find(key) : nullptr;
}

int64_t attrInt(const Dict& d, std::string_view key, int64_t otherwise) {
  const auto* i = attr(d, key).as<IntImmNode>();
  return i ? i->value : otherwise;
}

double attrFloat(const Dict& d, std::string_view key, double otherwise) {
  NodeRef v = attr(d, key);
  if (const auto* i = v.as<IntImmNode>()) return double(i->value);
  const auto* f = v.as<FloatImmNode>();
  return f ? f->value : otherwise;
}

std::string attrStr(const Dict& d, std::string_view key, std::string otherwise) {
  const auto* s = attr(d, key).as<StringImmNode>();
  return s ? s->value : otherwise;
}

std::vector<int64_t> attrInts(const Dict& d, std::string_view key) {
  std::vector<int64_t> out;
  if (const auto* l = attr(d, key).as<ListNode>())
    for (const NodeRef& item : l->items)
      if (const auto* i = item.as<IntImmNode>()) out.push_back(i->value);
  return out;
}

NodeRef intList(const std::vector<int64_t>& values) {
  Array<NodeRef> items;
  for (int64_t v : values) items.push_back(intImm(v));
  return list(items);
}

NodeRef list(Array<NodeRef> items) {
  return make<const ListNode>(std::move(items));
}

PrimFunc withAttr(const PrimFunc& f, const std::string& key, NodeRef value) {
  auto copy = mutableCopy(f);
  copy->attrs = withAttr(f->attrs, key, std::move(value));
  return copy;
}

Function withAttr(const Function& f, const std::string& key, NodeRef value) {
  auto copy = mutableCopy(f);
  copy->attrs = withAttr(f->attrs, key, std::move(value));
  return copy;
}

Array<Expr> dims(const std::vector<int64_t>& shape) {
  Array<Expr> out;
  for (int64_t d : shape) out.push_back(intImm(d));
  return out;
}

std::optional<std::vector<int64_t>> constDims(const Array<Expr>& shape) {
  std::vector<int64_t> out;
  for (const Expr& e : shape) {
    auto c = asConst(e);
    if (!c) return std::nullopt;
    out.push_back(*c);
  }
  return out;
}

Type tensorType(DType dtype, const std::vector<int64_t>& shape) {
  return make<const TensorTypeNode>(dtype, dims(shape));
}

Stmt seq(const std::vector<Stmt>& stmts) {
  Array<Stmt> flat;
  for (const Stmt& s : stmts) {
    if (!s) continue;
    if (const auto* inner = s.as<SeqNode>())
      flat.append(inner->stmts);
    else
      flat.push_back(s);
  }
  if (flat.empty()) return make<const EvaluateNode>(intImm(0, kInt32));
  if (flat.size() == 1) return flat[0];
  return make<const SeqNode>(flat);
}

} // namespace bevel
