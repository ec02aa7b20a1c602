// Registration of all families.
#include "ops/ops.h"

#include "graph/op.h"

#include <mutex>

namespace bevel {

namespace ops {
#define OPS(family) void register_##family(OpRegistry&);
#include "ops/ops.def"
#undef OPS
} // namespace ops

void registerOps() {
  static std::once_flag once;
  std::call_once(once, [] {
#define OPS(family) ops::register_##family(OpRegistry::global());
#include "ops/ops.def"
#undef OPS
  });
}

} // namespace bevel
