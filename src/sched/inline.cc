#include "sched/inline.h"

#include "ir/effects.h"
#include "ir/structural.h"
#include "loop/dependence.h"
#include "loop/regions.h"

#include <algorithm>

namespace bevel {

Result<Store> singleStore(const BlockNode& block) {
  auto* store = block.body.as<StoreNode>();
  if (!store || block.init || store->predicate || !block.matches.empty() || !block.allocs.empty())
    return illegal("the body of block " + block.name + " is not a single store");
  for (const Expr& i : store->indices)
    if (i->dtype.isVector()) return illegal("block " + block.name + " stores vectors");
  return Store(store);
}

Result<Inlinable> inlinableOf(const Schedule& sch, BlockRV block, Analyzer& analyzer) {
  BEVEL_TRY(BlockSite site, siteOf(sch, block));
  BEVEL_CHECK(checkCompleteBlock(site.info, site.self));
  BEVEL_CHECK(checkOwnsElements(*site.block()));
  BEVEL_TRY(Store store, singleStore(*site.block()));
  if (effectOf(store) > Effect::kReads)
    return illegal(quoted(*site.block()) + " has effects that must happen once");
  bindContext(sch, site.path, analyzer);
  BEVEL_CHECK(checkCoversDomain(site.inScope(), analyzer));
  return Inlinable{std::move(site), std::move(store)};
}

Result<std::vector<int>> indexAxes(const Array<Expr>& indices, const BlockNode& block) {
  std::vector<int> out;
  std::vector<bool> used(block.iters.size(), false);
  for (const Expr& index : indices) {
    int axis = -1;
    for (size_t i = 0; i < block.iters.size(); ++i)
      if (index == block.iters[i]->var) axis = int(i);
    if (axis < 0 && !asConst(index))
      return illegal("block " + block.name + " indexes a buffer not simply by its axes");
    if (axis >= 0 && used[size_t(axis)])
      return illegal("axis " + block.iters[size_t(axis)]->var->name + " indexes two dimensions");
    if (axis >= 0) used[size_t(axis)] = true;
    out.push_back(axis);
  }
  for (size_t i = 0; i < block.iters.size(); ++i)
    if (!used[i] && !isConst(block.iters[i]->domain->extent, 1))
      return illegal("axis " + block.iters[i]->var->name + " of block " + block.name +
                     " does not index the buffer");
  return out;
}

AxisMap axisMap(const Array<Expr>& indices, const BlockNode& block) {
  AxisMap out{IndexMap({}, indices), {}};
  for (const IterVar& iv : block.iters) {
    out.map.initial.push_back(iv->var);
    out.box.push_back(iv->domain);
  }
  return out;
}

Result<IndexMap> axesAt(const Array<Expr>& indices, const BlockNode& block, Analyzer& analyzer) {
  auto plain = indexAxes(indices, block);
  IndexMap out;
  if (plain) {
    for (const Expr& i : indices) out.initial.push_back(var("o", i->dtype));
    for (const IterVar& iv : block.iters) out.final.push_back(iv->domain->min); // axes of extent one
    for (size_t d = 0; d < indices.size(); ++d)
      if (int axis = (*plain)[d]; axis >= 0) out.final.set(size_t(axis), out.initial[d]);
    return out;
  }
  auto [map, box] = axisMap(indices, block);
  auto inverse = map.inverse(box, analyzer);
  return inverse ? std::move(*inverse) : Result<IndexMap>(fail(std::move(plain.error())));
}

Status checkPlainReads(const BlockRealize& realize, const Buffer& buffer) {
  Status status;
  walk(realize, [&](const NodeRef& n) {
    if (!status) return false;
    if (auto* l = n.as<LoadNode>(); l && l->buffer->data == buffer->data) {
      bool vector = std::ranges::any_of(l->indices.raw(),
                                        [](const NodeRef& i) { return i.as<ExprNode>()->dtype.isVector(); });
      if (vector || l->predicate)
        status = illegal("block " + realize->block->name + " reads vectors of buffer " + buffer->name);
    }
    if (auto* m = n.as<MatchBufferNode>(); m && m->source->buffer->data == buffer->data)
      status = illegal("block " + realize->block->name + " has a view of buffer " + buffer->name);
    if (auto* c = n.as<CallNode>())
      for (const NodeRef& a : c->args) {
        auto* var = a.as<VarNode>();
        auto* b = a.as<BufferNode>();
        auto* r = a.as<BufferRegionNode>();
        auto* load = c->op == Intrin::kAddressOf ? a.as<LoadNode>() : nullptr;
        if ((var && var == buffer->data.get()) || (b && b->data == buffer->data) ||
            (r && r->buffer->data == buffer->data) || (load && load->buffer->data == buffer->data))
          status = illegal("block " + realize->block->name + " passes buffer " + buffer->name + " to a call");
      }
    return true;
  });
  return status;
}

namespace {

bool isLoadOf(const NodeRef& n, const Buffer& buffer) {
  auto* l = n.as<LoadNode>();
  return l && l->buffer->data == buffer->data;
}

/// Calls f for the loads under an expression that are evaluated whenever it is, and that are values: not parts of an index.
void forEachSureLoad(const NodeRef& root, FunctionRef<void(const NodeRef&)> f) {
  walk(root, [&](const NodeRef& n) {
    if (n.is<LoadNode>()) f(n);
    auto* call = n.as<CallNode>();
    if (call && call->op == Intrin::kIfThenElse) forEachSureLoad(call->args[0], f);
    if (auto* select = n.as<SelectNode>()) forEachSureLoad(select->condition, f);
    return !n.is<LoadNode>() && !n.is<SelectNode>() && !(call && call->op == Intrin::kIfThenElse);
  });
}

/// One load that stands several times in an expression.
class Repeated {
public:
  Repeated(Load load, const Expr& root) : load_(std::move(load)) {
    postWalk(root, [&](const NodeRef& n) {
      size_t inside = same(n, load_) ? 1 : 0;
      forEachChild(n, [&](const NodeRef& child, Role) { inside += counts_[child.get()]; });
      counts_[n.get()] = inside;
    });
  }
  /// The smallest part that holds all of the loads becomes `let v = load in part`.
  Expr bind(const Expr& e) {
    NodeRef only;
    size_t all = counts_[e.get()], holders = 0;
    if (all < 2) return e;
    forEachChild(e, [&](const NodeRef& child, Role) {
      if (counts_[child.get()] == all) only = child, ++holders;
    });
    if (holders == 1)
      return cast<ExprNode>(mapChildren(
          e, [&](const NodeRef& c) -> NodeRef { return c == only ? NodeRef(bind(cast<ExprNode>(c))) : c; }));
    bool sure = false;
    forEachSureLoad(e, [&](const NodeRef& n) { sure |= same(n, load_); });
    if (!sure) return e;
    Var v = var(load_->buffer->name, load_->dtype);
    Expr body = cast<ExprNode>(rewrite(e, [&](const NodeRef& n) { return same(n, load_) ? NodeRef(v) : n; }));
    return make<const LetNode>(v, load_, body);
  }

private:
  Load load_;
  std::unordered_map<const Node*, size_t> counts_;
};

} // namespace

/// Loads of one element of the buffer that an expression needs several times become one.
static Stmt bindRepeatedReads(const Stmt& root, const Buffer& buffer) {
  return cast<StmtNode>(rewrite(root, [&](const NodeRef& n) -> NodeRef {
    auto* store = n.as<StoreNode>();
    if (!store) return n;
    std::vector<NodeRef> seen, loads;
    walk(store->value, [&](const NodeRef& e) {
      if (isLoadOf(e, buffer)) loads.push_back(e);
      return true;
    });
    Expr value = store->value;
    for (const NodeRef& load : loads) {
      if (std::ranges::any_of(seen, [&](const NodeRef& s) { return same(s, load); })) continue;
      seen.push_back(load);
      value = Repeated(cast<LoadNode>(load), value).bind(value);
    }
    return value == store->value ? n : NodeRef(with(Store(store), &StoreNode::value, value));
  }));
}

Stmt replaceReads(const Stmt& root, const Buffer& buffer, const Expr& value,
                  FunctionRef<Expr(const Array<Expr>& indices)> valueAt) {
  bool cheap =
      value.is<LoadNode>() || value.is<VarNode>() || value.is<FloatImmNode>() || value.is<IntImmNode>();
  return cast<StmtNode>(
      rewrite(cheap ? root : bindRepeatedReads(root, buffer), [&](const NodeRef& n) -> NodeRef {
        if (isLoadOf(n, buffer)) return freshen(valueAt(n.as<LoadNode>()->indices));
        auto* block = n.as<BlockNode>();
        if (!block) return n;
        return touches(block->reads, buffer->data) ? NodeRef(withDetectedAccess(Block(block))) : n;
      }));
}

} // namespace bevel
