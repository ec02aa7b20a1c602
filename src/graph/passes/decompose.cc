// Replaces operators by compositions of others, as their entries say, until none is left to replace.
//
//   gv = R.nn.hard_swish(x)     →     lv = R.nn.hard_sigmoid(x, …)
//                                     gv = R.multiply(x, lv)
#include "graph/mutator.h"
#include "graph/passes/passes.h"

namespace bevel {
namespace {

constexpr int kMaxDepth = 16; // of entries that decompose into entries that decompose …

class Decomposer : public ExprMutator {
public:
  using ExprMutator::ExprMutator;
  bool changed = false;

protected:
  GraphExpr visitExpr(const GraphExpr& original) override {
    GraphExpr rewritten = ExprMutator::visitExpr(original);
    if (!rewritten) return nullptr;
    const auto* call = rewritten.as<GraphCallNode>();
    const Op* op = call && call->op.is<OpRefNode>() ? findOp(call->opName()) : nullptr;
    if (!op || !op->decompose || op->compute) return rewritten;
    auto checked = checkCall(*op, call->args, call->attrs);
    if (!checked) return fault(std::move(checked.error()));
    auto value = op->decompose(*checked, builder);
    if (!value) return fault(std::move(value.error()));
    changed = true;
    return *value;
  }
};

} // namespace

Result<Module> decompose(const Module& module) {
  Module out = module;
  for (int depth = 0; depth < kMaxDepth; ++depth) {
    Decomposer d(out);
    BEVEL_TRY(out, d.mutateModule());
    if (!d.changed) return out;
  }
  return fail(ErrorCode::kInternal, "operators decompose into each other without end");
}

} // namespace bevel
