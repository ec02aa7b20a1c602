// Arithmetic on symbolic shapes: broadcasting, unification, erasure.
#include "graph/shape_util.h"

#include "arith/analyzer.h"
#include "ir/printer.h"

#include <algorithm>
#include <fmt/format.h>

namespace bevel {

bool provedEqual(Analyzer& analyzer, const Expr& a, const Expr& b) {
  if (a == b) return true;
  auto ca = asConst(a), cb = asConst(b);
  if (ca && cb) return *ca == *cb;
  return same(a, b) || analyzer.proveEqual(a, b);
}

Expr product(Analyzer& analyzer, const Array<Expr>& dims, size_t first, size_t last) {
  Expr p = intImm(1);
  for (size_t i = first; i < std::min(last, dims.size()); ++i) p = p * dims[i];
  return asConst(p) ? p : analyzer.simplify(p);
}

Result<Array<Expr>> broadcastShapes(const OpCall& call, InferContext& context, const Array<Expr>& a,
                                    const Array<Expr>& b) {
  const Array<Expr>&longer = a.size() >= b.size() ? a : b, &shorter = a.size() >= b.size() ? b : a;
  size_t offset = longer.size() - shorter.size();
  Array<Expr> out;
  for (size_t i = 0; i < longer.size(); ++i) {
    if (i < offset) {
      out.push_back(longer[i]);
      continue;
    }
    const Expr &x = longer[i], &y = shorter[i - offset];
    if (isConst(y, 1) || provedEqual(context.analyzer, x, y))
      out.push_back(x);
    else if (isConst(x, 1))
      out.push_back(y);
    else {
      auto cx = asConst(x), cy = asConst(y);
      if (cx && cy)
        return call.invalid(fmt::format("dimensions {} and {} of the inputs cannot be broadcast", *cx, *cy));
      Expr fits = logicalOr(eq(x, y), logicalOr(eq(x, intImm(1)), eq(y, intImm(1))));
      BEVEL_CHECK(context.require(fits, call, "dimensions of the inputs cannot be broadcast"));
      // Under that condition either may decide; a plain variable makes the simpler size.
      const Expr& lead = y.is<VarNode>() && !x.is<VarNode>() ? y : x;
      const Expr& other = &lead == &x ? y : x;
      out.push_back(cx ? x : cy ? y : context.analyzer.simplify(select(eq(lead, intImm(1)), other, lead)));
    }
  }
  return out;
}

Result<int64_t> normalizeAxis(const OpCall& call, int64_t axis, size_t rank) {
  if (axis < -int64_t(rank) || axis >= int64_t(rank))
    return call.invalid(fmt::format("axis {} is out of range for rank {}", axis, rank));
  return axis < 0 ? axis + int64_t(rank) : axis;
}

Result<std::vector<int64_t>> normalizeAxes(const OpCall& call, const std::vector<int64_t>& axes,
                                           size_t rank) {
  std::vector<int64_t> out;
  for (int64_t a : axes) {
    BEVEL_TRY(int64_t axis, normalizeAxis(call, a, rank));
    out.push_back(axis);
  }
  std::sort(out.begin(), out.end());
  if (std::adjacent_find(out.begin(), out.end()) != out.end()) return call.invalid("an axis is named twice");
  return out;
}

Status unifyShape(const Array<Expr>& pattern, const Array<Expr>& actual, VarMap& bindings, Analyzer& analyzer,
                  std::vector<Expr>* unproved) {
  if (pattern.size() != actual.size())
    return fail(ErrorCode::kInvalid,
                fmt::format("rank {} expected, {} given", pattern.size(), actual.size()));
  // Plain variables first, so that composed dimensions find their values.
  for (size_t i = 0; i < pattern.size(); ++i)
    if (pattern[i].is<VarNode>() && !bindings.count(cast<VarNode>(pattern[i])))
      bindings[cast<VarNode>(pattern[i])] = castTo(pattern[i]->dtype, actual[i]);
  for (size_t i = 0; i < pattern.size(); ++i) {
    Expr expected = substitute(pattern[i], bindings);
    auto ce = asConst(expected), ca = asConst(actual[i]);
    if (ce && ca && *ce != *ca)
      return fail(ErrorCode::kInvalid, fmt::format("dimension {}: {} expected, {} given", i, *ce, *ca));
    if (!(ce && ca) && !same(expected, actual[i]) && analyzer.prove(ne(expected, actual[i])))
      return fail(ErrorCode::kInvalid,
                  fmt::format("dimension {}: {} expected, {} given", i, print(expected), print(actual[i])));
    if (unproved && !(ce && ca) && !provedEqual(analyzer, expected, actual[i]))
      unproved->push_back(eq(castTo(kInt64, expected), castTo(kInt64, actual[i])));
  }
  return {};
}

std::optional<Dims> dimsOf(const Type& type) {
  if (const auto* t = type.as<TensorTypeNode>())
    return Dims{t->ndim, t->known ? &t->shape : nullptr, t->dtype};
  if (const auto* s = type.as<ShapeTypeNode>())
    return Dims{s->ndim, s->known ? &s->values : nullptr, DType::Void()};
  return std::nullopt;
}

Status unify(const Type& pattern, const Type& actual, VarMap& bindings, Analyzer& analyzer) {
  if (!pattern || !actual || pattern.is<ObjectTypeNode>()) return {};
  if (pattern->kind != actual->kind)
    return fail(ErrorCode::kInvalid, "a value of another kind of type is expected");
  if (const auto* p = pattern.as<TupleTypeNode>()) {
    const auto* a = actual.as<TupleTypeNode>();
    if (p->fields_.size() != a->fields_.size())
      return fail(ErrorCode::kInvalid, "a tuple of another size is expected");
    for (size_t i = 0; i < p->fields_.size(); ++i)
      BEVEL_CHECK(unify(p->fields_[i], a->fields_[i], bindings, analyzer));
  }
  auto p = dimsOf(pattern), a = dimsOf(actual);
  if (!p) return {};
  if (!p->dtype.isVoid() && !a->dtype.isVoid() && p->dtype != a->dtype)
    return fail(ErrorCode::kInvalid,
                fmt::format("dtype {} expected, {} given", p->dtype.str(), a->dtype.str()));
  if (pattern.is<TensorTypeNode>() && p->ndim >= 0 && a->ndim >= 0 && p->ndim != a->ndim)
    return fail(ErrorCode::kInvalid, fmt::format("rank {} expected, {} given", p->ndim, a->ndim));
  return p->known && a->known ? unifyShape(*p->known, *a->known, bindings, analyzer) : Status{};
}

Type eraseVars(const Type& type, FunctionRef<bool(const Var&)> keep) {
  if (const auto* t = type.as<TupleTypeNode>()) {
    Array<Type> fields;
    for (const Type& f : t->fields_) fields.push_back(eraseVars(f, keep));
    return fields == t->fields_ ? type : Type(make<const TupleTypeNode>(fields));
  }
  if (!usesAnyVar(type, [&](const VarNode* v) { return !keep(Var(v)); })) return type;
  if (const auto* t = type.as<TensorTypeNode>())
    return make<const TensorTypeNode>(t->dtype, t->ndim, t->placement);
  if (const auto* s = type.as<ShapeTypeNode>()) return make<const ShapeTypeNode>(s->ndim);
  if (const auto* p = type.as<PrimTypeNode>()) return make<const PrimTypeNode>(p->dtype);
  return type;
}

bool sameDims(const Array<Expr>& a, const Array<Expr>& b, Analyzer& analyzer) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](const Expr& x, const Expr& y) { return provedEqual(analyzer, x, y); });
}

Result<Type> joinTypes(const Type& a, const Type& b, Analyzer& analyzer) {
  if (a->kind != b->kind) return fail(ErrorCode::kInvalid, "the branches give values of different kinds");
  if (const auto* x = a.as<TupleTypeNode>()) {
    const auto* y = b.as<TupleTypeNode>();
    if (x->fields_.size() != y->fields_.size())
      return fail(ErrorCode::kInvalid, "the branches give different numbers of values");
    Array<Type> fields;
    for (size_t i = 0; i < x->fields_.size(); ++i) {
      BEVEL_TRY(Type f, joinTypes(x->fields_[i], y->fields_[i], analyzer));
      fields.push_back(std::move(f));
    }
    return Type(make<const TupleTypeNode>(fields));
  }
  auto x = dimsOf(a), y = dimsOf(b);
  if (!x) return a;
  if (x->dtype != y->dtype)
    return fail(ErrorCode::kInvalid,
                fmt::format("the branches give tensors of {} and {}", x->dtype.str(), y->dtype.str()));
  if (x->known && y->known && sameDims(*x->known, *y->known, analyzer)) return a;
  int64_t ndim = x->ndim == y->ndim ? x->ndim : -1;
  if (a.is<ShapeTypeNode>()) return Type(make<const ShapeTypeNode>(ndim));
  return Type(make<const TensorTypeNode>(x->dtype, ndim));
}

bool sameType(const Type& a, const Type& b, Analyzer& analyzer) {
  if (a == b) return true;
  if (!a || !b || a->kind != b->kind) return false;
  if (const auto* t = a.as<TupleTypeNode>()) {
    const Array<Type>&x = t->fields_, &y = b.as<TupleTypeNode>()->fields_;
    return std::equal(x.begin(), x.end(), y.begin(), y.end(),
                      [&](const Type& f, const Type& g) { return sameType(f, g, analyzer); });
  }
  auto x = dimsOf(a), y = dimsOf(b);
  if (!x) return same(a, b);
  return x->dtype == y->dtype && x->ndim == y->ndim && !x->known == !y->known &&
         (!x->known || sameDims(*x->known, *y->known, analyzer));
}

std::vector<Var> shapeVars(const Type& type) {
  std::vector<Var> out;
  walk(type, [&](const NodeRef& n) {
    if (n.is<VarNode>()) out.push_back(cast<VarNode>(n));
    return !n.is<FuncTypeNode>(); // the dimensions of a function's parameters are its own
  });
  return out;
}

Type instantiateUnknown(const Type& type, std::vector<Var>& fresh, const std::string& hint) {
  if (const auto* t = type.as<TensorTypeNode>(); t && !t->known && t->ndim >= 0) {
    Array<Expr> shape;
    for (int64_t i = 0; i < t->ndim; ++i) {
      fresh.push_back(var(hint, kInt64));
      shape.push_back(fresh.back());
    }
    return make<const TensorTypeNode>(t->dtype, std::move(shape), t->placement);
  }
  if (const auto* u = type.as<TupleTypeNode>()) {
    Array<Type> fields;
    for (const Type& f : u->fields_) fields.push_back(instantiateUnknown(f, fresh, hint));
    return fields == u->fields_ ? type : Type(make<const TupleTypeNode>(fields));
  }
  return type;
}

FuncType functionType(const Function& function) {
  Array<Type> params;
  for (const GraphVar& p : function->params) params.push_back(p->type);
  return make<const FuncTypeNode>(params, function->result, function->pure);
}

} // namespace bevel
