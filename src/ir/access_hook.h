// The analysis of what programs access belongs to the loop layer, which includes this one; it puts its functions here
// when the program starts. Without that layer blocks keep what their text declares, and no index is judged.
#pragma once

#include "base/function_ref.h"
#include "base/result.h"
#include "ir/graph.h"

namespace bevel {

/// An access that leaves its buffer in some iteration, whatever the data.
struct IndexFault {
  NodeRef at;
  Origin place; // of the statement
  std::string message;
};

struct AccessHook {
  /// The block with the reads and writes that its text leaves out. `bufferOf`: the buffer of a data variable, for
  /// pointers; null when there is none.
  Block (*detect)(const Block& block, bool reads, bool writes, FunctionRef<Buffer(const Var&)> bufferOf);
  /// Fails when the block touches more than it declares. `inWrites`: of the two lists, the wrong one.
  Status (*check)(const Block& block, bool& inWrites);
  /// What certainly leaves its buffer in a function that is otherwise well formed.
  std::vector<IndexFault> (*faults)(const PrimFunc& f);
};
extern AccessHook accessHook;

} // namespace bevel
