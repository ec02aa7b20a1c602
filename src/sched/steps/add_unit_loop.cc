#include "sched/steps/loops.h"

#include "sched/steps/step_impl.h"

namespace bevel::steps {

constexpr const char* kDoc = R"(Puts a loop of one iteration around a block or a loop.)";

static Result<Plan> check(const Schedule& sch, const AddUnitLoop& s) {
  BEVEL_TRY(Path path, sch.locate(s.blockOrLoop));
  BEVEL_CHECK(scopeOf(path));
  DType dtype = kInt64;
  if (auto* loop = path.target.as<ForNode>())
    dtype = loop->var->dtype;
  else if (auto loops = path.loops(); !loops.empty())
    dtype = loops.back()->var->dtype;
  Var u = var("u", dtype);
  return Plan{replaceAt(path, forLoop(u, constant(dtype, 1), path.target)), {u}};
}

STEP_INFO(AddUnitLoop, "add_unit_loop", kDoc)

} // namespace bevel::steps
