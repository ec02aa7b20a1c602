#include "sched/steps/buffers.h"

#include "sched/cache.h"
#include "sched/steps/step_impl.h"

namespace bevel::steps {

constexpr const char* kDoc =
    R"(Copies what consumers read of a buffer into a buffer of another storage scope, and lets them read the copy; gives the copying block.

`read_buffer_index` chooses among the block's reads. `consumer_blocks` names the blocks that read the copy; without it, all readers
in the scope. The copy is made right before the outermost loop that holds the first of them, but inside of every loop that also holds
a writer of the buffer: there it copies what they read, which must lie inside of the buffer. Refused when the buffer is written after
the copy, or by a consumer itself, or may be by effects that no declared region tells; and when a parallel loop around the copy would
no longer be independent.)";

static Result<Plan> check(const Schedule& sch, const CacheRead& s) {
  return planCache(sch, s.block, readBuffer(s.readBufferIndex), true, s.storageScope, s.consumerBlocks);
}

STEP_INFO(CacheRead, "cache_read", kDoc)

} // namespace bevel::steps
