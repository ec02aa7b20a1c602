// Floor division and modulo become what machines have.
//
// before:  x // 8        x % 8        n // 10 (n >= 0)      x // 10
// after:   x >> 3        x & 7        n / 10                q - (r < 0)   with q = x / 10, r = x rem 10
//
// A shift and a mask are exact for every sign. Truncating division takes the place of the floor where the
// dividend is proved >= 0 (never by adding to it, which could overflow); everywhere else the quotient is
// corrected.
#include "loop/passes/context.h"
#include "loop/passes/passes.h"

#include <bit>

namespace bevel {
namespace {

Expr raw(BinaryOp op, const Expr& a, const Expr& b) {
  return make<const BinaryNode>(op, a, b);
}

class ArithmeticLowering : public ContextRewriter {
public:
  using ContextRewriter::ContextRewriter;

private:
  NodeRef visit(const NodeRef& node) override {
    NodeRef out = ContextRewriter::visit(node);
    const auto* b = out.as<BinaryNode>();
    if (!b || (b->op != BinaryOp::kFloorDiv && b->op != BinaryOp::kFloorMod)) return out;
    return lower(*b);
  }

  Expr lower(const BinaryNode& e) {
    bool isDiv = e.op == BinaryOp::kFloorDiv;
    if (e.dtype.isFloat()) {
      Expr floor = call(Intrin::kFloor, {raw(BinaryOp::kDiv, e.a, e.b)});
      return isDiv ? floor : raw(BinaryOp::kSub, e.a, raw(BinaryOp::kMul, floor, e.b));
    }
    auto divisor = asConst(e.b);
    if (divisor && *divisor > 0 && std::has_single_bit(uint64_t(*divisor))) {
      int shift = std::countr_zero(uint64_t(*divisor));
      if (isDiv) return shift == 0 ? e.a : raw(BinaryOp::kShr, e.a, constant(e.dtype, shift));
      return raw(BinaryOp::kBitAnd, e.a, constant(e.dtype, *divisor - 1));
    }
    BinaryOp trunc = isDiv ? BinaryOp::kDiv : BinaryOp::kMod;
    ConstBound divisorBound = analyzer.bound(e.b);
    if (e.dtype.isUInt() || (divisorBound.min > 0 && analyzer.bound(e.a).min >= 0))
      return raw(trunc, e.a, e.b);
    return corrected(e, isDiv, divisorBound.min > 0);
  }

  /// let a, b in: q - (r != 0 and sign of r differs from b's), or r + (b where it does).
  static Expr corrected(const BinaryNode& e, bool isDiv, bool positiveDivisor) {
    Var a = var("dividend", e.dtype), b = var("divisor", e.dtype);
    Expr zero = constant(e.dtype, 0);
    Expr r = raw(BinaryOp::kMod, a, b);
    Expr wrong = raw(BinaryOp::kLt, r, zero);
    if (!positiveDivisor)
      wrong = raw(BinaryOp::kAnd, raw(BinaryOp::kNe, r, zero),
                  raw(BinaryOp::kLt, raw(BinaryOp::kBitXor, r, b), zero));
    Expr out = isDiv ? raw(BinaryOp::kSub, raw(BinaryOp::kDiv, a, b),
                           make<const SelectNode>(wrong, constant(e.dtype, 1), zero))
                     : raw(BinaryOp::kAdd, r, make<const SelectNode>(wrong, Expr(b), zero));
    return make<const LetNode>(a, e.a, make<const LetNode>(b, e.b, out));
  }
};

} // namespace

Result<PrimFunc> lowerArithmetic(const PrimFunc& f, const Target&) {
  return ArithmeticLowering(f).run(f);
}

} // namespace bevel
