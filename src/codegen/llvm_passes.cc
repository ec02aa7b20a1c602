// The pass pipeline and the code generator.
//
// Kernels arrive in their final vector form, so few passes have work to do. Measured by bench/llvm_tile.cc on
// Zen 3 (one core, peak 97.5 GFLOP/s; compile time is processor time with linking):
//
//                              own                    O1                     O3
//   6x16 tile, k by 1      8.9 ms  97 % of peak   15.6 ms  96 %          16.3 ms  97 %
//   6x16 tile, k by 4     14.4 ms  97 %           23.4 ms  97 %          25.1 ms  97 %
//   fma + relu, vectors    6.2 ms  99 GB/s        10.2 ms 104 GB/s        9.9 ms 104 GB/s
//   fma + relu, scalar     8.1 ms 103 GB/s        10.9 ms 103 GB/s       11.4 ms 103 GB/s
//   exp, vectors           7.9 ms  28 GB/s        12.4 ms  27 GB/s       12.4 ms  27 GB/s
//
// LLVM's loop and SLP vectorisers run only for functions without explicit vectors; on a schedule's vectors
// they cost time and could only undo its choices.
#include "codegen/llvm_passes.h"

#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/ADCE.h>
#include <llvm/Transforms/Scalar/DCE.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/IndVarSimplify.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/LoopUnrollPass.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>
#include <llvm/Transforms/Vectorize/LoopVectorize.h>
#include <llvm/Transforms/Vectorize/SLPVectorizer.h>

#include <mutex>

namespace bevel::codegen {
namespace {

llvm::FunctionPassManager ownPipeline(bool vectorize) {
  using namespace llvm;
  FunctionPassManager passes;
  passes.addPass(SROAPass(SROAOptions::ModifyCFG));
  passes.addPass(EarlyCSEPass(true));
  passes.addPass(SimplifyCFGPass());
  passes.addPass(InstCombinePass());
  LoopPassManager hoist; // alone: it keeps MemorySSA, the next two do not
  hoist.addPass(LICMPass(LICMOptions()));
  passes.addPass(createFunctionToLoopPassAdaptor(std::move(hoist), /*UseMemorySSA=*/true));
  LoopPassManager unroll;
  unroll.addPass(IndVarSimplifyPass());
  unroll.addPass(LoopFullUnrollPass(/*OptLevel=*/2));
  passes.addPass(createFunctionToLoopPassAdaptor(std::move(unroll)));
  passes.addPass(SROAPass(SROAOptions::ModifyCFG));
  passes.addPass(EarlyCSEPass(true));
  if (vectorize) {
    passes.addPass(LoopVectorizePass());
    passes.addPass(SLPVectorizerPass());
  }
  passes.addPass(InstCombinePass());
  passes.addPass(SimplifyCFGPass());
  passes.addPass(ADCEPass());
  return passes;
}

} // namespace

void initializeLlvm() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeAllTargetInfos();
    llvm::InitializeAllTargets();
    llvm::InitializeAllTargetMCs();
    llvm::InitializeAllAsmPrinters();
  });
}

Result<std::unique_ptr<llvm::TargetMachine>> makeMachine(const Target& target) {
  initializeLlvm();
  if (target.architecture().pointerBits != 64)
    return fail(Error(ErrorCode::kUnsupported, "kernels for " + target.triple + " cannot be compiled")
                    .help("kernels need an instruction set of src/target/targets.def with 64-bit pointers"));
  std::string error;
  const llvm::Target* found = llvm::TargetRegistry::lookupTarget(target.triple, error);
  if (!found) return fail(ErrorCode::kUnsupported, "no code generator for " + target.triple + ": " + error);
  llvm::TargetOptions options;
  options.FunctionSections = false;
  std::string features;
  for (const std::string& f : target.features) features += (features.empty() ? "" : ",") + f;
  std::unique_ptr<llvm::TargetMachine> machine(
      found->createTargetMachine(target.triple, target.cpu, features, options, llvm::Reloc::PIC_,
                                 llvm::CodeModel::Small, llvm::CodeGenOptLevel::Default));
  if (!machine) return fail(ErrorCode::kUnsupported, "LLVM cannot generate code for " + target.str());
  return machine;
}

static Result<std::string> featuresOf(const Target& target) {
  BEVEL_TRY(std::unique_ptr<llvm::TargetMachine> machine, makeMachine(target));
  const llvm::MCSubtargetInfo& cpu = *machine->getMCSubtargetInfo();
  std::string out;
  auto add = [&](const char* name) {
    if (cpu.checkFeatures(std::string("+") + name)) out += (out.empty() ? "" : " ") + std::string(name);
  };
#define X86_FEATURE(name) add(name);
#include "runtime/abi/cpu_features.def"
#undef X86_FEATURE
  return out;
}

void optimize(llvm::Module& module, llvm::TargetMachine& machine, Pipeline pipeline, bool vectorize) {
  using namespace llvm;
  if (pipeline == Pipeline::kO0) return;
  PipelineTuningOptions tuning;
  tuning.LoopVectorization = vectorize;
  tuning.SLPVectorization = vectorize;
  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager graphs;
  ModuleAnalysisManager modules;
  PassBuilder builder(&machine, tuning);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(graphs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, graphs, modules);
  ModulePassManager passes;
  if (pipeline == Pipeline::kOwn)
    passes.addPass(createModuleToFunctionPassAdaptor(ownPipeline(vectorize)));
  else
    passes = builder.buildPerModuleDefaultPipeline(pipeline == Pipeline::kO1 ? OptimizationLevel::O1
                                                                             : OptimizationLevel::O3);
  passes.run(module, modules);
}

Result<std::string> emitMachineCode(llvm::Module& module, llvm::TargetMachine& machine, bool assembly) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream out(bytes);
  llvm::legacy::PassManager passes;
  auto type = assembly ? llvm::CodeGenFileType::AssemblyFile : llvm::CodeGenFileType::ObjectFile;
  if (machine.addPassesToEmitFile(passes, out, nullptr, type, /*DisableVerify=*/true))
    return fail(ErrorCode::kUnsupported, "LLVM cannot write objects for " + machine.getTargetTriple().str());
  passes.run(module);
  return std::string(bytes.begin(), bytes.end());
}

} // namespace bevel::codegen

namespace bevel {

Result<std::string> requiredFeatures(const Target& target) {
  return llvm::Triple(target.triple).isX86() ? codegen::featuresOf(target) : "";
}

} // namespace bevel
