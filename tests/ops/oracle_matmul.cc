// Naive host evaluation of the operators of src/ops/matmul.cc.
#include "ops/oracle.h"

namespace bevel::test {
namespace {

Result<HostTensors> matmulEval(const OpCall& call, const HostTensors& in) {
  auto y = TensorObject::zeros(resultDType(call), hostShape(call));
  const TensorObject &a = *in[0], &b = *in[1];
  bool va = a.shape.size() == 1, vb = b.shape.size() == 1;
  Ints as = a.shape, bs = b.shape;
  if (va) as.insert(as.begin(), 1);
  if (vb) bs.push_back(1);
  int64_t m = as[as.size() - 2], k = as.back(), n = bs.back();
  Ints ab(as.begin(), as.end() - 2), bb(bs.begin(), bs.end() - 2);
  int64_t at = 0;
  forEachIndex(broadcastDims(ab, bb), [&](const Ints& batch) {
    int64_t oa = broadcastOffset(ab, batch) * m * k, ob = broadcastOffset(bb, batch) * k * n;
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j, ++at) {
        double real = 0;
        uint64_t integer = 0;
        for (int64_t r = 0; r < k; ++r)
          if (y->dtype.isFloat())
            real += a.asDouble(oa + i * k + r) * b.asDouble(ob + r * n + j);
          else
            integer += uint64_t(a.asInt(oa + i * k + r)) * uint64_t(b.asInt(ob + r * n + j));
        if (y->dtype.isFloat())
          y->setDouble(at, real);
        else
          y->setInt(at, int64_t(integer));
      }
  });
  return HostTensors{y};
}

} // namespace

void add_matmul(Oracles& oracles) {
  oracles["matmul"] = matmulEval;
}

} // namespace bevel::test
