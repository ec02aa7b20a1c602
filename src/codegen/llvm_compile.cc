// Compiling kernels: one LLVM context and module each, on several threads, with the on-disk cache in front.
#include "codegen/cache.h"
#include "codegen/llvm_emit.h"
#include "codegen/llvm_passes.h"

#include "base/parallel.h"
#include "base/stack.h"
#include "ir/build.h"
#include "ir/printer.h"
#include "ir/structural.h"
#include "loop/lower.h"

#include <llvm/IR/Verifier.h>

#include <chrono>
#include <set>

namespace bevel {
namespace {

using codegen::KernelEmitter;

/// Explicit vectors mean that a schedule has decided; LLVM's vectorisers would only undo that.
bool wantsVectorizers(const PrimFunc& f) {
  if (NodeRef decided = attr(f->attrs, "auto_vectorize")) return attrInt(f->attrs, "auto_vectorize") != 0;
  bool vectors = false;
  walk(f->body, [&](const NodeRef& n) {
    vectors |= n.is<RampNode>() || n.is<BroadcastNode>();
    return !vectors;
  });
  return !vectors;
}

struct Emitted {
  llvm::LLVMContext context;
  llvm::Module module{"bevel", context};
  std::unique_ptr<llvm::TargetMachine> machine;
};

Status emitModule(const KernelSource& kernel, const Target& target, const CompileOptions& options,
                  Emitted& out) {
  BEVEL_TRY(out.machine, codegen::makeMachine(target));
  out.context.setDiscardValueNames(false);
  out.module.setModuleIdentifier(kernel.name);
  out.module.setSourceFileName(kernel.name + ".bevel");
  out.module.setTargetTriple(target.triple);
  out.module.setDataLayout(out.machine->createDataLayout());
  BEVEL_CHECK(KernelEmitter(out.module, kernel, target, options.debugInfo).run());
  std::string problems;
  llvm::raw_string_ostream stream(problems);
  if (llvm::verifyModule(out.module, &stream))
    return fail(Error(ErrorCode::kInternal, "kernel " + kernel.name + ": malformed code was generated")
                    .note(problems)
                    .at(kernel.function));
  return {};
}

Result<std::string> compileOne(const KernelSource& kernel, const Target& target,
                               const CompileOptions& options) {
  Emitted e;
  BEVEL_CHECK(emitModule(kernel, target, options, e));
  codegen::optimize(e.module, *e.machine, options.pipeline, wantsVectorizers(kernel.function));
  return codegen::emitMachineCode(e.module, *e.machine, false);
}

/// Everything the bytes depend on.
CacheKey keyOf(const KernelSource& kernel, const Target& target, const CompileOptions& options) {
  std::string text = kernel.name + "\n" + target.codeKey() + "\n" + std::to_string(int(options.pipeline)) +
                     (options.debugInfo ? "g" : "");
  if (kernel.function->origin && options.debugInfo)
    for (const std::string& node : kernel.function->origin->nodes) text += "\n" + node;
  // What the program carries says no more, and names caches and cores; the line that it stands on stays.
  PrimFunc f = kernel.function;
  if (attr(f->attrs, "target")) f = withAttr(f, "target", make<const StringImmNode>(""));
  return cacheKey(text + "\n" + print(f));
}

Result<std::string> compileCached(const KernelSource& kernel, const Target& target,
                                  const CompileOptions& options, bool& hit) {
  KernelCache& cache = options.cache ? *options.cache : KernelCache::global();
  hit = false;
  if (!options.useCache || !cache.enabled()) return compileOne(kernel, target, options);
  CacheKey key = keyOf(kernel, target, options);
  if (auto found = cache.find(key)) {
    hit = true;
    return std::move(*found);
  }
  Result<std::string> bytes = compileOne(kernel, target, options);
  if (bytes) cache.store(key, *bytes);
  return bytes;
}

Status checkNames(std::span<const KernelSource> kernels) {
  std::set<std::string> names;
  for (const KernelSource& k : kernels) {
    if (k.name.empty() || !k.function)
      return fail(ErrorCode::kUsage, "a kernel without a name or a function");
    if (!names.insert(k.name).second) return fail(ErrorCode::kUsage, "two kernels have the name " + k.name);
  }
  return {};
}

} // namespace

Result<std::vector<std::string>> compileObjects(std::span<const KernelSource> kernels, const Target& target,
                                                const CompileOptions& options, CompileStats* stats) {
  auto start = std::chrono::steady_clock::now();
  BEVEL_CHECK(checkNames(kernels));
  std::vector<Result<std::string>> results(kernels.size(), std::string());
  std::vector<char> hits(kernels.size(), 0);
  parallelFor(
      kernels.size(), options.threads > 0 ? options.threads : Target::host().limits.cores, [&](size_t i) {
        bool hit = false;
        auto own = targetOf(kernels[i].function, target);
        results[i] = own ? compileCached(kernels[i], *own, options, hit) : fail(std::move(own.error()));
        hits[i] = hit;
      });
  std::vector<std::string> objects;
  for (Result<std::string>& r : results) {
    if (!r) return fail(std::move(r.error()));
    objects.push_back(std::move(*r));
  }
  if (stats) {
    stats->fromCache = int(std::count(hits.begin(), hits.end(), 1));
    stats->compiled = int(kernels.size()) - stats->fromCache;
    stats->seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  return objects;
}

Result<std::string> llvmText(const KernelSource& kernel, const Target& target, LlvmStage stage,
                             const CompileOptions& options) {
  Emitted e;
  BEVEL_CHECK(onLargeStack([&] { return emitModule(kernel, target, options, e); }));
  if (stage != LlvmStage::kEmitted)
    codegen::optimize(e.module, *e.machine, options.pipeline, wantsVectorizers(kernel.function));
  if (stage == LlvmStage::kAssembly) return codegen::emitMachineCode(e.module, *e.machine, true);
  std::string out;
  llvm::raw_string_ostream stream(out);
  e.module.print(stream, nullptr);
  return out;
}

} // namespace bevel
