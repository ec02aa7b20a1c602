// Shared by the files of the C API: handles to objects, exceptions to statuses.
#pragma once

#include "bevel/runtime.h"
#include "runtime/instance.h"

#include <new>

namespace bevel::rt {

/// Runs the body of an API function; what a library throws becomes a status.
template <class F> Status guarded(F body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return fail(BEVEL_ERROR_MEMORY, "out of memory");
  } catch (const std::exception& e) {
    return fail(BEVEL_ERROR_INTERNAL, "internal error: %s", e.what());
  }
}

inline Model& toModel(bevel_model* m) {
  return *static_cast<Model*>(m);
}
inline const Model& toModel(const bevel_model* m) {
  return *static_cast<const Model*>(m);
}
inline Instance& toInstance(bevel_instance* i) {
  return *static_cast<Instance*>(i);
}

/// A value from outside as a Value: shares objects, wraps views.
Status fromOutside(const bevel_value& raw, Value* value);

inline Status nullArgument(const char* function) {
  return fail(BEVEL_ERROR_USAGE, "%s: a null argument", function);
}

} // namespace bevel::rt
