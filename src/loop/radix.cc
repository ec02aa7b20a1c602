#include "loop/radix.h"

#include "ir/build.h"

#include <algorithm>

namespace bevel {

bool plainTerms(const Expr& e, int64_t scale, std::vector<PlainTerm>& terms, int64_t& offset) {
  if (auto* v = e.as<VarNode>()) {
    if (std::ranges::find(terms, v, &PlainTerm::var) != terms.end()) return false;
    terms.push_back({v, scale});
    return true;
  }
  int64_t product = 0;
  if (auto c = asConst(e))
    return !__builtin_mul_overflow(*c, scale, &product) && !__builtin_add_overflow(offset, product, &offset);
  auto* b = e.as<BinaryNode>();
  if (!b) return false;
  if (b->op == BinaryOp::kAdd)
    return plainTerms(b->a, scale, terms, offset) && plainTerms(b->b, scale, terms, offset);
  auto factor = asConst(b->b);
  bool scaled =
      b->op == BinaryOp::kMul && factor && *factor > 0 && !__builtin_mul_overflow(scale, *factor, &product);
  return scaled && plainTerms(b->a, product, terms, offset);
}

std::optional<MixedRadix> mixedRadix(const Expr& value, const std::vector<For>& loops, bool othersStay) {
  std::vector<PlainTerm> terms;
  MixedRadix out{true, nullptr, 0};
  if (!plainTerms(value, 1, terms, out.offset)) return std::nullopt;
  std::ranges::sort(terms, {}, &PlainTerm::factor);
  int64_t reach = 1; // one more than the largest value so far
  Expr last = constant(value->dtype, 1);
  for (size_t i = 0; i < terms.size(); ++i) {
    auto loop = std::ranges::find_if(loops, [&](const For& l) { return l->var.get() == terms[i].var; });
    if (loop == loops.end() && othersStay) continue;
    if (loop == loops.end() || !isConst((*loop)->min, 0)) return std::nullopt;
    auto extent = asConst((*loop)->extent);
    if (extent == 1) continue;
    if (last.as<IntImmNode>() == nullptr || terms[i].factor < reach)
      return std::nullopt; // after a symbolic extent, or overlapping
    out.dense = out.dense && terms[i].factor == reach;
    if (!extent) {
      last = (*loop)->extent * terms[i].factor;
      continue;
    }
    int64_t span = 0;
    if (*extent < 1 || __builtin_mul_overflow(*extent - 1, terms[i].factor, &span) ||
        __builtin_add_overflow(reach, span, &reach))
      return std::nullopt;
    last = constant(value->dtype, reach);
  }
  out.total = last;
  return out;
}

} // namespace bevel
