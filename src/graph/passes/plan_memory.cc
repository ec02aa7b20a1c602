// Explicit memory.
//
//   lv = call_tir(add, (x, y))    →    storage = R.memory.alloc_storage(R.shape([1024]))
//   gv = call_tir(exp, (lv,))          lv = R.memory.alloc_tensor(storage, 0, R.shape([16, 16]), dtype=…)
//   return gv                          _ = cls.add(x, y, lv)
//                                      gv = R.memory.new_tensor(R.shape([16, 16]), dtype=…)
//                                      _ = cls.exp(lv, gv)
//                                      return gv
//
// 1. Every result of a program that does not escape gets a place in the function's arena
//    (graph/passes/arena.h) for as long as its memory is used (graph/passes/liveness.h).
// 2. What escapes, and what has a size that is not known when the function starts, is a tensor of its own.
// 3. Views share the memory of their argument.
#include "arith/dims.h"
#include "graph/passes/arena.h"
#include "graph/passes/liveness.h"
#include "graph/passes/passes.h"
#include "graph/shape_util.h"
#include "graph/visitor.h"
#include "ir/build.h"
#include "ir/structural.h"
#include "loop/view.h"

namespace bevel {
namespace {

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
    auto f = mutableCopy(function_);
    f->body = body;
    f->pure = false;
    f->attrs = withAttr(f->attrs, "arena_bytes", plan_.total);
    return cast<FunctionNode>(visibleEverywhere(Function(f)));
  }

private:
  static bool isTir(const GraphExpr& e) {
    const auto* c = e.as<GraphCallNode>();
    return c && (c->isOp("call_tir") || c->isOp("call_dps_packed"));
  }
  bool isView(const GraphCallNode& c) const {
    const auto* g = c.args[0].as<GlobalVarNode>();
    GraphExpr f = g ? module_->find(g->name) : nullptr;
    return f.is<PrimFuncNode>() && bevel::isView(cast<PrimFuncNode>(f));
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
        } else if (isTir(v->value) && !isView(*v->value.as<GraphCallNode>())) {
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
    if (mapped)
      out.push_back(mapped);
    else if (v && isTir(v->value)) {
      const auto* call = v->value.as<GraphCallNode>();
      if (isView(*call))
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
  Module out = module;
  for (size_t i = 0; i < module->names.size(); ++i)
    if (module->functions[i].is<FunctionNode>())
      out = withFunction(out, module->names[i]->name,
                         Planner(module, cast<FunctionNode>(module->functions[i])).run());
  return out;
}

} // namespace bevel
