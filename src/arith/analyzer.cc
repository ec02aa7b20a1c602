// Bindings and scopes.
#include "arith/analyzer.h"

#include "arith/compare.h"

#include <algorithm>

namespace bevel {

using namespace arith;

void Analyzer::unbind(const Var& var) {
  auto it = vars_.find(var);
  if (it != vars_.end()) {
    dataVars_ -= it->second.data;
    vars_.erase(it);
  }
  std::erase_if(facts_, [&](const Fact& f) { return f.owner == var.get(); });
  changed();
}

void Analyzer::bind(const Var& var, ConstBound bound) {
  unbind(var);
  vars_[var] = {bound, nullptr, false};
}

void Analyzer::bind(const Var& var, const Range& range) {
  Expr min = simplify(range->min), extent = simplify(range->extent);
  if (isConst(extent, 1)) return bind(var, min);
  ConstBound lo = this->bound(min), n = this->bound(extent);
  ConstBound hi = lo + n - ConstBound{1, 1};
  unbind(var);
  vars_[var] = {sane({lo.min, std::max(lo.min, hi.max)}), nullptr, false};
  bool constMin = asConst(min).has_value(), constExtent = asConst(extent).has_value();
  if (min->dtype != extent->dtype || min->dtype != var->dtype) return;
  std::vector<Expr> sizes = sizeConditions(range->extent); // before the facts below, from which they follow
  if (!constMin) {
    LinearForm f; // var - min >= 0
    f.add(var, 1);
    f.add(exactForm(min), -1);
    addFormFact(f, false, var.get(), facts_);
  }
  if (!constMin || !constExtent) {
    LinearForm f = exactForm(min); // min + extent - 1 - var >= 0
    f.add(exactForm(extent));
    f.add(var, -1);
    f.addConst(-1);
    addFormFact(f, false, var.get(), facts_);
  }
  for (const Expr& c : sizes) addFacts(c, true, var.get(), facts_);
  changed();
}

/// A variable in [min, min + a * b) has values, so that the sizes a and b (not negative) are at least one:
/// what fused loops divide by.
std::vector<Expr> Analyzer::sizeConditions(const Expr& extent) {
  std::vector<Expr> factors, out;
  collectFactors(extent, factors);
  for (const Expr& f : factors)
    if (!asConst(f) && proveLessEqual(constant(f->dtype, 0), f))
      out.push_back(simplify(constant(f->dtype, 1) <= f));
  return out;
}

void Analyzer::bind(const Var& var, const Expr& value) {
  Expr v = simplify(value);
  if (v == var) return;
  bool integer = v->dtype.isInteger() || v->dtype.isBool();
  ConstBound b = integer ? bound(v) : ConstBound{};
  unbind(var);
  bool simple = v->kind == Kind::kVar || v->kind == Kind::kIntImm || v->kind == Kind::kFloatImm;
  if (v->dtype != var->dtype) return;
  if (simple || (integer && !isData(v))) {
    vars_[var] = {b, v, false};
  } else if (integer) {
    vars_[var] = {b, nullptr, true};
    ++dataVars_;
  }
}

Analyzer::Saved Analyzer::save(const std::vector<Var>& vars) const {
  Saved out;
  out.vars = vars;
  for (const Var& v : vars) {
    auto it = vars_.find(v);
    if (it != vars_.end()) out.known.emplace_back(v, it->second);
    for (const Fact& f : facts_)
      if (f.owner == v.get()) out.facts.push_back(f);
  }
  return out;
}

void Analyzer::putBack(const Saved& saved) {
  for (const Var& v : saved.vars) unbind(v);
  for (const auto& [v, info] : saved.known) {
    vars_[v] = info;
    dataVars_ += info.data;
  }
  facts_.insert(facts_.end(), saved.facts.begin(), saved.facts.end());
  changed();
}

size_t Analyzer::push(const Expr& condition) {
  size_t depth = assumed_.size();
  std::vector<Fact> found;
  addFacts(simplify(condition), true, nullptr, found);
  for (Fact& f : found) assumed_.push_back(std::move(f));
  changed();
  return depth;
}

void Analyzer::know(const Expr& condition) {
  addFacts(simplify(condition), true, nullptr, facts_);
  changed();
}

void Analyzer::restore(size_t depth) {
  assumed_.resize(std::min(depth, assumed_.size()));
  changed();
}

AssumeScope::~AssumeScope() {
  if (analyzer_) analyzer_->restore(depth_);
}

AssumeScope Analyzer::assume(const Expr& condition) {
  return {*this, push(condition)};
}

bool Analyzer::proveEqual(const Expr& a, const Expr& b) {
  if (a == b || sameExpr(a, b)) return true;
  if (a->dtype != b->dtype) return false;
  Expr x = simplify(a), y = simplify(b);
  if (sameExpr(x, y)) return true;
  auto d = exactDifference(x, y);
  if (!d.valid) return false;
  auto negative = d;
  negative.scale(-1);
  return proveNonNegative(d) && proveNonNegative(negative);
}

} // namespace bevel
