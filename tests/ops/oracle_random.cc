// Naive host evaluation of the operators of src/ops/random.cc.
#include "ops/oracle.h"

namespace bevel::test {
namespace {

constexpr uint32_t kFirst = 0x85ebca6b, kSecond = 0xc2b2ae35, kGolden = 0x9e3779b9;

uint32_t mixHost(uint32_t x) {
  x = (x ^ x >> 16) * kFirst;
  x = (x ^ x >> 13) * kSecond;
  return x ^ x >> 16;
}

Result<HostTensors> uniformEval(const OpCall& call, const HostTensors& in) {
  auto y = TensorObject::zeros(call.dtypeAttr("dtype"), *constValues(call, 0));
  uint32_t seed = mixHost(uint32_t(call.i("seed")) + kGolden);
  if (call.has(1)) seed = mixHost(seed ^ uint32_t(in[1]->asInt(0)) * kGolden);
  double low = call.f("low"), span = call.f("high") - low;
  for (int64_t i = 0; i < y->size(); ++i)
    y->setDouble(i, double(mixHost(uint32_t(i) ^ seed) >> 8) * 0x1p-24 * span + low);
  return HostTensors{y};
}

} // namespace

void add_random(Oracles& oracles) {
  oracles["random.uniform"] = uniformEval;
}

} // namespace bevel::test
