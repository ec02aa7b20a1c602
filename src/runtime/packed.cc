// The registry of packed functions, and their calls.
#include "runtime/packed.h"

#include "runtime/ops/table.h"
#include "runtime/tensor.h"

#include <mutex>
#include <new>
#include <unordered_map>

namespace bevel::rt {

namespace {
struct Registry {
  std::mutex mutex;
  std::unordered_map<std::string, Ref<PackedFunction>> functions;
  std::atomic<uint64_t> version{1};
};
} // namespace

static Registry& registry() {
  // Never destroyed: threads may still run while the process ends.
  static Registry& r = *[] {
    auto* made = new Registry;
    for (const PackedEntry& entry : packedTable())
      made->functions[entry.name] =
          Ref<PackedFunction>::adopt(new PackedFunction(entry.function, nullptr, nullptr, entry.mostArgs));
    return made;
  }();
  return r;
}

Status registerPacked(const char* name, Ref<PackedFunction> function, bool override) {
  Registry& r = registry();
  Ref<PackedFunction> old; // its deleter runs after the lock is released
  std::lock_guard lock(r.mutex);
  Ref<PackedFunction>& place = r.functions[name];
  if (place && !override)
    return fail(BEVEL_ERROR_USAGE, "a packed function '%s' is registered already", name);
  old = std::exchange(place, std::move(function));
  r.version.fetch_add(1);
  return BEVEL_OK;
}

Status unregisterPacked(const char* name) {
  Registry& r = registry();
  Ref<PackedFunction> old;
  std::lock_guard lock(r.mutex);
  auto it = r.functions.find(name);
  if (it == r.functions.end())
    return fail(BEVEL_ERROR_MISSING, "no packed function '%s' is registered", name);
  old = std::move(it->second);
  r.functions.erase(it);
  r.version.fetch_add(1);
  return BEVEL_OK;
}

Ref<PackedFunction> findPacked(const char* name) {
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  auto it = r.functions.find(name);
  return it == r.functions.end() ? Ref<PackedFunction>() : it->second;
}

uint64_t packedVersion() {
  return registry().version.load(std::memory_order_acquire);
}

Status PackedFunction::call(const bevel_ctx* ctx, const bevel_value* args, int32_t numArgs,
                            Value* result) const {
  if (numArgs > mostArgs_)
    return fail(BEVEL_ERROR_REFUSED, "it takes at most %d arguments, %d are given", mostArgs_, numArgs);
  std::vector<Value> wrapped;
  std::vector<bevel_value> plain;
  for (int32_t i = 0; i < numArgs; ++i) {
    if (args[i].kind != BEVEL_VIEW) continue;
    if (plain.empty()) plain.assign(args, args + numArgs);
    BEVEL_RT_TRY(checkForeign(*args[i].v.view));
    wrapped.push_back(Value::of(Tensor::borrow(*args[i].v.view)));
    plain[size_t(i)] = wrapped.back().raw();
  }
  bevel_value raw = {BEVEL_NONE, 0, {}};
  int32_t status;
  try { // a function in C++ may throw; between it and the caller may lie compiled code, which cannot be
        // unwound
    status = function(ctx, self_, plain.empty() ? args : plain.data(), numArgs, &raw);
  } catch (const std::bad_alloc&) {
    status = fail(BEVEL_ERROR_MEMORY, "out of memory");
  } catch (const std::exception& e) {
    status = fail(BEVEL_ERROR_INTERNAL, "%s", e.what());
  }
  *result = Value::adopt(raw);
  if (status) {
    result->clear();
    return status;
  }
  if (raw.kind < BEVEL_NONE || raw.kind > BEVEL_OBJECT) {
    (void)result->leak();
    return fail(BEVEL_ERROR_USAGE, "a packed function returned a value of unknown kind %d", raw.kind);
  }
  if (Tensor* tensor = result->tensor(); tensor && !tensor->compact) {
    auto compact = copyTensor(*tensor);
    if (!compact) return lastStatus();
    *result = Value::of(std::move(compact));
  }
  return BEVEL_OK;
}

} // namespace bevel::rt
