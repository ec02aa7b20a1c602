// Iteration maps against brute force: what is called bijective, onto or one to one is so at all points,
// inverses round trip, divided subspaces compose to the index, and maps that are built to be bijective are
// recognised.
#include "arith/index_map.h"
#include "tests/arith/random_expr.h"

#include <gtest/gtest.h>
#include <map>
#include <set>

namespace bevel {
namespace {

using test::BoxVar;
using test::show;

std::vector<BoxVar> boxOf(const IterRanges& iters) {
  std::vector<BoxVar> out;
  for (const auto& [v, r] : iters)
    out.push_back({v, *asConst(r->min), *asConst(r->min) + *asConst(r->extent) - 1});
  return out;
}

std::string showAll(const Array<Expr>& indices) {
  std::string s;
  for (const Expr& e : indices) s += show(e) + "  ";
  return s;
}

struct Image {
  bool oneToOne = true;
  std::set<std::vector<int64_t>> points;
};

Image imageOf(const Array<Expr>& indices, const IterRanges& iters, const Expr& predicate) {
  Image out;
  test::forEachPoint(boxOf(iters), [&](const IntEnv& env) {
    if (predicate && evaluate(predicate, env) != 1) return true;
    std::vector<int64_t> at;
    for (const Expr& e : indices) at.push_back(*evaluate(e, env));
    out.oneToOne = out.points.insert(at).second && out.oneToOne;
    return true;
  });
  return out;
}

/// Checks a detection's claims at all points.
void checkClaims(const IterMap& map, const Array<Expr>& indices, const IterRanges& iters,
                 const Expr& predicate, IterMapLevel level, Analyzer& an) {
  Image image = imageOf(indices, iters, predicate);
  EXPECT_TRUE(image.oneToOne || level == IterMapLevel::kSurjective) << showAll(indices);
  if (level != IterMapLevel::kInjective) {
    int64_t volume = 1;
    for (size_t i = 0; i < indices.size(); ++i) {
      int64_t base = *asConst(map.indices[i].base), extent = *asConst(map.extents[i]);
      volume *= extent;
      for (const auto& p : image.points)
        EXPECT_TRUE(p[i] >= base && p[i] < base + extent) << showAll(indices);
    }
    EXPECT_EQ(int64_t(image.points.size()), volume)
        << showAll(indices) << (predicate ? " where " + show(predicate) : "");
  }
  for (size_t i = 0; i < indices.size(); ++i) { // the normal form is the index
    Expr normal = normalize(map.indices[i], an);
    test::forEachPoint(boxOf(iters), [&](const IntEnv& env) {
      if (predicate && evaluate(predicate, env) != 1) return true;
      EXPECT_EQ(evaluate(normal, env), evaluate(indices[i], env))
          << show(indices[i]) << " as " << show(normal);
      return !testing::Test::HasFailure();
    });
  }
}

void checkInverse(const IterMap& map, const Array<Expr>& indices, const IterRanges& iters,
                  const Expr& predicate, Analyzer& an) {
  std::vector<Expr> outs;
  for (size_t i = 0; i < indices.size(); ++i) {
    Var v = var("o" + std::to_string(i));
    an.bind(v, range(map.indices[i].base, map.extents[i]));
    outs.push_back(v);
  }
  auto inverse = inverseIterMap(map, outs, an);
  ASSERT_TRUE(inverse) << showAll(indices);
  test::forEachPoint(boxOf(iters), [&](const IntEnv& env) {
    if (predicate && evaluate(predicate, env) != 1) return true;
    IntEnv at;
    for (size_t i = 0; i < indices.size(); ++i) at[cast<VarNode>(outs[i])] = *evaluate(indices[i], env);
    for (const auto& [v, r] : iters) {
      EXPECT_EQ(evaluate(inverse->at(v), at), env.at(v))
          << showAll(indices) << ": " << v->name << " = " << show(inverse->at(v));
      if (testing::Test::HasFailure()) return false;
    }
    return true;
  });
}

/// Random chains of split, fuse and reorder from random iterators: bijective by construction.
struct Chain {
  IterRanges iters;
  std::vector<Expr> indices;
  std::vector<int64_t> extents;
};

Chain randomChain(std::mt19937& rng, int steps) {
  auto pick = [&](int lo, int hi) { return std::uniform_int_distribution<int>(lo, hi)(rng); };
  static constexpr int kExtents[] = {1, 2, 3, 4, 6, 8, 12};
  Chain c;
  int n = pick(1, 3);
  for (int i = 0; i < n; ++i) {
    int64_t extent = kExtents[pick(0, 6)], min = pick(0, 3) ? 0 : pick(-2, 4);
    Var v = var(std::string(1, char('a' + i)));
    c.iters.emplace_back(v, range(intImm(min), intImm(extent)));
    c.indices.push_back(min ? v - min : Expr(v));
    c.extents.push_back(extent);
  }
  for (int s = 0; s < steps; ++s) {
    size_t k = size_t(pick(0, int(c.indices.size()) - 1));
    if (pick(0, 1)) { // split by a divisor
      std::vector<int64_t> divisors;
      for (int64_t d = 2; d < c.extents[k]; ++d)
        if (c.extents[k] % d == 0) divisors.push_back(d);
      if (divisors.empty() || c.indices.size() > 4) continue;
      int64_t d = divisors[size_t(pick(0, int(divisors.size()) - 1))];
      Expr e = c.indices[k];
      c.indices[k] = make<const BinaryNode>(BinaryOp::kFloorDiv, e, intImm(d));
      c.indices.insert(c.indices.begin() + ptrdiff_t(pick(0, int(c.indices.size()))),
                       make<const BinaryNode>(BinaryOp::kFloorMod, e, intImm(d)));
      // The position of the quotient may have moved: recompute extents by search.
      std::vector<int64_t> extents;
      for (const Expr& x : c.indices) {
        int64_t hi = 0;
        test::forEachPoint(boxOf(c.iters),
                           [&](const IntEnv& env) { return hi = std::max(hi, *evaluate(x, env)), true; });
        extents.push_back(hi + 1);
      }
      c.extents = extents;
    } else if (c.indices.size() > 1) { // fuse k with another
      size_t o = size_t(pick(0, int(c.indices.size()) - 1));
      if (o == k) continue;
      c.indices[k] = c.indices[k] * c.extents[o] + c.indices[o];
      c.extents[k] *= c.extents[o];
      c.indices.erase(c.indices.begin() + ptrdiff_t(o));
      c.extents.erase(c.extents.begin() + ptrdiff_t(o));
    }
  }
  return c;
}

TEST(IterMaps, ChainsOfSplitsAndFuses) {
  int recognised = 0, total = 0;
  for (unsigned seed = 0; seed < unsigned(test::fuzzCount(600)) && !HasFailure(); ++seed) {
    std::mt19937 rng(test::fuzzSeed(seed));
    Chain c = randomChain(rng, 4);
    Array<Expr> indices(c.indices);
    Analyzer an;
    auto map = detectIterMap(indices, c.iters, nullptr, an, IterMapLevel::kBijective);
    ++total;
    if (!map) continue;
    ++recognised;
    checkClaims(*map, indices, c.iters, nullptr, IterMapLevel::kBijective, an);
    checkInverse(*map, indices, c.iters, nullptr, an);
  }
  EXPECT_GT(recognised * 100, total * 90) << recognised << " of " << total;
}

/// Arbitrary combinations, most of them not bijective: what is accepted must be right at each level.
TEST(IterMaps, ClaimsAreSound) {
  int accepted[3] = {0, 0, 0};
  for (unsigned seed = 0; seed < unsigned(test::fuzzCount(4000)) && !HasFailure(); ++seed) {
    std::mt19937 rng(test::fuzzSeed(5000 + seed));
    auto pick = [&](int lo, int hi) { return std::uniform_int_distribution<int>(lo, hi)(rng); };
    IterRanges iters;
    int n = pick(1, 3);
    for (int i = 0; i < n; ++i)
      iters.emplace_back(var(std::string(1, char('a' + i))),
                         range(intImm(pick(0, 2) ? 0 : pick(-2, 2)), intImm(pick(1, 9))));
    auto atom = [&]() -> Expr {
      const auto& [v, r] = iters[size_t(pick(0, n - 1))];
      Expr e = v;
      if (pick(0, 2) == 0) e = e + pick(-2, 3);
      switch (pick(0, 3)) {
      case 0:
        return make<const BinaryNode>(BinaryOp::kFloorDiv, e, intImm(pick(1, 5)));
      case 1:
        return make<const BinaryNode>(BinaryOp::kFloorMod, e, intImm(pick(1, 6)));
      default:
        return e;
      }
    };
    Array<Expr> indices;
    for (int k = pick(1, 2); k > 0; --k) {
      Expr e = atom();
      while (pick(0, 1)) e = e * pick(1, 6) + atom();
      if (!pick(0, 3))
        e = make<const BinaryNode>(pick(0, 1) ? BinaryOp::kFloorDiv : BinaryOp::kFloorMod, e,
                                   intImm(pick(2, 6)));
      indices.push_back(e);
    }
    Expr predicate;
    if (!pick(0, 2)) {
      Expr e = iters[0].first;
      if (n > 1 && pick(0, 1)) e = e * *asConst(iters[1].second->extent) + iters[1].first;
      predicate = pick(0, 3) ? e < intImm(pick(1, 20)) : e >= intImm(pick(-1, 3));
      if (imageOf(indices, iters, predicate).points.empty()) continue;
    }
    for (auto level : {IterMapLevel::kBijective, IterMapLevel::kSurjective, IterMapLevel::kInjective}) {
      Analyzer an;
      auto map = detectIterMap(indices, iters, predicate, an, level);
      if (!map) continue;
      ++accepted[int(level)];
      checkClaims(*map, indices, iters, predicate, level, an);
      if (level == IterMapLevel::kBijective) checkInverse(*map, indices, iters, predicate, an);
    }
  }
  for (int count : accepted) EXPECT_GT(count, 100);
}

class IterMapForms : public testing::Test {
protected:
  Analyzer an;
  Var i = var("i"), j = var("j"), n = var("n"), m = var("m");
  IterRanges tile{{i, range(intImm(0), intImm(4))}, {j, range(intImm(0), intImm(32))}};
  bool detects(const Array<Expr>& e, const IterRanges& iters, const Expr& p = nullptr,
               IterMapLevel level = IterMapLevel::kBijective) {
    return detectIterMap(e, iters, p, an, level).has_value();
  }
};

TEST_F(IterMapForms, Tails) {
  Expr p = i * 32 + j < intImm(100);
  auto map = detectIterMap({i * 32 + j}, tile, p, an, IterMapLevel::kBijective);
  ASSERT_TRUE(map);
  EXPECT_EQ(asConst(map->extents[0]), 100);
  EXPECT_FALSE(detects({i, j}, tile, p)); // not a box
  EXPECT_TRUE(detects({i, j}, tile, p, IterMapLevel::kInjective));
  EXPECT_TRUE(detects({floordiv(i * 32 + j, 50), floormod(i * 32 + j, 50)}, tile, p));
  EXPECT_FALSE(detects({floordiv(i * 32 + j, 48), floormod(i * 32 + j, 48)}, tile, p));
  auto shifted =
      detectIterMap({i * 32 + j}, tile, logicalAnd(p, i * 32 + j >= intImm(5)), an, IterMapLevel::kBijective);
  ASSERT_TRUE(shifted);
  EXPECT_EQ(asConst(shifted->extents[0]), 95);
  EXPECT_EQ(asConst(shifted->indices[0].base), 5);
}

TEST_F(IterMapForms, Symbolic) {
  an.bind(n, ConstBound{1, kPosInf});
  an.bind(m, ConstBound{1, kPosInf});
  IterRanges wide{{i, range(intImm(0), m)}, {j, range(intImm(0), n)}};
  auto fused = detectIterMap({i * n + j}, wide, nullptr, an, IterMapLevel::kBijective);
  ASSERT_TRUE(fused) << fused.error().str();
  EXPECT_TRUE(an.proveEqual(fused->extents[0], m * n));
  EXPECT_FALSE(detects({i * m + j}, wide));
  IterRanges split{{i, range(intImm(0), floordiv(n + 31, 32))}, {j, range(intImm(0), intImm(32))}};
  auto tail = detectIterMap({i * 32 + j}, split, i * 32 + j < n, an, IterMapLevel::kBijective);
  ASSERT_TRUE(tail) << tail.error().str();
  for (int64_t v : {1, 31, 32, 33, 100}) EXPECT_EQ(evaluate(tail->extents[0], {{n, v}}), v);
}

TEST_F(IterMapForms, Refusals) {
  EXPECT_FALSE(detects({i + j}, tile));
  EXPECT_FALSE(detects({i * 32}, tile));
  EXPECT_FALSE(detects({i, i}, tile));
  EXPECT_FALSE(detects({j}, tile));
  EXPECT_TRUE(detects({j}, tile, nullptr, IterMapLevel::kSurjective));
  EXPECT_FALSE(detects({i * j}, tile));
  EXPECT_FALSE(detects({floordiv(j, 5), floormod(j, 5), i}, tile));
  EXPECT_TRUE(detects({floordiv(j, 5), floormod(j, 5), i}, tile, nullptr, IterMapLevel::kInjective));
  auto e = detectIterMap({i + j}, tile, nullptr, an, IterMapLevel::kBijective);
  EXPECT_NE(e.error().message.find("overlap"), std::string::npos);
}

/// outer * innerExtent + inner is the index, outer is free of inner iterators and the other way round.
TEST(IterMaps, DividedSubspacesCompose) {
  int divided = 0;
  for (unsigned seed = 0; seed < unsigned(test::fuzzCount(800)) && !HasFailure(); ++seed) {
    std::mt19937 rng(test::fuzzSeed(9000 + seed));
    Chain c = randomChain(rng, 4);
    Array<Expr> indices(c.indices);
    std::vector<Var> inner;
    for (const auto& [v, r] : c.iters)
      if (rng() % 2) inner.push_back(v);
    Analyzer an;
    auto d = divideSubspace(indices, c.iters, inner, nullptr, an);
    if (!d) continue;
    ++divided;
    for (size_t k = 0; k < indices.size(); ++k) {
      const DividedIndex& x = d->indices[k];
      int64_t ie = *asConst(x.innerExtent), oe = *asConst(x.outerExtent);
      test::forEachPoint(boxOf(c.iters), [&](const IntEnv& env) {
        IntEnv outerOnly = env, innerOnly = env;
        for (const auto& [v, r] : c.iters)
          (std::find(inner.begin(), inner.end(), v) != inner.end() ? outerOnly : innerOnly)[v] =
              *asConst(r->min);
        auto o = evaluate(x.outer, outerOnly), in = evaluate(x.inner, innerOnly);
        EXPECT_EQ(*o * ie + *in, *evaluate(indices[k], env))
            << show(indices[k]) << " as " << show(x.outer) << " | " << show(x.inner);
        EXPECT_TRUE(*in >= 0 && *in < ie && *o >= 0 && *o < oe);
        return !HasFailure();
      });
    }
  }
  EXPECT_GT(divided * 8, test::fuzzCount(800) * 3);
}

TEST(IterMaps, DividedPredicates) {
  Analyzer an;
  Var io = var("io"), ii = var("ii"), n = var("n");
  IterRanges iters{{io, range(intImm(0), intImm(4))}, {ii, range(intImm(0), intImm(32))}};
  auto d = divideSubspace({io * 32 + ii}, iters, {ii}, logicalAnd(io < n, io * 32 + ii < intImm(100)), an);
  ASSERT_TRUE(d);
  EXPECT_EQ(d->indices[0].outer, Expr(io));
  EXPECT_EQ(d->indices[0].inner, Expr(ii));
  EXPECT_EQ(show(d->outerPredicate), "(io < n)");
  EXPECT_EQ(show(d->innerPredicate), "(((io * 32) + ii) < 100)");
  EXPECT_FALSE(divideSubspace({io * 32 + ii}, iters, {io}, nullptr, an)); // the inner iterator lies outside
}

// Index maps.

void checkPaddedInverse(const IndexMap& map, const std::vector<int64_t>& shape,
                        const std::vector<int64_t>& mins = {}) {
  Analyzer an;
  Array<Range> ranges;
  IterRanges iters;
  for (size_t i = 0; i < shape.size(); ++i) {
    ranges.push_back(range(intImm(mins.empty() ? 0 : mins[i]), intImm(shape[i])));
    iters.emplace_back(map.initial[i], ranges[i]);
  }
  auto inverse = map.nonSurjectiveInverse(ranges, an);
  ASSERT_TRUE(inverse) << map.str() << ": " << inverse.error().str();
  std::set<std::vector<int64_t>> image;
  test::forEachPoint(boxOf(iters), [&](const IntEnv& env) {
    IntEnv at;
    std::vector<int64_t> p;
    for (size_t k = 0; k < map.final.size(); ++k)
      p.push_back(at[inverse->map.initial[k]] = *evaluate(map.final[k], env));
    image.insert(p);
    for (size_t k = 0; k < shape.size(); ++k)
      EXPECT_EQ(evaluate(inverse->map.final[k], at), env.at(map.initial[k]))
          << map.str() << " " << inverse->map.str();
    EXPECT_EQ(evaluate(inverse->padding, at), 0) << map.str() << " padding " << show(inverse->padding);
    return !testing::Test::HasFailure();
  });
  // Points of the bounding box that nothing maps to are padding.
  std::vector<BoxVar> box;
  for (size_t k = 0; k < map.final.size(); ++k) {
    int64_t lo = INT64_MAX, hi = INT64_MIN;
    for (const auto& p : image) lo = std::min(lo, p[k]), hi = std::max(hi, p[k]);
    box.push_back({inverse->map.initial[k], lo, hi});
  }
  test::forEachPoint(box, [&](const IntEnv& env) {
    std::vector<int64_t> p;
    for (const BoxVar& b : box) p.push_back(env.at(b.var));
    EXPECT_EQ(evaluate(inverse->padding, env), image.count(p) ? 0 : 1)
        << map.str() << " padding " << show(inverse->padding);
    return !testing::Test::HasFailure();
  });
}

TEST(IndexMaps, PaddedInverses) {
  auto nchwc = IndexMap::of(4, [](const std::vector<Var>& v) {
    return Array<Expr>{v[0], floordiv(v[1], 4), v[2], v[3], floormod(v[1], 4)};
  });
  checkPaddedInverse(nchwc, {1, 8, 2, 3});
  checkPaddedInverse(nchwc, {2, 6, 2, 3}); // padded channels
  checkPaddedInverse(nchwc, {1, 1, 1, 1});
  auto split = IndexMap::of(
      1, [](const std::vector<Var>& v) { return Array<Expr>{floordiv(v[0], 4), floormod(v[0], 4)}; });
  for (int64_t n : {1, 3, 4, 5, 14, 16}) checkPaddedInverse(split, {n});
  checkPaddedInverse(split, {14}, {3}); // begins inside a tile
  auto offset = IndexMap::of(
      1, [](const std::vector<Var>& v) { return Array<Expr>{floordiv(v[0] + 3, 4), floormod(v[0] + 3, 4)}; });
  checkPaddedInverse(offset, {14}); // padding on both sides
  auto flat = IndexMap::of(2, [](const std::vector<Var>& v) { return Array<Expr>{v[0] * 128 + v[1]}; });
  checkPaddedInverse(flat, {3, 128});
  auto tiled = IndexMap::of(2, [](const std::vector<Var>& v) {
    return Array<Expr>{floordiv(v[1], 8), floordiv(v[0], 3), floormod(v[0], 3),
                       floordiv(floormod(v[1], 8), 2), floormod(v[1], 2)};
  });
  checkPaddedInverse(tiled, {7, 13});
}

TEST(IndexMaps, ShapesTextAndComposition) {
  Analyzer an;
  auto split = IndexMap::of(
      2, [](const std::vector<Var>& v) { return Array<Expr>{floordiv(v[0], 16), v[1], floormod(v[0], 16)}; });
  EXPECT_EQ(split.str(), "lambda i0, i1: (i0 // 16, i1, i0 % 16)");
  auto shape = split.applyShape({intImm(40), intImm(7)}, an);
  ASSERT_TRUE(shape);
  EXPECT_EQ(constDims(*shape), (std::vector<int64_t>{3, 7, 16}));
  auto inverse = split.inverse({range(intImm(0), intImm(48)), range(intImm(0), intImm(7))}, an);
  ASSERT_TRUE(inverse);
  IndexMap round = inverse->after(split, an);
  EXPECT_TRUE(round.isIdentity()) << round.str();
  EXPECT_FALSE(split.inverse({range(intImm(0), intImm(40)), range(intImm(0), intImm(7))}, an));
  EXPECT_FALSE(split.inverse({range(intImm(0), intImm(40))}, an)); // wrong rank
  EXPECT_TRUE(IndexMap::identity(3).isIdentity());
  auto other = IndexMap::of(
      2, [](const std::vector<Var>& v) { return Array<Expr>{floordiv(v[0], 16), v[1], floormod(v[0], 16)}; });
  EXPECT_TRUE(split.equals(other));
  EXPECT_FALSE(split.equals(IndexMap::identity(2)));
  auto negative = IndexMap::of(1, [](const std::vector<Var>& v) { return Array<Expr>{v[0] - 1}; });
  EXPECT_FALSE(negative.applyShape({intImm(4)}, an));
  Var n = var("n");
  an.bind(n, ConstBound{1, kPosInf});
  auto symbolic = split.applyShape({n, intImm(7)}, an);
  ASSERT_TRUE(symbolic);
  for (int64_t v : {1, 15, 16, 17}) EXPECT_EQ(evaluate((*symbolic)[0], {{n, v}}), (v + 15) / 16);
}

} // namespace
} // namespace bevel
