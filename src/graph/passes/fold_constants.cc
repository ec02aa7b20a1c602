// Constant folding by the operators' naive eval.
//
//   lv = R.multiply(c0, c1)      →     gv = R.add(x, c2)        c2 = c0 * c1
//   gv = R.add(x, lv)
#include "graph/mutator.h"
#include "graph/passes/passes.h"
#include "ir/structural.h"

#include <algorithm>

namespace bevel {
namespace {

constexpr int64_t kSmall = 1 << 16; // bytes that a folded result may always have
constexpr int64_t kLarge = int64_t(1) << 40;

class Folder : public ExprMutator {
public:
  using ExprMutator::ExprMutator;

protected:
  Status visitBinding(const VarBinding& b) override {
    if (b->value.is<GraphIfNode>()) return ExprMutator::visitBinding(b); // branches are visited once
    GraphExpr value = visitExpr(b->value);
    GraphExpr folded = value ? fold(value) : nullptr;
    if (!folded) return ExprMutator::visitBinding(b);
    replace(b->var, folded);
    return b->var->dataflow ? Status()
                            : builder.emitBinding(b->var, folded); // outputs stay visible by their name
  }

private:
  // Argument as host tensor: a constant, or nothing for what eval takes from the call itself.
  static bool constantArgs(const GraphCallNode& call, HostTensors& inputs, int64_t& bytes) {
    for (const GraphExpr& a : call.args) {
      Tensor t;
      if (const auto* c = a.as<ConstantNode>()) {
        t = c->value;
        bytes += t->byteSize();
      } else if (const auto* s = a.as<ShapeExprNode>()) {
        if (!constDims(s->values)) return false;
      } else if (!isAbsent(a))
        return false;
      inputs.push_back(t);
    }
    return true;
  }

  static bool anySymbolic(const GraphCallNode& call) {
    const auto* t = call.type.as<TensorTypeNode>();
    return t && t->known && !constDims(t->shape);
  }

  static bool tooLarge(const GraphCallNode& call, int64_t inputBytes) {
    int64_t bytes = 0;
    walk(call.type, [&](const NodeRef& n) {
      const auto* t = n.as<TensorTypeNode>();
      auto shape = t && t->known ? constDims(t->shape) : std::nullopt;
      auto count = shape ? elementCount(*shape) : Result<int64_t>(0);
      bytes += !count || *count > kLarge ? kLarge : t ? t->dtype.bytesFor(*count) : 0;
      return true;
    });
    return bytes > kSmall && bytes > 2 * inputBytes;
  }

  GraphExpr fold(const GraphExpr& value) {
    if (const auto* get = value.as<TupleGetNode>()) {
      const auto* tuple = get->tuple.as<TupleNode>();
      return tuple && size_t(get->index) < tuple->items.size() ? tuple->items[size_t(get->index)] : nullptr;
    }
    const auto* call = value.as<GraphCallNode>();
    const Op* op = call && call->op.is<OpRefNode>() ? findOp(call->opName()) : nullptr;
    if (!op || !op->eval || !op->pure) return nullptr;
    HostTensors inputs;
    int64_t bytes = 0;
    if (!constantArgs(*call, inputs, bytes)) return nullptr;
    GraphCall typed = GraphCall(call);
    if (!typed->type) {
      auto type = builder.infer(value);
      if (!type) return nullptr;
      auto copy = mutableCopy(typed);
      copy->type = *type;
      typed = copy;
    }
    if (tooLarge(*typed, bytes) || anySymbolic(*typed)) return nullptr;
    auto results = evalCall(typed, inputs);
    if (!results) return nullptr; // the call stays and fails at run time with its own message
    Array<GraphExpr> constants;
    for (const Tensor& t : *results) constants.push_back(make<const ConstantNode>(t));
    bool isTuple = typed->type.is<TupleTypeNode>();
    if (!isTuple && constants.size() == 1) return constants[0];
    return make<const TupleNode>(constants);
  }
};

} // namespace

Result<Module> foldConstants(const Module& module) {
  return mapFunctions(module,
                      [](const Module& soFar, const Function& f) { return Folder(soFar).mutateFunction(f); });
}

} // namespace bevel
