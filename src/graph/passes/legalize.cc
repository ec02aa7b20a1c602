// Operators to tensor programs.
//
//   lv = R.add(x, y)      →     lv = R.call_tir(cls.add, (x, y), out_sinfo=R.Tensor((2, 3), dtype="float32"))
#include "graph/mutator.h"
#include "graph/passes/passes.h"

namespace bevel {
namespace {

class Legalizer : public ExprMutator {
public:
  using ExprMutator::ExprMutator;

protected:
  GraphExpr visitExpr(const GraphExpr& original) override {
    GraphExpr rewritten = ExprMutator::visitExpr(original);
    if (!rewritten) return nullptr;
    const auto* call = rewritten.as<GraphCallNode>();
    const Op* op = call && call->op.is<OpRefNode>() ? findOp(call->opName()) : nullptr;
    if (!op) return rewritten;
    if (!op->packed.empty()) return packedCall(*call, *op);
    if (!op->compute) return rewritten; // the virtual machine's own (shape_of, tensor_to_shape, …)
    auto lowered = builder.callTir(GraphCall(call));
    if (!lowered) return fault(std::move(lowered.error()).at(rewritten));
    if (op->view) markView(**lowered);
    return *lowered;
  }

private:
  // Where sizes are symbolic, the program alone does not always show it (loop/view.h).
  void markView(const GraphCallNode& call) {
    GlobalVar name = cast<GlobalVarNode>(call.args[0]);
    PrimFunc f = cast<PrimFuncNode>(builder.module()->find(name->name));
    builder.updateFunction(name, withAttr(f, "view", intImm(1)));
  }

  // packed(args…, attributes in the order of the entry): ints, floats and strings as scalars, lists of ints
  // as shapes, lists of strings one by one.
  GraphExpr packedCall(const GraphCallNode& call, const Op& op) {
    auto checked = checkCall(op, call.args, call.attrs);
    if (!checked) return fault(std::move(checked.error()));
    Array<GraphExpr> args = call.args;
    while (args.size() < op.inputs.size()) args.push_back(absent());
    for (const OpAttr& a : op.attrs) {
      NodeRef value = checked->attr(a.name);
      if (!value)
        args.push_back(absent());
      else if (const auto* list = value.as<ListNode>()) {
        Array<Expr> items;
        for (const NodeRef& item : list->items) items.push_back(cast<ExprNode>(item));
        bool texts = a.kind == AttrKind::kNode;
        if (!texts) args.push_back(make<const ShapeExprNode>(items));
        for (const Expr& item : items)
          if (texts) args.push_back(make<const PrimValueNode>(item));
      } else if (const auto* d = value.as<DTypeImmNode>())
        args.push_back(make<const PrimValueNode>(cast<ExprNode>(str(d->value.str()))));
      else
        args.push_back(make<const PrimValueNode>(cast<ExprNode>(value)));
    }
    Type type =
        call.type; // without the dimensions that only the result tells: those are bound behind the call
    if (!type) {
      auto inferred = builder.infer(GraphExpr(&call));
      if (!inferred) return fault(std::move(inferred.error()));
      type = *inferred;
    }
    auto out =
        make<GraphCallNode>(make<const ExternFuncNode>(op.packed), args, nullptr, Array<Type>{type}, type);
    out->origin = call.origin;
    return GraphExpr(out);
  }
};

} // namespace

Result<Module> legalize(const Module& module) {
  return Legalizer(module).mutateModule();
}

} // namespace bevel
