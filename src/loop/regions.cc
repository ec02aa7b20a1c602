// Collects accesses with the loops and conditions around them, and relaxes them to regions.
#include "loop/regions.h"

#include "arith/dims.h"
#include "arith/int_set.h"
#include "arith/linear.h"
#include "ir/effects.h"
#include "ir/structural.h"
#include "loop/dependence.h"
#include "loop/passes/context.h"

#include <algorithm>

namespace bevel {
namespace {

Range pointRange(const Expr& index) {
  return range(index, constant(index->dtype.scalar(), 1));
}

/// The region of one index of a Load or Store.
Range indexRange(const Expr& index, const Expr& extent) {
  if (!index->dtype.isVector()) return pointRange(index);
  if (const auto* b = index.as<BroadcastNode>()) return pointRange(b->value);
  const auto* ramp = index.as<RampNode>();
  auto stride = ramp ? asConst(ramp->stride) : std::nullopt;
  if (!ramp || !stride || *stride < 0) return range(constant(extent->dtype, 0), extent);
  return range(ramp->base, constant(ramp->base->dtype, *stride * (ramp->dtype.lanes - 1) + 1));
}

class AccessCollector {
public:
  explicit AccessCollector(AccessOptions options) : options_(options) {}

  void visit(const NodeRef& node) {
    switch (node->kind) {
    case Kind::kFor:
      return visitFor(static_cast<const ForNode&>(*node));
    case Kind::kIf:
      return visitIf(static_cast<const IfNode&>(*node));
    case Kind::kWhile:
      visit(node.as<WhileNode>()->condition);
      return under(node.as<WhileNode>()->condition, node.as<WhileNode>()->body);
    case Kind::kLetStmt:
      return visitLet(static_cast<const LetStmtNode&>(*node));
    case Kind::kLet:
      return visitLet(static_cast<const LetNode&>(*node));
    case Kind::kStore:
    case Kind::kLoad:
      return visitElement(node);
    case Kind::kCall:
      return visitCall(cast<CallNode>(node));
    case Kind::kBlockRealize:
      return visitRealize(static_cast<const BlockRealizeNode&>(*node));
    case Kind::kBlock:
      return visitBlockBody(static_cast<const BlockNode&>(*node));
    case Kind::kBuffer: // declared here, or viewed
      return know(cast<BufferNode>(node));
    case Kind::kVar:
      return;
    default:
      forEachChild(node, [&](const NodeRef& child, Role) { visit(child); });
    }
  }

  std::vector<BufferAccess> accesses;

private:
  void know(const Buffer& b) { buffers_.try_emplace(b->data, b); }
  void visitFor(const ForNode& loop) {
    visit(loop.min);
    visit(loop.extent);
    loops_.emplace_back(loop.var, range(resolve(loop.min), resolve(loop.extent)));
    visit(loop.body);
    loops_.pop_back();
  }
  void visitIf(const IfNode& s) {
    visit(s.condition);
    under(s.condition, s.thenBody);
    if (s.elseBody) under(logicalNot(s.condition), s.elseBody);
  }
  void under(const Expr& condition, const NodeRef& body) {
    pushCondition(condition, body);
    visit(body);
    conditions_.pop_back();
  }
  void pushCondition(const Expr& condition, const NodeRef& body) {
    conditions_.push_back(changesCondition(body, condition) ? var("unknown", kBool) : resolve(condition));
  }
  template <class L> void visitLet(const L& let) {
    visit(let.value);
    bool index = let.var->dtype.isInteger() || let.var->dtype.isBool(); // others take part in no region
    if (index) values_[let.var] = resolve(let.value);
    visit(let.body);
    if (index) values_.erase(let.var); // an expression around may be resolved as a whole
  }
  void visitElement(const NodeRef& node) {
    const auto [buffer, indices, predicate] = *elementAccess(node);
    Array<Range> region;
    for (size_t d = 0; d < indices.size(); ++d) region.push_back(indexRange(indices[d], buffer->shape[d]));
    addRegion(buffer, region, node.is<StoreNode>(), false, node);
    forEachChild(node, [&](const NodeRef& child, Role) { visit(child); });
  }
  void visitCall(const Call& c) {
    if (c->op == Intrin::kIfThenElse) {
      visit(c->args[0]);
      under(c->arg(0), c->args[1]);
      return under(logicalNot(c->arg(0)), c->args[2]);
    }
    // Who takes an address or a whole buffer may read and write anything in it.
    bool address = c->op == Intrin::kAddressOf;
    for (const NodeRef& arg : c->args) {
      if (const auto* l = arg.as<LoadNode>(); l && address) {
        addOpaque(c, fullRegion(l->buffer));
        for (const Expr& i : l->indices) visit(i);
      } else if (arg.is<BufferRegionNode>()) {
        addOpaque(c, cast<BufferRegionNode>(arg));
      } else if (arg.is<BufferNode>()) {
        addOpaque(c, fullRegion(cast<BufferNode>(arg)));
      } else if (arg.is<ExprNode>()) {
        visit(arg);
      }
    }
    if (c->op == Intrin::kAccessPtr)
      visitAccessPtr(c);
    else if (intrinInfo(c->op).effect > Effect::kReads && !isDescribed(*c))
      addOpaque(c);
  }
  void visitAccessPtr(const Call& c) {
    Buffer buffer = c->args[1].is<VarNode>() ? bufferOf(cast<VarNode>(c->args[1])) : nullptr;
    if (!buffer) return addOpaque(c);
    auto mask = asConst(c->arg(4)).value_or(3);
    Array<Range> region = pointed(buffer, c->arg(2), c->arg(3));
    if (mask & 1) addRegion(buffer, region, false, true, c);
    if (mask & 2) addRegion(buffer, region, true, true, c);
  }
  void addOpaque(const NodeRef& node, const BufferRegion& region) {
    addRegion(region->buffer, region->region, true, true, node);
    addRegion(region->buffer, region->region, false, true, node);
  }
  Buffer bufferOf(const Var& data) const {
    auto it = buffers_.find(data);
    if (it != buffers_.end()) return it->second;
    return options_.bufferOf ? (*options_.bufferOf)(data) : nullptr;
  }
  /// The elements from an offset of a buffer on: a box of whole rows, or of part of one. The whole buffer where that
  /// is not proved.
  Array<Range> pointed(const Buffer& b, Expr offset, const Expr& extent) {
    Array<Range> whole = fullRegion(b)->region;
    if (b->elemOffset) { // pointers count from the start of the memory
      const auto* sum = offset.as<BinaryNode>();
      bool added = sum && sum->op == BinaryOp::kAdd && same(sum->a, b->elemOffset);
      if (!added && !same(offset, b->elemOffset)) return whole;
      offset = added ? sum->b : constant(offset->dtype, 0);
    }
    if (!b->strides.empty() || whole.empty() || !extent->dtype.isInt()) return whole;
    Analyzer analyzer;
    for (const VarRange& l : loops_) analyzer.bind(l.first, l.second);
    for (const IterVar& iv : axes_) analyzer.bind(iv->var, iv->domain);
    auto divided = [&](const Expr& e, const Expr& row) -> Expr {
      return isConst(analyzer.simplify(floormod(e, row)), 0) ? analyzer.simplify(floordiv(e, row)) : nullptr;
    };
    Expr row = constant(offset->dtype, 1); // elements in one step of dimension d
    for (size_t d = whole.size(); d-- > 0; row = row * castTo(row->dtype, b->shape[d])) {
      Expr first = divided(offset, row), count = divided(castTo(row->dtype, extent), row);
      if (!first || !count) continue;
      Expr size = castTo(row->dtype, b->shape[d]);
      Expr place = d == 0 ? first : analyzer.simplify(floormod(first, size));
      if (d > 0 && !analyzer.prove(place + count <= size)) continue;
      Array<Range> out = whole;
      out.set(d, range(place, count));
      for (size_t o = d; o-- > 0;) {
        first = analyzer.simplify(floordiv(first, castTo(row->dtype, b->shape[o + 1])));
        Expr at = o == 0 ? first : analyzer.simplify(floormod(first, castTo(row->dtype, b->shape[o])));
        out.set(o, range(at, constant(at->dtype, 1)));
      }
      return out;
    }
    return whole;
  }
  void addOpaque(const NodeRef& node) {
    accesses.push_back({nullptr, {}, loops_, {}, false, true, node, block_});
  }
  void visitRealize(const BlockRealizeNode& r) {
    bool outermost = !block_;
    if (outermost) block_ = &r;
    for (const Expr& v : r.values) visit(v);
    visit(r.predicate);
    bool guarded = !isConst(r.predicate, 1);
    if (guarded) pushCondition(r.predicate, r.block);
    for (size_t i = 0; i < r.values.size(); ++i) values_[r.block->iters[i]->var] = resolve(r.values[i]);
    if (options_.useDeclared && !(r.block->reads.empty() && r.block->writes.empty())) {
      for (const BufferRegion& x : r.block->reads) addRegion(x->buffer, x->region, false, false, x);
      for (const BufferRegion& x : r.block->writes) addRegion(x->buffer, x->region, true, false, x);
      if (hasOrderedEffect(*r.block)) addOpaque(r.block); // which regions do not tell
    } else {
      visitBlockBody(*r.block);
    }
    if (guarded) conditions_.pop_back();
    if (outermost) block_ = nullptr;
  }
  void visitBlockBody(const BlockNode& b) {
    for (const BufferRegion& r : b.reads) know(r->buffer);
    for (const BufferRegion& r : b.writes) know(r->buffer);
    for (const MatchBuffer& m : b.matches) {
      views_[m->buffer->data] = m;
      know(m->buffer);
    }
    for (const Buffer& a : b.allocs) know(a);
    size_t depth = axes_.size();
    axes_.insert(axes_.end(), b.iters.begin(), b.iters.end());
    if (b.init) visit(b.init);
    visit(b.body);
    axes_.resize(depth);
  }

  void addRegion(const Buffer& buffer, const Array<Range>& region, bool write, bool opaque,
                 const NodeRef& node) {
    if (auto view = views_.find(buffer->data); view != views_.end()) {
      const BufferRegionNode& source = *view->second->source;
      return addRegion(source.buffer, throughView(source, region), write, opaque, node);
    }
    know(buffer);
    Array<Range> resolved;
    for (const Range& r : region) resolved.push_back(range(resolve(r->min), resolve(r->extent)));
    accesses.push_back({buffer, std::move(resolved), loops_, conditions_, write, opaque, node, block_});
  }
  Expr resolve(const Expr& e) const {
    if (values_.empty() || e.is<IntImmNode>()) return e;
    if (!e.is<VarNode>()) return substitute(e, values_);
    auto it = values_.find(cast<VarNode>(e));
    return it == values_.end() ? e : it->second;
  }

  AccessOptions options_;
  std::vector<VarRange> loops_;
  std::vector<Expr> conditions_;
  const BlockRealizeNode* block_ = nullptr;
  std::vector<IterVar> axes_; // of the blocks around that are looked into
  VarMap values_;             // block axes and lets: values over loop variables
  std::unordered_map<Var, MatchBuffer, RefHash> views_;
  BufferMap buffers_; // seen so far, by data variable
};

/// What a condition says of a value: e <= limit, or e >= limit.
struct Limit {
  Expr e, limit;
  bool upper;
};

std::vector<Limit> limitsIn(const std::vector<Expr>& conditions) {
  std::vector<Limit> out;
  auto atMost = [&](const Expr& a, const Expr& b, int64_t less) { // a + less <= b
    out.push_back({a, b - less, true});
    out.push_back({b, a + less, false});
  };
  for (const Expr& condition : conditions)
    for (const Expr& c : conjuncts(condition)) {
      const auto* b = c.as<BinaryNode>();
      if (!b || !isComparison(b->op) || !b->a->dtype.isInteger() || b->a->dtype.isVector()) continue;
      bool strict = b->op == BinaryOp::kLt || b->op == BinaryOp::kGt, equal = b->op == BinaryOp::kEq;
      if (equal || b->op == BinaryOp::kLt || b->op == BinaryOp::kLe) atMost(b->a, b->b, strict);
      if (equal || b->op == BinaryOp::kGt || b->op == BinaryOp::kGe) atMost(b->b, b->a, strict);
    }
  return out;
}

/// The sets of loops in groups, innermost first, so that no domain in a group depends on a variable of the group.
std::vector<IntSetMap> independentSets(const std::vector<VarRange>& loops) {
  std::vector<std::vector<VarRange>> groups;
  for (size_t i = loops.size(); i-- > 0;) {
    bool depended = !groups.empty() && std::ranges::any_of(groups.back(), [&](const VarRange& inner) {
      return usesVar(inner.second, loops[i].first);
    });
    if (groups.empty() || depended) groups.emplace_back();
    groups.back().push_back(loops[i]);
  }
  std::vector<IntSetMap> out;
  for (const auto& group : groups) out.push_back(asSets(group));
  return out;
}

IntSet relaxSet(const Expr& min, const Expr& extent, const std::vector<IntSetMap>& groups,
                Analyzer& analyzer) {
  IntSet set = IntSet::range(range(analyzer.simplify(min), extent));
  for (const IntSetMap& group : groups) {
    if (set.isPoint()) {
      set = evalSet(set.min, group, analyzer);
      continue;
    }
    if (set.min) set.min = evalSet(set.min, group, analyzer).min;
    if (set.max) set.max = evalSet(set.max, group, analyzer).max;
  }
  return set;
}

/// first + [0, extent) lies in [0, size) by the bounds of its parts alone.
bool staysInside(const Expr& first, const Expr& extent, const Expr& size, Analyzer& analyzer) {
  auto width = asConst(extent), whole = asConst(size);
  return width && whole && *width >= 1 && analyzer.bound(first).within(0, *whole - *width);
}

/// hi - lo + 1 + more, taken into minima and maxima so that each side can cancel: min(i*6 + 5, n - 1) - i*6 +
/// 1 is min(6, n - i*6), which has a constant bound.
Expr extentBetween(const Expr& hi, const Expr& lo, int64_t more, Analyzer& analyzer) {
  const auto *h = hi.as<BinaryNode>(), *l = lo.as<BinaryNode>();
  if (h && h->op == BinaryOp::kMin)
    return analyzer.simplify(
        min(extentBetween(h->a, lo, more, analyzer), extentBetween(h->b, lo, more, analyzer)));
  if (h && (h->op == BinaryOp::kAdd || h->op == BinaryOp::kSub) && h->a.is<BinaryNode>() && asConst(h->b))
    return extentBetween(h->a, lo, more + (h->op == BinaryOp::kAdd ? *asConst(h->b) : -*asConst(h->b)),
                         analyzer);
  if (l && l->op == BinaryOp::kMax)
    return analyzer.simplify(
        min(extentBetween(hi, l->a, more, analyzer), extentBetween(hi, l->b, more, analyzer)));
  return analyzer.simplify(hi - lo + (more + 1));
}

} // namespace

void bindDims(const PrimFunc& f, Analyzer& analyzer) {
  for (const Buffer& b : f->buffers)
    if (b) bindDims(b->shape, analyzer);
}

bool usesAny(const Expr& e, const std::vector<VarRange>& loops) {
  return !loops.empty() && usesAnyVar(e, [&](const VarNode* v) {
    return std::ranges::any_of(loops, [&](const VarRange& l) { return l.first.get() == v; });
  });
}

bool changesCondition(const NodeRef& body, const Expr& condition) {
  return readsMemory(condition) && anyNode(body, [&](const NodeRef& n) {
           if (const auto* s = n.as<StoreNode>()) return usesVar(condition, s->buffer->data);
           const auto* c = n.as<CallNode>();
           return c && intrinInfo(c->op).effect > Effect::kReads;
         });
}

bool usesBuffer(const NodeRef& root, const Var& data, const NodeRef& except) {
  bool used = false;
  walk(root, [&](const NodeRef& n) {
    if (used || n == except) return false;
    if (const auto* b = n.as<BufferNode>()) return used = b->data == data, false;
    if (const auto* a = n.as<AllocNode>()) return used = usesBuffer(a->body, data, except), false;
    const auto* block = n.as<BlockNode>();
    if (!block) return !(used = n == data);
    for (const MatchBuffer& m : block->matches) used |= usesBuffer(m->source, data, except);
    used = used || usesBuffer(block->init, data, except) || usesBuffer(block->body, data, except);
    return false;
  });
  return used;
}

Array<Range> throughView(const BufferRegionNode& source, const Array<Range>& region) {
  if (region.size() > source.region.size()) return source.region;
  Array<Range> out = source.region;
  size_t lead = out.size() - region.size();
  for (size_t d = 0; d < region.size(); ++d)
    out.set(lead + d, range(out[lead + d]->min + region[d]->min, region[d]->extent));
  return out;
}

bool addressTaken(const NodeRef& root, const Buffer& buffer) {
  bool found = false;
  walk(root, [&](const NodeRef& n) {
    const auto* view = n.as<BufferNode>();
    found |= view ? view->data == buffer->data && !same(n, buffer) : n == buffer->data;
    return !found && !view;
  });
  return found;
}

std::unordered_set<Var, RefHash> buffersMadeInside(const NodeRef& root) {
  std::unordered_set<Var, RefHash> out;
  walk(root, [&](const NodeRef& n) {
    if (const auto* a = n.as<AllocNode>()) out.insert(a->buffer->data);
    if (const auto* b = n.as<BlockNode>()) {
      for (const Buffer& x : b->allocs) out.insert(x->data);
      for (const MatchBuffer& m : b->matches) out.insert(m->buffer->data);
    }
    return n.is<StmtNode>();
  });
  return out;
}

std::vector<BufferAccess> collectAccesses(const NodeRef& root, AccessOptions options) {
  AccessCollector collector(options);
  collector.visit(root);
  return std::move(collector.accesses);
}

IntSet relaxed(const Expr& min, const Expr& extent, const std::vector<VarRange>& loops, Analyzer& analyzer) {
  return relaxSet(min, extent, independentSets(loops), analyzer);
}

std::optional<Multiple> asMultiple(const Expr& index, const Expr& e, const std::vector<VarRange>& loops,
                                   Analyzer& analyzer) {
  if (index->dtype != e->dtype) return std::nullopt;
  Expr rest = analyzer.simplify(index - e);
  if (!usesAny(rest, loops)) return Multiple{1, rest};
  std::vector<Var> used;
  for (const VarRange& l : loops)
    if (usesVar(e, l.first)) used.push_back(l.first);
  auto inE = affineIn(e, used, analyzer), inIndex = affineIn(index, used, analyzer);
  if (used.empty() || !inE || !inIndex) return std::nullopt;
  int64_t step = inE->coefOf(used[0]), all = inIndex->coefOf(used[0]);
  if (step == 0 || all % step != 0) return std::nullopt;
  int64_t factor = all / step;
  if (factor < 2) return std::nullopt;
  rest = analyzer.simplify(index - e * factor);
  IntSet set = relaxed(rest, constant(rest->dtype, 1), loops, analyzer);
  auto low = set.min ? asConst(analyzer.simplify(set.min)) : std::nullopt;
  auto high = set.max ? asConst(analyzer.simplify(set.max)) : std::nullopt;
  if (!low || !high || *low < 0 || *high >= factor) return std::nullopt;
  return Multiple{factor, constant(rest->dtype, factor - 1)};
}

BufferRegion relaxRegion(const Buffer& buffer, const Array<Range>& region, const std::vector<VarRange>& loops,
                         const std::vector<Expr>& conditions, Analyzer& analyzer) {
  std::optional<std::vector<IntSetMap>> groups; // where an index varies
  std::vector<Limit> limits = limitsIn(conditions);
  std::erase_if(limits, [&](const Limit& l) { return usesAny(l.limit, loops) || !usesAny(l.e, loops); });

  Array<Range> out;
  for (size_t d = 0; d < region.size(); ++d) {
    const Expr &first = region[d]->min, &size = buffer->shape[d];
    bool varies = usesAny(first, loops) || usesAny(region[d]->extent, loops);
    if (!varies && staysInside(first, region[d]->extent, size, analyzer)) {
      out.push_back(range(analyzer.simplify(first), region[d]->extent));
      continue;
    }
    if (!groups) groups = independentSets(loops);
    IntSet set = relaxSet(first, region[d]->extent, *groups, analyzer);
    // A condition e <= limit bounds first when first - c*e does not vary, or stays below c.
    for (const Limit& l : limits) {
      auto part = asMultiple(first, l.e, loops, analyzer);
      if (!part || (l.upper && usesAny(region[d]->extent, loops))) continue;
      Expr more = l.upper            ? part->rest + (region[d]->extent - 1)
                  : part->factor > 1 ? constant(first->dtype, 0)
                                     : part->rest;
      Expr limit = analyzer.simplify(l.limit * part->factor + more);
      Expr& end = l.upper ? set.max : set.min;
      end = !end ? limit : analyzer.simplify(l.upper ? min(end, limit) : max(end, limit));
    }
    Expr zero = constant(size->dtype, 0);
    if (!set.min || analyzer.prove(set.min < zero)) set.min = zero;
    if (!set.max || analyzer.prove(set.max >= size)) set.max = size - 1;
    Expr lo = analyzer.simplify(set.min);
    out.push_back(range(lo, extentBetween(analyzer.simplify(set.max), lo, 0, analyzer)));
  }
  return make<const BufferRegionNode>(buffer, std::move(out));
}

BufferRegion regionUnion(const BufferRegion& a, const BufferRegion& b, Analyzer& analyzer) {
  if (!same(a->buffer, b->buffer)) return fullRegion(a->buffer); // two views of one memory
  Array<Range> out;
  for (size_t d = 0; d < a->region.size(); ++d) {
    if (same(a->region[d], b->region[d])) {
      out.push_back(a->region[d]);
      continue;
    }
    IntSet u = unionSet(IntSet::range(a->region[d]), IntSet::range(b->region[d]), analyzer);
    const Expr& size = a->buffer->shape[d];
    Expr lo = u.min ? u.min : constant(size->dtype, 0);
    Expr hi = u.max ? u.max : size - 1;
    out.push_back(range(lo, extentBetween(hi, lo, 0, analyzer)));
  }
  return make<const BufferRegionNode>(a->buffer, std::move(out));
}

/// end <= limit, or the end is beyond the buffer, where nothing is accessed, and size <= limit.
static bool endsWithin(const Expr& end, const Expr& limit, const Expr& size, Analyzer& analyzer) {
  if (analyzer.prove(end <= limit)) return true;
  auto within = [&](const Expr& condition, const Expr& least) {
    auto scope = analyzer.assume(condition);
    return analyzer.prove(least <= limit);
  };
  return end->dtype == size->dtype && within(end <= size, end) && within(size < end, size);
}

bool regionCovers(const BufferRegion& outer, const BufferRegion& inner, Analyzer& analyzer) {
  if (!same(outer->buffer, inner->buffer)) return false;
  for (size_t d = 0; d < outer->region.size(); ++d) {
    const Range &o = outer->region[d], &i = inner->region[d];
    bool whole =
        isConst(o->min, 0) && same(o->extent, outer->buffer->shape[d]); // accesses lie inside their buffer
    if (whole || same(o, i)) continue;
    if (!analyzer.prove(o->min <= i->min) ||
        !endsWithin(i->min + i->extent, o->min + o->extent, outer->buffer->shape[d], analyzer))
      return false;
  }
  return true;
}

} // namespace bevel
