// Reads and writes of a block whose text does not state them.
//
// Each access is widened over the loops inside the block: an index is a start and a width, both expressions
// over what lies outside; what is not understood becomes the whole dimension. E.g. for k in range(4): B[vi] =
// A[vi * 4 + k] reads A[vi * 4:vi * 4 + 4]. The loop layer's analysis is sharper; this one needs no
// arithmetic beyond folding.
#include "ir/parser_impl.h"

#include "ir/structural.h"

namespace bevel::detail {
namespace {

struct Extent { // [start, start + width]
  Expr start, width;
};
using Dims = std::vector<std::optional<Extent>>; // nothing: the whole dimension

struct Access {
  Buffer buffer;
  Dims dims;
};

bool isIndex(const Expr& e) {
  return e && e->dtype.isInt() && e->dtype.lanes == 1;
}
Expr zeroOf(const Expr& e) {
  return intImm(0, e->dtype.scalar());
}

// Sums and products of few such cannot overflow.
bool isSmall(int64_t v) {
  constexpr int64_t kLimit = int64_t(1) << 40;
  return v >= -kLimit && v <= kLimit;
}

// e as base + constant.
std::pair<Expr, int64_t> splitConstant(const Expr& e) {
  if (auto c = asConst(e)) return {nullptr, *c};
  auto* sum = e.as<BinaryNode>();
  if (sum && sum->op == BinaryOp::kAdd)
    if (auto c = asConst(sum->b)) return {sum->a, *c};
  return {e, 0};
}

std::optional<Extent> unite(const std::optional<Extent>& a, const std::optional<Extent>& b) {
  if (!a || !b) return std::nullopt;
  if (same(a->start, b->start) && same(a->width, b->width)) return a;
  auto wa = asConst(a->width), wb = asConst(b->width);
  auto [baseA, ca] = splitConstant(a->start);
  auto [baseB, cb] = splitConstant(b->start);
  bool sameBase = (!baseA && !baseB) || (baseA && baseB && same(baseA, baseB));
  if (!sameBase || !wa || !wb || a->start->dtype != b->start->dtype) return std::nullopt;
  if (!isSmall(ca) || !isSmall(cb) || !isSmall(*wa) || !isSmall(*wb)) return std::nullopt;
  const Extent& first = ca <= cb ? *a : *b;
  int64_t end = std::max(ca + *wa, cb + *wb);
  return Extent{first.start, intImm(end - std::min(ca, cb), first.width->dtype)};
}

class AccessScan {
public:
  std::vector<Access> reads, writes;
  std::function<Buffer(const VarNode*)> bufferOf;

  void block(const BlockNode& b) {
    for (const Buffer& a : b.allocs) local_.insert(a->data.get());
    for (const MatchBuffer& m : b.matches) views_[m->buffer->data.get()] = m->source;
    if (b.init) stmt(b.init);
    stmt(b.body);
  }

private:
  void stmt(const NodeRef& s) {
    if (!s) return;
    if (auto* f = s.as<ForNode>()) {
      stmt(f->min), stmt(f->extent);
      loops_[f->var.get()] = {substituted(f->min), substituted(f->extent)};
      return stmt(f->body);
    }
    if (auto* r = s.as<BlockRealizeNode>()) return inner(*r);
    if (auto* a = s.as<AllocNode>()) local_.insert(a->buffer->data.get());
    if (auto* let = s.as<LetStmtNode>()) return bound(let->var, let->value, let->body);
    if (auto* let = s.as<LetNode>()) return bound(let->var, let->value, let->body);
    if (auto* store = s.as<StoreNode>()) {
      add(writes, store->buffer, store->indices);
      stmt(store->value), stmt(store->predicate);
      for (const Expr& i : store->indices) stmt(i);
      return;
    }
    if (auto* load = s.as<LoadNode>()) add(reads, load->buffer, load->indices);
    if (auto* call = s.as<CallNode>()) return this->call(*call);
    forEachChild(s, [&](const NodeRef& child, Role) {
      if (child->kind != Kind::kBuffer) stmt(child);
    });
  }

  void bound(const Var& var, const Expr& value, const NodeRef& body) {
    stmt(value);
    values_[var] = substituted(value);
    stmt(body);
  }

  void call(const CallNode& c) {
    int64_t mask = 3;
    if (c.op == Intrin::kAccessPtr && c.args.size() == 5) mask = asConst(c.arg(4)).value_or(3);
    if (c.op == Intrin::kAddressOf) mask = 3;
    for (const NodeRef& arg : c.args) {
      Buffer b;
      if (arg && arg->kind == Kind::kBuffer) b = cast<BufferNode>(arg);
      if (auto* v = arg.as<VarNode>(); v && v->dtype.isHandle() && bufferOf) b = bufferOf(v);
      auto* region = arg.as<BufferRegionNode>();
      if (b || region) {
        if (mask & 1) b ? whole(reads, b) : regionOf(reads, *region);
        if (mask & 2) b ? whole(writes, b) : regionOf(writes, *region);
      } else
        stmt(arg);
    }
  }

  void inner(const BlockRealizeNode& r) {
    for (const Expr& v : r.values) stmt(v);
    for (size_t i = 0; i < r.block->iters.size() && i < r.values.size(); ++i)
      values_[r.block->iters[i]->var] = substituted(r.values[i]);
    for (const BufferRegion& region : r.block->reads) regionOf(reads, *region);
    for (const BufferRegion& region : r.block->writes) regionOf(writes, *region);
  }

  Expr substituted(const Expr& e) { return e ? substitute(e, values_) : e; }

  std::optional<Extent> extentOf(const Expr& e) {
    if (auto* v = e.as<VarNode>()) {
      auto it = loops_.find(v);
      if (it == loops_.end()) return Extent{e, zeroOf(e)};
      auto outer = extentOf(it->second.first);
      if (!outer || !isIndex(it->second.second)) return std::nullopt;
      auto length = extentOf(it->second.second);
      if (!length) return std::nullopt;
      return Extent{outer->start, outer->width + length->start + length->width - 1};
    }
    if (readsMemory(e)) return std::nullopt; // the block may change it, or own it
    if (!usesLoop(e)) return isIndex(e) ? std::optional(Extent{e, zeroOf(e)}) : std::nullopt;
    if (auto* r = e.as<RampNode>()) {
      auto base = extentOf(r->base);
      auto stride = asConst(r->stride);
      if (!base || !stride || *stride < 0 || *stride > 1 << 20) return std::nullopt;
      return Extent{base->start, base->width + *stride * (r->dtype.lanes - 1)};
    }
    auto* b = e.as<BinaryNode>();
    if (!b || !isIndex(b->a) || !isIndex(b->b)) return std::nullopt;
    auto x = extentOf(b->a), y = extentOf(b->b);
    if (!x || !y) return std::nullopt;
    if (b->op == BinaryOp::kAdd) return Extent{x->start + y->start, x->width + y->width};
    if (b->op == BinaryOp::kSub) return Extent{x->start - (y->start + y->width), x->width + y->width};
    auto c = asConst(b->b);
    if (!c || *c <= 0) return std::nullopt;
    if (b->op == BinaryOp::kMul) return Extent{x->start * *c, x->width * *c};
    auto start = asConst(x->start), width = asConst(x->width);
    bool known = start && width && isSmall(*start) && isSmall(*width);
    if (b->op == BinaryOp::kFloorDiv && known) {
      int64_t first = floorDivide(*start, *c);
      return Extent{intImm(first, e->dtype), intImm(floorDivide(*start + *width, *c) - first, e->dtype)};
    }
    if (b->op == BinaryOp::kFloorMod) return Extent{zeroOf(e), intImm(*c - 1, e->dtype)};
    return std::nullopt;
  }

  static bool readsMemory(const Expr& e) {
    bool reads = false;
    walk(e, [&](const NodeRef& n) {
      const auto* call = n.as<CallNode>();
      reads |= n.is<LoadNode>() || (call && intrinInfo(call->op).effect != Effect::kPure);
      return !reads;
    });
    return reads;
  }

  bool usesLoop(const Expr& e) {
    if (e->dtype.isVector()) return true;
    return usesAnyVar(e, [&](const VarNode* v) { return loops_.contains(v); });
  }

  bool hidden(const Buffer& b) const { return local_.contains(b->data.get()); }

  void add(std::vector<Access>& list, const Buffer& b, const Array<Expr>& indices) {
    if (hidden(b)) return;
    if (auto view = views_.find(b->data.get()); view != views_.end()) return regionOf(list, *view->second);
    Dims dims;
    for (const Expr& i : indices) dims.push_back(extentOf(substituted(i)));
    merge(list, b, std::move(dims));
  }

  void regionOf(std::vector<Access>& list, const BufferRegionNode& r) {
    if (hidden(r.buffer)) return;
    if (auto view = views_.find(r.buffer->data.get()); view != views_.end() && view->second.get() != &r)
      return regionOf(list, *view->second);
    Dims dims;
    for (const Range& range : r.region) {
      auto start = extentOf(substituted(range->min)), length = extentOf(substituted(range->extent));
      if (start && length)
        dims.push_back(Extent{start->start, start->width + length->start + length->width - 1});
      else
        dims.push_back(std::nullopt);
    }
    merge(list, r.buffer, std::move(dims));
  }

  void whole(std::vector<Access>& list, const Buffer& b) {
    if (!hidden(b)) merge(list, b, Dims(b->rank()));
  }

  void merge(std::vector<Access>& list, const Buffer& b, Dims dims) {
    for (Access& a : list) {
      if (!a.buffer->sameAs(*b) || a.dims.size() != dims.size()) continue;
      for (size_t i = 0; i < dims.size(); ++i) a.dims[i] = unite(a.dims[i], dims[i]);
      return;
    }
    list.push_back({b, std::move(dims)});
  }

  std::unordered_set<const Object*> local_;
  std::unordered_map<const Object*, BufferRegion> views_;
  std::unordered_map<const Object*, std::pair<Expr, Expr>> loops_;
  VarMap values_;
};

Array<BufferRegion> regionsOf(const std::vector<Access>& list) {
  Array<BufferRegion> out;
  for (const Access& a : list) {
    Array<Range> ranges;
    for (size_t i = 0; i < a.dims.size(); ++i) {
      const Expr& d = a.buffer->shape[i];
      if (a.dims[i])
        ranges.push_back(range(a.dims[i]->start, a.dims[i]->width + 1));
      else
        ranges.push_back(range(intImm(0, d->dtype), d));
    }
    out.push_back(make<const BufferRegionNode>(a.buffer, ranges));
  }
  return out;
}

} // namespace

void Parser::fillAccess(BlockNode& block, bool reads, bool writes) {
  if (!reads && !writes) return;
  AccessScan scan;
  scan.bufferOf = [&](const VarNode* data) {
    for (size_t i = scopes_.size(); i-- > 0;)
      for (const auto& entry : scopes_[i])
        if (auto* b = entry.second.as<BufferNode>(); b && b->data.get() == data) return Buffer(b);
    return Buffer();
  };
  scan.block(block);
  if (writes) block.writes = regionsOf(scan.writes);
  if (!reads) return;
  std::vector<Access> kept; // a reduction does not read its own result
  for (const Access& a : scan.reads) {
    bool own = false;
    for (const Access& w : scan.writes) own |= bool(block.init) && w.buffer->sameAs(*a.buffer);
    if (!own) kept.push_back(a);
  }
  block.reads = regionsOf(kept);
}

} // namespace bevel::detail
