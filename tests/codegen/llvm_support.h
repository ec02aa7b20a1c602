// Helpers of the code generation tests: hand-built flat functions, and a context that runs kernels on
// threads.
#pragma once

#include "codegen/llvm.h"
#include "ir/build.h"
#include "loop/passes/passes.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace bevel::test {

/// A function over 1-D buffers whose parameters are the buffers' data.
inline PrimFunc flatFunction(const std::vector<Buffer>& buffers, Stmt body, Dict attrs = nullptr) {
  Array<Var> params;
  Array<Buffer> list;
  for (const Buffer& b : buffers) {
    params.push_back(b->data);
    list.push_back(b);
  }
  return make<const PrimFuncNode>(params, list, std::move(body), std::move(attrs));
}

inline Expr ramp(Expr base, int lanes, int64_t stride = 1) {
  Expr step = constant(base->dtype, stride);
  return make<const RampNode>(std::move(base), step, lanes);
}
inline Expr broadcast(Expr value, int lanes) {
  return make<const BroadcastNode>(std::move(value), lanes);
}
inline Expr loadVector(const Buffer& b, Expr base, int lanes, Expr predicate = nullptr) {
  return make<const LoadNode>(b, Array<Expr>{lanes == 1 ? base : ramp(base, lanes)}, predicate);
}
inline Stmt storeVector(const Buffer& b, Expr value, Expr base, int lanes, Expr predicate = nullptr) {
  return make<const StoreNode>(b, std::move(value), Array<Expr>{lanes == 1 ? base : ramp(base, lanes)},
                               predicate);
}

/// A context whose parallel_for starts threads, as the contract of runtime/abi/kernel.h says.
class Context {
public:
  explicit Context(int threads = 1) {
    ctx_.size = sizeof ctx_;
    ctx_.num_threads = threads;
    ctx_.opaque = this;
    ctx_.parallel_for = [](const bevel_ctx* ctx, bevel_task task, void* env, int64_t n) {
      auto* self = static_cast<Context*>(ctx->opaque);
      ++self->forks;
      int64_t parts = ctx->num_threads;
      std::vector<int32_t> status(size_t(parts), 0);
      std::vector<std::thread> threads;
      for (int64_t t = 0; t < parts; ++t)
        threads.emplace_back([&, t] {
          bevel_ctx own = *ctx;
          own.thread_id = int32_t(t);
          int64_t begin = n * t / parts, end = n * (t + 1) / parts;
          if (begin < end) status[size_t(t)] = task(&own, env, begin, end);
        });
      for (std::thread& t : threads) t.join();
      for (int32_t s : status)
        if (s) return s;
      return 0;
    };
    ctx_.fail = [](const bevel_ctx* ctx, const char* message) {
      static_cast<Context*>(ctx->opaque)->message = message; // tests fail on one thread at a time
    };
    ctx_.call_packed = [](const bevel_ctx* ctx, const char* name, const bevel_value* args, int32_t count,
                          bevel_value* result) {
      auto* self = static_cast<Context*>(ctx->opaque);
      self->packedName = name;
      self->packedArgs.assign(args, args + count);
      return self->packed ? self->packed(args, count, result) : 5;
    };
  }

  int32_t run(bevel_kernel kernel, std::vector<void*> buffers, std::vector<int64_t> dims = {},
              void* workspace = nullptr) {
    return kernel(&ctx_, buffers.data(), dims.data(), workspace);
  }

  int forks = 0;
  std::string message, packedName;
  std::vector<bevel_value> packedArgs;
  int32_t (*packed)(const bevel_value* args, int32_t count, bevel_value* result) = nullptr;

private:
  bevel_ctx ctx_{};
};

/// Compiles for this machine without the on-disk cache; fails the test when that fails. Kernels compute in machine types,
/// as all that are lowered.
inline std::shared_ptr<const JitModule>
jit(std::vector<KernelSource> kernels, const Target& target = Target::host(), CompileOptions options = {}) {
  options.useCache = false;
  for (KernelSource& k : kernels) k.function = *lowerScalarTypes(k.function, target);
  auto module = compileJit(kernels, target, options);
  if (!module) {
    ADD_FAILURE() << module.error().str();
    return nullptr;
  }
  return *module;
}

} // namespace bevel::test
