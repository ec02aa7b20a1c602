#include "sched/steps/buffers.h"

#include "sched/cache.h"
#include "sched/steps/step_impl.h"

namespace bevel::steps {

constexpr const char* kDoc =
    R"(Lets a block write into a buffer of another storage scope, from which a new block copies to the original; gives the copying block.

The block must be the only writer of the buffer and write all values of its axes; no dimension may be written with holes. The copy
stands after the outermost loop around the block, which must hold no effects that no declared region tells.
`consumer_blocks` names blocks that read the cache instead of the original: they may read only what the block writes. Readers
under the block's own loops must be among them.)";

static Result<Plan> check(const Schedule& sch, const CacheWrite& s) {
  return planCache(sch, s.block, writeBuffer(s.writeBufferIndex), false, s.storageScope, s.consumerBlocks);
}

STEP_INFO(CacheWrite, "cache_write", kDoc)

} // namespace bevel::steps
