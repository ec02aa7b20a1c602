// Placing tensors in an arena.
#include "graph/passes/arena.h"

#include "ir/build.h"
#include "ir/structural.h"

#include <algorithm>
#include <numeric>

namespace bevel {
namespace {

constexpr int64_t kAlign = 64;
int64_t aligned(int64_t n) {
  return (n + kAlign - 1) / kAlign * kAlign;
}

bool meet(const ArenaItem& a, const ArenaItem& b) {
  return a.first <= b.last && b.first <= a.last;
}

struct Placed {
  size_t item;
  int64_t offset, size;
};

// Lowest offset with room for the item among those placed that live at the same time.
int64_t lowestFree(const std::vector<ArenaItem>& items, const std::vector<Placed>& placed, size_t item,
                   int64_t size) {
  std::vector<std::pair<int64_t, int64_t>> taken;
  for (const Placed& p : placed)
    if (meet(items[p.item], items[item])) taken.emplace_back(p.offset, p.offset + p.size);
  std::sort(taken.begin(), taken.end());
  int64_t at = 0;
  for (auto [from, to] : taken) {
    if (from - at >= size) break;
    at = std::max(at, to);
  }
  return at;
}

} // namespace

ArenaPlan planArena(const std::vector<ArenaItem>& items) {
  ArenaPlan plan;
  plan.offsets.resize(items.size());
  std::vector<size_t> fixed, symbolic;
  for (size_t i = 0; i < items.size(); ++i) (asConst(items[i].bytes) ? fixed : symbolic).push_back(i);
  std::stable_sort(fixed.begin(), fixed.end(),
                   [&](size_t a, size_t b) { return *asConst(items[a].bytes) > *asConst(items[b].bytes); });
  std::vector<Placed> placed;
  int64_t top = 0;
  for (size_t i : fixed) {
    int64_t size = aligned(*asConst(items[i].bytes)), at = lowestFree(items, placed, i, size);
    placed.push_back({i, at, size});
    plan.offsets[i] = intImm(at);
    top = std::max(top, at + size);
  }
  // Symbolic sizes: a slot for each size that is in use at once.
  struct Slot {
    Expr bytes, offset;
    int busyUntil;
  };
  std::vector<Slot> slots;
  plan.total = intImm(top);
  std::stable_sort(symbolic.begin(), symbolic.end(),
                   [&](size_t a, size_t b) { return items[a].first < items[b].first; });
  for (size_t i : symbolic) {
    auto free = std::find_if(slots.begin(), slots.end(), [&](const Slot& s) {
      return s.busyUntil < items[i].first && same(s.bytes, items[i].bytes);
    });
    if (free == slots.end()) {
      slots.push_back({items[i].bytes, plan.total, -1});
      free = slots.end() - 1;
      plan.total = plan.total + floordiv(items[i].bytes + (kAlign - 1), kAlign) * kAlign;
    }
    free->busyUntil = items[i].last;
    plan.offsets[i] = free->offset;
  }
  return plan;
}

} // namespace bevel
