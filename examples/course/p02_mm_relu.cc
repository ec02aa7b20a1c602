// Course program 2 (2.4): C = max(A B, 0) over 128x128. Plain loops on the host; the same with the structure
// of blocks spelled out; the tensor programs of p02_mm_relu.py, one function or two; and one made from a
// tensor expression.
#include "support.h"

#include "loop/te.h"

#include <algorithm>
#include <fmt/format.h>

namespace bevel::course {
namespace {

constexpr int64_t kN = 128;

void naive(const float* a, const float* b, float* c) {
  for (int64_t i = 0; i < kN; ++i)
    for (int64_t j = 0; j < kN; ++j) {
      float sum = 0;
      for (int64_t k = 0; k < kN; ++k) sum += a[i * kN + k] * b[k * kN + j];
      c[i * kN + j] = std::max(sum, 0.0f);
    }
}

// What a tensor program says, by hand: a block takes the values of its axes from the loops around it and
// knows nothing else of them; at the first step of its reduction axis it begins the sum.
void lowLevel(const float* a, const float* b, float* c) {
  std::vector<float> y(kN * kN);
  for (int64_t i = 0; i < kN; ++i)
    for (int64_t j = 0; j < kN; ++j)
      for (int64_t k = 0; k < kN; ++k) { // block Y
        int64_t vi = i, vj = j, vk = k;
        if (vk == 0) y[size_t(vi * kN + vj)] = 0;
        y[size_t(vi * kN + vj)] += a[vi * kN + vk] * b[vk * kN + vj];
      }
  for (int64_t i = 0; i < kN; ++i)
    for (int64_t j = 0; j < kN; ++j) { // block C
      int64_t vi = i, vj = j;
      c[vi * kN + vj] = std::max(y[size_t(vi * kN + vj)], 0.0f);
    }
}

// The computation without loops: every element as an expression of its indices.
PrimFunc fromTensorExpression() {
  Expr n = intImm(kN, kInt32); // as numbers in text are
  te::Tensor a = te::placeholder({n, n}, kFloat32, "A");
  te::Tensor b = te::placeholder({n, n}, kFloat32, "B");
  IterVar k = te::reduceAxis(n, "k");
  te::Tensor y = te::compute(
      {n, n}, "Y", [&](const Array<Var>& i) { return te::sum(a({i[0], k->var}) * b({k->var, i[1]}), {k}); });
  te::Tensor c = te::compute(
      {n, n}, "C", [&](const Array<Var>& i) { return max(y({i[0], i[1]}), constantFloat(kFloat32, 0)); });
  return te::createPrimFunc({a, b, c});
}

} // namespace

Status mmRelu() {
  HostArray a = randomArray({kN, kN}, 1), b = randomArray({kN, kN}, 2), want = zeros({kN, kN}),
            c = zeros({kN, kN});
  naive(data(a), data(b), data(want));
  lowLevel(data(a), data(b), data(c));
  BEVEL_CHECK(expectClose("loops with explicit blocks", c, want));

  BEVEL_TRY(Module module, readExample("p02_mm_relu.py"));
  PrimFunc expression = fromTensorExpression();
  for (const auto& [what, f] : {std::pair("mm_relu", program(module, "mm_relu")),
                                std::pair("mm_relu_remap", program(module, "mm_relu_remap")),
                                std::pair("from a tensor expression", expression)}) {
    BEVEL_TRY(Kernel kernel, Kernel::build(f));
    c = zeros({kN, kN});
    BEVEL_CHECK(kernel({a, b, c}));
    BEVEL_CHECK(expectClose(what, c, want));
  }
  HostArray y = zeros({kN, kN});
  c = zeros({kN, kN});
  BEVEL_TRY(Kernel mm, Kernel::build(program(module, "mm")));
  BEVEL_TRY(Kernel relu, Kernel::build(program(module, "relu")));
  BEVEL_CHECK(mm({a, b, y}));
  BEVEL_CHECK(relu({y, c}));
  BEVEL_CHECK(expectClose("mm, then relu", c, want));
  BEVEL_TRY(Machine machine, Machine::create(module));
  BEVEL_TRY(c, machine({a, b}));
  BEVEL_CHECK(expectClose("main, a graph function of the two", c, want));

  BEVEL_CHECK(expectEqual("axes one by one and by remap", program(module, "mm_relu"),
                          program(module, "mm_relu_remap")));
  return expectEqual("tensor expression and tensor program", expression, program(module, "mm_relu"));
}

} // namespace bevel::course
