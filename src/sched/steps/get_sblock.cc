#include "sched/steps/step_impl.h"

namespace bevel::steps {

constexpr StepDoc kDoc = {
    R"(Gives the handle of a block by its name.

`func_name` names the function of a module; without it, the function that `work_on` chose ("main" at the start).)",
    R"(@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.sblock("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] + T.float32(1)
)",
    R"(b = sch.get_sblock(name="B", func_name="main")
)",
    R"(@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.sblock("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] + T.float32(1)
)"};

struct GetSblock {
  std::string name;
  std::optional<std::string> funcName;
  BlockRV result;
  STEP_FIELDS(GetSblock, IN(name), OPTION(funcName), OUT(result))
};

static Result<NoPlan> check(const Schedule& sch, const GetSblock& s) {
  Schedule at = sch;
  if (s.funcName) BEVEL_CHECK(at.workOnFunction(*s.funcName));
  if (findBlock(at.func()->body, s.name).target) return NoPlan{};
  std::string known;
  forEachStmt(at.func()->body, [&](const Stmt& x) {
    if (auto* r = x.as<BlockRealizeNode>()) known += (known.empty() ? "" : ", ") + r->block->name;
    return true;
  });
  return fail(Error(ErrorCode::kIllegal, "there is no block " + s.name + " in function " + at.funcName())
                  .note("blocks: " + known));
}

static void apply(Schedule& sch, GetSblock& s, NoPlan&&) {
  if (s.funcName) (void)sch.workOnFunction(*s.funcName);
  s.result = sch.addBlock(s.name);
}

STEP_INFO(GetSblock, "get_sblock", kDoc, "get_block")

} // namespace bevel::steps

namespace bevel {
Result<BlockRV> Schedule::getSblock(std::string name, std::optional<std::string> funcName) {
  return runStep(*this, steps::GetSblock{std::move(name), std::move(funcName), {}},
                 &steps::GetSblock::result);
}
} // namespace bevel
