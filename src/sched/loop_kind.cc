#include "sched/loop_kind.h"

#include "ir/structural.h"
#include "loop/dependence.h"

#include <algorithm>

namespace bevel {

std::vector<std::pair<Var, Range>> enclosingRanges(const Path& path) {
  std::vector<std::pair<Var, Range>> out;
  for (const PathItem& item : path.ancestors)
    if (auto* loop = item.node.as<ForNode>()) out.emplace_back(loop->var, range(loop->min, loop->extent));
  return out;
}

Result<Path> checkIndependentLoop(const Schedule& sch, LoopRV handle) {
  BEVEL_TRY(Path path, locate(sch, handle));
  const For loop = loopAt(path);
  if (loop->forKind != ForKind::kSerial)
    return illegal(quoted(loop) + " is already " + kForKindNames[int(loop->forKind)]);
  BEVEL_CHECK(checkParallel(loop, enclosingRanges(path)));
  return path;
}

void setLoopKind(Schedule& sch, const Path& path, ForKind kind, const std::string& thread) {
  auto loop = mutableCopy(loopAt(path));
  loop->forKind = kind;
  loop->thread = thread;
  setBody(sch, replaceAt(path, Stmt(loop)));
}

namespace {

/// Collects the variables of a sum of variables with positive constant factors; false when e is anything else.
bool plainTerms(const Expr& e, std::vector<const VarNode*>& vars) {
  if (auto* v = e.as<VarNode>()) {
    if (std::ranges::find(vars, v) != vars.end()) return false;
    vars.push_back(v);
    return true;
  }
  if (e.is<IntImmNode>()) return true;
  auto* b = e.as<BinaryNode>();
  if (!b) return false;
  if (b->op == BinaryOp::kAdd) return plainTerms(b->a, vars) && plainTerms(b->b, vars);
  auto factor = asConst(b->b);
  return b->op == BinaryOp::kMul && factor && *factor > 0 && plainTerms(b->a, vars);
}

} // namespace

bool hasPlainBinding(const BlockRealize& realize) {
  std::vector<const VarNode*> vars;
  for (const IterVar& iv : realize->block->iters)
    if (iv->type != IterType::kSpatial && iv->type != IterType::kReduce) return false;
  for (const Expr& v : realize->values)
    if (!plainTerms(v, vars)) return false;
  return true;
}

Stmt simplifyBindings(const Stmt& s, Analyzer& analyzer) {
  forEachStmt(s, [&](const Stmt& x) {
    if (auto* loop = x.as<ForNode>()) bindLoop(For(loop), analyzer);
    return x->kind == Kind::kFor;
  });
  return mapLeaves(s, [&](const Stmt& leaf) -> Stmt {
    auto* realize = leaf.as<BlockRealizeNode>();
    if (!realize) return leaf;
    auto copy = mutableCopy(BlockRealize(realize));
    for (size_t i = 0; i < copy->values.size(); ++i) copy->values.set(i, analyzer.simplify(copy->values[i]));
    copy->predicate = analyzer.simplify(copy->predicate);
    return Stmt(copy);
  });
}

} // namespace bevel
