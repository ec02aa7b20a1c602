// The lists of lowering passes, and running them.
#include "loop/lower.h"

#include "base/stack.h"
#include "ir/build.h"
#include "ir/storage_scope.h"
#include "ir/structural.h"
#include "loop/passes/passes.h"

#include <fmt/format.h>

namespace bevel {
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

Result<Target> targetOf(const PrimFunc& f, const Target& otherwise) {
  NodeRef own = attr(f->attrs, "target");
  if (!own) return otherwise;
  const auto* text = own.as<StringImmNode>();
  if (!text) return fail(Error(ErrorCode::kInvalid, "the attribute \"target\" is no text").at(own));
  return Target::parse(text->value);
}

const std::vector<LoopPass>& loopPasses(std::string_view kind) {
  static const std::vector<LoopPass> none, cpu = {
#define LOOP_PASS(name, doc, function, needed) {#name, doc, function, needed},
#include "loop/passes/passes.def"
#undef LOOP_PASS
                                           };
  return kind == "cpu" ? cpu : none;
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
