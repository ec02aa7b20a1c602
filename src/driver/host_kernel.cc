// See host_kernel.h.
#include "driver/host_kernel.h"

#include "arith/analyzer.h"
#include "base/parallel.h"
#include "graph/shape_util.h"
#include "ir/build.h"
#include "ir/printer.h"
#include "loop/kernel_signature.h"

#include <cstring>
#include <fmt/format.h>
#include <mutex>
#include <thread>

namespace bevel {
namespace {

// What a kernel reaches through its context.
struct HostContext {
  int threads = 1;
  std::mutex mutex;
  std::string failure;
};

int32_t inlineFor(const bevel_ctx* ctx, bevel_task task, void* env, int64_t n) {
  return n > 0 ? task(ctx, env, 0, n) : BEVEL_OK;
}

int32_t threadedFor(const bevel_ctx* ctx, bevel_task task, void* env, int64_t n) {
  auto parts = size_t(std::min<int64_t>(n, ctx->num_threads));
  if (parts <= 1) return inlineFor(ctx, task, env, n);
  std::vector<int32_t> status(parts, BEVEL_OK);
  parallelFor(parts, int(parts), [&](size_t i) {
    bevel_ctx own = *ctx;
    own.thread_id = int32_t(i);
    own.parallel_for = inlineFor;
    auto bound = [&](size_t p) {
      return n / int64_t(parts) * int64_t(p) + n % int64_t(parts) * int64_t(p) / int64_t(parts);
    };
    status[i] = task(&own, env, bound(i), bound(i + 1));
  });
  for (int32_t s : status)
    if (s) return s;
  return BEVEL_OK;
}

void recordFailure(const bevel_ctx* ctx, const char* message) {
  auto& host = *static_cast<HostContext*>(ctx->opaque);
  std::lock_guard lock(host.mutex);
  if (host.failure.empty()) host.failure = message;
}

int32_t refusePacked(const bevel_ctx* ctx, const char* name, const bevel_value*, int32_t, bevel_value*) {
  recordFailure(ctx, (std::string("no packed function '") + name + "' can be called here").c_str());
  return BEVEL_ERROR_MISSING;
}

// Values of the kernel's dims[].
Result<std::vector<int64_t>> dimsOf(const PrimFunc& f, const std::vector<Type>& types,
                                    const std::vector<int64_t>& scalars) {
  VarMap map;
  Analyzer analyzer;
  size_t tensor = 0, scalar = 0;
  for (size_t i = 0; i < f->params.size(); ++i) {
    if (f->buffers[i]) {
      if (tensor >= types.size()) return fail(ErrorCode::kUsage, "too few tensors for the program");
      auto ok = unifyShape(f->buffers[i]->shape, types[tensor].as<TensorTypeNode>()->shape, map, analyzer);
      if (!ok)
        return fail(Error(ErrorCode::kInvalid, ok.error().message)
                        .note(fmt::format("parameter {} ({})", tensor, f->buffers[i]->name)));
      ++tensor;
    } else {
      if (scalar >= scalars.size()) return fail(ErrorCode::kUsage, "a scalar parameter has no value");
      map[f->params[i]] = intImm(scalars[scalar++]);
    }
  }
  std::vector<int64_t> out;
  for (const Var& v : kernelDims(f)) {
    auto it = map.find(v);
    auto c = it == map.end() ? std::nullopt : asConst(it->second);
    if (!c)
      return fail(ErrorCode::kUsage, fmt::format("dimension '{}' does not follow from the tensors", v->name));
    out.push_back(*c);
  }
  return out;
}

struct Aligned {
  void* data = nullptr;
  explicit Aligned(int64_t bytes)
      : data(bytes > 0 ? ::operator new(size_t(bytes), std::align_val_t(64)) : nullptr) {}
  Aligned(const Aligned&) = delete;
  Aligned& operator=(const Aligned&) = delete;
  ~Aligned() {
    if (data) ::operator delete(data, std::align_val_t(64));
  }
};

int64_t evaluate(const Expr& e, const PrimFunc& f, const std::vector<int64_t>& dims) {
  if (auto c = asConst(e)) return *c;
  VarMap map;
  Array<Var> vars = kernelDims(f);
  for (size_t i = 0; i < vars.size(); ++i) map[vars[i]] = castTo(vars[i]->dtype, intImm(dims[i]));
  Analyzer analyzer;
  return asConst(analyzer.simplify(substitute(e, map))).value_or(-1);
}

} // namespace

Result<std::map<std::string, HostKernel>>
HostKernel::compile(std::vector<KernelSource> programs, const Target& target, int threads, bool useCache) {
  CompileOptions options;
  options.threads = threads;
  options.useCache = useCache;
  std::map<std::string, HostKernel> out;
  for (KernelSource& p : programs) {
    HostKernel& k = out[p.name];
    k.function = p.function;
    p.name = k.name = "bevel_k_" + p.name; // never the name of a function of libm
  }
  CompileStats stats;
  BEVEL_TRY(auto code, compileJit(programs, target, options, &stats));
  for (auto& [name, kernel] : out) kernel.code = code, kernel.stats = stats;
  return out;
}

Result<std::vector<RunProgram>> HostKernel::compileAll(const Module& programs, const Target& target,
                                                       int threads, bool useCache) {
  std::vector<KernelSource> sources;
  for (size_t i = 0; i < programs->names.size(); ++i)
    sources.push_back({programs->names[i]->name, cast<PrimFuncNode>(programs->functions[i])});
  BEVEL_TRY(auto kernels, compile(std::move(sources), target, threads, useCache));
  std::vector<RunProgram> out;
  for (const GlobalVar& name : programs->names)
    out.push_back([kernel = kernels.at(name->name)](const HostTensors& in,
                                                    const std::vector<Ref<TensorObject>>& results,
                                                    int count) { return kernel.run(in, results, count); });
  return out;
}

Status HostKernel::run(const std::vector<Tensor>& inputs, const std::vector<Ref<TensorObject>>& outputs,
                       int threads, const std::vector<int64_t>& scalars) const {
  bevel_kernel entry = code->kernel(name);
  if (!entry) return fail(ErrorCode::kInternal, "kernel '" + name + "' was not compiled");
  std::vector<Type> types;
  std::vector<void*> buffers;
  std::vector<Ref<TensorObject>> copies; // of weights that lie unaligned in the model file
  for (const Tensor& t : inputs) {
    types.push_back(tensorType(t->dtype, t->shape));
    buffers.push_back(const_cast<std::byte*>(t->bytes()));
    if (reinterpret_cast<uintptr_t>(t->bytes()) % std::max<size_t>(t->dtype.bits / 8, 1) == 0) continue;
    copies.push_back(TensorObject::zeros(t->dtype, t->shape));
    std::memcpy(copies.back()->mutableBytes(), t->bytes(), size_t(t->byteSize()));
    buffers.back() = copies.back()->mutableBytes();
  }
  for (const auto& t : outputs) {
    types.push_back(tensorType(t->dtype, t->shape));
    buffers.push_back(t->mutableBytes());
  }
  BEVEL_TRY(std::vector<int64_t> dims, dimsOf(function, types, scalars));
  for (const Expr& condition : conditions)
    if (evaluate(condition, function, dims) == 0)
      return fail(
          ErrorCode::kInvalid,
          fmt::format("the sizes do not fit the program, which would leave a buffer: {} does not hold",
                      print(condition)));
  HostContext host;
  int count = threads > 0 ? threads : int(std::max(1u, std::thread::hardware_concurrency()));
  int64_t shared = evaluate(workspaceBytes(function), function, dims),
          perThread = evaluate(workspacePerThreadBytes(function), function, dims);
  if (shared < 0 || perThread < 0)
    return fail(ErrorCode::kInternal, "the workspace of '" + name + "' has no size");
  Aligned workspace(shared + perThread * count);
  bevel_ctx ctx = {sizeof(bevel_ctx), 0, count, 0, threadedFor, refusePacked, recordFailure, &host};
  int32_t status = entry(&ctx, buffers.data(), dims.data(), workspace.data);
  if (status == BEVEL_OK) return {};
  return fail(ErrorCode::kInvalid, host.failure.empty()
                                       ? fmt::format("program '{}' returned status {}", name, status)
                                       : host.failure);
}

} // namespace bevel
