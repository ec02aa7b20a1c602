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

namespace {

std::vector<OpFamily> families;

void registerFamily(const char* name, void (*add)(OpRegistry&)) {
  OpRegistry& registry = OpRegistry::global();
  size_t begin = registry.all().size();
  add(registry);
  families.push_back({name, begin, registry.all().size()});
}

} // namespace

void registerOps() {
  static std::once_flag once;
  std::call_once(once, [] {
#define OPS(family) registerFamily(#family, ops::register_##family);
#include "ops/ops.def"
#undef OPS
  });
}

const std::vector<OpFamily>& opFamilies() {
  registerOps();
  return families;
}

} // namespace bevel
