// See the header. Reads are compared with the writes before them in program order, both over the variables
// outside of the loop's body.
#include "loop/privacy.h"

#include "arith/analyzer.h"
#include "ir/structural.h"
#include "loop/regions.h"

#include <algorithm>

namespace bevel {
namespace {

/// Variables of loops that bind (through any number of block levels) a non-spatial axis of a block that
/// writes `buffer`.
class ReductionLoops {
public:
  explicit ReductionLoops(const Buffer& buffer) : buffer_(buffer) {}
  bool contains(const Var& loop, const NodeRef& root) {
    visit(root);
    return vars_.contains(loop);
  }

private:
  void visit(const NodeRef& n) {
    if (const auto* r = n.as<BlockRealizeNode>()) return visitRealize(*r);
    if (const auto* s = n.as<StoreNode>(); s && s->buffer->sameAs(*buffer_)) markAll();
    if (n.is<ExprNode>() && !n.is<CallNode>()) return;
    if (const auto* c = n.as<CallNode>(); c && intrinInfo(c->op).effect != Effect::kPure) markAll();
    forEachChild(n, [&](const NodeRef& child, Role) { visit(child); });
  }
  void visitRealize(const BlockRealizeNode& r) {
    size_t depth = active_.size();
    for (size_t i = 0; i < r.values.size(); ++i) {
      Expr value = substitute(r.values[i], axes_);
      axes_[r.block->iters[i]->var] = value;
      if (r.block->iters[i]->type != IterType::kSpatial) active_.push_back(value);
    }
    if (r.block->init) visit(r.block->init);
    visit(r.block->body);
    active_.resize(depth);
  }
  void markAll() {
    for (const Expr& value : active_)
      usesAnyVar(value, [&](const VarNode* v) {
        vars_.insert(Var(v));
        return false;
      });
  }

  const Buffer& buffer_;
  VarMap axes_;
  std::vector<Expr> active_; // values of non-spatial axes of the blocks around
  std::unordered_set<Var, RefHash> vars_;
};

} // namespace

bool isPrivateToIteration(const For& loop, const Buffer& buffer, Analyzer& analyzer) {
  if (ReductionLoops(buffer).contains(loop->var, loop->body)) return false;
  analyzer.bind(loop->var, range(loop->min, loop->extent));
  std::vector<BufferRegion> written; // not united: a box around two regions covers more than they do
  bool result = true;
  // Declared regions leave out what a block reads of its own output, so blocks are looked into.
  auto accesses = collectAccesses(loop->body, {.useDeclared = false});
  // A store comes after the loads of its own value in time, but before them in the list.
  auto commit = [&](const BufferAccess& a) {
    written.push_back(relaxRegion(a.buffer, a.region, a.loops, a.conditions, analyzer));
  };
  const BufferAccess* pending = nullptr;
  for (const BufferAccess& a : accesses) {
    if (!a.buffer || !a.buffer->sameAs(*buffer)) continue;
    if (a.opaque) {
      result = false;
      break;
    }
    if (a.write) {
      if (pending) commit(*pending);
      pending = &a;
      continue;
    }
    bool ownValue = pending && pending->node.is<StoreNode>() &&
                    usesVar(static_cast<const StoreNode&>(*pending->node).value, a.node);
    if (pending && !ownValue) {
      commit(*pending);
      pending = nullptr;
    }
    BufferRegion read = relaxRegion(a.buffer, a.region, a.loops, a.conditions, analyzer);
    auto covers = [&](const BufferRegion& w) { return regionCovers(w, read, analyzer); };
    if (std::none_of(written.begin(), written.end(), covers)) {
      result = false;
      break;
    }
  }
  analyzer.unbind(loop->var);
  return result;
}

} // namespace bevel
