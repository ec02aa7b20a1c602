// The callbacks that kernels and packed functions get: parallel loops, packed calls, failure messages.
#include "runtime/instance.h"

#include <algorithm>

namespace bevel::rt {

namespace {

struct Job {
  const bevel_ctx* ctx;
  bevel_task task;
  void* env;
  int64_t n;
  int32_t parts;
  std::atomic<int32_t> status{BEVEL_OK};
};

int32_t inlineFor(const bevel_ctx* ctx, bevel_task task, void* env, int64_t n) {
  return n > 0 ? task(ctx, env, 0, n) : BEVEL_OK;
}

void runPart(void* arg, int32_t part) {
  Job& job = *static_cast<Job*>(arg);
  bevel_ctx own = *job.ctx;
  own.thread_id = part;
  own.parallel_for = inlineFor;
  // floor(n * part / parts) without overflow
  int64_t quotient = job.n / job.parts, rest = job.n % job.parts;
  auto bound = [&](int64_t p) { return quotient * p + rest * p / job.parts; };
  if (int32_t status = job.task(&own, job.env, bound(part), bound(part + 1))) {
    int32_t ok = BEVEL_OK;
    job.status.compare_exchange_strong(ok, status);
  }
}

int32_t parallelFor(const bevel_ctx* ctx, bevel_task task, void* env, int64_t n) {
  int32_t parts = int32_t(std::min<int64_t>(n, ctx->num_threads));
  if (parts <= 1) return inlineFor(ctx, task, env, n);
  auto& instance = *static_cast<Instance*>(ctx->opaque);
  Job job{ctx, task, env, n, parts};
  if (instance.options().parallel) {
    instance.options().parallel(instance.options().parallel_user, parts, runPart, &job);
  } else if (!instance.pool() || !instance.pool()->run(parts, runPart, &job)) {
    bevel_ctx own = *ctx; // the pool serves another instance: nested loops go inline too
    own.parallel_for = inlineFor;
    return inlineFor(&own, task, env, n);
  }
  return job.status.load();
}

void recordFailure(const bevel_ctx* ctx, const char* message) {
  if (ctx->opaque)
    static_cast<Instance*>(ctx->opaque)->recordFailure(message);
  else
    failText(BEVEL_ERROR_INTERNAL, message);
}

int32_t callPacked(const bevel_ctx* ctx, const char* name, const bevel_value* args, int32_t numArgs,
                   bevel_value* result) {
  Ref<PackedFunction> function = findPacked(name);
  Value value;
  Status status = function ? function->call(ctx, args, numArgs, &value)
                           : fail(BEVEL_ERROR_MISSING, "no packed function '%s' is registered", name);
  // The caller may run on a thread of the pool: hand the message to the instance.
  if (status) recordFailure(ctx, lastError());
  if (result) *result = value.leak();
  return status;
}

} // namespace

bevel_ctx makeContext(Instance* instance, int32_t numThreads) {
  return {sizeof(bevel_ctx), 0, numThreads, 0, parallelFor, callPacked, recordFailure, instance};
}

bevel_ctx makeHostContext() {
  return {sizeof(bevel_ctx), 0, 1, 0, inlineFor, callPacked, recordFailure, nullptr};
}

} // namespace bevel::rt
