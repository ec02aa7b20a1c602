// Choosing register tiles.
//
// Register budget (measured on LLVM 19: more accumulators spill): 12 of 16 vector registers, 28 of 32.
// Latency: a multiply-add takes 4 cycles and two start each cycle, so fewer than 8 accumulators cannot keep
// the units busy.
#include "autosched/tile_model.h"

#include <algorithm>

namespace bevel {
namespace {

constexpr double kL2BytesPerCycle = 12; // sustained beside multiply-adds

int64_t ceilDiv(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

// Cycles of one step of the reduction in a tile. A panel that does not stay in L1 comes from L2 again for every row tile.
double stepCycles(const TileProblem& p, int64_t rows, int64_t vectors, const Target& target) {
  double multiplyAdds = double(rows * vectors) / 2;
  double loads = p.rowsAreScalars ? double(rows + vectors) / 2 : double(rows * vectors + vectors) / 2;
  double panelStep = double(vectors * target.limits.vectorBits) / 8;
  int64_t l1 = std::max<int64_t>(target.limits.l1, 32 << 10);
  bool streams = p.rowsAreScalars && double(std::max<int64_t>(p.depth, 1)) * panelStep > 0.75 * double(l1);
  return std::max({multiplyAdds, loads, streams ? panelStep / kL2BytesPerCycle : 0.0, 4.0});
}

} // namespace

std::vector<TileCandidate> tileCandidates(const TileProblem& p, const Target& target) {
  int64_t lanes = std::max(1, target.limits.vectorBits / p.elementBits);
  int64_t budget = target.limits.vectorRegs >= 32 ? 28 : 12;
  int64_t rows = p.rows > 0 ? p.rows : 128, columns = p.columns > 0 ? p.columns : 512;
  std::vector<TileCandidate> out;
  for (int64_t v = 1; v <= std::min<int64_t>(budget, ceilDiv(columns, lanes)); ++v)
    for (int64_t r = 1; r * v <= budget && r <= std::max<int64_t>(rows, 1); ++r) {
      if (r > 14 || v > 8) continue; // addresses of rows need registers as well
      // A panel operand and a broadcast live beside the accumulators.
      if (r * v + std::min<int64_t>(v, 3) + 1 > target.limits.vectorRegs) continue;
      double tiles = double(ceilDiv(rows, r)) * double(ceilDiv(columns, v * lanes));
      out.push_back(
          {r, v, tiles * (stepCycles(p, r, v, target) + 0.02 * double(r + v))}); // ties: fewer pointers
    }
  return out;
}

TilePlan planOf(const TileProblem& p, const Target& target, const TileCandidate& tile) {
  int64_t rows = p.rows > 0 ? p.rows : 128, columns = p.columns > 0 ? p.columns : 512;
  TilePlan plan;
  plan.rows = tile.rows, plan.vectors = tile.vectors;
  plan.lanes = std::max(1, target.limits.vectorBits / p.elementBits);
  double ideal = double(rows) * double(columns) / double(plan.lanes) / 2;
  plan.efficiency = tile.cycles > 0 ? ideal / tile.cycles : 0;
  // Rows of a chunk stay in half of L2 while all panels pass; panels that fit L2 themselves need no such
  // care.
  int64_t half = std::max<int64_t>(target.limits.l2, 256 << 10) / 2;
  if (p.rowBytes > 0 && rows * p.rowBytes > half) {
    int64_t chunk = std::max<int64_t>(half / p.rowBytes / plan.rows, 1) * plan.rows;
    int64_t chunks = ceilDiv(rows, chunk); // of even size
    if (chunk < rows) plan.chunkRows = ceilDiv(ceilDiv(rows, chunks), plan.rows) * plan.rows;
  }
  return plan;
}

size_t bestTile(const std::vector<TileCandidate>& candidates) {
  size_t best = 0;
  for (size_t i = 1; i < candidates.size(); ++i)
    if (candidates[i].cycles < candidates[best].cycles * 0.999) best = i;
  return best;
}

} // namespace bevel
