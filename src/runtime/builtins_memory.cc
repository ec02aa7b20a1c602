// Builtins that get memory. A call site keeps what it made: a run whose shapes did not grow calls malloc
// nowhere.
#include "runtime/builtins.h"

namespace bevel::rt {

static constexpr uint32_t kMaxArgs = 64 + 4; // a rank is at most 64

namespace {
/// Integer arguments without a heap allocation.
struct Dims {
  int64_t values[64];
  int32_t rank = 0;

  Status read(const Call& call, uint32_t first) {
    BEVEL_RT_TRY(call.checkCount(first, first + 64));
    for (uint32_t i = first; i < call.count(); ++i) BEVEL_RT_TRY(call.integer(i, &values[rank++]));
    return BEVEL_OK;
  }
};
} // namespace

static Status readDtype(const Call& call, uint32_t i, bevel_dtype* dtype) {
  int64_t word;
  BEVEL_RT_TRY(call.integer(i, &word));
  *dtype = unpackDtype(uint32_t(word));
  if (word < 0 || word > UINT32_MAX || !isValidDtype(*dtype))
    return fail(BEVEL_ERROR_REFUSED, "an unknown dtype");
  return BEVEL_OK;
}

Status freshTensor(Call& call, bevel_dtype dtype, int32_t rank, const int64_t* shape, Ref<Tensor>* tensor) {
  Cache& cache = call.cache();
  call.destination().clear(); // it may hold what this site made the last time
  int64_t bytes = numBytes(dtype, rank, shape);
  bool reusable = cache.tensor && cache.ownsTensorMemory && cache.tensor->unique() &&
                  cache.tensor->storage->unique() && !isString(dtype) && !cache.tensor->isText() &&
                  bytes >= 0 && uint64_t(bytes) <= cache.tensor->storage->bytes;
  if (reusable) {
    BEVEL_RT_TRY(cache.tensor->assign(cache.tensor->storage, 0, dtype, rank, shape));
  } else {
    cache.tensor = {};
    cache.tensor = Tensor::make(dtype, rank, shape);
    cache.ownsTensorMemory = true;
    if (!cache.tensor) return lastStatus();
  }
  *tensor = cache.tensor;
  return BEVEL_OK;
}

/// vm.alloc_storage(bytes)
static Status allocStorage(Call& call) {
  int64_t bytes;
  BEVEL_RT_TRY(call.checkCount(1));
  BEVEL_RT_TRY(call.integer(0, &bytes));
  if (bytes < 0) return fail(BEVEL_ERROR_REFUSED, "storage of negative size");
  Cache& cache = call.cache();
  if (!cache.storage || cache.storage->bytes < uint64_t(bytes)) {
    call.destination().clear();
    cache.storage = {};
    cache.storage = Storage::alloc(uint64_t(bytes));
    if (!cache.storage) return lastStatus();
    cache.storage->planned = true;
  }
  return call.result(Value::ofObject(Ref<Storage>(cache.storage).leak()));
}

static Status freshResult(Call& call, bevel_dtype dtype, const Dims& dims) {
  Ref<Tensor> tensor;
  BEVEL_RT_TRY(freshTensor(call, dtype, dims.rank, dims.values, &tensor));
  return call.result(std::move(tensor));
}

/// vm.alloc_tensor(storage, offset, dtype, dims…)
static Status allocTensor(Call& call) {
  BEVEL_RT_TRY(call.checkCount(3, kMaxArgs));
  bool own = call.args[0].kind == BEVEL_ARG_NONE;
  bevel_object* object = call.args[0].kind == BEVEL_ARG_REGISTER
                             ? call.frame.registers[size_t(call.args[0].integer)].object()
                             : nullptr;
  if (!own && !object) return fail(BEVEL_ERROR_REFUSED, "vm.alloc_tensor: argument 0 is no storage");
  auto* storage = static_cast<Storage*>(object);
  Cache& cache = call.cache();
  bool same = cache.tensor && !own && cache.tensor->storage.get() == storage;
  if (same && call.in.constantArgs) return call.result(cache.tensor); // made once, right for ever
  Dims dims;
  int64_t offset;
  bevel_dtype dtype;
  BEVEL_RT_TRY(call.integer(1, &offset));
  BEVEL_RT_TRY(readDtype(call, 2, &dtype));
  BEVEL_RT_TRY(dims.read(call, 3));
  if (own) return freshResult(call, dtype, dims);
  if (offset < 0 || isString(dtype)) return fail(BEVEL_ERROR_REFUSED, "vm.alloc_tensor: no such view");
  auto keep = Ref<Storage>::share(storage); // the destination may be what holds it
  call.destination().clear();
  if (same && cache.tensor->unique()) {
    BEVEL_RT_TRY(cache.tensor->assign(std::move(keep), uint64_t(offset), dtype, dims.rank, dims.values));
  } else {
    cache.tensor = Tensor::view(std::move(keep), uint64_t(offset), dtype, dims.rank, dims.values);
    cache.ownsTensorMemory = false;
  }
  return call.result(cache.tensor);
}

/// vm.alloc_output(index, dtype, dims…)
static Status allocOutput(Call& call) {
  Dims dims;
  int64_t index;
  bevel_dtype dtype;
  BEVEL_RT_TRY(call.checkCount(2, kMaxArgs));
  BEVEL_RT_TRY(call.integer(0, &index));
  BEVEL_RT_TRY(readDtype(call, 1, &dtype));
  BEVEL_RT_TRY(dims.read(call, 2));
  auto& targets = call.frame.outputs;
  if (index >= 0 && uint64_t(index) < targets.size() && targets[size_t(index)]) {
    const Ref<Tensor>& target = targets[size_t(index)];
    bool fits = target->compact && target->dl.dtype == dtype && target->dl.ndim == dims.rank &&
                reinterpret_cast<uintptr_t>(target->dl.data) % (dtype.bits < 8 ? 1 : dtype.bits / 8) == 0;
    for (int32_t i = 0; fits && i < dims.rank; ++i) fits = target->dl.shape[i] == dims.values[i];
    if (fits) return call.result(target);
  }
  return freshResult(call, dtype, dims);
}

/// vm.reshape(tensor, dims…)
static Status reshape(Call& call) {
  Tensor* tensor;
  Dims dims;
  BEVEL_RT_TRY(call.checkCount(1, kMaxArgs));
  BEVEL_RT_TRY(call.tensor(0, &tensor));
  Cache& cache = call.cache();
  bool same = cache.tensor && cache.tensor->storage.get() == tensor->storage.get() && tensor->compact;
  if (same && call.in.constantArgs && cache.tensor->dl.data == tensor->dl.data &&
      cache.tensor->dl.dtype == tensor->dl.dtype && cache.tensor->elements() == tensor->elements())
    return call.result(cache.tensor);
  BEVEL_RT_TRY(dims.read(call, 1));
  auto view = Tensor::reshape(*tensor, dims.rank, dims.values);
  if (!view) return lastStatus();
  // Only views of planned memory are kept: a kept view of anything else would keep that alive.
  cache.tensor = call.in.constantArgs && tensor->storage->planned ? view : Ref<Tensor>();
  cache.ownsTensorMemory = false;
  return call.result(std::move(view));
}

std::span<const BuiltinEntry> memoryBuiltins() {
  static const BuiltinEntry kTable[] = {
      {"vm.alloc_storage", allocStorage},
      {"vm.alloc_tensor", allocTensor},
      {"vm.alloc_output", allocOutput},
      {"vm.reshape", reshape},
  };
  return kTable;
}

} // namespace bevel::rt
