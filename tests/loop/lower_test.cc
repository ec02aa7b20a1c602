// Every lowering pass against the interpreter: the results of a program before and after each pass are
// identical.
#include "loop/lower.h"

#include "ir/build.h"
#include "ir/printer.h"
#include "ir/structural.h"
#include "loop/te.h"
#include "target/target.h"
#include "tests/loop/lower_support.h"

#include <gtest/gtest.h>

namespace bevel {
namespace {

using test::lowerDifference;
using test::setLoopKind;
using test::splitLoop;

PrimFunc addOne(Expr n) {
  te::Tensor a = te::placeholder({n}, kFloat32, "A");
  te::Tensor b =
      te::compute({n}, "B", [&](const Array<Var>& i) { return a({i[0]}) + constantFloat(kFloat32, 1); });
  return te::createPrimFunc({a, b});
}

std::vector<std::string> loopNames(const PrimFunc& f) {
  std::vector<std::string> names;
  walk(f->body, [&](const NodeRef& n) {
    if (const auto* l = n.as<ForNode>()) names.push_back(l->var->name);
    return true;
  });
  return names;
}

TEST(Lower, ElementwiseOfAnyLength) {
  for (int64_t n : {0, 1, 2, 7, 31, 32, 33, 100, 127}) {
    PrimFunc f = addOne(intImm(n));
    EXPECT_EQ(lowerDifference(f), "") << n;
    std::string loop = loopNames(f).front();
    PrimFunc split = splitLoop(f, loop, 8);
    EXPECT_EQ(lowerDifference(split), "") << n;
    EXPECT_EQ(lowerDifference(setLoopKind(split, loop + "_i", ForKind::kVectorized)), "") << n;
    EXPECT_EQ(lowerDifference(setLoopKind(split, loop + "_i", ForKind::kUnrolled)), "") << n;
    EXPECT_EQ(lowerDifference(setLoopKind(split, loop + "_o", ForKind::kParallel)), "") << n;
  }
}

TEST(Lower, SymbolicLength) {
  Var n = var("n");
  PrimFunc f = addOne(n);
  std::string loop = loopNames(f).front();
  PrimFunc vector = setLoopKind(splitLoop(f, loop, 8), loop + "_i", ForKind::kVectorized);
  for (int64_t size : {0, 1, 7, 8, 9, 64, 101}) EXPECT_EQ(lowerDifference(vector, {{"n", size}}), "") << size;
}

PrimFunc matmul(Expr m, Expr n, Expr k) {
  te::Tensor a = te::placeholder({m, k}, kFloat32, "A"), b = te::placeholder({k, n}, kFloat32, "B");
  IterVar r = te::reduceAxis(k, "k");
  te::Tensor c = te::compute(
      {m, n}, "C", [&](const Array<Var>& i) { return te::sum(a({i[0], r->var}) * b({r->var, i[1]}), {r}); });
  return te::createPrimFunc({a, b, c});
}

TEST(Lower, MatmulWithTails) {
  for (int64_t m : {1, 5, 8})
    for (int64_t n : {1, 7, 16}) {
      PrimFunc f = matmul(intImm(m), intImm(n), intImm(6));
      EXPECT_EQ(lowerDifference(f), "");
      auto names = loopNames(f);
      ASSERT_EQ(names.size(), 3u);
      for (const std::string& split : names) EXPECT_EQ(lowerDifference(splitLoop(f, split, 4)), "") << split;
      PrimFunc tiled = splitLoop(splitLoop(f, names[0], 4), names[1], 4);
      EXPECT_EQ(lowerDifference(setLoopKind(tiled, names[1] + "_i", ForKind::kVectorized)), "");
    }
}

} // namespace
} // namespace bevel
