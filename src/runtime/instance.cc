// The edge of a run: arguments are checked and completed, results delivered; frames are kept for the next
// run.
#include "runtime/instance.h"

#include <algorithm>

namespace bevel::rt {

static constexpr int32_t kMaxDepth = 256;

Frame::Frame(const Function& f)
    : function(f), registers(f.numRegisters), slots(f.numSlots), caches(f.numCaches) {
  int64_t count = int64_t(slots.size());
  heap = Tensor::view(Storage::borrow(slots.data(), slots.size() * 8), 0, kInt64, 1, &count);
}

static ThreadPool* toPool(bevel_pool* pool) {
  return static_cast<ThreadPool*>(pool);
}

static int32_t chooseThreads(const bevel_options& o) {
  int32_t n = o.num_threads > 0 ? o.num_threads : 0;
  if (!o.pool) return n ? n : availableProcessors();
  int32_t size = toPool(o.pool)->size();
  return n ? std::min(n, size) : size;
}

Instance::Instance(Ref<Model> model, const bevel_options& options)
    : model_(std::move(model)), options_(options) {
  int32_t threads = std::min(chooseThreads(options), 1024);
  if (options.pool) {
    pool_ = Ref<ThreadPool>::share(toPool(options.pool));
  } else if (threads > 1 && !options.parallel) {
    pool_ = Ref<ThreadPool>::adopt(new ThreadPool(threads));
    threads = pool_->size();
  }
  ctx_ = makeContext(this, threads);
  const Program& program = model_->program;
  freeFrames_.resize(program.functions.size());
  buffers_.resize(program.maxBuffers);
  dims_.resize(program.maxDims);
  if (options.profile) sites.resize(program.numSites);
}

void Instance::recordFailure(const char* message) {
  std::lock_guard lock(failureMutex_);
  if (failure_.empty()) failure_ = message && *message ? message : "no reason given";
}

Status Instance::checkArgument(const Function& function, size_t index, Value& value) const {
  const Param& param = function.params[index];
  if (value.isNone() && param.defaultConstant != BEVEL_NO_CONSTANT)
    value = Value::of(model_->constants[param.defaultConstant]);
  if (value.isNone() && param.kind != BEVEL_PARAM_OPTIONAL && param.kind != BEVEL_PARAM_ANY)
    return fail(BEVEL_ERROR_REFUSED, "input '%s' of '%s' is not set: expected %s", param.name, function.name,
                param.describe().c_str());
  if (param.kind == BEVEL_PARAM_LIST && !value.list())
    return fail(BEVEL_ERROR_REFUSED, "input '%s' of '%s': expected a list, given %s", param.name,
                function.name, describe(value).c_str());
  if (Tensor* tensor = value.tensor();
      tensor && param.kind != BEVEL_PARAM_LIST && param.kind != BEVEL_PARAM_ANY) {
    bool fits = tensor->dl.dtype == param.dtype && (param.rank < 0 || tensor->dl.ndim == param.rank);
    for (int32_t i = 0; fits && i < param.rank; ++i)
      fits = param.dims[size_t(i)] < 0 || param.dims[size_t(i)] == tensor->dl.shape[i];
    if (!fits)
      return fail(BEVEL_ERROR_REFUSED, "input '%s' of '%s': expected %s, given %s", param.name, function.name,
                  param.describe().c_str(), describe(value).c_str());
  } else if (!tensor && param.kind == BEVEL_PARAM_TENSOR) {
    return fail(BEVEL_ERROR_REFUSED, "input '%s' of '%s': expected %s, given %s", param.name, function.name,
                param.describe().c_str(), describe(value).c_str());
  }
  if (value.tensor()) {
    auto compact = makeCompact(Ref<Tensor>::share(value.tensor()));
    if (!compact) return lastStatus();
    value = Value::of(std::move(compact));
  }
  return BEVEL_OK;
}

static bool isBorrowed(const Storage& storage) {
  return storage.borrowed();
}

static Status isRunning() {
  return fail(BEVEL_ERROR_USAGE, "the instance is running: use one for each thread");
}

Status Instance::checkIdle() const {
  return running_.load() ? isRunning() : Status(BEVEL_OK);
}

static bool overlaps(const Value& value, const Tensor& target) {
  if (Tensor* tensor = value.tensor()) return !tensor->isText() && sharesMemory(tensor->dl, target.dl);
  List* list = value.list();
  return list && std::any_of(list->items.begin(), list->items.end(),
                             [&](const Value& item) { return overlaps(item, target); });
}

static bool overlaps(const std::vector<Value>& args, std::span<const Ref<Tensor>> targets) {
  for (const Ref<Tensor>& target : targets)
    for (const Value& arg : args)
      if (target && overlaps(arg, *target)) return true;
  return false;
}

Status Instance::enter(const Function& function, std::vector<Value> args,
                       std::span<const Ref<Tensor>> targets, std::vector<Value>* results) {
  if (args.size() != function.params.size())
    return fail(BEVEL_ERROR_USAGE, "'%s' takes %zu inputs, given %zu", function.name, function.params.size(),
                args.size());
  if (running_.exchange(true)) return isRunning();
  struct Idle { // whatever happens, memory that runs out included, the instance can be used again
    Instance& instance;
    ~Idle() {
      instance.depth_ = 0;
      instance.running_.store(false);
    }
  } idle{*this};
  results->clear();
  std::vector<Value> made(function.results.size());
  failure_.clear();
  for (size_t i = 0; i < args.size(); ++i) BEVEL_RT_TRY(checkArgument(function, i, args[i]));
  {
    struct Awake { // the pool's threads, between the loops of the run
      ThreadPool* pool;
      explicit Awake(ThreadPool* p) : pool(p) {
        if (pool) pool->beginRun();
      }
      ~Awake() {
        if (pool) pool->endRun();
      }
    } awake(pool_.get());
    // Kernels read arguments while they write results: where both share memory, results are computed
    // elsewhere and copied at the end, those that are arguments before any other.
    bool apart = overlaps(args, targets);
    BEVEL_RT_TRY(invoke(uint32_t(&function - model_->program.functions.data()), std::move(args),
                        apart ? std::span<const Ref<Tensor>>() : targets, made.data()));
    for (size_t i = 0; apart && i < made.size(); ++i) BEVEL_RT_TRY(settle(made[i], isBorrowed));
  }
  BEVEL_RT_TRY(deliver(function, targets, made));
  *results = std::move(made);
  return BEVEL_OK;
}

/// Results must not look into memory that may go away (inputs, weights), and go where the caller wants them.
Status Instance::deliver(const Function& function, std::span<const Ref<Tensor>> targets,
                         std::vector<Value>& results) {
  for (size_t i = 0; i < results.size(); ++i) {
    Tensor* tensor = results[i].tensor();
    const Ref<Tensor>* target = i < targets.size() && targets[i] ? &targets[i] : nullptr;
    if (target) {
      if (!tensor || tensor->isText())
        return fail(BEVEL_ERROR_REFUSED,
                    "output '%s' of '%s' is %s: it cannot be written to memory of the caller's",
                    function.results[i].name, function.name, describe(results[i]).c_str());
      if (tensor == target->get()) continue;
      if (copyInto(*tensor, **target))
        return fail(BEVEL_ERROR_REFUSED, "output '%s' of '%s' is %s, the memory given for it is %s",
                    function.results[i].name, function.name, describeTensor(tensor->dl).c_str(),
                    describeTensor((*target)->dl).c_str());
      results[i] = Value::of(*target);
    } else {
      BEVEL_RT_TRY(settle(results[i], isBorrowed));
    }
  }
  return BEVEL_OK;
}

Status Instance::invoke(uint32_t index, std::vector<Value> args, std::span<const Ref<Tensor>> targets,
                        Value* results) {
  const Function& function = model_->program.functions[index];
  if (depth_ >= kMaxDepth)
    return fail(BEVEL_ERROR_REFUSED, "'%s': calls are nested too deeply", function.name);
  ++depth_;
  std::unique_ptr<Frame> frame;
  if (freeFrames_[index].empty()) {
    frame = std::make_unique<Frame>(function);
  } else {
    frame = std::move(freeFrames_[index].back());
    freeFrames_[index].pop_back();
    std::fill(frame->slots.begin(), frame->slots.end(), 0);
  }
  std::move(args.begin(), args.end(), frame->registers.begin());
  frame->outputs = targets;
  Status status = execute(*frame, results);
  for (Value& value : frame->registers) value.clear();
  frame->nowhere.clear();
  freeFrames_[index].push_back(std::move(frame));
  --depth_;
  return status;
}

uint64_t Instance::memory() const {
  uint64_t bytes = workspace_ ? workspace_->bytes : 0;
  for (auto& frames : freeFrames_)
    for (auto& frame : frames)
      for (const Cache& cache : frame->caches) {
        if (cache.storage) bytes += cache.storage->bytes;
        // A view counts with the storage it looks into.
        if (cache.tensor && cache.ownsTensorMemory) bytes += cache.tensor->storage->bytes;
      }
  return bytes;
}

} // namespace bevel::rt
