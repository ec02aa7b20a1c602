// Residue classes: the set { coeff * k + base } that an integer expression stays in.
#include "arith/analyzer.h"

namespace bevel {

using namespace arith;

namespace {

ModularSet point(int64_t v) {
  return {0, v};
}

ModularSet normal(int64_t coeff, int64_t base) {
  if (coeff == 0) return {0, base};
  if (coeff < 0) coeff = coeff == INT64_MIN ? int64_t(1) << 62 : -coeff;
  return {coeff, floorModulo(base, coeff)};
}

ModularSet add(ModularSet a, ModularSet b, int64_t sign) {
  auto signedBase = checkedMul(b.base, sign);
  auto base = signedBase ? checkedAdd(a.base, *signedBase) : std::nullopt;
  if (!base) return {};
  return normal(gcd64(a.coeff, b.coeff), *base);
}

ModularSet multiply(ModularSet a, ModularSet b) {
  // (pa*x + qa)(pb*y + qb): every term but qa*qb is a multiple of the gcd.
  auto pp = checkedMul(a.coeff, b.coeff), pq = checkedMul(a.coeff, b.base), qp = checkedMul(a.base, b.coeff),
       qq = checkedMul(a.base, b.base);
  if (!pp || !pq || !qp || !qq) return {};
  return normal(gcd64(gcd64(*pp, *pq), *qp), *qq);
}

ModularSet join(ModularSet a, ModularSet b) {
  auto d = checkedSub(a.base, b.base);
  if (!d) return {};
  int64_t g = gcd64(gcd64(a.coeff, b.coeff), *d);
  return normal(g, a.base);
}

} // namespace

ModularSet Analyzer::computeModular(const Expr& e) {
  if (auto c = asConst(e)) return point(*c);
  switch (e->kind) {
  case Kind::kBinary: {
    auto n = e.as<BinaryNode>();
    if (isComparison(n->op)) return {};
    ModularSet a = modular(n->a), b = modular(n->b);
    switch (n->op) {
    case BinaryOp::kAdd:
      return isExact(e) ? add(a, b, 1) : ModularSet{};
    case BinaryOp::kSub:
      return isExact(e) ? add(a, b, -1) : ModularSet{};
    case BinaryOp::kMul:
      return isExact(e) ? multiply(a, b) : ModularSet{};
    case BinaryOp::kMin:
    case BinaryOp::kMax:
      return join(a, b);
    case BinaryOp::kFloorDiv:
    case BinaryOp::kDiv:
      if (b.coeff == 0 && b.base > 0 && a.divisibleBy(b.base))
        return normal(a.coeff / b.base, a.base / b.base);
      return {};
    case BinaryOp::kFloorMod: // x mod c keeps the residue modulo gcd(coeff, c)
      if (b.coeff == 0 && b.base > 0) return normal(gcd64(a.coeff, b.base), a.base);
      return {};
    case BinaryOp::kMod:
      if (b.coeff == 0 && b.base != 0) return normal(gcd64(a.coeff, b.base), a.base);
      return {};
    case BinaryOp::kShl:
      if (b.coeff == 0 && b.base >= 0 && b.base < 62 && isExact(e))
        return multiply(a, point(int64_t(1) << b.base));
      return {};
    default:
      return {};
    }
  }
  case Kind::kUnary:
    if (e.as<UnaryNode>()->op == UnaryOp::kNeg && isExact(e))
      return multiply(modular(e.as<UnaryNode>()->a), point(-1));
    return {};
  case Kind::kSelect:
    return join(modular(e.as<SelectNode>()->a), modular(e.as<SelectNode>()->b));
  case Kind::kCast: {
    const Expr& v = e.as<CastNode>()->value;
    bool keeps = v->dtype.isInteger() && e->dtype.isInteger() &&
                 bound(v).within(dtypeBound(e->dtype).min, dtypeBound(e->dtype).max) &&
                 !(v->dtype.isUInt() && v->dtype.bits >= 64);
    return keeps ? modular(v) : ModularSet{};
  }
  case Kind::kCall: {
    auto c = e.as<CallNode>();
    if (c->op == Intrin::kIfThenElse) return join(modular(c->arg(1)), modular(c->arg(2)));
    return {};
  }
  default:
    return {};
  }
}

ModularSet Analyzer::modular(const Expr& e) {
  if (!e->dtype.isInteger()) return {};
  ModularSet m = computeModular(e);
  for (const std::vector<Fact>* facts : {&facts_, &assumed_})
    for (const Fact& f : *facts)
      if (f.atom && f.residue.coeff > 1 && m.coeff != 0 && f.residue.coeff > m.coeff && sameExpr(f.atom, e))
        m = f.residue;
  return m;
}

} // namespace bevel
