// What some iteration certainly does, and what no iteration does.
//
//   for i in range(8):
//       A[i * 2 + 1]          reaches 1 and 15: a fault when A has 8 elements, a condition when it has n
//
// An index that is linear in loops which take their values independently takes its least and its greatest value in
// some iteration. What is not linear has bounds that need not be reached: only an index that is outside for all of its
// values is a fault then. What stands under a condition is not certain to run.
#include "loop/index_bounds.h"

#include "arith/linear.h"
#include "ir/access_hook.h"
#include "loop/kernel_signature.h"
#include "loop/passes/context.h"
#include "loop/passes/vector_util.h"

#include <algorithm>
#include <fmt/format.h>

namespace bevel {
namespace {

/// The first and the last element of an index.
std::pair<Expr, Expr> lanesOf(const Expr& index) {
  if (const auto* b = index.as<BroadcastNode>()) return {b->value, b->value};
  const auto* r = index.as<RampNode>();
  if (!r) return {index, index};
  Expr last = r->base + r->stride * (r->dtype.lanes - 1);
  return asConst(r->stride).value_or(0) < 0 ? std::pair(last, r->base) : std::pair(r->base, last);
}

/// Walks over what runs whatever the data.
class CertainAccesses {
public:
  explicit CertainAccesses(const PrimFunc& f) {
    bindDims(f, analyzer_);
    for (const Var& v : kernelDims(f)) sizes_.insert(v);
    for (const Buffer& b : f->buffers)
      if (b) buffers_[b->data] = b;
    visit(f->body);
  }
  std::vector<IndexFault> faults;
  std::vector<Expr> conditions;

private:
  /// Least and greatest value.
  struct Ends {
    Expr least, greatest;
    bool reached = true; // both, in some iteration; otherwise they only lie around the values
    bool linear = false;
  };

  void visit(const Stmt& s) {
    if (!s || stopped_) return;
    Origin around = place_;
    if (s->origin) place_ = s->origin;
    statement(s);
    place_ = around;
  }

  void statement(const Stmt& s) {
    if (const auto* all = s.as<SeqNode>()) {
      for (const Stmt& item : all->stmts) visit(item);
    } else if (const auto* loop = s.as<ForNode>()) {
      visitLoop(*loop);
    } else if (const auto* realize = s.as<BlockRealizeNode>()) {
      visitBlock(*realize);
    } else if (const auto* store = s.as<StoreNode>()) {
      visitAccess(s);
      visit(store->value);
    } else {
      const auto* let = s.as<LetStmtNode>();
      const auto* alloc = s.as<AllocNode>();
      const auto* evaluate = s.as<EvaluateNode>();
      const auto* call = evaluate ? evaluate->value.as<CallNode>() : nullptr;
      forEachChild(s, [&](const NodeRef& n, Role) {
        if (n.is<ExprNode>()) visit(cast<ExprNode>(n));
      });
      if (let) setValue(let->var, let->value);
      if (alloc) buffers_[alloc->buffer->data] = alloc->buffer;
      // What follows a check runs only where it holds.
      stopped_ |=
          s.is<AssertNode>() || (call && (call->op == Intrin::kRet || call->op == Intrin::kThreadReturn));
      if (const Stmt* body = bodyOf(s); body && !s.is<WhileNode>()) visit(*body);
    }
  }

  /// Accesses that are made whenever the expression is evaluated.
  void visit(const Expr& e) {
    walk(e, [&](const NodeRef& n) {
      if (n.is<LoadNode>()) return visitAccess(n), false;
      if (const auto* s = n.as<SelectNode>()) return visit(s->condition), false;
      if (const auto* let = n.as<LetNode>()) {
        visit(let->value);
        setValue(let->var, let->value);
        visit(let->body);
        values_.erase(let->var); // an expression around may be resolved as a whole
        return false;
      }
      if (const auto* b = n.as<BinaryNode>(); b && (b->op == BinaryOp::kAnd || b->op == BinaryOp::kOr))
        return visit(b->a), false;
      const auto* c = n.as<CallNode>();
      if (c && c->op == Intrin::kIfThenElse) return visit(c->arg(0)), false;
      if (c && c->op == Intrin::kAccessPtr) checkPointer(*c);
      bool place = c && c->op == Intrin::kAddressOf; // may be the end of a buffer
      return !place && !n.is<ReduceNode>() && !n.is<BufferNode>() && !n.is<BufferRegionNode>();
    });
  }

  void visitLoop(const ForNode& loop) {
    visit(loop.min);
    visit(loop.extent);
    Expr min = resolve(loop.min), extent = resolve(loop.extent);
    ConstBound first = analyzer_.bound(min), count = analyzer_.bound(extent);
    if (count.max <= 0) return;
    if (!isOfSizes(extent) && count.min <= 0) return; // the iterations depend on the loops around
    bool independent = isOfSizes(extent) && (isOfSizes(min) || isLinear(min));
    if (independent && !isOfSizes(min)) { // its own part is independent of the loops where it starts
      values_[loop.var] = min + loop.var;
      min = constant(min->dtype, 0);
      first = {0, 0};
    }
    size_t depth = loops_.size();
    if (independent) loops_.push_back(loop.var), ranges_.push_back({min, extent});
    bindBetween(loop.var, first.min, first.max, count.max);
    visit(loop.body);
    loops_.resize(depth);
    ranges_.resize(depth);
  }
  void bindBetween(const Var& v, int64_t first, int64_t last, int64_t count) {
    bool bounded = last != kPosInf && count != kPosInf && !__builtin_add_overflow(last, count - 1, &last);
    analyzer_.bind(v, ConstBound{first, bounded ? last : kPosInf});
  }

  void visitBlock(const BlockRealizeNode& r) {
    for (const Expr& v : r.values) visit(v);
    visit(r.predicate);
    if (!isConst(r.predicate, 1)) return;
    for (size_t i = 0; i < r.values.size(); ++i) setValue(r.block->iters[i]->var, r.values[i]);
    for (const Buffer& b : r.block->allocs) buffers_[b->data] = b;
    for (const MatchBuffer& m : r.block->matches) {
      buffers_[m->buffer->data] = m->buffer;
      const BufferRegionNode& source = *m->source;
      for (size_t d = 0; d < source.region.size(); ++d) {
        const Range& x = source.region[d];
        size_t before = faults.size();
        if (x->min->dtype.isVector()) continue;
        check(source.buffer, d, x->min, x->min, m->source);
        if (faults.size() == before && asConst(analyzer_.simplify(resolve(x->extent))).value_or(0) > 1)
          check(source.buffer, d, x->min + x->extent - 1, x->min + x->extent - 1, m->source);
      }
    }
    visit(r.block->body); // the init runs in the first iteration of the reduction, if there is one
  }

  void setValue(const Var& v, const Expr& value) {
    if (!v->dtype.isInteger() || v->dtype.isVector()) return;
    Expr over = resolve(value);
    if (isLinear(over))
      values_[v] = over.is<VarNode>() ? over : analyzer_.simplify(over);
    else
      analyzer_.bind(v, analyzer_.bound(over));
  }
  Expr resolve(const Expr& e) const { return values_.empty() ? e : substitute(e, values_); }

  void visitAccess(const NodeRef& at) {
    const auto [b, indices, predicate] = *elementAccess(at);
    const auto* same = predicate.as<BroadcastNode>();
    bool always = !predicate || isConst(same ? same->value : predicate, 1);
    for (size_t d = 0; d < indices.size(); ++d) {
      auto [first, last] = lanesOf(indices[d]);
      if (always && !first->dtype.isVector()) check(b, d, first, last, at, indices[d]);
      visit(indices[d]);
    }
  }

  /// The least value of `first` and the greatest of `last`.
  void check(const Buffer& b, size_t d, const Expr& first, const Expr& last, const NodeRef& at,
             const Expr& index = nullptr) {
    auto low = endsOf(first), high = first == last ? low : endsOf(last);
    if (!low || !high || !isOfSizes(b->shape[d])) return;
    auto least = asConst(low->least), greatest = asConst(high->greatest), size = asConst(b->shape[d]);
    bool beyond = greatest && size && *greatest >= *size;
    std::string text;
    if (least && greatest && size && (*least >= *size || *greatest < 0))
      text =
          fmt::format("index {}{} lies", *least, least == greatest ? "" : " to " + std::to_string(*greatest));
    else if (low->reached && high->reached && ((least && *least < 0) || beyond))
      text = fmt::format("index reaches {}, which lies", least && *least < 0 ? *least : *greatest);
    if (!text.empty())
      fault(index && index->origin ? NodeRef(index) : at,
            fmt::format("{} outside dimension {} of buffer '{}', which has {} elements", text, d, b->name,
                        size ? *size : 0));
    if (!low->linear || !high->linear) return;
    require(low->least >= constant(low->least->dtype, 0));
    require(castTo(kInt64, high->greatest) < castTo(kInt64, b->shape[d]));
  }

  void checkPointer(const CallNode& n) {
    const auto* data = n.args[1].as<VarNode>();
    auto found = data ? buffers_.find(Var(data)) : buffers_.end();
    if (found == buffers_.end()) return;
    const Buffer& b = found->second;
    bool dense =
        b->strides.empty() && !b->elemOffset && n.arg(0)->dtype == b->dtype; // positions are elements
    int64_t size = 1;
    for (const Expr& d : b->shape) {
      auto c = asConst(d);
      if (!c || __builtin_mul_overflow(size, *c, &size)) return;
    }
    auto first = endsOf(n.arg(2)), length = endsOf(n.arg(3)),
         end = endsOf(castTo(kInt64, n.arg(2)) + castTo(kInt64, n.arg(3)));
    if (!dense || !first || !length || !end || !first->reached || !length->reached || !end->reached) return;
    auto low = asConst(first->least), count = asConst(length->least), high = asConst(end->greatest),
         longest = asConst(length->greatest);
    if (!low || !count || !high || (*low >= 0 && *count >= 0 && *high <= size)) return;
    fault(NodeRef(&n),
          fmt::format("a pointer to {} elements from {} on leaves buffer '{}', which has {} elements",
                      *count < 0 ? *count : longest.value_or(*count),
                      *low < 0 ? *low : asConst(first->greatest).value_or(*low), b->name, size));
  }

  std::optional<Ends> endsOf(const Expr& index) {
    if (index->dtype.isVector() || !index->dtype.isInteger()) return std::nullopt;
    Expr e = resolve(index);
    if (auto ends = reachedEnds(e)) return ends;
    ConstBound around = analyzer_.bound(analyzer_.simplify(e));
    if (!around.bounded()) return std::nullopt;
    return Ends{intImm(around.min), intImm(around.max), false};
  }

  std::optional<Ends> reachedEnds(const Expr& e) {
    if (auto linear = linearEnds(e)) return linear;
    // What only grows with its operand reaches its ends with it.
    const auto* c = e.as<CastNode>();
    const auto* b = e.as<BinaryNode>();
    bool widens = c && c->value->dtype.isInt() && c->value->dtype.bits <= e->dtype.bits;
    auto by = b && e->dtype.bits >= 32 ? asConst(b->b) : std::nullopt;
    bool grows = by && (b->op == BinaryOp::kAdd || b->op == BinaryOp::kSub || b->op == BinaryOp::kMin ||
                        b->op == BinaryOp::kMax || (b->op == BinaryOp::kFloorDiv && *by > 0));
    if (!e->dtype.isInt() || !(widens || grows)) return std::nullopt;
    auto ends = reachedEnds(widens ? c->value : b->a);
    if (!ends) return std::nullopt;
    auto of = [&](const Expr& end) {
      return c ? castTo(e->dtype, end) : analyzer_.simplify(binary(b->op, end, b->b));
    };
    return Ends{of(ends->least), of(ends->greatest)};
  }

  std::optional<Ends> linearEnds(const Expr& e) {
    auto form = affineIn(e, loops_, analyzer_);
    DType type = e->dtype;
    Expr rest = form ? restOf(*form, loops_, type, analyzer_) : nullptr;
    bool bySizes = !rest; // a size may multiply a loop
    if (bySizes) rest = e;
    Expr least = constant(type, 0), greatest = least;
    for (size_t i = 0; i < loops_.size(); ++i) {
      Expr factor = bySizes ? factorOut(rest, loops_[i]) : constant(type, form->coefOf(loops_[i]));
      if (!factor) return std::nullopt;
      if (isConst(factor, 0)) continue;
      bool grows = analyzer_.prove(factor >= constant(type, 0));
      if (!grows && !analyzer_.prove(factor <= constant(type, 0))) return std::nullopt;
      Expr first = castTo(type, ranges_[i].first) * factor,
           last = castTo(type, ranges_[i].first + ranges_[i].second - 1) * factor;
      if (!grows) std::swap(first, last);
      least = least + first, greatest = greatest + last;
    }
    if (!isOfSizes(rest)) return std::nullopt;
    return Ends{analyzer_.simplify(rest + least), analyzer_.simplify(rest + greatest), true, true};
  }

  /// The factor of the loop, where it is one of sizes; what does not hold the loop stays in `rest`.
  Expr factorOut(Expr& rest, const Var& loop) {
    auto view = linearIn(rest, loop, analyzer_);
    if (!view || !isOfSizes(view->factor)) return nullptr;
    rest = view->rest;
    return view->factor;
  }

  /// Some iteration runs wherever the extents of the loops are positive.
  bool certainlyRuns() {
    return std::ranges::all_of(ranges_, [&](const auto& r) { return analyzer_.bound(r.second).min > 0; });
  }
  void fault(const NodeRef& at, std::string message) {
    if (certainlyRuns()) faults.push_back({at, place_, std::move(message)});
  }
  void require(Expr condition) {
    for (const auto& [min, extent] : ranges_)
      if (auto c = asConst(extent); !c || *c <= 0)
        condition = logicalOr(extent <= constant(extent->dtype, 0), condition);
    condition = analyzer_.simplify(condition);
    if (analyzer_.prove(condition)) return;
    bool known = std::ranges::any_of(conditions, [&](const Expr& c) { return same(c, condition); });
    if (!known) conditions.push_back(condition);
  }

  /// In the loops, whatever the sizes.
  bool isLinear(const Expr& e) {
    auto form = affineIn(e, loops_, analyzer_);
    Expr rest = form ? restOf(*form, loops_, e->dtype, analyzer_) : nullptr;
    return rest && isOfSizes(rest);
  }
  bool isOfSizes(const Expr& e) const {
    return !anyNode(e, [&](const NodeRef& n) {
      return n.is<LoadNode>() || n.is<CallNode>() || (n.is<VarNode>() && !sizes_.contains(cast<VarNode>(n)));
    });
  }

  Analyzer analyzer_;
  std::unordered_set<Var, RefHash> sizes_;
  BufferMap buffers_; // by data variable
  std::vector<Var> loops_;
  std::vector<std::pair<Expr, Expr>> ranges_; // min and extent of each
  VarMap values_; // of block axes and lets, over the loops; of loops that start at others
  Origin place_;  // of the statement
  bool stopped_ = false;
};

/// Walks over everything with all that is known at each place.
class BoundsProof : public ContextRewriter {
public:
  explicit BoundsProof(const PrimFunc& f) : ContextRewriter(f) {}
  std::optional<Error> error;

private:
  NodeRef visit(const NodeRef& node) override {
    if (error) return node;
    if (auto access = elementAccess(node)) check(*access, node);
    if (const auto* m = node.as<MatchBufferNode>()) // its own accesses are held against the view's shape
      for (size_t d = 0; d < m->source->region.size(); ++d) {
        const Range& r = m->source->region[d];
        check(m->source->buffer, d, {r->min, r->min + r->extent - 1}, "a view", m->source, r);
      }
    return ContextRewriter::visit(node);
  }

  /// Lanes that are on are inside the buffer, given that they are on.
  void check(const ElementAccess& access, const NodeRef& at) {
    const auto& [b, indices, predicate] = access;
    for (int lane = 0; lane < (predicate ? predicate->dtype.lanes : 1); ++lane) {
      Expr on = predicate ? laneOf(predicate, lane) : nullptr;
      if (on && isConst(on, 0)) continue;
      auto scope = analyzer.assume(on ? on : boolImm(true));
      for (size_t d = 0; d < indices.size(); ++d) {
        Expr own = predicate ? laneOf(indices[d], lane) : nullptr;
        check(b, d, lanesOf(own ? own : indices[d]), "an access", at, indices[d]);
      }
    }
  }

  void check(const Buffer& b, size_t d, const std::pair<Expr, Expr>& ends, const char* what,
             const NodeRef& at, const NodeRef& place) {
    const auto& [low, high] = ends;
    if (error) return;
    bool above = !low->dtype.isVector() && analyzer.prove(low >= constant(low->dtype, 0));
    bool below = !high->dtype.isVector() && analyzer.prove(high < b->shape[d]);
    if (above && below) return;
    error = Error(ErrorCode::kIllegal,
                  fmt::format("{} of buffer \"{}\" may leave dimension {}: it is not proved {}", what,
                              b->name, d, above ? "below its size" : "not negative"))
                .at(at)
                .at(place);
  }
};

[[maybe_unused]] const bool kHooked = [] {
  accessHook.faults = [](const PrimFunc& f) { return CertainAccesses(f).faults; };
  return true;
}();

} // namespace

Status verifyBounds(const PrimFunc& f) {
  BoundsProof proof(f);
  proof.run(f);
  if (proof.error) return fail(std::move(*proof.error));
  return {};
}

std::vector<Expr> sizeConditions(const PrimFunc& f) {
  return CertainAccesses(f).conditions;
}

} // namespace bevel
