// Which parts of which buffers a statement reads and writes, as buffer regions over the variables defined
// outside of it.
//
//   for i in 4:                                   reads  A[o*4 : o*4+4, 0:8]
//     for j in 8:                       →         writes B[o*4 : o*4+4]      (over the outer variable o)
//       B[o*4 + i] += A[o*4 + i, j]               reads  B[o*4 : o*4+4]
#pragma once

#include "base/function_ref.h"
#include "base/result.h"
#include "ir/graph.h"

#include <unordered_set>
#include <utility>
#include <vector>

namespace bevel {

class Analyzer;
struct IntSet;

/// Tells the analyzer what holds of the sizes of a function's parameters: they, and what they are made of,
/// are not negative.
void bindDims(const PrimFunc& f, Analyzer& analyzer);

/// A loop or block axis with its domain.
using VarRange = std::pair<Var, Range>;

/// e is over the variable of one of the loops.
bool usesAny(const Expr& e, const std::vector<VarRange>& loops);

/// True when the body may change what the condition reads: then the condition holds before the body, but
/// perhaps not in it.
bool changesCondition(const NodeRef& body, const Expr& condition);

/// Something under the root, `except` left out, uses the buffer of this data variable: what is declared of blocks does
/// not count.
bool usesBuffer(const NodeRef& root, const Var& data, const NodeRef& except = nullptr);

/// Something under the root uses the buffer's data otherwise than by loads and stores through this buffer: pointers,
/// other views.
bool addressTaken(const NodeRef& root, const Buffer& buffer);

/// Data variables of buffers and views that are made inside root.
std::unordered_set<Var, RefHash> buffersMadeInside(const NodeRef& root);

/// A region of a view as one of the view's source: the view has its last dimensions, leading ones have extent 1.
Array<Range> throughView(const BufferRegionNode& source, const Array<Range>& region);

/// One access of a buffer, as it stands in the program.
struct BufferAccess {
  Buffer buffer;
  Array<Range> region; // over all variables visible at the access (extent 1 for a scalar access)
  std::vector<VarRange>
      loops; // loops, block axes and lets entered on the way from the root to it, outermost first
  std::vector<Expr>
      conditions; // conditions that hold there: predicates, ifs, selects (false branch: negated). One that
                  // held before but may not hold any more is a variable of its own, of which nothing is known
  bool write = false;
  bool opaque = false; // pointer, extern call, barrier: the region is what is known, or the whole buffer
  NodeRef node;        // the Load, Store, Call, or (for declared regions) BufferRegion
  const BlockRealizeNode* block =
      nullptr; // the outermost around it: its condition and its axes' values belong to it
};

struct AccessOptions {
  /// A nested block counts by its declared reads and writes; otherwise by what its body does. Blocks that
  /// declare nothing are always looked into.
  bool useDeclared = true;
  /// The buffer of a data variable that nothing under the root declares, for pointers.
  const FunctionRef<Buffer(const Var&)>* bufferOf = nullptr;
};

/// All accesses under a statement, block, or expression, in program order. Block axes are replaced by their
/// values, so `loops` holds loop variables only (a Block given directly as root keeps its own axes free).
std::vector<BufferAccess> collectAccesses(const NodeRef& root, AccessOptions options = {});

/// What [min, min + extent) reaches over all values of the loops, in any order of their domains' dependence.
IntSet relaxed(const Expr& min, const Expr& extent, const std::vector<VarRange>& loops, Analyzer& analyzer);
/// The region with the variables of `loops` relaxed to their ranges, innermost first, so that domains may
/// depend on loops further out. Conditions that bound an index tighten the result. Dimensions that cannot be
/// bounded become the whole dimension; results are clipped to the buffer where that is provable.
BufferRegion relaxRegion(const Buffer& buffer, const Array<Range>& region, const std::vector<VarRange>& loops,
                         const std::vector<Expr>& conditions, Analyzer& analyzer);
/// index == factor * e + r, where r is `rest` (factor 1), or lies in [0, factor) (then `rest` is factor -
/// 1): so a limit of e is one of the index. Nothing when the loops do not leave it so.
struct Multiple {
  int64_t factor;
  Expr rest; // without variables of the loops; the largest value of r
};
std::optional<Multiple> asMultiple(const Expr& index, const Expr& e, const std::vector<VarRange>& loops,
                                   Analyzer& analyzer);
/// The same, where an index that was read from a buffer which changes meanwhile says nothing: the whole dimension is
/// meant. `changing`: the buffers' data variables.
BufferRegion withoutChanging(const BufferRegion& region, const std::unordered_set<Var, RefHash>& changing);
/// Data variables of the buffers that accesses write.
std::unordered_set<Var, RefHash> buffersWritten(const std::vector<BufferAccess>& accesses);
/// Smallest box that contains both regions of one buffer.
BufferRegion regionUnion(const BufferRegion& a, const BufferRegion& b, Analyzer& analyzer);
/// True when the first region provably contains the second.
bool regionCovers(const BufferRegion& outer, const BufferRegion& inner, Analyzer& analyzer);

/// Reads and writes of a statement, one region a buffer (union), in order of first access.
struct Regions {
  Array<BufferRegion> reads, writes;
  bool opaque = false; // an effect that regions do not describe: extern call, barrier, return
};
/// Over the variables free in `root`. The analyzer may hold bounds of outer variables.
Regions accessedRegions(const NodeRef& root, Analyzer& analyzer, AccessOptions options = {});

/// The block with reads and writes filled from its body.
Block withDetectedAccess(const Block& block);
/// All blocks of the function filled, innermost first.
PrimFunc withDetectedAccess(const PrimFunc& f);
/// Fails when a declared region does not provably cover, or a declared list does not mention, what the body
/// touches. `inWrites`: it is the list of writes.
Status checkBlockAccess(const Block& block, bool* inWrites = nullptr);

} // namespace bevel
