// Dependences between blocks of a scope, and kinds of blocks. Loops: loop_dependence.cc.
#include "loop/dependence.h"

#include "arith/iter_map.h"
#include "ir/structural.h"

#include <algorithm>
#include <fmt/format.h>

namespace bevel {
namespace {

/// Child blocks with the loops, conditions and lets between the scope and them: as accesses of a whole.
struct ChildAccesses {
  BlockRealize block;
  std::vector<BufferRegion> reads, writes; // relaxed over the scope
  bool opaque = false;
};

class ChildFinder {
public:
  std::vector<BlockRealize> blocks;
  std::vector<std::vector<VarRange>> loops; // around each block
  void visit(const NodeRef& n) {
    if (n.is<BlockRealizeNode>()) {
      blocks.push_back(cast<BlockRealizeNode>(n));
      loops.push_back(around_);
      return;
    }
    if (n.is<ExprNode>() || n.is<BufferNode>()) return;
    if (const auto* f = n.as<ForNode>()) {
      around_.emplace_back(f->var, range(f->min, f->extent));
      visit(f->body);
      around_.pop_back();
      return;
    }
    forEachChild(n, [&](const NodeRef& c, Role) { visit(c); });
  }

private:
  std::vector<VarRange> around_;
};

std::vector<ChildAccesses> accessesOfChildren(const Block& scope) {
  ChildFinder finder;
  if (scope->init) finder.visit(scope->init);
  finder.visit(scope->body);
  Analyzer analyzer;
  for (const IterVar& v : scope->iters) analyzer.bind(v->var, v->domain);
  std::vector<ChildAccesses> out;
  for (size_t i = 0; i < finder.blocks.size(); ++i) {
    ChildAccesses c;
    c.block = finder.blocks[i];
    for (BufferAccess& a : collectAccesses(c.block)) {
      if (!a.buffer) {
        c.opaque = true;
        continue;
      }
      std::vector<VarRange> loops = finder.loops[i];
      loops.insert(loops.end(), a.loops.begin(), a.loops.end());
      (a.write ? c.writes : c.reads)
          .push_back(relaxRegion(a.buffer, a.region, loops, a.conditions, analyzer));
    }
    out.push_back(std::move(c));
  }
  return out;
}

/// The first buffer of which the lists may share an element.
Buffer sharedBuffer(const std::vector<BufferRegion>& a, const std::vector<BufferRegion>& b,
                    Analyzer& analyzer) {
  for (const BufferRegion& x : a)
    for (const BufferRegion& y : b)
      if (x->buffer->sameAs(*y->buffer) && !regionsDisjoint(x, y, analyzer)) return x->buffer;
  return nullptr;
}

bool writes(const Block& block, const Buffer& buffer) {
  return std::any_of(block->writes.begin(), block->writes.end(),
                     [&](const BufferRegion& r) { return r->buffer->sameAs(*buffer); });
}

Status illegal(const Block& block, std::string why) {
  return fail(Error(ErrorCode::kIllegal, fmt::format("block \"{}\" {}", block->name, why)).at(block));
}

Status checkOnlyWriter(const ScopeDependences& scope, const BlockRealize& realize) {
  for (const BufferRegion& w : realize->block->writes)
    for (const BlockRealize& other : scope.writersOf(w->buffer))
      if (!(other->block == realize->block))
        return illegal(realize->block,
                       fmt::format("is not the only writer of \"{}\": block \"{}\" writes it too",
                                   w->buffer->name, other->block->name));
  return {};
}

} // namespace

std::vector<BlockRealize> ScopeDependences::producersOf(const BlockRealize& block) const {
  std::vector<BlockRealize> out;
  for (const Dependence& d : edges)
    if (d.to->block == block->block && d.kind == DependenceKind::kReadAfterWrite &&
        std::none_of(out.begin(), out.end(), [&](const BlockRealize& x) { return x == d.from; }))
      out.push_back(d.from);
  return out;
}

std::vector<BlockRealize> ScopeDependences::consumersOf(const BlockRealize& block) const {
  std::vector<BlockRealize> out;
  for (const Dependence& d : edges)
    if (d.from->block == block->block && d.kind == DependenceKind::kReadAfterWrite &&
        std::none_of(out.begin(), out.end(), [&](const BlockRealize& x) { return x == d.to; }))
      out.push_back(d.to);
  return out;
}

std::vector<BlockRealize> ScopeDependences::writersOf(const Buffer& buffer) const {
  std::vector<BlockRealize> out;
  for (const BlockRealize& b : blocks)
    if (writes(b->block, buffer)) out.push_back(b);
  return out;
}

ScopeDependences scopeDependences(const Block& scope) {
  std::vector<ChildAccesses> children = accessesOfChildren(scope);
  ScopeDependences out;
  Analyzer analyzer;
  for (const ChildAccesses& c : children) out.blocks.push_back(c.block);
  for (size_t j = 0; j < children.size(); ++j) {
    for (size_t i = 0; i < j; ++i) {
      const ChildAccesses &from = children[i], &to = children[j];
      auto add = [&](DependenceKind kind, const Buffer& b) {
        if (b || kind == DependenceKind::kOpaque) out.edges.push_back({from.block, to.block, kind, b});
      };
      add(DependenceKind::kReadAfterWrite, sharedBuffer(from.writes, to.reads, analyzer));
      add(DependenceKind::kWriteAfterRead, sharedBuffer(from.reads, to.writes, analyzer));
      add(DependenceKind::kWriteAfterWrite, sharedBuffer(from.writes, to.writes, analyzer));
      if (from.opaque || to.opaque) add(DependenceKind::kOpaque, nullptr);
    }
  }
  return out;
}

std::vector<BlockRealize> childBlocks(const NodeRef& root) {
  ChildFinder finder;
  finder.visit(root);
  return std::move(finder.blocks);
}

bool isAffineBinding(const BlockRealize& realize, const std::vector<VarRange>& loops) {
  Array<Expr> values;
  IterRanges used;
  for (const Expr& v : realize->values) values.push_back(v);
  for (const VarRange& l : loops)
    if (std::any_of(values.begin(), values.end(), [&](const Expr& v) { return usesVar(v, l.first); }))
      used.push_back(l);
  Analyzer analyzer;
  return detectIterMap(values, used, realize->predicate, analyzer, IterMapLevel::kInjective).has_value();
}

Status checkCompleteBlock(const ScopeDependences& scope, const BlockRealize& realize) {
  const Block& block = realize->block;
  BEVEL_CHECK(checkOnlyWriter(scope, realize));
  for (const IterVar& v : block->iters)
    if (v->type != IterType::kSpatial)
      return illegal(block,
                     fmt::format("is not a complete block: its axis \"{}\" is not spatial", v->var->name));
  for (const BufferRegion& r : block->reads)
    if (writes(block, r->buffer))
      return illegal(block,
                     fmt::format("is not a complete block: it reads and writes \"{}\"", r->buffer->name));
  return {};
}

Status checkReductionBlock(const ScopeDependences& scope, const BlockRealize& realize) {
  const Block& block = realize->block;
  if (!block->init) return illegal(block, "is not a reduction block: it has no init");
  BEVEL_CHECK(checkOnlyWriter(scope, realize));
  for (const IterVar& v : block->iters) {
    if (v->type != IterType::kSpatial && v->type != IterType::kReduce)
      return illegal(
          block, fmt::format("is not a reduction block: its axis \"{}\" is neither spatial nor a reduction",
                             v->var->name));
    if (v->type != IterType::kReduce) continue;
    for (const BufferRegion& w : block->writes)
      for (const Range& r : w->region)
        if (usesVar(r->min, v->var) || usesVar(r->extent, v->var))
          return illegal(
              block,
              fmt::format("is not a reduction block: its reduction axis \"{}\" indexes the output \"{}\"",
                          v->var->name, w->buffer->name));
  }
  return {};
}

bool hasReduceAxis(const Block& block) {
  return std::any_of(block->iters.begin(), block->iters.end(),
                     [](const IterVar& v) { return v->type == IterType::kReduce; });
}

Effect effectOf(const NodeRef& node) {
  Effect worst = Effect::kPure;
  walk(node, [&](const NodeRef& n) {
    if (const auto* c = n.as<CallNode>()) worst = std::max(worst, intrinInfo(c->op).effect);
    return true;
  });
  return worst;
}

} // namespace bevel
