// Linking compiled kernels into this process with ORC, and showing them to gdb and perf.
#include "codegen/llvm_passes.h"
#include "ir/structural.h"
#include "loop/lower.h"

#include <llvm/ExecutionEngine/JITEventListener.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/ExecutionEngine/Orc/RTDyldObjectLinkingLayer.h>
#include <llvm/ExecutionEngine/SectionMemoryManager.h>
#include <llvm/Support/MemoryBuffer.h>

#include <cstdlib>
#include <dlfcn.h>
#include <map>

namespace bevel {
namespace {

using namespace llvm::orc;

Error fromLlvm(llvm::Error error) {
  return Error(ErrorCode::kInternal, "JIT: " + llvm::toString(std::move(error)));
}

bool wantsPerf() {
  const char* value = std::getenv("BEVEL_PERF");
  return value && std::string_view(value) == "1";
}

std::unique_ptr<ObjectLayer> makeObjectLayer(ExecutionSession& session) {
  auto layer = std::make_unique<RTDyldObjectLinkingLayer>(
      session, [] { return std::make_unique<llvm::SectionMemoryManager>(); });
  layer->registerJITEventListener(*llvm::JITEventListener::createGDBRegistrationListener());
  if (wantsPerf())
    if (llvm::JITEventListener* perf = llvm::JITEventListener::createPerfJITEventListener())
      layer->registerJITEventListener(*perf);
  return layer;
}

class OrcModule : public JitModule {
public:
  std::unique_ptr<LLJIT> jit;
  std::map<std::string, bevel_kernel, std::less<>> kernels;

  bevel_kernel kernel(std::string_view name) const override {
    auto it = kernels.find(name);
    return it == kernels.end() ? nullptr : it->second;
  }
};

/// Functions that kernels call must be in this process. The error has the place in the text that the call, or else the
/// statement around it, comes from.
Status checkExterns(const PrimFunc& f) {
  std::optional<Error> error;
  Origin origin;
  walk(f->body, [&](const NodeRef& n) {
    if (n->origin && n->origin->span.line > 0) origin = n->origin;
    const auto* call = n.as<CallNode>();
    if (error || !call || call->op != Intrin::kCallExtern || call->args.empty()) return !error;
    const auto* name = call->args[0].as<StringImmNode>();
    if (!name || dlsym(RTLD_DEFAULT, name->value.c_str())) return true;
    error =
        Error(ErrorCode::kInvalid, "call_extern: there is no function '" + name->value + "' in this program")
            .help("link it into the program, or preload a library that has it (LD_PRELOAD)");
    if (origin)
      error->file = origin->file, error->span = origin->span;
    else
      error = std::move(*error).at(n);
    return false;
  });
  if (error) return fail(std::move(*error));
  return {};
}

} // namespace

Result<std::shared_ptr<const JitModule>> compileJit(std::span<const KernelSource> kernels,
                                                    const Target& target, const CompileOptions& options,
                                                    CompileStats* stats) {
  for (const KernelSource& k : kernels) {
    BEVEL_TRY(Target own, targetOf(k.function, target));
    if (!own.runsOn(Target::host()))
      return fail(Error(ErrorCode::kUsage, "this machine cannot run code for " + own.str())
                      .help("this machine is " + Target::host().str()));
  }
  for (const KernelSource& k : kernels) BEVEL_CHECK(checkExterns(k.function));
  BEVEL_TRY(std::vector<std::string> objects, compileObjects(kernels, target, options, stats));
  codegen::initializeLlvm(); // the objects may all have come from the cache
  LLJITBuilder builder;
  builder.setPlatformSetUp(setUpInactivePlatform); // kernels have no constructors
  builder.setJITTargetMachineBuilder(JITTargetMachineBuilder(llvm::Triple(target.triple)));
  builder.setObjectLinkingLayerCreator(
      [](ExecutionSession& session, const llvm::Triple&) -> llvm::Expected<std::unique_ptr<ObjectLayer>> {
        return makeObjectLayer(session);
      });
  auto jit = builder.create();
  if (!jit) return fail(fromLlvm(jit.takeError()));
  auto module = std::make_shared<OrcModule>();
  module->jit = std::move(*jit);
  // Kernels call the C library's maths and, by call_extern, functions of the host program.
  auto process =
      DynamicLibrarySearchGenerator::GetForCurrentProcess(module->jit->getDataLayout().getGlobalPrefix());
  if (!process) return fail(fromLlvm(process.takeError()));
  module->jit->getMainJITDylib().addGenerator(std::move(*process));
  for (size_t i = 0; i < objects.size(); ++i) {
    auto buffer = llvm::MemoryBuffer::getMemBufferCopy(objects[i], kernels[i].name);
    if (auto error = module->jit->addObjectFile(std::move(buffer))) return fail(fromLlvm(std::move(error)));
  }
  for (const KernelSource& k : kernels) {
    auto address = module->jit->lookup(k.name);
    if (!address) return fail(fromLlvm(address.takeError()));
    module->kernels[k.name] = address->toPtr<bevel_kernel>();
  }
  return std::shared_ptr<const JitModule>(std::move(module));
}

} // namespace bevel
