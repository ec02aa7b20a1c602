// What cache_read and cache_write do: one step in two directions.
#pragma once

#include "sched/dataflow.h"

namespace bevel {

/// A copy of a buffer of the block in another storage scope: made for its readers (`toCache`; those given, or all), or
/// written by the block in place of the buffer, which gets the copy afterwards. The given readers take the copy then.
/// Fails when a thread around the copy would no longer be independent.
Result<Plan> planCache(const Schedule& sch, BlockRV block, const BufferArg& buffer, bool toCache,
                       const std::string& storageScope, const std::vector<BlockRV>& consumers);

} // namespace bevel
