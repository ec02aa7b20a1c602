// The packed functions of the run time, one declaration each; documentation stands at the definitions.
#pragma once

#include "runtime/abi/kernel.h"

namespace bevel::rt {

#define BEVEL_PACKED(name, function, mostArgs)                                                               \
  int32_t function(const bevel_ctx* ctx, void* self, const bevel_value* args, int32_t count,                 \
                   bevel_value* result);
#include "runtime/ops/table.inc"
#undef BEVEL_PACKED

} // namespace bevel::rt
