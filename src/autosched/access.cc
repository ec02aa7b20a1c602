// Access patterns of blocks.
#include "autosched/access.h"

#include "arith/analyzer.h"
#include "arith/linear.h"
#include "ir/build.h"
#include "ir/structural.h"
#include "loop/block_scope.h"

#include <algorithm>
#include <utility>

namespace bevel {

bool BlockInfo::isReduce(size_t k) const {
  return block->iters[k]->type == IterType::kReduce;
}
bool BlockInfo::reduces() const {
  for (size_t k = 0; k < block->iters.size(); ++k)
    if (isReduce(k)) return true;
  return false;
}
size_t BlockInfo::numSpatial() const {
  size_t n = 0;
  for (const IterVar& a : block->iters) n += a->type == IterType::kSpatial;
  return n;
}
int64_t BlockInfo::extent(size_t k) const {
  auto c = asConst(extents[k]);
  return c ? *c : -1;
}
bool BlockInfo::isContiguous(size_t k) const {
  return std::ranges::all_of(
      accesses, [&](const AccessPattern& a) { return a.linear && (a.strides[k] == 1 || a.strides[k] == 0); });
}
size_t BlockInfo::column() const {
  size_t last = block->iters.size();
  for (size_t k = 0; k < block->iters.size(); ++k)
    if (!isReduce(k) && (extent(k) != 1 || last == block->iters.size())) last = k;
  return last;
}
int64_t BlockInfo::step(const AccessPattern& a, size_t d, size_t k) const {
  return a.indices[d].coefOf(block->iters[k]->var);
}
bool BlockInfo::isOnly(const AccessPattern& a, size_t d, size_t k) const {
  for (size_t x = 0; x < block->iters.size(); ++x)
    if (step(a, d, x) != (x == k)) return false;
  return true;
}

Operands operandsOf(const BlockInfo& b) {
  Operands out;
  size_t column = b.column();
  for (const AccessPattern& a : b.accesses) {
    if (a.write || !a.linear || column == b.block->iters.size()) continue;
    (a.strides[column] == 0 ? out.still : out.moves) = true;
    out.contiguous |= a.strides[column] == 1;
  }
  return out;
}

namespace {

// Elements between neighbours along each dimension of a dense buffer.
std::vector<int64_t> denseStrides(const BufferNode& b) {
  std::vector<int64_t> out(b.rank(), 1);
  int64_t stride = 1;
  for (size_t d = b.rank(); d-- > 0;) {
    out[d] = stride;
    auto extent = asConst(b.shape[d]);
    stride = !extent || stride >= kSymbolicStride
                 ? kSymbolicStride
                 : std::min(kSymbolicStride, stride * std::max<int64_t>(*extent, 1));
  }
  return out;
}

AccessPattern patternOf(const BufferAccess& access, const std::vector<Var>& axes, Analyzer& analyzer) {
  AccessPattern p{access.buffer, access.write, access.buffer->strides.empty() && !access.opaque, {}, {}};
  std::vector<int64_t> dense = denseStrides(*access.buffer), strides(axes.size(), 0);
  for (size_t d = 0; d < access.region.size() && p.linear; ++d) {
    auto form = affineIn(access.region[d]->min, axes, analyzer);
    p.linear = form && isConst(access.region[d]->extent, 1);
    if (!p.linear) break;
    for (size_t k = 0; k < axes.size(); ++k) {
      int64_t c = form->coefOf(axes[k]);
      if (c == 0) continue;
      bool symbolic = dense[d] >= kSymbolicStride || strides[k] >= kSymbolicStride;
      strides[k] = symbolic ? kSymbolicStride : strides[k] + c * dense[d];
    }
    p.indices.push_back(std::move(*form));
  }
  if (p.linear)
    p.strides = std::move(strides);
  else
    p.indices.clear();
  return p;
}

void collectPatterns(BlockInfo& info, Analyzer& analyzer) {
  std::vector<Var> axes;
  for (const IterVar& a : info.block->iters) axes.push_back(a->var);
  std::vector<BufferAccess> accesses = collectAccesses(info.block->body);
  auto written = buffersWritten(accesses);
  std::unordered_set<NodeRef, RefHash> seen; // a node that stands at several places counts once
  std::erase_if(accesses, [&](const BufferAccess& a) {
    return !a.buffer || (!a.write && written.contains(a.buffer->data)) ||
           (a.node.is<ExprNode>() && !seen.insert(a.node).second);
  });
  for (bool stores : {false, true})
    for (const BufferAccess& a : accesses)
      if (a.write == stores) info.accesses.push_back(patternOf(a, axes, analyzer));
}

struct Collector {
  const std::vector<BlockInfo>& known;
  std::vector<BlockInfo> blocks;
  size_t next = 0; // in `known`: it has the blocks in the same order

  void enter(const BlockRealize& scope, const std::string& outermost) {
    for (const ScopeBlock& b : ScopeInfo(scope).blocks) {
      const std::string& top = outermost.empty() ? b.name() : outermost;
      if (blocksUnder(b.block().body).empty())
        add(b, scope->block->name, top);
      else
        enter(b.realize, top);
    }
  }

  void add(const ScopeBlock& b, const std::string& scope, const std::string& outermost) {
    const BlockRealizeNode& r = *b.realize;
    BlockInfo info{r.block, scope, outermost, {}, {}};
    for (const IterVar& a : r.block->iters) info.extents.push_back(a->domain->extent);
    size_t n = r.values.size();
    info.simpleLoops = isConst(r.predicate, 1) && b.loops.size() == n;
    for (size_t k = 0; info.simpleLoops && k < n; ++k) {
      const ForNode& f = *b.loops[k];
      info.simpleLoops = r.values[k] == Expr(f.var) && f.forKind == ForKind::kSerial && isConst(f.min, 0);
    }
    if (const BlockInfo* same = find(r.block)) {
      info.accesses = same->accesses;
    } else {
      Analyzer analyzer;
      for (const IterVar& a : r.block->iters) analyzer.bind(a->var, a->domain);
      collectPatterns(info, analyzer);
    }
    blocks.push_back(std::move(info));
  }

  const BlockInfo* find(const Block& block) {
    for (size_t i = next; i < known.size(); ++i)
      if (known[i].block == block) {
        next = i + 1;
        return &known[i];
      }
    return nullptr;
  }
};

// In this access axis k + 1 runs through a whole dimension of the buffer, and axis k through the one before
// it.
bool neighbours(const BlockInfo& b, const AccessPattern& a, size_t k) {
  for (size_t d = 0; d + 1 < a.indices.size(); ++d)
    if (b.isOnly(a, d, k) && b.isOnly(a, d + 1, k + 1)) return same(a.buffer->shape[d + 1], b.extents[k + 1]);
  return false;
}

} // namespace

bool contiguousPair(const BlockInfo& b, size_t k) {
  int64_t extent = b.extent(k + 1);
  return std::all_of(b.accesses.begin(), b.accesses.end(), [&](const AccessPattern& a) {
    if (!a.linear) return false;
    if (a.strides[k] == 0 && a.strides[k + 1] == 0) return true;
    if (extent < 0 || a.strides[k + 1] >= kSymbolicStride || a.strides[k] >= kSymbolicStride)
      return neighbours(b, a, k);
    return a.strides[k] == a.strides[k + 1] * extent;
  });
}

std::vector<BlockInfo> analyseBlocks(const PrimFunc& f, const std::vector<BlockInfo>& known) {
  Collector c{known, {}};
  c.enter(cast<BlockRealizeNode>(f->body), "");
  return std::move(c.blocks);
}

} // namespace bevel
