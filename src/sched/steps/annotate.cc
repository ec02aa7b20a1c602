#include "sched/steps/annotate.h"

#include "sched/steps/step_impl.h"

namespace bevel::steps {

constexpr const char* kDoc =
    R"(Attaches a key with a value to a block or loop: a constant, a sampled integer, or a list or dictionary of constants. An existing value is replaced.)";

struct AnnotatePlan {
  Path path;
  NodeRef value;
};

static Result<AnnotatePlan> check(const Schedule& sch, const Annotate& s) {
  BEVEL_TRY(Path path, locate(sch, s.blockOrLoop));
  if (!s.annVal) return fail(ErrorCode::kUsage, "the annotation has no value");
  NodeRef value = s.annVal;
  if (value.is<VarNode>()) {
    BEVEL_TRY(int64_t v, sch.get(ExprRV(cast<VarNode>(value))));
    value = intImm(v);
  }
  return AnnotatePlan{std::move(path), std::move(value)};
}

static void apply(Schedule& sch, Annotate& s, AnnotatePlan&& plan) {
  setBody(sch, replaceAt(plan.path, withAnnotation(plan.path.target, s.annKey, plan.value)));
}

STEP_INFO(Annotate, "annotate", kDoc)

} // namespace bevel::steps
