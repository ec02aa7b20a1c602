// The graph passes that know no particular operator, one file each. All take and give whole modules.
#pragma once

#include "graph/evaluate.h"
#include "ir/question.h"

namespace bevel {

/// The module with a type on every variable of its graph functions. Bindings without a type get the inferred one,
/// functions without a result type the type of their value: a function is inferred before those that call it.
/// Types that are stated are kept where they may hold, the less precise ones too; one that contradicts what is
/// inferred, a parameter without a type and a function that needs its own unstated result are errors (kInvalid) with
/// the place of the binding. Calls of operators that are not known keep the type that they state.
Result<Module> inferTypes(const Module& module);

/// Every maximal run of pure bindings outside dataflow blocks becomes one; variables used only inside it
/// become dataflow variables. Branches of an If are treated alike.
Module convertToDataflow(const Module& module);

/// In a module without graph functions, a graph function for every tensor program that is not private, so that it can
/// be called from outside. It takes the program's name in the image (its own is made unique).
Result<Module> callPrograms(const Module& module);

/// The same for programs that are run by themselves, private ones too: the functions take all buffers of the program,
/// and write in place.
Result<Module> callInPlace(const Module& module);

/// What calls of operators and of tensor programs need of symbolic sizes becomes a check at run time.
Result<Module> checkSizes(const Module& module);

/// Runs calls of operators and of tensor programs whose arguments are constants: small ones in the
/// interpreter, the others as `compile` makes them (without it they stay). Results much larger than their
/// inputs stay calls.
Result<Module> foldConstants(const Module& module, const CompilePrograms& compile, int threads = 0);

/// Drops bindings that nothing uses and that have no effect, and private functions that nothing calls.
Result<Module> removeDead(const Module& module);

/// One binding for equal pure calls of a function (within a block and in what follows it).
Result<Module> eliminateCommon(const Module& module);

/// Replaces operators that are best said by others (Op::decompose).
Result<Module> decompose(const Module& module);

/// Operators to tensor programs: call_tir of the op's compute, or a packed call for the closed list of
/// data-dependent ops.
Result<Module> legalize(const Module& module);

/// The fusion contract (docs/fusion.md): chains and DAGs of injective programs become one program, and join
/// the reduction or contraction that feeds them. Asks wherever a program may join a group: "fusion of A into B".
Result<Module> fuse(const Module& module, const Ask& ask = {});

/// Makes memory explicit: one arena a function, tensors at planned offsets, programs called with their
/// results as arguments. Liveness follows aliases (views, tuples, match_cast) and branches.
Result<Module> planMemory(const Module& module);

/// How a tensor program can be fused, derived from its blocks.
enum class FusionKind : uint8_t {
  kView,        // same elements in the same order (reshape)
  kElementwise, // every result element from the same position of its inputs
  kBroadcast,   // the same, with inputs read at a subset of the axes
  kInjective, // every result element from one element of each input (transpose, slice, concatenation, gather)
  kReduction, // folds axes; elementwise results behind may join
  kContraction, // sums of products
  kOpaque,      // everything else
};
const char* fusionKindName(FusionKind kind);
FusionKind fusionKindOf(const PrimFunc& f);

} // namespace bevel
