// Operators to tensor programs.
//
//   lv = R.add(x, y)      →     lv = R.call_tir(cls.add, (x, y), out_sinfo=R.Tensor((2, 3), dtype="float32"))
#include "graph/mutator.h"
#include "graph/passes/passes.h"

namespace bevel {
namespace {

// Where sizes are symbolic, the program alone does not always show that it is a view (loop/view.h).
void markView(const GraphCallNode& call, BlockBuilder& builder) {
  GlobalVar name = cast<GlobalVarNode>(call.args[0]);
  PrimFunc f = cast<PrimFuncNode>(builder.module()->find(name->name));
  builder.updateFunction(name, withAttr(f, "view", intImm(1)));
}

// packed(args…, attributes in the order of the entry): ints, floats and strings as scalars, lists of ints
// as shapes, lists of strings one by one.
Result<GraphExpr> packedCall(const GraphCallNode& call, const Op& op, BlockBuilder& builder) {
  BEVEL_TRY(OpCall checked, checkCall(op, call.args, call.attrs));
  Array<GraphExpr> args = call.args;
  while (args.size() < op.inputs.size()) args.push_back(absent());
  for (const OpAttr& a : op.attrs) {
    NodeRef value = checked.attr(a.name);
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
  Type type = call.type; // without the dimensions that only the result tells: those are bound behind the call
  if (!type) {
    BEVEL_TRY(type, builder.infer(GraphExpr(&call)));
  }
  auto out =
      make<GraphCallNode>(make<const ExternFuncNode>(op.packed), args, nullptr, Array<Type>{type}, type);
  out->origin = call.origin;
  return GraphExpr(out);
}
} // namespace

Result<Module> legalize(const Module& module) {
  auto lower = [](const GraphCall& call, const Op* op, BlockBuilder& builder) -> Result<GraphExpr> {
    if (op && !op->packed.empty()) return packedCall(*call, *op, builder);
    if (!op || !op->compute)
      return GraphExpr(call); // the virtual machine's own (shape_of, tensor_to_shape, …)
    auto lowered = builder.callTir(call);
    if (!lowered) return fail(std::move(lowered.error()).at(call));
    if (op->view) markView(**lowered, builder);
    return GraphExpr(*lowered);
  };
  return mapCalls(module, lower);
}

} // namespace bevel
