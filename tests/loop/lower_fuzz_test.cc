// Random programs, lowered and compared after every pass: tensor expressions under random splits, kinds and
// scopes of their loops, and random text. BEVEL_FUZZ=n runs n programs instead of the default number.
#include "ir/build.h"
#include "ir/printer.h"
#include "ir/structural.h"
#include "ir/verify.h"
#include "loop/te.h"
#include "tests/loop/lower_support.h"
#include "tests/loop/lowered_programs.h"
#include "tests/loop/random_nest.h"

#include <gtest/gtest.h>
#include <random>

namespace bevel {
namespace {

using Rng = std::minstd_rand;

int64_t pick(Rng& rng, std::initializer_list<int64_t> from) {
  return *(from.begin() + rng() % from.size());
}

/// A pointwise stage, a reduction over it, and a stage after it.
PrimFunc randomProgram(Rng& rng) {
  Expr m = intImm(pick(rng, {1, 2, 5, 7, 8})), n = intImm(pick(rng, {1, 3, 6, 8, 13})),
       k = intImm(pick(rng, {1, 2, 3, 4, 9}));
  bool symbolic = rng() % 3 == 0;
  if (symbolic) m = var("n");
  te::Tensor a = te::placeholder({m, k}, kFloat32, "A"), b = te::placeholder({n, k}, kFloat32, "B");
  te::Tensor p = te::compute({m, k}, "P", [&](const Array<Var>& i) {
    Expr x = a({i[0], i[1]}) + constantFloat(kFloat32, 1);
    return rng() % 2
               ? x
               : ifThenElse(logicalAnd(i[0] >= intImm(1), i[1] >= intImm(1)), a({i[0] - 1, i[1] - 1}), x);
  });
  IterVar r = te::reduceAxis(k, "k");
  te::Tensor c = te::compute(
      {m, n}, "C", [&](const Array<Var>& i) { return te::sum(p({i[0], r->var}) * b({i[1], r->var}), {r}); });
  te::Tensor d = te::compute(
      {m, n}, "D", [&](const Array<Var>& i) { return max(c({i[0], i[1]}), c({i[0], n - 1 - i[1]})); });
  return te::createPrimFunc({a, b, d});
}

std::vector<std::string> loopNames(const PrimFunc& f) {
  std::vector<std::string> names;
  walk(f->body, [&](const NodeRef& n) {
    if (const auto* l = n.as<ForNode>()) names.push_back(l->var->name);
    return true;
  });
  return names;
}

bool bindsReduction(const PrimFunc& f, const std::string& name) {
  bool found = false;
  walk(f->body, [&](const NodeRef& n) {
    const auto* r = n.as<BlockRealizeNode>();
    for (size_t i = 0; r && i < r->values.size(); ++i)
      if (r->block->iters[i]->type == IterType::kReduce)
        found |= usesAnyVar(r->values[i], [&](const VarNode* v) { return v->name == name; });
    return true;
  });
  return found;
}

TEST(LowerFuzz, RandomSplitsAndKinds) {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    Rng rng(seed);
    PrimFunc f = randomProgram(rng);
    for (int step = 0; step < 4; ++step) {
      auto names = loopNames(f);
      if (names.empty()) break;
      std::string name = names[rng() % names.size()];
      if (rng() % 2) {
        f = test::splitLoop(f, name, pick(rng, {2, 3, 4, 8}));
      } else if (!bindsReduction(f, name)) {
        ForKind kinds[] = {ForKind::kVectorized, ForKind::kUnrolled, ForKind::kParallel};
        f = test::setLoopKind(f, name, kinds[rng() % 3]);
      }
    }
    for (int64_t n : {0, 1, 9}) {
      std::string difference = test::lowerDifference(f, {{"n", n}});
      ASSERT_EQ(difference, "") << "seed " << seed << " n " << n << "\n" << print(f);
    }
  }
}

TEST(LowerFuzz, RandomText) {
  size_t runs = 0, compared = 0;
  for (uint64_t seed : testing::fuzzSeeds(60)) {
    std::string text = testing::RandomNest(seed).make();
    PrimFunc f = test::parsed(text);
    ASSERT_TRUE(f) << "seed " << seed << "\n" << text;
    Status sound = verify(f);
    ASSERT_TRUE(sound.has_value()) << sound.error().str() << "\n" << text;
    for (int64_t n : {0, 1, 5}) {
      ++runs;
      test::Dims dims = {{"n", n}, {"l", (n + int64_t(seed)) % 4}};
      if (!test::runCopy(f, test::makeArguments(f, dims))) continue; // reads what nothing wrote
      ++compared;
      std::string difference = test::lowerDifference(f, dims);
      EXPECT_EQ(difference, "") << "seed " << seed << " n " << n << "\n" << text;
      if (!difference.empty()) break;
    }
  }
  EXPECT_GT(compared * 2, runs); // the fuzzer does something
}

} // namespace
} // namespace bevel
