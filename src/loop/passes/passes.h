// The lowering passes, one file each; each file shows a before and an after at its head. The order is in
// loop/lower.cc. Each sees the target that the program is lowered for.
#pragma once

#include "base/result.h"
#include "ir/graph.h"
#include "target/target.h"

namespace bevel {

/// Block inits become statements: before the reduction loops where that is provable, else under "at the first
/// step".
Result<PrimFunc> lowerInit(const PrimFunc& f, const Target&);
/// Views made by T.match_buffer inside blocks become accesses of their source.
Result<PrimFunc> lowerMatchBuffer(const PrimFunc& f, const Target&);
/// Buffers allocated by blocks become Alloc statements at the innermost place that keeps their meaning.
Result<PrimFunc> planAllocations(const PrimFunc& f, const Target&);
/// Blocks dissolve: axes are replaced by their values, predicates become If.
Result<PrimFunc> convertBlocksToOpaque(const PrimFunc& f, const Target&);
/// Index arithmetic becomes int64.
Result<PrimFunc> promoteIndices(const PrimFunc& f, const Target&);
/// Allocated buffers shrink to the region that is touched.
Result<PrimFunc> compactBuffers(const PrimFunc& f, const Target&);
/// Tail predicates leave the statements that only fill register or local tiles.
Result<PrimFunc> speculatePredicates(const PrimFunc& f, const Target&);
/// Loops with a likely() condition split into a main part without it and a tail.
Result<PrimFunc> partitionLoops(const PrimFunc& f, const Target&);
/// Buffers become one-dimensional and dense; the index type is chosen.
Result<PrimFunc> flattenBuffers(const PrimFunc& f, const Target&);
/// Vectorised loops become vector statements with masks.
Result<PrimFunc> vectorizeLoops(const PrimFunc& f, const Target&);
/// Unrolled loops (explicit, and small ones under pragma_auto_unroll_max_step) become sequences.
Result<PrimFunc> unrollLoops(const PrimFunc& f, const Target&);
/// Loop-invariant conditions and lets move out of loops.
Result<PrimFunc> hoistInvariants(const PrimFunc& f, const Target&);
/// Statements without effect disappear.
Result<PrimFunc> removeNoOp(const PrimFunc& f, const Target&);
/// Conditions, indices and extents simplified under what is known at their place.
Result<PrimFunc> simplifyPass(const PrimFunc& f, const Target&);
/// Every allocation gets scope local, register or global.
Result<PrimFunc> assignScopes(const PrimFunc& f, const Target&);
/// Checks register buffers and brings them into slot form.
Result<PrimFunc> shapeRegisters(const PrimFunc& f, const Target&);
/// Small float formats compute in float32; sub-byte integers become bytes and shifts.
Result<PrimFunc> lowerScalarTypes(const PrimFunc& f, const Target&);
/// Floor division and the like become what machines have.
Result<PrimFunc> lowerArithmetic(const PrimFunc& f, const Target&);
/// Loops around loops over nothing do not run.
Result<PrimFunc> skipEmptyLoops(const PrimFunc& f, const Target&);
/// Global allocations get their place in the kernel's workspace; lives that do not overlap share it.
Result<PrimFunc> planWorkspace(const PrimFunc& f, const Target&);

} // namespace bevel
