#include "sched/steps/blocks.h"

#include "sched/steps/step_impl.h"

namespace bevel::steps {

constexpr const char* kDoc =
    R"(Attaches a key with a value to a block or loop: a constant, a sampled integer, or a list or dictionary of constants. An existing value is replaced.)";

static Result<Plan> check(const Schedule& sch, const Annotate& s) {
  BEVEL_TRY(Path path, sch.locate(s.blockOrLoop));
  if (!s.annVal) return fail(ErrorCode::kUsage, "the annotation has no value");
  NodeRef value = s.annVal;
  if (value.is<VarNode>()) {
    BEVEL_TRY(int64_t v, sch.get(ExprRV(cast<VarNode>(value))));
    value = intImm(v);
  }
  return Plan{replaceAt(path, withAnnotation(path.target, s.annKey, value))};
}

STEP_INFO(Annotate, "annotate", kDoc)

} // namespace bevel::steps
