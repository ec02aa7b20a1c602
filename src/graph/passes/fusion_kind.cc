// How a tensor program can be fused, derived from its blocks: what each result element reads.
//
// 1. A program that only gives its input another shape is a view (loop/view.h).
// 2. Blocks with reduction axes make it a reduction, or a contraction where they sum products of two tensors.
// 3. Otherwise every block must write the element at its axes, in order; the kind is then the weakest of its
//    reads: at all axes in order, at some of them, or anywhere.
#include "graph/passes/passes.h"
#include "ir/build.h"
#include "ir/structural.h"
#include "loop/reduction.h"
#include "loop/view.h"

#include <algorithm>

namespace bevel {
namespace {

std::vector<Block> blocksOf(const PrimFunc& f, bool& structured) {
  std::vector<Block> blocks;
  walk(f->body, [&](const NodeRef& n) {
    if (const auto* b = n.as<BlockNode>(); b && !(b->iters.empty() && b->name == "root"))
      blocks.push_back(Block(b));
    structured &= !n.is<WhileNode>() && !n.is<AttrStmtNode>();
    return true;
  });
  return blocks;
}

// The stores are at the block's spatial axes in order, and nothing else is written.
bool writesItsAxes(const BlockNode& b) {
  std::vector<Var> spatial;
  for (const IterVar& a : b.iters) {
    if (a->type == IterType::kSpatial)
      spatial.push_back(a->var);
    else if (a->type != IterType::kReduce)
      return false;
  }
  bool ok = true;
  walk(Stmt(&b), [&](const NodeRef& n) {
    if (const auto* s = n.as<StoreNode>()) {
      ok &= s->indices.size() == spatial.size();
      for (size_t i = 0; ok && i < spatial.size(); ++i) ok &= s->indices[i] == Expr(spatial[i]);
    }
    if (const auto* c = n.as<CallNode>()) ok &= intrinInfo(c->op).effect == Effect::kPure;
    return ok;
  });
  return ok;
}

FusionKind readKind(const BlockNode& b, const LoadNode& load) {
  size_t next = 0;
  bool all = true;
  for (const Expr& index : load.indices) {
    if (isConst(index, 0)) {
      all = false;
      continue;
    }
    size_t at = next;
    while (at < b.iters.size() && !(index == Expr(b.iters[at]->var))) ++at;
    if (at == b.iters.size()) return FusionKind::kInjective;
    all &= at == next;
    next = at + 1;
  }
  all &= next == b.iters.size();
  return all ? FusionKind::kElementwise : FusionKind::kBroadcast;
}

FusionKind spatialKind(const BlockNode& b) {
  FusionKind kind = FusionKind::kElementwise;
  walk(b.body, [&](const NodeRef& n) {
    if (const auto* l = n.as<LoadNode>()) kind = std::max(kind, readKind(b, *l));
    return true;
  });
  return kind;
}

} // namespace

const char* fusionKindName(FusionKind kind) {
  static const char* const names[] = {"view",      "elementwise", "broadcast", "injective",
                                      "reduction", "contraction", "opaque"};
  return names[size_t(kind)];
}

FusionKind fusionKindOf(const PrimFunc& f) {
  if (attr(f->attrs, "target")) return FusionKind::kOpaque; // it asked for a target of its own
  if (isView(f)) return FusionKind::kView;
  bool structured = true;
  std::vector<Block> blocks = blocksOf(f, structured);
  if (!structured || blocks.empty()) return FusionKind::kOpaque;
  FusionKind kind = FusionKind::kElementwise;
  for (const Block& b : blocks) {
    if (b->iters.empty() && b->body.is<SeqNode>()) return FusionKind::kOpaque;
    if (!writesItsAxes(*b)) return FusionKind::kOpaque;
    bool reduces = std::any_of(b->iters.begin(), b->iters.end(),
                               [](const IterVar& a) { return a->type == IterType::kReduce; });
    if (!reduces)
      kind = std::max(kind, spatialKind(*b));
    else
      kind = std::max(kind, sumsProducts(*b) ? FusionKind::kContraction : FusionKind::kReduction);
  }
  return kind;
}

} // namespace bevel
