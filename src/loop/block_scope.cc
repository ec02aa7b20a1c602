#include "loop/block_scope.h"

#include "ir/effects.h"
#include "ir/structural.h"

#include <algorithm>

namespace bevel {
namespace {

/// Calls f for the realizations under a node, not those nested in others; `loops` are the ones around it.
template <class F> void forEachBlock(const NodeRef& n, std::vector<For>& loops, F&& f) {
  if (n.is<ExprNode>() || n.is<BufferNode>()) return;
  if (n->kind == Kind::kBlockRealize) return f(cast<BlockRealizeNode>(n));
  if (n->kind == Kind::kFor) {
    loops.push_back(cast<ForNode>(n));
    forEachBlock(loops.back()->body, loops, f);
    loops.pop_back();
    return;
  }
  forEachChild(n, [&](const NodeRef& child, Role) { forEachBlock(child, loops, f); });
}

void collectLoose(const NodeRef& n, std::vector<BufferAccess>& out) {
  if (n.is<BufferNode>()) return;
  bool leaf = n->kind == Kind::kStore || n->kind == Kind::kEvaluate || n->kind == Kind::kAssert;
  if (leaf || n.is<ExprNode>()) {
    if (leaf || readsMemory(n))
      for (BufferAccess& a : collectAccesses(n)) out.push_back(std::move(a));
    return;
  }
  const auto* realize = n.as<BlockRealizeNode>();
  forEachChild(n, [&](const NodeRef& child, Role) {
    if (!realize || !(child == NodeRef(realize->block))) collectLoose(child, out);
  });
}

tl::unexpected<Error> illegal(std::string message) {
  return fail(ErrorCode::kIllegal, std::move(message));
}

} // namespace

std::vector<BlockRealize> blocksUnder(const Stmt& s) {
  std::vector<BlockRealize> out;
  std::vector<For> loops;
  forEachBlock(s, loops, [&](BlockRealize r) { out.push_back(std::move(r)); });
  return out;
}

ScopeInfo::ScopeInfo(const BlockRealize& s, std::vector<Stmt> around)
    : scope(s), model(s->block->body, std::move(around)) {
  std::vector<For> loops;
  forEachBlock(s->block->body, loops, [&](BlockRealize r) { blocks.push_back({std::move(r), loops}); });
}

int ScopeInfo::indexOf(std::string_view block) const {
  for (size_t i = 0; i < blocks.size(); ++i)
    if (blocks[i].name() == block) return int(i);
  return -1;
}

bool touches(const Array<BufferRegion>& regions, const Var& data) {
  return std::ranges::any_of(
      regions.raw(), [&](const NodeRef& r) { return r.as<BufferRegionNode>()->buffer->data == data; });
}

Stmt nestOf(const std::vector<For>& loops, Stmt body) {
  for (size_t i = loops.size(); i-- > 0;) body = with(loops[i], &ForNode::body, body);
  return body;
}

size_t sharedLoops(const std::vector<For>& a, const std::vector<For>& b) {
  size_t n = 0;
  while (n < a.size() && n < b.size() && a[n]->var == b[n]->var) ++n;
  return n;
}

bool isUnder(const ScopeBlock& block, const Var& loop) {
  return std::ranges::any_of(block.loops, [&](const For& l) { return l->var == loop; });
}

bool reads(const BlockNode& block, const Var& data) {
  return touches(block.reads, data) || (block.init && touches(block.writes, data));
}
bool writes(const BlockNode& block, const Var& data) {
  return touches(block.writes, data);
}

Driven drivenBy(const BlockRealizeNode& r, const Var& loop) {
  Driven out;
  for (size_t i = 0; i < r.values.size(); ++i)
    if (usesVar(r.values[i], loop))
      (r.block->iters[i]->type == IterType::kReduce ? out.reduce : out.spatial) = true;
  return out;
}

namespace {

template <class F> std::vector<int> blocksWhere(const ScopeInfo& info, F holds) {
  std::vector<int> out;
  for (size_t i = 0; i < info.blocks.size(); ++i)
    if (holds(info.blocks[i].block())) out.push_back(int(i));
  return out;
}

/// The other blocks that access one of the regions' buffers.
template <class F>
std::vector<int> othersThat(F access, const ScopeInfo& info, int block, const Array<BufferRegion>& regions) {
  const BlockNode* self = &info.blocks[size_t(block)].block();
  return blocksWhere(info, [&](const BlockNode& b) {
    return &b != self &&
           std::ranges::any_of(regions, [&](const BufferRegion& r) { return access(b, r->buffer->data); });
  });
}

} // namespace

std::vector<int> ScopeInfo::writers(const Var& data) const {
  return blocksWhere(*this, [&](const BlockNode& b) { return writes(b, data); });
}
std::vector<int> ScopeInfo::readers(const Var& data) const {
  return blocksWhere(*this, [&](const BlockNode& b) { return reads(b, data); });
}
std::vector<int> ScopeInfo::producers(int block) const {
  return othersThat(writes, *this, block, blocks[size_t(block)].block().reads);
}
std::vector<int> ScopeInfo::consumers(int block) const {
  return othersThat(reads, *this, block, blocks[size_t(block)].block().writes);
}

std::vector<BufferAccess> ScopeInfo::looseAccesses() const {
  std::vector<BufferAccess> out;
  collectLoose(scope->block->body, out);
  return out;
}

Status checkNoLooseUse(const ScopeInfo& scope, int block) {
  const BlockNode& self = scope.blocks[size_t(block)].block();
  for (const BufferAccess& a : scope.looseAccesses()) {
    if (!a.buffer)
      return fail(Error(ErrorCode::kIllegal,
                        "a statement outside of blocks has effects that must happen in order: block " +
                            self.name + " cannot be moved past it")
                      .at(a.node));
    const Var& data = a.buffer->data;
    bool meets = writes(self, data) || (a.write && reads(self, data));
    if (meets)
      return fail(Error(ErrorCode::kIllegal, "buffer " + a.buffer->name + ", which block " + self.name +
                                                 " accesses, is also accessed outside of blocks")
                      .at(a.node)
                      .help("write that statement inside of a block"));
  }
  return {};
}

namespace {

Status checkWhole(const ScopeInfo& scope, int block, bool reduction) {
  const BlockNode& b = scope.blocks[size_t(block)].block();
  if (reduction && !b.init) return illegal("block " + b.name + " has no init: it is not a whole reduction");
  for (const IterVar& iv : b.iters)
    if (iv->type != IterType::kSpatial && !(reduction && iv->type == IterType::kReduce))
      return illegal("axis " + iv->var->name + " of block " + b.name + " is not " +
                     (reduction ? "spatial or a reduction" : "spatial"));
  for (const BufferRegion& w : b.writes) {
    const std::string& name = w->buffer->name;
    for (const BufferRegion& r : b.reads)
      if (r->buffer->data == w->buffer->data && !(reduction && same(r, w)))
        return illegal("block " + b.name +
                       (reduction ? " reads other elements of its output " + name
                                  : " reads buffer " + name + ", which it also writes"));
    for (const IterVar& iv : b.iters)
      if (iv->type == IterType::kReduce && usesVar(w, iv->var))
        return illegal("reduce axis " + iv->var->name + " indexes the output " + name);
    for (int other : scope.writers(w->buffer->data))
      if (other != block)
        return illegal("block " + scope.blocks[size_t(other)].name() + " also writes buffer " + name);
  }
  return checkNoLooseUse(scope, block);
}

} // namespace

Status checkCompleteBlock(const ScopeInfo& scope, int block) {
  return checkWhole(scope, block, false);
}
Status checkReductionBlock(const ScopeInfo& scope, int block) {
  return checkWhole(scope, block, true);
}
Status checkCompleteOrReduction(const ScopeInfo& scope, int block) {
  return checkWhole(scope, block, scope.blocks[size_t(block)].block().init != nullptr);
}

} // namespace bevel
