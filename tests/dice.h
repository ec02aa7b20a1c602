// Deterministic choices for the fuzzers.
#pragma once

#include "base/hash.h"

#include <cstdint>
#include <cstdlib>
#include <vector>

namespace bevel::testing {

class Dice {
public:
  explicit Dice(uint64_t seed) : state_(seed) {}
  uint64_t next() { return state_ = hashMix(state_ + 0x9e3779b97f4a7c15ULL); }
  int64_t upTo(int64_t n) { return int64_t(next() % uint64_t(n)); } // [0, n)
  bool oneIn(int64_t n) { return upTo(n) == 0; }
  template <class T> const T& pick(const std::vector<T>& v) { return v[size_t(upTo(int64_t(v.size())))]; }

private:
  uint64_t state_;
};

/// The seeds to run: `few` of them, or as many others as BEVEL_FUZZ says.
inline std::vector<uint64_t> fuzzSeeds(int few) {
  const char* many = std::getenv("BEVEL_FUZZ");
  std::vector<uint64_t> out;
  for (int i = 0; i < (many ? std::atoi(many) : few); ++i)
    out.push_back(uint64_t(i) + (many ? 1'000'000 : 0));
  return out;
}

} // namespace bevel::testing
