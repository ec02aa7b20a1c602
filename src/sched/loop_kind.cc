#include "sched/loop_kind.h"

#include "ir/structural.h"
#include "loop/dependence.h"
#include "sched/radix.h"

#include <algorithm>
#include <unordered_map>

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

/// The element written depends on the axis itself in some dimension, and nothing else of the buffer is read.
bool writesAlong(const BlockNode& block, const Var& axis) {
  for (const BufferRegion& w : block.writes) {
    if (std::ranges::none_of(w->region.raw(), [&](const NodeRef& r) { return r.as<RangeNode>()->min == axis; })) return false;
    for (const BufferRegion& r : block.reads)
      if (r->buffer->data == w->buffer->data && !same(r, w)) return false;
  }
  return !block.writes.empty();
}

} // namespace

bool isPlainlyIndependent(const For& loop, const Path& path) {
  std::vector<For> loops = path.loops();
  Stmt at = loop;
  for (; at->kind == Kind::kFor; at = loops.back()->body) loops.push_back(cast<ForNode>(at));
  auto* realize = at.as<BlockRealizeNode>();
  if (!realize || !hasPlainBinding(BlockRealize(realize))) return false;
  for (size_t i = 0; i < realize->values.size(); ++i) {
    if (!usesVar(realize->values[i], loop->var)) continue;
    const IterVar& iv = realize->block->iters[i];
    auto radix = mixedRadix(realize->values[i], loops);
    return radix && iv->type == IterType::kSpatial && writesAlong(*realize->block, iv->var) && effectOf(realize->block->body) <= Effect::kReads;
  }
  return false;
}

Result<Path> checkIndependentLoop(const Schedule& sch, LoopRV handle, bool allowReduction) {
  BEVEL_TRY(Path path, locate(sch, handle));
  const For loop = loopAt(path);
  if (loop->forKind != ForKind::kSerial)
    return illegal(quoted(loop) + " is already " + kForKindNames[int(loop->forKind)]);
  if (!isPlainlyIndependent(loop, path))
    BEVEL_CHECK(checkParallel(loop, enclosingRanges(path), allowReduction, accessedOnlyIn(loop, path)));
  return path;
}

void setLoopKind(Schedule& sch, const Path& path, ForKind kind, const std::string& thread) {
  auto loop = mutableCopy(loopAt(path));
  loop->forKind = kind;
  loop->thread = thread;
  setBody(sch, replaceAt(path, Stmt(loop)));
}

bool hasPlainBinding(const BlockRealize& realize) {
  std::vector<PlainTerm> terms;
  int64_t offset = 0;
  for (const IterVar& iv : realize->block->iters)
    if (iv->type != IterType::kSpatial && iv->type != IterType::kReduce) return false;
  for (const Expr& v : realize->values)
    if (!plainTerms(v, 1, terms, offset)) return false;
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
