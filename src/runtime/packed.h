// The registry of packed functions: the host's and the runtime's own, by name.
#pragma once

#include "runtime/abi/kernel.h"
#include "runtime/object.h"

namespace bevel::rt {

/// A registered function, kept alive by those who call it.
class PackedFunction final : public Object {
public:
  PackedFunction(bevel_packed f, void* s, void (*d)(void*), int32_t mostArgs = INT32_MAX)
      : function(f), self_(s), deleter_(d), mostArgs_(mostArgs) {}
  ~PackedFunction() override {
    if (deleter_) deleter_(self_);
  }
  /// Leaves `self` to whoever gave it.
  void disown() { deleter_ = nullptr; }

  /// Views among the arguments are wrapped; tensors of the result are made compact.
  Status call(const bevel_ctx* ctx, const bevel_value* args, int32_t numArgs, Value* result) const;

private:
  bevel_packed function;
  void* self_;
  void (*deleter_)(void*);
  int32_t mostArgs_;
};

Status registerPacked(const char* name, Ref<PackedFunction> function, bool override);
Status unregisterPacked(const char* name);
/// Null where nothing of that name is registered.
Ref<PackedFunction> findPacked(const char* name);
/// Changes whenever the registry does, so that call sites may keep what they found.
uint64_t packedVersion();

/// A packed function of the runtime's own; the table is in ops/table.cc.
struct PackedEntry {
  const char* name;
  bevel_packed function;
  int32_t mostArgs;
};

} // namespace bevel::rt
