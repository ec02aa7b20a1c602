// 64-bit hashing that is the same on every machine and in every run.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace bevel {

/// Finaliser of MurmurHash3: spreads every input bit over the word.
constexpr uint64_t hashMix(uint64_t x) {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdULL;
  x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53ULL;
  return x ^ (x >> 33);
}

constexpr uint64_t hashCombine(uint64_t seed, uint64_t value) {
  return hashMix(seed * 0x9e3779b97f4a7c15ULL + value + 0x632be59bd9b4e019ULL);
}

inline uint64_t hashBytes(const void* data, size_t size, uint64_t seed = 0) {
  const auto* p = static_cast<const unsigned char*>(data);
  uint64_t h = hashCombine(seed, size);
  for (; size >= 8; p += 8, size -= 8) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    h = hashCombine(h, word);
  }
  uint64_t tail = 0;
  std::memcpy(&tail, p, size);
  return hashCombine(h, tail);
}

inline uint64_t hashText(std::string_view text, uint64_t seed = 0) {
  return hashBytes(text.data(), text.size(), seed);
}

} // namespace bevel
