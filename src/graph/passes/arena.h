// Offsets of tensors in one arena.
#pragma once

#include "ir/expr.h"

#include <vector>

namespace bevel {

/// A tensor to place: its size in bytes and the positions between which it lives (both included).
struct ArenaItem {
  Expr bytes; // int64, constant or over symbolic dimensions
  int first, last;
};

struct ArenaPlan {
  std::vector<Expr> offsets; // bytes, multiples of 64
  Expr total;
};

/// Items that live at the same time do not overlap. Constant sizes: largest first, each at the lowest free
/// offset (Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020: greedy by
/// size). Symbolic sizes lie behind them and share a place with equal sizes only.
ArenaPlan planArena(const std::vector<ArenaItem>& items);

} // namespace bevel
