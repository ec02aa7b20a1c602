// The list of lowering passes, and running it.
#include "loop/lower.h"

#include "base/stack.h"
#include "ir/structural.h"
#include "loop/passes/passes.h"

#include <fmt/format.h>

namespace bevel {

/// A pass that is the same for every target.
static auto anyTarget(Result<PrimFunc> (*run)(const PrimFunc&)) {
  return [run](const PrimFunc& f, const Target&) { return run(f); };
}

const std::vector<LoopPass>& lowerPasses() {
  static const std::vector<LoopPass> passes = {
      {"lower_init", "block inits become statements", anyTarget(lowerInit)},
      {"lower_match_buffer", "match_buffer views become accesses of their source",
       anyTarget(lowerMatchBuffer)},
      {"plan_allocations", "buffers are allocated at the innermost place that keeps their meaning",
       anyTarget(planAllocations)},
      {"convert_blocks", "blocks dissolve into statements", anyTarget(convertBlocksToOpaque)},
      {"promote_indices", "index arithmetic becomes int64", anyTarget(promoteIndices)},
      {"compact_buffers", "allocated buffers shrink to what is touched", anyTarget(compactBuffers)},
      {"simplify_loops", "expressions and conditions simplified in their context", anyTarget(simplifyPass)},
      {"speculate_predicates", "tail predicates leave statements that only fill private tiles",
       anyTarget(speculatePredicates)},
      {"partition_loops", "loops with likely conditions split into a main part and a tail",
       anyTarget(partitionLoops)},
      {"hoist_invariants", "invariant conditions leave loops", anyTarget(hoistInvariants)},
      {"flatten_buffers", "buffers become one-dimensional", anyTarget(flattenBuffers)},
      {"vectorize_loops", "vectorised loops become vectors and masks", anyTarget(vectorizeLoops)},
      {"unroll_loops", "unrolled loops become sequences", anyTarget(unrollLoops)},
      {"simplify_loops", "again, now with constants from unrolling", anyTarget(simplifyPass)},
      {"remove_no_op", "statements without effect go", anyTarget(removeNoOp)},
      {"assign_scopes", "allocations become local, register or global", anyTarget(assignScopes)},
      {"shape_registers", "register buffers take slot form", anyTarget(shapeRegisters)},
      {"lower_scalar_types", "small types compute in machine types", anyTarget(lowerScalarTypes)},
      {"lower_arithmetic", "floor division becomes machine division", anyTarget(lowerArithmetic)},
      {"plan_workspace", "global allocations get offsets in the workspace", anyTarget(planWorkspace)},
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

Result<PrimFunc> runPasses(const PrimFunc& f, const Target& target, const std::vector<LoopPass>& passes,
                           std::string_view last = "") {
  Result<PrimFunc> out = f;
  withLargeStack([&] {
    if (Status ok = checkLowerable(f); !ok) out = fail(std::move(ok.error()));
    for (const LoopPass& p : passes) {
      if (out) out = p.run(*out, target);
      if (!out || last == p.name) return;
    }
  });
  return out;
}

} // namespace

Result<PrimFunc> lower(const PrimFunc& scheduled, const Target& target, const std::vector<LoopPass>& passes) {
  return runPasses(scheduled, target, passes);
}

Result<PrimFunc> lowerUntil(const PrimFunc& scheduled, std::string_view pass, const Target& target) {
  if (!findLoopPass(pass))
    return fail(ErrorCode::kUsage, fmt::format("no lowering pass is named \"{}\"", pass));
  return runPasses(scheduled, target, lowerPasses(), pass);
}

} // namespace bevel
