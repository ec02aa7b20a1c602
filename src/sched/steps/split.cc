#include "sched/steps/loops.h"

#include "ir/structural.h"
#include "sched/steps/step_impl.h"

#include <algorithm>

namespace bevel::steps {

constexpr const char* kDoc =
    R"(Splits a loop into nested loops; at most one factor is None and is inferred.

The loop `i` is replaced by `i_0 * f1 * f2 + i_1 * f2 + i_2`. Where the product of the factors is not the extent, the blocks below run
only where that is less than the extent. A product provably smaller than the extent is refused: iterations would be lost.

`preserve_unit_iters=False` puts zero in place of loops of one iteration. `disable_predication=True` leaves out the condition,
and is refused unless the factors divide the extent.)";

/// The given factors as numbers; -1 for None. Their product in `product`.
static Result<std::vector<int64_t>> knownFactors(const Schedule& sch, const Split& s, int64_t& product) {
  std::vector<int64_t> out;
  int inferred = 0;
  product = 1;
  for (const IntArg& f : s.factors) {
    if (!f) {
      ++inferred;
      out.push_back(-1);
      continue;
    }
    BEVEL_TRY(int64_t v, sch.get(f));
    if (v <= 0) return fail(ErrorCode::kUsage, "factor " + std::to_string(v) + " is not positive");
    if (__builtin_mul_overflow(product, v, &product) || product > (int64_t(1) << 40))
      return fail(ErrorCode::kUsage, "the product of the factors is too large");
    out.push_back(v);
  }
  if (out.empty()) return fail(ErrorCode::kUsage, "at least one factor is needed");
  if (inferred > 1) return fail(ErrorCode::kUsage, "only one factor may be None");
  return out;
}

static Result<Plan> check(const Schedule& sch, const Split& s) {
  BEVEL_TRY(Path path, sch.locate(s.loop));
  const For loop = loopAt(path);
  BEVEL_CHECK(checkPlainLoop(loop));
  BEVEL_CHECK(checkFixedRange(loop));
  int64_t product = 1;
  BEVEL_TRY(std::vector<int64_t> factors, knownFactors(sch, s, product));
  std::vector<Expr> extents; // of the new loops, outermost first
  auto extent = asConst(loop->extent);
  bool divides = extent && *extent % product == 0;
  if (!extent) {
    Analyzer analyzer;
    bindDims(sch.func(), analyzer);
    divides = analyzer.prove(eq(floormod(loop->extent, product), constant(loop->extent->dtype, 0)));
  }
  bool hasInferred = std::ranges::find(factors, -1) != factors.end();
  DType dtype = loop->var->dtype;
  if (product >
      maxValue(dtype) - std::max<int64_t>(extent.value_or(0) - 1, 0)) // with a tail, what the loops cover
    return illegal("the factors give " + std::to_string(product) + " iterations, which does not fit " +
                   dtype.str() + ", the type of loop " + loop->var->name);
  for (int64_t f : factors) {
    if (f >= 0)
      extents.push_back(constant(dtype, f));
    else if (extent)
      extents.push_back(constant(dtype, (std::max<int64_t>(*extent, 0) + product - 1) / product));
    else
      extents.push_back(floordiv(divides ? loop->extent : loop->extent + (product - 1), product));
  }
  if (!hasInferred && !extent)
    return illegal("the extent of loop " + loop->var->name + " is not a constant: one factor must be None");
  if (!hasInferred && product < *extent)
    return illegal("the factors give " + std::to_string(product) + " of the " + std::to_string(*extent) +
                   " iterations of loop " + loop->var->name);
  if (!hasInferred) divides = product == *extent;
  if (!divides && s.disablePredication)
    return illegal("the factors do not divide the extent of loop " + loop->var->name +
                   ": without a condition its tail would run over");
  Expr index = constant(dtype, 0);
  std::vector<Var> vars;
  for (size_t i = 0; i < extents.size(); ++i) {
    vars.push_back(var(loop->var->name + "_" + std::to_string(i), dtype));
    bool unit = !s.preserveUnitIters && isConst(extents[i], 1);
    index = index * extents[i] + (unit ? constant(dtype, 0) : Expr(vars.back()));
  }
  Stmt body = substitute(loop->body, VarMap{{loop->var, loop->min + index}});
  if (!divides) body = guarded(body, index < loop->extent);
  for (size_t i = vars.size(); i-- > 0;) body = withOrigin(forLoop(vars[i], extents[i], body), loop->origin);
  return Plan{replaceAt(path, body), Array<NodeRef>(vars.begin(), vars.end())};
}

STEP_INFO(Split, "split", kDoc)

} // namespace bevel::steps
