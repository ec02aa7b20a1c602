// Common subexpression elimination over graph bindings, and copy propagation: a second name of a value gives
// way to the first.
//
//   lv = R.exp(x)            →     lv = R.exp(x)
//   lv1 = R.exp(x)                 gv = R.add(lv, lv)
//   lv2 = lv1
//   gv = R.add(lv, lv2)
#include "graph/mutator.h"
#include "graph/passes/passes.h"
#include "graph/shape_util.h"
#include "ir/structural.h"

namespace bevel {
namespace {

// The result of a data-dependent operator has sizes that a match_cast behind it names.
bool mayMerge(const GraphExpr& e, const Module& module) {
  const auto* call = e.as<GraphCallNode>();
  const Op* op = call ? findOp(call->opName()) : nullptr;
  return call ? isPure(e, module) && !(op && op->dataDependent) : e.is<TupleGetNode>();
}

// Calls in A-normal form: arguments are leaves. Large constants are compared by identity, so that weights are
// not read.
const TensorObject* largeConstant(const NodeRef& e) {
  const auto* c = e.as<ConstantNode>();
  return c && c->value->byteSize() > 256 ? c->value.get() : nullptr;
}

struct CallHash {
  size_t operator()(const NodeRef& n) const {
    const auto* call = n.as<GraphCallNode>();
    if (!call) return structuralHash(n);
    size_t h = structuralHash(call->op);
    auto mix = [&](size_t x) { h = (h ^ x) * 0x9e3779b97f4a7c15ull + (h >> 29); };
    for (const GraphExpr& a : call->args) {
      const TensorObject* large = largeConstant(a);
      mix(large            ? std::hash<const void*>()(large)
          : isVariable(*a) ? std::hash<const void*>()(a.get())
                           : structuralHash(a));
    }
    if (call->attrs) mix(structuralHash(call->attrs));
    return h;
  }
};

struct CallEqual {
  static bool sameArg(const NodeRef& a, const NodeRef& b) {
    if (a == b) return true;
    const TensorObject *x = largeConstant(a), *y = largeConstant(b);
    return x || y ? x == y : same(a, b);
  }
  bool operator()(const NodeRef& a, const NodeRef& b) const {
    const auto *x = a.as<GraphCallNode>(), *y = b.as<GraphCallNode>();
    if (!x || !y) return same(a, b);
    bool equal = x->args.size() == y->args.size() && x->typeArgs.size() == y->typeArgs.size() &&
                 sameArg(x->op, y->op) &&
                 (x->attrs == y->attrs || (x->attrs && y->attrs && same(x->attrs, y->attrs)));
    for (size_t i = 0; equal && i < x->args.size(); ++i) equal = sameArg(x->args[i], y->args[i]);
    for (size_t i = 0; equal && i < x->typeArgs.size(); ++i) equal = same(x->typeArgs[i], y->typeArgs[i]);
    return equal;
  }
};

class Eliminator : public ExprMutator {
public:
  using ExprMutator::ExprMutator;

protected:
  Status emit(const VarBinding& b, const GraphExpr& value) override {
    if (takesOver(b->var, value)) return {};
    if (!mayMerge(value, builder.module())) return ExprMutator::emit(b, value);
    auto [it, fresh] = seen_.emplace(value, b->var);
    if (!fresh && takesOver(b->var, replacement(it->second))) return {};
    return ExprMutator::emit(b, value);
  }
  // An item of a tuple whose items are known is that item, unless only the tuple is visible here.
  GraphExpr visitExpr(const GraphExpr& e) override {
    GraphExpr value = ExprMutator::visitExpr(e);
    const auto* get = value ? value.as<TupleGetNode>() : nullptr;
    GraphExpr made = get ? lookup(get->tuple) : nullptr;
    const auto* tuple = made ? made.as<TupleNode>() : nullptr;
    if (!tuple || size_t(get->index) >= tuple->items.size()) return value;
    const GraphExpr& item = tuple->items[size_t(get->index)];
    const auto *from = get->tuple.as<GraphVarNode>(), *var = item.as<GraphVarNode>();
    return var && from && (from->dataflow || !var->dataflow) ? item : value;
  }
  // A cast to the type that the value has is another name of it.
  Status visitMatchCast(const MatchCast& b) override {
    GraphExpr value = visitExpr(b->value);
    if (value && takesOver(b->var, value)) return {};
    return ExprMutator::visitMatchCast(b);
  }
  Status visitBlock(const BindingBlock& block) override {
    Status s = ExprMutator::visitBlock(block);
    std::erase_if(seen_, [](const auto& entry) { return entry.second->dataflow; }); // they end with the block
    return s;
  }
  Status visitBranch(const SeqExpr& branch, GraphExpr& result) override {
    auto outer = seen_; // what a branch binds is seen neither after it nor in the other branch
    Status s = ExprMutator::visitBranch(branch, result);
    seen_ = std::move(outer);
    return s;
  }

private:
  // Uses of the variable become uses of `value`, which is a variable of its type. A dataflow variable cannot
  // stand for one that is visible outside its block.
  bool takesOver(const GraphVar& v, const GraphExpr& value) {
    const auto* other = value.as<GraphVarNode>();
    if (!other || (other->dataflow && !v->dataflow)) return false;
    if (!other->type || !v->type || !sameType(other->type, v->type, builder.analyzer())) return false;
    replace(v, value);
    return true;
  }

  std::unordered_map<NodeRef, GraphVar, CallHash, CallEqual> seen_;
};

} // namespace

Result<Module> eliminateCommon(const Module& module) {
  return mapFunctions(
      module, [](const Module& soFar, const Function& f) { return Eliminator(soFar).mutateFunction(f); });
}

} // namespace bevel
