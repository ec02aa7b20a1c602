// The lists of lowering passes, and running them.
#include "loop/lower.h"

#include "base/stack.h"
#include "ir/build.h"
#include "ir/storage_scope.h"
#include "ir/structural.h"
#include "loop/passes/passes.h"

#include <fmt/format.h>

namespace bevel {
namespace {

/// Refuses what no pass brings into flat form.
Result<PrimFunc> checkLoops(const PrimFunc& f, const Target& target) {
  std::optional<Error> error;
  auto checkMemory = [&](const Buffer& b, const char* what) {
    if (b && inRegisters(b->scope, target.kind()) && !error)
      error = Error(ErrorCode::kInvalid,
                    fmt::format("{} \"{}\" has scope \"{}\": registers have no address, allocate them", what,
                                b->name, b->scope))
                  .at(b);
  };
  for (const Buffer& b : f->buffers) checkMemory(b, "parameter");
  walk(f->body, [&](const NodeRef& n) {
    if (const auto* view = n.as<DeclBufferNode>()) checkMemory(view->buffer, "view");
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
  return f;
}

constexpr bool kNeeded = true;

const std::vector<LoopPass>& cpuPasses() {
  static const std::vector<LoopPass> passes = {
      {"check_loops", "refuses what no later pass brings into flat form", checkLoops, kNeeded},
      {"lower_init", "block inits become statements", lowerInit, kNeeded},
      {"lower_match_buffer", "match_buffer views become accesses of their source", lowerMatchBuffer, kNeeded},
      {"plan_allocations", "buffers are allocated at the innermost place that keeps their meaning",
       planAllocations, kNeeded},
      {"convert_blocks", "blocks dissolve into statements", convertBlocksToOpaque, kNeeded},
      {"promote_indices", "index arithmetic becomes int64", promoteIndices, kNeeded},
      {"compact_buffers", "allocated buffers shrink to what is touched", compactBuffers, kNeeded},
      {"simplify_loops", "expressions and conditions simplified in their context", simplifyPass},
      {"speculate_predicates", "tail predicates leave statements that only fill private tiles",
       speculatePredicates, kNeeded},
      {"partition_loops", "loops with likely conditions split into a main part and a tail", partitionLoops},
      {"hoist_invariants", "invariant conditions leave loops", hoistInvariants},
      {"flatten_buffers", "buffers become one-dimensional", flattenBuffers, kNeeded},
      {"vectorize_loops", "vectorised loops become vectors and masks", vectorizeLoops, kNeeded},
      {"unroll_loops", "unrolled loops become sequences", unrollLoops, kNeeded},
      {"simplify_unrolled", "simplifies again, now with constants from unrolling", simplifyPass, kNeeded},
      {"remove_no_op", "statements without effect go", removeNoOp},
      {"assign_scopes", "allocations become local, register or global", assignScopes, kNeeded},
      {"shape_registers", "register buffers take slot form", shapeRegisters, kNeeded},
      {"lower_scalar_types", "small types compute in machine types", lowerScalarTypes, kNeeded},
      {"lower_arithmetic", "floor division becomes machine division", lowerArithmetic, kNeeded},
      {"skip_empty_loops", "loops around loops over nothing do not run", skipEmptyLoops},
      {"plan_workspace", "global allocations get offsets in the workspace", planWorkspace, kNeeded},
  };
  return passes;
}

} // namespace

Result<Target> targetOf(const PrimFunc& f, const Target& otherwise) {
  NodeRef own = attr(f->attrs, "target");
  if (!own) return otherwise;
  const auto* text = own.as<StringImmNode>();
  if (!text) return fail(Error(ErrorCode::kInvalid, "the attribute \"target\" is no text").at(own));
  return Target::parse(text->value);
}

const std::vector<LoopPass>& loopPasses(std::string_view kind) {
  static const std::vector<LoopPass> none;
  return kind == "cpu" ? cpuPasses() : none;
}

std::vector<Pass> lowerPasses(const Target& target) {
  std::vector<Pass> out;
  for (const LoopPass& p : loopPasses(target.kind())) {
    auto run = [&target, &p, text = target.brief()](const PrimFunc& f) -> Result<PrimFunc> {
      NodeRef carried = attr(f->attrs, "target");
      const auto* same = carried.as<StringImmNode>(); // as nearly always: it is not parsed each time
      if (!carried || (same && same->value == text)) return p.run(f, target);
      BEVEL_TRY(Target own, targetOf(f, target));
      return p.run(f, own);
    };
    out.push_back({p.name, p.doc, nullptr, run, p.needed});
  }
  return out;
}

Result<PrimFunc> lower(const PrimFunc& scheduled, const Target& target, const PassOptions& options) {
  const char* name = "main";
  Module module = withFunction(make<const ModuleNode>(), name, scheduled);
  BEVEL_TRY(Module out, onLargeStack([&] { return runPasses(lowerPasses(target), module, options); }));
  return cast<PrimFuncNode>(out->find(name));
}

} // namespace bevel
