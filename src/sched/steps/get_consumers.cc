#include "sched/steps/step_impl.h"

namespace bevel::steps {

constexpr StepDoc kDoc = {
    R"(Gives the blocks of the same scope that read what a block writes, in program order.)",
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
    R"(b = sch.get_sblock(name="B")
c, = sch.get_consumers(block=b)
sch.reverse_compute_inline(block=c)
)",
    R"(@T.prim_func
def main(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.sblock("B"):
            vi = T.axis.spatial(8, i)
            C[vi] = (A[vi] + T.float32(1)) * T.float32(2)
)"};

struct GetConsumers {
  BlockRV block;
  std::vector<BlockRV> results;
  STEP_FIELDS(GetConsumers, IN(block), OUT(results))
};

static Result<std::vector<std::string>> check(const Schedule& sch, const GetConsumers& s) {
  BEVEL_TRY(BlockSite site, siteOf(sch, s.block));
  return site.info.names(site.info.consumers(site.self));
}

static void apply(Schedule& sch, GetConsumers& s, std::vector<std::string>&& names) {
  s.results = sch.addBlocks(std::move(names));
}

STEP_INFO(GetConsumers, "get_consumers", kDoc)

} // namespace bevel::steps

namespace bevel {
Result<std::vector<BlockRV>> Schedule::getConsumers(BlockRV block) {
  return runStep(*this, steps::GetConsumers{block, {}}, &steps::GetConsumers::results);
}
} // namespace bevel
