#include "sched/steps/loops.h"

#include "ir/structural.h"
#include "sched/steps/step_impl.h"

namespace bevel::steps {

constexpr const char* kDoc =
    R"(Fuses nested loops, given outermost first, into one.

Each loop must be the only thing in the body of the one before, and its extent must not depend on it. `i` and `j` become
`i_j_fused // J` and `i_j_fused % J`.)";

struct Nest {
  Path path; // to the outermost
  std::vector<For> loops;
  Expr extent;
};

/// Two loops whose ranges may both be negative run not at all, but the product of their extents is positive.
static Status checkExtents(const Schedule& sch, const Nest& nest) {
  std::optional<Analyzer> analyzer;
  const ForNode* doubtful = nullptr;
  for (const For& l : nest.loops) {
    auto extent = asConst(l->extent);
    if (extent && *extent >= 0) continue;
    if (!analyzer) {
      analyzer.emplace();
      bindContext(sch, nest.path, *analyzer);
    }
    if (analyzer->prove(l->extent >= constant(l->extent->dtype, 0))) continue;
    if (doubtful)
      return illegal("the extents of " + quoted(For(doubtful)) + " and " + quoted(l) +
                     " may both be negative, and their product positive");
    doubtful = l.get();
  }
  return {};
}

/// The loops, which provably may become one.
static Result<Nest> fusableNest(const Schedule& sch, const Fuse& s) {
  if (s.loops.empty()) return fail(ErrorCode::kUsage, "there is no loop to fuse");
  Nest nest;
  BEVEL_TRY(nest.path, sch.locate(s.loops[0]));
  nest.loops.push_back(loopAt(nest.path));
  nest.extent = nest.loops[0]->extent;
  BEVEL_CHECK(checkPlainLoop(nest.loops[0]));
  DType dtype = nest.loops[0]->var->dtype;
  for (size_t i = 1; i < s.loops.size(); ++i) {
    BEVEL_TRY(Var v, sch.varOf(s.loops[i]));
    auto* inner = nest.loops.back()->body.as<ForNode>();
    if (!inner || inner->var != v) {
      BEVEL_TRY(Path there, sch.locate(s.loops[i]));
      return illegal(quoted(loopAt(there)) + " is not the only thing in the body of " +
                     quoted(nest.loops.back()));
    }
    BEVEL_CHECK(checkPlainLoop(For(inner)));
    for (const For& outer : nest.loops)
      if (usesVar(inner->extent, outer->var) || usesVar(inner->min, outer->var))
        return illegal("the range of " + quoted(For(inner)) + " depends on " + quoted(outer));
    if (inner->var->dtype.bits > dtype.bits) dtype = inner->var->dtype;
    nest.loops.push_back(For(inner));
    auto a = asConst(nest.extent), b = asConst(inner->extent);
    int64_t product = 0;
    if (a && b && (__builtin_mul_overflow(*a, *b, &product) || product > maxValue(dtype)))
      return illegal("the fused extent does not fit " + dtype.str());
    nest.extent = nest.extent * inner->extent;
  }
  for (const For& l : nest.loops) BEVEL_CHECK(checkFixedRange(l));
  BEVEL_CHECK(checkExtents(sch, nest));
  return nest;
}

/// Simplifies axis values and predicates of the blocks under a statement, knowing the ranges of the loops
/// inside it.
static Stmt simplifyBindings(const Stmt& s, Analyzer& analyzer) {
  if (auto* loop = s.as<ForNode>()) {
    bindLoop(For(loop), analyzer);
    Stmt body = simplifyBindings(loop->body, analyzer);
    analyzer.unbind(loop->var); // that it runs is known inside only
    return with(For(loop), &ForNode::body, body);
  }
  if (auto* realize = s.as<BlockRealizeNode>()) {
    auto copy = mutableCopy(BlockRealize(realize));
    for (size_t i = 0; i < copy->values.size(); ++i) copy->values.set(i, analyzer.simplify(copy->values[i]));
    copy->predicate = analyzer.simplify(copy->predicate);
    return Stmt(copy);
  }
  Stmt out = s;
  for (int i = 0; i < numChildren(s); ++i)
    if (Stmt child = childAt(s, i)) out = withChild(out, i, simplifyBindings(child, analyzer));
  return out;
}

static Result<Plan> check(const Schedule& sch, const Fuse& s) {
  BEVEL_TRY(Nest nest, fusableNest(sch, s));
  std::string name;
  for (const For& l : nest.loops) name += l->var->name + "_";
  Var fused = var(name + "fused", nest.extent->dtype);
  VarMap map;
  Expr rest = fused;
  for (size_t i = nest.loops.size(); i-- > 0;) {
    const For& l = nest.loops[i];
    Expr index = i == 0 ? rest : floormod(rest, l->extent);
    if (i > 0) rest = floordiv(rest, l->extent);
    if (!s.preserveUnitIters && isConst(l->extent, 1)) index = constant(l->var->dtype, 0);
    map[l->var] = castTo(l->var->dtype, l->min + index);
  }
  Analyzer analyzer;
  bindDims(sch.func(), analyzer);
  bindLoops(nest.path, analyzer);
  analyzer.bind(fused, range(constant(fused->dtype, 0), nest.extent));
  Stmt body = simplifyBindings(substitute(nest.loops.back()->body, map), analyzer);
  Stmt loop = withOrigin(forLoop(fused, nest.extent, body), nest.loops[0]->origin);
  return Plan{replaceAt(nest.path, loop), {fused}};
}

STEP_INFO(Fuse, "fuse", kDoc)

} // namespace bevel::steps
