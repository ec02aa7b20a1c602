// What cache_read and cache_write share: the cached buffer, the copying block, and changing which buffer a
// block uses.
#pragma once

#include "sched/dataflow.h"

namespace bevel {

/// A buffer like `source`, named `<name>_<scope>`, in another storage scope.
Buffer cacheBuffer(const Buffer& source, const std::string& scope);
/// Loops that copy a region (over variables visible there) from one buffer to the other of the same shape, in
/// a block of that name.
Stmt copyNest(const Buffer& from, const Buffer& to, const Array<Range>& region, const std::string& block);
/// The statement with all uses of a buffer inside the named blocks replaced.
Stmt useBuffer(const Stmt& root, const std::vector<std::string>& blocks, const Buffer& from,
               const Buffer& to);
/// The names of the given blocks; all must be readers of the buffer in the scope. All readers when none are
/// given.
Result<std::vector<std::string>> consumerNames(const Schedule& sch, const ScopeInfo& info,
                                               const std::vector<BlockRV>& given, const Buffer& buffer);

} // namespace bevel
