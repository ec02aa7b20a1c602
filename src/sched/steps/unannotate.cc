#include "sched/steps/blocks.h"

#include "sched/steps/step_impl.h"

namespace bevel::steps {

constexpr const char* kDoc = R"(Removes the annotation of a block or loop.)";

static Result<Plan> check(const Schedule& sch, const Unannotate& s) {
  BEVEL_TRY(Path path, sch.locate(s.blockOrLoop));
  const Dict& annotations =
      path.target.is<ForNode>() ? loopAt(path)->annotations : realizeAt(path)->block->annotations;
  if (!attr(annotations, s.annKey)) return illegal("there is no annotation " + s.annKey);
  return Plan{replaceAt(path, withAnnotation(path.target, s.annKey, nullptr))};
}

STEP_INFO(Unannotate, "unannotate", kDoc)

} // namespace bevel::steps
