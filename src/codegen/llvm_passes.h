// From emitted LLVM IR to object bytes. Included by codegen/llvm_*.cc alone.
#pragma once

#include "codegen/llvm.h"

#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

namespace bevel::codegen {

/// Makes LLVM's targets known; every other function here does it too.
void initializeLlvm();

/// A machine for the target; kUnsupported when this LLVM lacks it. Not shared between threads.
Result<std::unique_ptr<llvm::TargetMachine>> makeMachine(const Target& target);

/// Runs the passes. `vectorize`: LLVM's loop and SLP vectorisers too.
void optimize(llvm::Module& module, llvm::TargetMachine& machine, Pipeline pipeline, bool vectorize);

/// Object bytes, or assembly text.
Result<std::string> emitMachineCode(llvm::Module& module, llvm::TargetMachine& machine, bool assembly);

} // namespace bevel::codegen
