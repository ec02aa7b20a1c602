#include "sched/steps/step_impl.h"

namespace bevel::steps {

constexpr StepDoc kDoc = {
    R"(Gives the blocks of the same scope that write what a block reads, in program order.)",
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
    R"(c = sch.get_sblock(name="C")
b, = sch.get_producers(block=c)
sch.compute_inline(block=b)
)",
    R"(@T.prim_func
def main(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.sblock("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = (A[vi] + T.float32(1)) * T.float32(2)
)"};

struct GetProducers {
  BlockRV block;
  std::vector<BlockRV> results;
  STEP_FIELDS(GetProducers, IN(block), OUT(results))
};

static Result<std::vector<std::string>> check(const Schedule& sch, const GetProducers& s) {
  BEVEL_TRY(BlockSite site, siteOf(sch, s.block));
  return site.info.names(site.info.producers(site.self));
}

static void apply(Schedule& sch, GetProducers& s, std::vector<std::string>&& names) {
  s.results = sch.addBlocks(std::move(names));
}

STEP_INFO(GetProducers, "get_producers", kDoc)

} // namespace bevel::steps

namespace bevel {
Result<std::vector<BlockRV>> Schedule::getProducers(BlockRV block) {
  return runStep(*this, steps::GetProducers{block, {}}, &steps::GetProducers::results);
}
} // namespace bevel
