#include "sched/steps/step_impl.h"

namespace bevel::steps {

constexpr StepDoc kDoc = {R"(Removes the annotation of a block or loop.)",
                          R"(@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in T.serial(8, annotations={"pragma_auto_unroll_max_step": 16}):
        with T.sblock("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] + T.float32(1)
)",
                          R"(b = sch.get_sblock(name="B")
i, = sch.get_loops(block=b)
sch.unannotate(block_or_loop=i, ann_key="pragma_auto_unroll_max_step")
)",
                          R"(@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.sblock("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] + T.float32(1)
)"};

struct Unannotate {
  RV blockOrLoop;
  std::string annKey;
  STEP_FIELDS(Unannotate, IN(blockOrLoop), IN(annKey))
};

static Result<Path> check(const Schedule& sch, const Unannotate& s) {
  bool isLoop = s.blockOrLoop.kind == RVKind::kLoop;
  BEVEL_TRY(Path path,
            isLoop ? locate(sch, LoopRV(s.blockOrLoop.id)) : locate(sch, BlockRV(s.blockOrLoop.id)));
  const Dict& annotations = isLoop ? loopAt(path)->annotations : realizeAt(path)->block->annotations;
  if (!attr(annotations, s.annKey)) return illegal("there is no annotation " + s.annKey);
  return path;
}

static void apply(Schedule& sch, Unannotate& s, Path&& path) {
  setBody(sch, replaceAt(path, withAnnotation(path.target, s.annKey, nullptr)));
}

STEP_INFO(Unannotate, "unannotate", kDoc)

} // namespace bevel::steps

namespace bevel {
Status Schedule::unannotate(RV blockOrLoop, std::string annKey) {
  return runStep(*this, steps::Unannotate{blockOrLoop, std::move(annKey)});
}
} // namespace bevel
