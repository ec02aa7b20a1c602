// A running model: frames with the memory that call sites keep between runs, the kernels' context, threads,
// profile. Used by one thread at a time.
#pragma once

#include "bevel/runtime.h"
#include "runtime/model.h"
#include "runtime/packed.h"
#include "runtime/thread_pool.h"

#include <memory>
#include <mutex>

struct bevel_instance {};

namespace bevel::rt {

/// What a call site keeps between its executions.
struct Cache {
  Ref<Tensor> tensor;
  bool ownsTensorMemory = false; // else the tensor is a view of memory that another site keeps
  Ref<Storage> storage;
  Ref<PackedFunction> packed;
  uint64_t packedVersion = 0;
};

/// One activation of a function. Frames are kept and used again.
struct Frame {
  explicit Frame(const Function& f);
  const Function& function;
  std::vector<Value> registers;
  std::vector<int64_t> slots;
  Ref<Tensor> heap; // over slots
  std::vector<Cache> caches;
  Value nowhere;                        // destination of calls without one
  std::span<const Ref<Tensor>> outputs; // given by the caller for the results; null where not
};

class Instance final : public bevel_instance {
public:
  Instance(Ref<Model> model, const bevel_options& options);
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  /// Runs a function from outside: checks and completes the arguments, runs, copies into `outputs` where
  /// given.
  Status enter(const Function& function, std::vector<Value> args, std::span<const Ref<Tensor>> outputs,
               std::vector<Value>* results);

  /// Runs a function inside of a run. `results` has room for its results.
  Status invoke(uint32_t function, std::vector<Value> args, std::span<const Ref<Tensor>> outputs,
                Value* results);

  /// Refuses what a packed function must not do to the instance that calls it.
  Status checkIdle() const;

  const Model& model() const { return *model_; }
  Value argValue(const Arg& arg, Frame& frame) const;
  void recordFailure(const char* message);
  ThreadPool* pool() const { return pool_.get(); }
  const bevel_options& options() const { return options_; }
  uint64_t memory() const;

  // Profile.
  struct Site {
    uint64_t calls = 0, nanoseconds = 0;
    std::vector<int64_t> dims;
  };
  std::vector<Site> sites; // empty where profiling is off
  std::vector<std::pair<const Function*, const Instruction*>> profileRows;

  // State of the set/run/get calls of the C API.
  int32_t selected = 0;
  std::vector<Value> inputs;
  std::vector<Ref<Tensor>> outputTargets;
  std::vector<Value> outputs;

private:
  Status execute(Frame& frame, Value* results);
  Status call(const Instruction& in, Frame& frame);
  Status timedCall(const Instruction& in, Frame& frame);
  Status callKernel(const Instruction& in, Frame& frame);
  Status callPackedFunction(const Instruction& in, Frame& frame);
  Status callFunction(const Instruction& in, Frame& frame);
  Status reserveWorkspace(uint64_t shared, uint64_t perThread, void** workspace);
  Status failedAt(Status status, const Instruction& in, const Frame& frame);
  Status checkArgument(const Function& function, size_t index, Value& value) const;
  Status deliver(const Function& function, std::span<const Ref<Tensor>> outputs, std::vector<Value>& results);

  Ref<Model> model_;
  bevel_options options_;
  Ref<ThreadPool> pool_;
  bevel_ctx ctx_;
  std::vector<std::vector<std::unique_ptr<Frame>>> freeFrames_; // for each function
  std::vector<void*> buffers_;                                  // of the kernel being called
  std::vector<int64_t> dims_;
  Ref<Storage> workspace_;
  int32_t depth_ = 0;
  std::atomic<bool> running_{false};
  std::mutex failureMutex_;
  std::string failure_; // the first message of the run from ctx->fail
};

/// The callbacks of bevel_ctx; `opaque` is the instance.
bevel_ctx makeContext(Instance* instance, int32_t numThreads);

/// A context for packed functions that the host calls outside of any run.
bevel_ctx makeHostContext();

} // namespace bevel::rt
