#include "sched/steps/step_impl.h"

namespace bevel::steps {

constexpr StepDoc kDoc = {
    R"(Attaches a key with a value to a block or loop: a constant, a sampled integer, or a list or dictionary of constants. An existing value is replaced.)",
    R"(@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.sblock("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] + T.float32(1)
)",
    R"(b = sch.get_sblock(name="B")
i, = sch.get_loops(block=b)
sch.annotate(block_or_loop=i, ann_key="pragma_auto_unroll_max_step", ann_val=16)
)",
    R"(@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in T.serial(8, annotations={"pragma_auto_unroll_max_step": 16}):
        with T.sblock("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] + T.float32(1)
)"};

struct Annotate {
  RV blockOrLoop;
  std::string annKey;
  AnyArg annVal;
  STEP_FIELDS(Annotate, IN(blockOrLoop), IN(annKey), IN(annVal))
};

struct AnnotatePlan {
  Path path;
  NodeRef value;
};

static Result<AnnotatePlan> check(const Schedule& sch, const Annotate& s) {
  bool isLoop = s.blockOrLoop.kind == RVKind::kLoop;
  BEVEL_TRY(Path path,
            isLoop ? locate(sch, LoopRV(s.blockOrLoop.id)) : locate(sch, BlockRV(s.blockOrLoop.id)));
  if (s.annVal.isNone()) return fail(ErrorCode::kUsage, "the annotation has no value");
  NodeRef value = s.annVal.node;
  if (s.annVal.rv) {
    BEVEL_TRY(int64_t v, sch.get(s.annVal.rv));
    value = intImm(v);
  }
  return AnnotatePlan{std::move(path), std::move(value)};
}

static void apply(Schedule& sch, Annotate& s, AnnotatePlan&& plan) {
  setBody(sch, replaceAt(plan.path, withAnnotation(plan.path.target, s.annKey, plan.value)));
}

STEP_INFO(Annotate, "annotate", kDoc)

} // namespace bevel::steps

namespace bevel {
Status Schedule::annotate(RV blockOrLoop, std::string annKey, AnyArg annVal) {
  return runStep(*this, steps::Annotate{blockOrLoop, std::move(annKey), std::move(annVal)});
}
} // namespace bevel
