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

namespace {

/// Buffers that the blocks around the loop allocate and that nothing outside of the loop touches.
std::vector<Buffer> accessedOnlyIn(const For& loop, const Path& path) {
  std::unordered_map<Var, Buffer, RefHash> allocated;
  for (const PathItem& item : path.ancestors)
    if (auto* realize = item.node.as<BlockRealizeNode>())
      for (const Buffer& b : realize->block->allocs) allocated.emplace(b->data, b);
  if (allocated.empty()) return {};
  walk(path.ancestors.front().node, [&](const NodeRef& n) {
    if (n == NodeRef(loop)) return false;
    if (auto* load = n.as<LoadNode>()) allocated.erase(load->buffer->data);
    if (auto* store = n.as<StoreNode>()) allocated.erase(store->buffer->data);
    if (auto* call = n.as<CallNode>())
      for (const NodeRef& arg : call->args)
        if (auto* b = arg.as<BufferNode>()) allocated.erase(b->data);
    return true;
  });
  std::vector<Buffer> out;
  for (auto& [data, b] : allocated) out.push_back(b);
  return out;
}

} // namespace

Result<Path> checkIndependentLoop(const Schedule& sch, LoopRV handle, bool allowReduction) {
  BEVEL_TRY(Path path, locate(sch, handle));
  const For loop = loopAt(path);
  if (loop->forKind != ForKind::kSerial)
    return illegal(quoted(loop) + " is already " + kForKindNames[int(loop->forKind)]);
  BEVEL_CHECK(checkParallel(loop, enclosingRanges(path), allowReduction, accessedOnlyIn(loop, path)));
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
