// Replaces operators by compositions of others, as their entries say, until none is left to replace.
//
//   gv = R.nn.hard_swish(x)     →     lv = R.nn.hard_sigmoid(x, …)
//                                     gv = R.multiply(x, lv)
#include "graph/mutator.h"
#include "graph/passes/passes.h"

namespace bevel {
namespace {

constexpr int kMaxDepth = 16; // of entries that decompose into entries that decompose …
}

Result<Module> decompose(const Module& module) {
  Module out = module;
  for (int depth = 0; depth < kMaxDepth; ++depth) {
    bool changed = false;
    auto replace = [&](const GraphCall& call, const Op* op, BlockBuilder& builder) -> Result<GraphExpr> {
      if (!op || !op->decompose || op->compute) return GraphExpr(call);
      BEVEL_TRY(OpCall checked, checkCall(*op, call->args, call->attrs));
      changed = true;
      return op->decompose(checked, builder);
    };
    BEVEL_TRY(out, mapCalls(out, replace));
    if (!changed) return out;
  }
  return fail(ErrorCode::kInternal, "operators decompose into each other without end");
}

} // namespace bevel
