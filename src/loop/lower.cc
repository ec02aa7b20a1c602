// The list of lowering passes, and running it.
#include "loop/lower.h"

#include "base/stack.h"
#include "ir/structural.h"
#include "loop/passes/passes.h"

#include <fmt/format.h>

namespace bevel {

const std::vector<LoopPass>& lowerPasses() {
  static const std::vector<LoopPass> passes = {
      {"lower_init", "block inits become statements", lowerInit},
      {"lower_match_buffer", "match_buffer views become accesses of their source", lowerMatchBuffer},
      {"plan_allocations", "buffers are allocated at the innermost place that keeps their meaning",
       planAllocations},
      {"convert_blocks", "blocks dissolve into statements", convertBlocksToOpaque},
      {"promote_indices", "index arithmetic becomes int64", promoteIndices},
      {"compact_buffers", "allocated buffers shrink to what is touched", compactBuffers},
      {"simplify_loops", "expressions and conditions simplified in their context", simplifyPass},
      {"speculate_predicates", "tail predicates leave statements that only fill private tiles",
       speculatePredicates},
      {"partition_loops", "loops with likely conditions split into a main part and a tail", partitionLoops},
      {"hoist_invariants", "invariant conditions leave loops", hoistInvariants},
      {"flatten_buffers", "buffers become one-dimensional", flattenBuffers},
      {"vectorize_loops", "vectorised loops become vectors and masks", vectorizeLoops},
      {"unroll_loops", "unrolled loops become sequences", unrollLoops},
      {"simplify_loops", "again, now with constants from unrolling", simplifyPass},
      {"remove_no_op", "statements without effect go", removeNoOp},
      {"assign_scopes", "allocations become local, register or global", assignScopes},
      {"shape_registers", "register buffers take slot form", shapeRegisters},
      {"lower_scalar_types", "small types compute in machine types", lowerScalarTypes},
      {"lower_arithmetic", "floor division becomes machine division", lowerArithmetic},
      {"plan_workspace", "global allocations get offsets in the workspace", planWorkspace},
  };
  return passes;
}

const LoopPass* findLoopPass(std::string_view name) {
  for (const LoopPass& p : lowerPasses())
    if (name == p.name) return &p;
  return nullptr;
}

namespace {

/// What no pass brings into flat form.
Status checkLowerable(const PrimFunc& f) {
  std::optional<Error> error;
  walk(f->body, [&](const NodeRef& n) {
    const auto* loop = n.as<ForNode>();
    if (loop && loop->forKind == ForKind::kThreadBinding && !error)
      error = Error(ErrorCode::kUnsupported,
                    fmt::format("loop \"{}\" is bound to {}, which this target does not have",
                                loop->var->name, loop->thread))
                  .at(For(loop));
    if (n.is<ReduceNode>() && !error)
      error = Error(ErrorCode::kUnsupported, "a reduction of a tensor expression stands in a tensor program")
                  .at(n);
    return !error;
  });
  if (error) return fail(std::move(*error));
  return {};
}

Result<PrimFunc> runPasses(const PrimFunc& f, std::string_view last) {
  BEVEL_CHECK(checkLowerable(f));
  PrimFunc out = f;
  for (const LoopPass& p : lowerPasses()) {
    BEVEL_TRY(out, p.run(out));
    if (last == p.name) break;
  }
  return out;
}

} // namespace

Result<PrimFunc> lower(const PrimFunc& scheduled, const Target&) {
  Result<PrimFunc> out = fail(ErrorCode::kInternal, "not run");
  withLargeStack([&] { out = runPasses(scheduled, ""); });
  return out;
}

Result<PrimFunc> lowerUntil(const PrimFunc& scheduled, std::string_view pass) {
  if (!findLoopPass(pass))
    return fail(ErrorCode::kUsage, fmt::format("no lowering pass is named \"{}\"", pass));
  Result<PrimFunc> out = fail(ErrorCode::kInternal, "not run");
  withLargeStack([&] { out = runPasses(scheduled, pass); });
  return out;
}

} // namespace bevel
