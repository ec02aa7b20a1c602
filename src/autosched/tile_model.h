// The analytic model of the target: which register tile and which blocking a contraction gets without tuning.
#pragma once

#include "target/target.h"

#include <cstdint>
#include <vector>

namespace bevel {

/// The nest behind a contraction, from outside in: chunks of rows, column panels, row tiles in the chunk, the
/// reduction, and a tile of `rows` × `vectors` accumulator registers.
struct TilePlan {
  int64_t rows = 1;      // accumulator rows
  int64_t vectors = 1;   // vector registers a row
  int64_t lanes = 1;     // elements a vector register
  int64_t chunkRows = 0; // rows between returns to the first column panel (multiple of `rows`); 0: all
  double efficiency = 0; // share of the peak that the tile can reach, tails included
  int64_t columns() const { return vectors * lanes; }
};

/// What the model looks at. Unknown (symbolic) extents are -1.
struct TileProblem {
  int64_t rows = -1, columns = -1, depth = -1; // M, N, K
  int64_t rowBytes = 0;       // bytes of input that one row of the tile reads over the whole reduction
  int64_t columnBytes = 0;    // bytes of the panel operand over the whole reduction, a column
  bool rowsAreScalars = true; // the row operand is broadcast; false: both operands are vectors (depthwise)
  int elementBits = 32;
};

/// A tile and its cycles: for each step of the reduction the larger of multiply-adds (two a cycle, and never less than
/// the latency of a chain) and loads (two a cycle), times the number of tiles that cover the problem.
struct TileCandidate {
  int64_t rows = 1, vectors = 1;
  double cycles = 0;
};
/// The tiles that the registers allow, in the order of rows and vectors.
std::vector<TileCandidate> tileCandidates(const TileProblem& problem, const Target& target);
/// The position of the one with the least cycles (the first of those within a thousandth).
size_t bestTile(const std::vector<TileCandidate>& candidates);
/// The plan with a tile of one's own.
TilePlan planOf(const TileProblem& problem, const Target& target, const TileCandidate& tile);

} // namespace bevel
