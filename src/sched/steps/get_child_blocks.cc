#include "sched/steps/step_impl.h"

namespace bevel::steps {

constexpr StepDoc kDoc = {R"(Gives the blocks directly inside a block, or under a loop, in program order.)",
                          R"(@T.prim_func
def main(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    B = T.sblock_alloc_buffer((8,))
    for i in range(8):
        with T.sblock("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] + T.float32(1)
    for i in range(8):
        with T.sblock("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi] * T.float32(2)
)",
                          R"(root = sch.get_sblock(name="root")
b, c = sch.get_child_blocks(block_or_loop=root)
sch.compute_inline(block=b)
)",
                          R"(@T.prim_func
def main(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.sblock("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = (A[vi] + T.float32(1)) * T.float32(2)
)"};

struct GetChildBlocks {
  RV blockOrLoop;
  std::vector<BlockRV> results;
  STEP_FIELDS(GetChildBlocks, IN(blockOrLoop), OUT(results))
};

static Result<std::vector<BlockRealize>> check(const Schedule& sch, const GetChildBlocks& s) {
  if (s.blockOrLoop.kind == RVKind::kLoop) {
    BEVEL_TRY(Path path, locate(sch, LoopRV(s.blockOrLoop.id)));
    return blocksUnder(path.target);
  }
  BEVEL_TRY(Path path, locate(sch, BlockRV(s.blockOrLoop.id)));
  return blocksUnder(realizeAt(path)->block->body);
}

static void apply(Schedule& sch, GetChildBlocks& s, std::vector<BlockRealize>&& blocks) {
  for (const BlockRealize& b : blocks) s.results.push_back(sch.addBlock(b->block->name));
}

STEP_INFO(GetChildBlocks, "get_child_blocks", kDoc)

} // namespace bevel::steps

namespace bevel {
Result<std::vector<BlockRV>> Schedule::getChildBlocks(RV blockOrLoop) {
  return runStep(*this, steps::GetChildBlocks{blockOrLoop, {}}, &steps::GetChildBlocks::results);
}
} // namespace bevel
