// What the tests of schedules share: programs, and running a program before and after its schedule.
#pragma once

#include "base/hash.h"
#include "ir/parser.h"
#include "ir/printer.h"
#include "ir/structural.h"
#include "loop/interpreter.h"
#include "loop/te.h"
#include "sched/schedule.h"

#include <gtest/gtest.h>

#include <map>

namespace bevel::testing {

#define ASSERT_OK(expr)                                                                                      \
  do {                                                                                                       \
    auto assertOk = (expr);                                                                                  \
    ASSERT_TRUE(assertOk.has_value()) << assertOk.error().str();                                             \
  } while (false)
#define EXPECT_OK(expr)                                                                                      \
  do {                                                                                                       \
    auto expectOk = (expr);                                                                                  \
    EXPECT_TRUE(expectOk.has_value()) << expectOk.error().str();                                             \
  } while (false)
#define EXPECT_REFUSED(expr, part)                                                                           \
  do {                                                                                                       \
    auto refusal = (expr);                                                                                   \
    EXPECT_FALSE(refusal.has_value());                                                                       \
    if (!refusal) {                                                                                          \
      EXPECT_NE(refusal.error().str().find(part), std::string::npos) << refusal.error().str();               \
    }                                                                                                        \
  } while (false)

using Sizes = std::map<std::string, int64_t>; // values of symbolic dimensions, by name

/// Tensors of small integers for all buffer parameters.
inline std::vector<Ref<TensorObject>> makeArguments(const PrimFunc& f, const Sizes& sizes, uint64_t seed) {
  std::vector<Ref<TensorObject>> out;
  for (const Buffer& b : f->buffers) {
    if (!b) continue;
    std::vector<int64_t> shape;
    for (const Expr& d : b->shape) {
      auto* v = d.as<VarNode>();
      shape.push_back(v ? sizes.at(v->name) : *asConst(d));
    }
    auto t = TensorObject::zeros(b->dtype, shape);
    for (int64_t i = 0; i < t->size(); ++i)
      t->setDouble(i, double(int64_t(hashCombine(seed, uint64_t(i + 1) * (out.size() + 1)) % 7) - 3));
    out.push_back(t);
  }
  return out;
}

/// The parameters after a run. `shuffle`: order of loops that may run in any order.
inline Result<std::vector<Ref<TensorObject>>> runOn(const PrimFunc& f, const Sizes& sizes, uint64_t seed,
                                                    uint64_t shuffle = 0) {
  auto tensors = makeArguments(f, sizes, seed);
  InterpretOptions options;
  options.shuffleSeed = shuffle;
  auto twice = [](std::string_view,
                  const std::vector<Ref<TensorObject>>& args) -> Status { // out = in * 2 + 1
    for (int64_t i = 0; i < args[0]->size(); ++i) args[1]->setDouble(i, args[0]->asDouble(i) * 2 + 1);
    return {};
  };
  FunctionRef<Status(std::string_view, const std::vector<Ref<TensorObject>>&)> callee = twice;
  options.callee = &callee;
  BEVEL_CHECK(interpret(f, tensors, {}, options));
  return tensors;
}

/// Both programs give the same bits; "" or what differs.
inline std::string difference(const PrimFunc& before, const PrimFunc& after, const Sizes& sizes = {},
                              uint64_t seed = 1) {
  auto a = runOn(before, sizes, seed);
  if (!a) return "before: " + a.error().str();
  for (uint64_t shuffle : {0, 7}) {
    auto b = runOn(after, sizes, seed, shuffle);
    if (!b) return "after: " + b.error().str() + "\n" + print(after);
    for (size_t i = 0; i < a->size(); ++i)
      if (!identical(*(*a)[i], *(*b)[i]))
        return "parameter " + std::to_string(i) + " differs\n" + print(after);
  }
  return "";
}

inline Schedule scheduleOf(const PrimFunc& f) {
  auto s = Schedule::create(f);
  EXPECT_TRUE(s.has_value()) << s.error().str();
  return std::move(*s);
}

/// The script on the program: its refusal, or a failure when the results differ.
inline Status scheduled(const char* program, const char* script, const Sizes& sizes = {}) {
  auto parsed = parseFunction(program);
  if (!parsed) return fail(parsed.error());
  PrimFunc f = cast<PrimFuncNode>(*parsed);
  auto sch = Schedule::create(f);
  if (!sch) return fail(sch.error());
  BEVEL_CHECK(runScript(*sch, script));
  if (std::string wrong = difference(f, sch->func(), sizes); !wrong.empty())
    return fail(ErrorCode::kInternal, wrong);
  return {};
}

/// C = A x B.
inline PrimFunc matmul(const Expr& n, const Expr& m, const Expr& k) {
  auto a = te::placeholder({n, k}, kFloat32, "A"), b = te::placeholder({k, m}, kFloat32, "B");
  IterVar r = te::reduceAxis(k, "k");
  auto c = te::compute(
      {n, m}, "C", [&](const Array<Var>& i) { return te::sum(a({i[0], r->var}) * b({r->var, i[1]}), {r}); });
  return te::createPrimFunc({a, b, c});
}
inline PrimFunc matmul(int64_t n, int64_t m, int64_t k) {
  return matmul(intImm(n), intImm(m), intImm(k));
}

/// D = relu(A x B + bias).
inline PrimFunc matmulBiasRelu(int64_t n, int64_t m, int64_t k) {
  auto a = te::placeholder(dims({n, k}), kFloat32, "A"), b = te::placeholder(dims({k, m}), kFloat32, "B"),
       bias = te::placeholder(dims({m}), kFloat32, "bias");
  IterVar r = te::reduceAxis(intImm(k), "k");
  auto c = te::compute(dims({n, m}), "C", [&](const Array<Var>& i) {
    return te::sum(a({i[0], r->var}) * b({r->var, i[1]}), {r});
  });
  auto d =
      te::compute(dims({n, m}), "D", [&](const Array<Var>& i) { return c({i[0], i[1]}) + bias({i[1]}); });
  auto e = te::compute(dims({n, m}), "E",
                       [&](const Array<Var>& i) { return max(d({i[0], i[1]}), constantFloat(kFloat32, 0)); });
  return te::createPrimFunc({a, b, bias, e});
}

/// B = A + 1, C = B * 2 over n.
inline PrimFunc chain(const Expr& n) {
  auto a = te::placeholder({n}, kFloat32, "A");
  auto b = te::compute({n}, "B", [&](const Array<Var>& i) { return a({i[0]}) + constantFloat(kFloat32, 1); });
  auto c = te::compute({n}, "C", [&](const Array<Var>& i) { return b({i[0]}) * constantFloat(kFloat32, 2); });
  return te::createPrimFunc({a, c});
}

} // namespace bevel::testing
