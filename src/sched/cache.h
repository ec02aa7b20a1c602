// What cache_read and cache_write share: the cached buffer, the copying block, and changing which buffer a
// block uses.
#pragma once

#include "sched/dataflow.h"

namespace bevel {

struct Caching {
  Path scope; // to the scope's realization
  Buffer buffer, cache;
  std::vector<std::string> users; // blocks that use the cache instead
  Var around;                     // the loop whose body gets the copy; null: the scope's body
  size_t position = 0;            // in that body
};
/// The scope and the buffers.
Result<Caching> beginCache(const BlockSite& site, const BufferArg& buffer, const std::string& storageScope);
/// Nothing that stands between the copy and the accesses of the cache changes the buffer unseen: no block
/// under the statements has effects that regions do not tell.
Status checkNoEffects(const Caching& plan, const std::vector<Stmt>& statements);
/// With the copy of a region from one of the plan's buffers to the other. Fails when a thread around it
/// would no longer be independent.
Result<Plan> finishCache(const Schedule& sch, const Caching& plan, bool toCache, const Array<Range>& region);

/// The names of the given blocks; all must be readers of the buffer in the scope. All readers when none are
/// given.
Result<std::vector<std::string>> consumerNames(const Schedule& sch, const ScopeInfo& info,
                                               const std::vector<BlockRV>& given, const Buffer& buffer);

} // namespace bevel
