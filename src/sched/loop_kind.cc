#include "sched/loop_kind.h"

#include "ir/structural.h"
#include "loop/dependence.h"

namespace bevel {

AccessModel modelOf(const Path& path) {
  AccessModel out(path.target);
  for (const PathItem& item : path.ancestors) out.around.push_back(item.node);
  return out;
}

Result<Path> checkIndependentLoop(const Schedule& sch, LoopRV handle, bool allowReduction) {
  BEVEL_TRY(Path path, sch.locate(handle));
  const For loop = loopAt(path);
  if (loop->forKind != ForKind::kSerial)
    return illegal(quoted(loop) + " is already " + kForKindNames[int(loop->forKind)]);
  BEVEL_CHECK(checkIndependent(modelOf(path), loop, allowReduction));
  return path;
}

Status checkNoneInside(const Path& path, FunctionRef<bool(const ForNode&)> clashes) {
  Status status;
  walk(loopAt(path)->body, [&](const NodeRef& n) {
    auto* inner = n.as<ForNode>();
    if (inner && clashes(*inner) && status)
      status =
          illegal(quoted(loopAt(path)) + " holds " + quoted(For(inner)) + ", which is " +
                  (inner->thread.empty() ? kForKindNames[int(inner->forKind)] : "bound to " + inner->thread) +
                  " already");
    return n.is<StmtNode>();
  });
  return status;
}

Status checkThreads(const Stmt& root, const Path& changed) {
  std::vector<For> around = changed.loops();
  around.push_back(loopAt(changed));
  std::optional<AccessModel> model; // of the outermost of them
  for (const For& l : around) {
    if (l->forKind != ForKind::kParallel && l->forKind != ForKind::kThreadBinding) continue;
    Path at = findLoop(root, l->var);
    if (!model) model = modelOf(at);
    Status free = checkIndependent(*model, loopAt(at));
    if (!free)
      return illegal(quoted(l) +
                     " runs at once, and would no longer be independent: " + free.error().message);
  }
  return {};
}

Plan withKind(const Path& path, ForKind kind, const std::string& thread) {
  return Plan{replaceAt(path, with(loopAt(path), &ForNode::forKind, kind, &ForNode::thread, thread))};
}

} // namespace bevel
