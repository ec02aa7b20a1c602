// Explicit memory.
//
//   lv = call_tir(add, (x, y))    →    storage = R.memory.alloc_storage(R.shape([1024]))
//   gv = call_tir(exp, (lv,))          lv = R.memory.alloc_tensor(storage, 0, R.shape([16, 16]), dtype=…)
//   return gv                          _ = cls.add(x, y, lv)
//                                      gv = R.memory.new_tensor(R.shape([16, 16]), dtype=…)
//                                      _ = cls.exp(lv, gv)
//                                      return gv
//
// 1. Every result of a program that does not escape gets a place in the function's arena for as long as its memory is
//    used.
// 2. What escapes, and what has a size that is not known when the function starts, is a tensor of its own.
// 3. Views share the memory of their argument.
#include "arith/dims.h"
#include "graph/passes/passes.h"
#include "graph/shape_util.h"
#include "graph/visitor.h"
#include "ir/build.h"
#include "ir/structural.h"
#include "loop/view.h"

#include <algorithm>

namespace bevel {
namespace {

/// A tensor to place: its size in bytes and the positions between which it lives (both included).
struct ArenaItem {
  Expr bytes; // int64, constant or over symbolic dimensions
  int first, last;
};

struct ArenaPlan {
  std::vector<Expr> offsets; // bytes, multiples of 64
  Expr total;
};

constexpr int64_t kAlign = 64;
int64_t aligned(int64_t n) {
  return (n + kAlign - 1) / kAlign * kAlign;
}

bool meet(const ArenaItem& a, const ArenaItem& b) {
  return a.first <= b.last && b.first <= a.last;
}

struct Placed {
  size_t item;
  int64_t offset, size;
};

// Lowest offset with room for the item among those placed that live at the same time.
int64_t lowestFree(const std::vector<ArenaItem>& items, const std::vector<Placed>& placed, size_t item,
                   int64_t size) {
  std::vector<std::pair<int64_t, int64_t>> taken;
  for (const Placed& p : placed)
    if (meet(items[p.item], items[item])) taken.emplace_back(p.offset, p.offset + p.size);
  std::sort(taken.begin(), taken.end());
  int64_t at = 0;
  for (auto [from, to] : taken) {
    if (from - at >= size) break;
    at = std::max(at, to);
  }
  return at;
}

/// Items that live at the same time do not overlap. Constant sizes: largest first, each at the lowest free
/// offset (Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020: greedy by
/// size). Symbolic sizes lie behind them and share a place with equal sizes only.
ArenaPlan planArena(const std::vector<ArenaItem>& items) {
  ArenaPlan plan;
  plan.offsets.resize(items.size());
  std::vector<size_t> fixed, symbolic;
  for (size_t i = 0; i < items.size(); ++i) (asConst(items[i].bytes) ? fixed : symbolic).push_back(i);
  std::stable_sort(fixed.begin(), fixed.end(),
                   [&](size_t a, size_t b) { return *asConst(items[a].bytes) > *asConst(items[b].bytes); });
  std::vector<Placed> placed;
  int64_t top = 0;
  for (size_t i : fixed) {
    int64_t size = aligned(*asConst(items[i].bytes)), at = lowestFree(items, placed, i, size);
    placed.push_back({i, at, size});
    plan.offsets[i] = intImm(at);
    top = std::max(top, at + size);
  }
  // Symbolic sizes: a slot for each size that is in use at once.
  struct Slot {
    Expr bytes, offset;
    int busyUntil;
  };
  std::vector<Slot> slots;
  plan.total = intImm(top);
  std::stable_sort(symbolic.begin(), symbolic.end(),
                   [&](size_t a, size_t b) { return items[a].first < items[b].first; });
  for (size_t i : symbolic) {
    auto free = std::find_if(slots.begin(), slots.end(), [&](const Slot& s) {
      return s.busyUntil < items[i].first && same(s.bytes, items[i].bytes);
    });
    if (free == slots.end()) {
      slots.push_back({items[i].bytes, plan.total, -1});
      free = slots.end() - 1;
      plan.total = plan.total + floordiv(items[i].bytes + (kAlign - 1), kAlign) * kAlign;
    }
    free->busyUntil = items[i].last;
    plan.offsets[i] = free->offset;
  }
  return plan;
}

/// Whether a call_tir (or call_dps_packed) gives its argument another shape.
bool callsView(const GraphCallNode& call, const Module& module) {
  const auto* g = call.args[0].as<GlobalVarNode>();
  GraphExpr f = g ? module->find(g->name) : nullptr;
  return f.is<PrimFuncNode>() && isView(cast<PrimFuncNode>(f));
}

/// How long the values of a graph function live. Two values are put in one class when one may share memory with the
/// other: match_cast, tuples and their fields, views, the branches of an If, what a graph function or loop got and gave,
/// and objects (sequences) that hold tensors. A class lives until the last use of any member. Positions count bindings
/// in program order, those of branches where the branch stands.
class Liveness {
public:
  Liveness(const Function& f, const Module& module) : module_(module) {
    for (const GraphVar& p : f->params) classOf(p);
    visit(f->body);
    walk(f->body->body, [&](const NodeRef& n) {
      if (const auto* v = n.as<GraphVarNode>()) escapes_[find(classOf(GraphVar(v)))] = true;
      return true;
    });
    use(f->body->body);
  }

  /// Position of the last use of the variable or of anything that may share its memory.
  int lastUse(const GraphVar& v) const { return last_[find(index_.at(v))]; }
  /// Its memory may be part of the function's result (or is held by an object that outlives the call).
  bool escapes(const GraphVar& v) const { return escapes_[find(index_.at(v))]; }
  int position(const NodeRef& binding) const { return positions_.at(binding); }

private:
  size_t classOf(const GraphVar& v) {
    auto [it, fresh] = index_.emplace(v, parent_.size());
    if (fresh) {
      parent_.push_back(it->second);
      last_.push_back(-1);
      escapes_.push_back(false);
    }
    return it->second;
  }

  size_t find(size_t i) const {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }

  void join(const GraphVar& a, const GraphExpr& b) {
    if (const auto* t = b.as<TupleNode>()) {
      for (const GraphExpr& item : t->items) join(a, item);
      return;
    }
    if (const auto* g = b.as<TupleGetNode>()) return join(a, g->tuple);
    const auto* v = b.as<GraphVarNode>();
    if (!v) return;
    size_t x = find(classOf(a)), y = find(classOf(GraphVar(v)));
    if (x == y) return;
    parent_[y] = x;
    last_[x] = std::max(last_[x], last_[y]);
    escapes_[x] = escapes_[x] || escapes_[y];
  }

  void use(const NodeRef& value) {
    walk(value, [&](const NodeRef& n) {
      if (const auto* v = n.as<GraphVarNode>()) {
        size_t c = find(classOf(GraphVar(v)));
        last_[c] = std::max(last_[c], now_);
      }
      return !n.is<SeqExprNode>(); // branches have positions of their own
    });
  }

  void visit(const SeqExpr& seq) {
    for (const BindingBlock& block : seq->blocks)
      for (const NodeRef& b : block->bindings) bind(b);
  }

  void bind(const NodeRef& binding) {
    const auto* v = binding.as<VarBindingNode>();
    if (!v) {
      const auto* m = binding.as<MatchCastNode>();
      positions_[binding] = ++now_;
      use(m->value);
      join(m->var, m->value);
      return;
    }
    if (const auto* branch = v->value.as<GraphIfNode>()) {
      ++now_;
      use(branch->condition);
      for (const SeqExpr& side : {branch->thenBranch, branch->elseBranch}) {
        visit(side);
        ++now_;
        use(side->body);
        join(v->var, side->body);
      }
      positions_[binding] = ++now_;
      return;
    }
    positions_[binding] = ++now_;
    use(v->value);
    joinCall(v->var, v->value);
  }

  void joinCall(const GraphVar& var, const GraphExpr& value) {
    const auto* call = value.as<GraphCallNode>();
    if (!call) return join(var, value); // variable, tuple, field
    if (call->isOp("call_tir")) {
      if (callsView(*call, module_)) join(var, call->args[1]);
      return;
    }
    // Packed functions may return an argument; the run time copies it then where its memory is planned.
    bool freshTensor =
        var->type.is<TensorTypeNode>() && (call->op.is<ExternFuncNode>() || call->isOp("call_dps_packed"));
    if (freshTensor || (call->op.is<OpRefNode>() && !call->isOp("while_loop"))) return;
    for (const GraphExpr& a : call->args)
      join(var, a); // graph functions, loops, and objects that may hold their arguments
  }

  const Module& module_;
  mutable std::vector<size_t> parent_;
  std::vector<int> last_;
  std::vector<bool> escapes_;
  std::unordered_map<NodeRef, size_t, RefHash> index_;
  std::unordered_map<NodeRef, int, RefHash> positions_;
  int now_ = 0;
};

GraphExpr op(const char* name) {
  return make<const OpRefNode>(name);
}
GraphExpr shapeArg(const Array<Expr>& dims) {
  return make<const ShapeExprNode>(dims);
}
Type noValue() {
  return make<const TupleTypeNode>(Array<Type>{});
}

GraphExpr memoryCall(const char* name, Array<GraphExpr> args, DType dtype, Type type) {
  return make<const GraphCallNode>(op(name), std::move(args),
                                   dict({{"dtype", make<const DTypeImmNode>(dtype)}}), Array<Type>{},
                                   std::move(type));
}

class Planner {
public:
  Planner(const Module& module, const Function& f) : module_(module), function_(f), liveness_(f, module) {
    for (const GraphVar& p : f->params)
      for (const Var& v : shapeVars(p->type)) known_.insert(v.get());
    for (const GraphVar& p : f->params)
      if (const auto* t = p->type.as<TensorTypeNode>(); t && t->known) bindDims(t->shape, analyzer_);
  }

  Function run() {
    collect(function_->body);
    plan_ = planArena(items_);
    storage_ = make<const GraphVarNode>("storage", make<const ObjectTypeNode>("storage"));
    SeqExpr body = rewriteSeq(function_->body);
    if (!items_.empty()) body = withStorage(body);
    Function f = with(function_, &FunctionNode::body, body, &FunctionNode::pure, false);
    return cast<FunctionNode>(visibleEverywhere(withAttr(f, "arena_bytes", plan_.total)));
  }

private:
  static bool isTir(const GraphExpr& e) {
    const auto* c = e.as<GraphCallNode>();
    return c && (c->isOp("call_tir") || c->isOp("call_dps_packed"));
  }

  // An extent that inputs which do not fit make negative counts as 0: the arena is laid out before such
  // inputs are refused.
  Expr bytesOf(const TensorTypeNode& t) {
    Expr n = intImm(t.dtype.bits);
    for (const Expr& d : t.shape)
      n = n * (analyzer_.prove(d >= constant(d->dtype, 0)) ? castTo(kInt64, d)
                                                           : max(castTo(kInt64, d), intImm(0)));
    return analyzer_.simplify(floordiv(n + 7, 8));
  }
  bool knownAtStart(const Expr& e) const {
    return !usesAnyVar(e, [&](const VarNode* v) { return !known_.count(v); });
  }

  void collect(const SeqExpr& seq) {
    for (const BindingBlock& block : seq->blocks)
      for (const NodeRef& b : block->bindings) {
        const auto* v = b.as<VarBindingNode>();
        if (!v) continue;
        if (const auto* branch = v->value.as<GraphIfNode>()) {
          collect(branch->thenBranch);
          collect(branch->elseBranch);
        } else if (isTir(v->value) && !callsView(*v->value.as<GraphCallNode>(), module_)) {
          for (const Type& t : v->value.as<GraphCallNode>()->typeArgs) place(b, v->var, t);
        }
      }
  }

  void place(const NodeRef& binding, const GraphVar& var, const Type& type) {
    const auto* t = type.as<TensorTypeNode>();
    std::vector<int>& slots = slotsOf_[binding];
    Expr bytes = t && t->known ? bytesOf(*t) : nullptr;
    if (!bytes || liveness_.escapes(var) || t->dtype.isString() || !knownAtStart(bytes)) {
      slots.push_back(-1);
      return;
    }
    int first = liveness_.position(binding);
    slots.push_back(int(items_.size()));
    items_.push_back({bytes, first, std::max(first, liveness_.lastUse(var))});
  }

  SeqExpr rewriteSeq(const SeqExpr& seq) {
    auto copy = mutableCopy(seq);
    for (size_t i = 0; i < seq->blocks.size(); ++i) {
      Array<NodeRef> out;
      for (const NodeRef& b : seq->blocks[i]->bindings) rewriteBinding(b, out);
      copy->blocks.set(i, make<const BindingBlockNode>(out, false));
    }
    return copy;
  }

  void rewriteBinding(const NodeRef& b, Array<NodeRef>& out) {
    const auto* v = b.as<VarBindingNode>();
    NodeRef mapped = *mapBranches(b, [&](const SeqExpr& s) -> Result<SeqExpr> { return rewriteSeq(s); });
    if (mapped != b)
      out.push_back(mapped);
    else if (v && isTir(v->value)) {
      const auto* call = v->value.as<GraphCallNode>();
      if (callsView(*call, module_))
        out.push_back(make<const VarBindingNode>(v->var, viewOf(*call)));
      else
        rewriteCall(b, *v, *call, out);
    } else
      out.push_back(b);
  }

  GraphExpr viewOf(const GraphCallNode& call) {
    const auto* t = call.typeArgs[0].as<TensorTypeNode>();
    auto view = make<GraphCallNode>(
        op("memory.view"), Array<GraphExpr>{call.args[1].as<TupleNode>()->items[0], shapeArg(t->shape)},
        nullptr, Array<Type>{}, call.typeArgs[0]);
    view->origin = call.origin;
    return GraphExpr(view);
  }

  void rewriteCall(const NodeRef& b, const VarBindingNode& v, const GraphCallNode& call,
                   Array<NodeRef>& out) {
    const std::vector<int>& slots = slotsOf_[b];
    Array<GraphExpr> results;
    for (size_t i = 0; i < slots.size(); ++i) {
      GraphVar r = slots.size() == 1
                       ? v.var
                       : make<const GraphVarNode>(v.var->name + "_" + std::to_string(i), call.typeArgs[i]);
      out.push_back(make<const VarBindingNode>(r, allocation(slots[i], call.typeArgs[i])));
      results.push_back(r);
    }
    Array<GraphExpr> args = call.args[1].as<TupleNode>()->items;
    args.append(results);
    for (size_t i = 2; i < call.args.size(); ++i) args.push_back(call.args[i]);
    auto run = make<GraphCallNode>(call.args[0], args, call.attrs, Array<Type>{}, noValue());
    run->origin = call.origin;
    out.push_back(make<const VarBindingNode>(make<const GraphVarNode>("_", noValue()), GraphExpr(run)));
    if (slots.size() != 1) out.push_back(make<const VarBindingNode>(v.var, make<const TupleNode>(results)));
  }

  GraphExpr allocation(int slot, const Type& type) {
    const auto* t = type.as<TensorTypeNode>();
    if (slot < 0) return memoryCall("memory.new_tensor", {shapeArg(t->shape)}, t->dtype, type);
    GraphExpr offset = make<const PrimValueNode>(plan_.offsets[size_t(slot)]);
    return memoryCall("memory.alloc_tensor", {storage_, offset, shapeArg(t->shape)}, t->dtype, type);
  }

  SeqExpr withStorage(const SeqExpr& body) {
    GraphExpr alloc = make<const GraphCallNode>(op("memory.alloc_storage"),
                                                Array<GraphExpr>{shapeArg({analyzer_.simplify(plan_.total)})},
                                                nullptr, Array<Type>{}, storage_->type);
    Array<NodeRef> first = {make<const VarBindingNode>(storage_, alloc)};
    Array<BindingBlock> blocks = {make<const BindingBlockNode>(first, false)};
    blocks.append(body->blocks);
    return make<const SeqExprNode>(blocks, body->body);
  }

  // There are no dataflow blocks any more: their variables become ordinary ones.
  static NodeRef visibleEverywhere(const Function& f) {
    return rewrite(f, [](const NodeRef& n) -> NodeRef {
      const auto* v = n.as<GraphVarNode>();
      if (!v || !v->dataflow) return n;
      auto copy = make<GraphVarNode>(*v);
      copy->dataflow = false;
      return copy;
    });
  }

  const Module& module_;
  Function function_;
  Liveness liveness_;
  Analyzer analyzer_;
  std::unordered_set<const Node*> known_;
  std::vector<ArenaItem> items_;
  std::unordered_map<NodeRef, std::vector<int>, RefHash> slotsOf_;
  ArenaPlan plan_;
  GraphVar storage_;
};

} // namespace

Result<Module> planMemory(const Module& module) {
  return mapFunctions(
      module, [&](const Module&, const Function& f) -> Result<Function> { return Planner(module, f).run(); });
}

} // namespace bevel
