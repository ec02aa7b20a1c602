// Lowering: from a scheduled tensor program to flat loops that code generation translates one to one.
//
// before:  for i in T.parallel(M):
//            for j in T.vectorized(8):
//              with T.sblock("C"): C[vi, vj] = A[vi, vj] + 1
// after:   for i in T.parallel(M):
//            C[i*8 : i*8+8] = A[i*8 : i*8+8] + Broadcast(1, 8)
//
// Flat form, the contract with code generation and the interpreter:
//  1. No blocks; statements: Seq, For (serial and parallel only), While, If, LetStmt, Evaluate, Assert,
//     Store, Alloc, DeclBuffer and AttrStmt (pragmas that code generation knows; others are to be skipped).
//  2. Every buffer in a Load or Store is 1-D and dense: one index, in elements. f->buffers keeps the
//     parameters' original buffers (so kernelDims is unchanged); at the top of the body each used parameter
//     is declared flat by DeclBuffer over the same data variable. elemOffset is null. Several buffers may
//     view one data variable.
//  3. Vectors are explicit: index Ramp(base, 1 or constant stride, lanes), Broadcast, Load/Store with
//     optional predicate (a bool vector, same lanes as the value). An index that is any other vector is a
//     gather (loads only). A vector Store's value has the lanes of its index.
//  4. Index expressions and loop variables are int64. No kFloorDiv or kFloorMod remain (kDiv, kMod, shifts
//     and masks instead).
//  5. Alloc:
//     - scope "local": constant size, on the stack (an alloca in the function's entry);
//     - scope "register": one 1-D buffer of slots*lanes elements, annotation "lanes": every access is
//       Ramp(c, 1, lanes) with constant c, a multiple of lanes (or a scalar constant index when lanes is
//       1), so each slot is one SSA vector;
//     - scope "global": lives in the kernel's workspace. Annotation "workspace_offset" (int64 expression,
//       bytes, multiple of 64): data = workspace + workspace_offset. With annotation "per_thread" = 1
//       (allocations inside a parallel loop): data = workspace + shared + thread_id * per_thread +
//       workspace_offset, where shared and per_thread are the values of the function's attributes
//       "workspace_bytes" and "workspace_per_thread_bytes" (expressions over kernelDims; absent: 0; see
//       loop/kernel_signature.h). Allocations whose lives do not overlap may share bytes. An interpreter
//       can ignore the annotations: each Alloc is its own memory.
//  6. Arithmetic on float16, bfloat16 and 8/4-bit floats is in float32 with explicit Casts at loads and
//     stores; integers of less than 8 bits are accessed through a uint8 view of their buffer (DeclBuffer
//     with the same data) and shifts.
//  7. Remaining Calls: pure maths (vector maths expansion is another's: loop/vector_math.h), IfThenElse
//     (scalar condition), extern and packed calls, AccessPtr/AddressOf of flat buffers, Fail, Ret, vector
//     reductions.
#pragma once

#include "ir/pass.h"
#include "target/target.h"

namespace bevel {

/// The target that a program carries, its attribute "target"; `otherwise` where it carries none. kInvalid for text that
/// is no target.
Result<Target> targetOf(const PrimFunc& f, const Target& otherwise);

/// One lowering pass by name, as the tool's `--passes` calls it. It sees what the program is lowered for.
struct LoopPass {
  std::string name;
  std::string doc;
  std::function<Result<PrimFunc>(const PrimFunc&, const Target&)> run;
  bool needed = false; // what it leaves undone has no machine code
};
/// THE list for targets of a kind, in order; empty for a kind that has none.
const std::vector<LoopPass>& loopPasses(std::string_view kind);

/// That list as passes of a module: each program is lowered for the target that it carries, others for `target`, which
/// must outlive the passes.
std::vector<Pass> lowerPasses(const Target& target);

/// Runs them on one program.
Result<PrimFunc> lower(const PrimFunc& scheduled, const Target& target, const PassOptions& options = {});

} // namespace bevel
