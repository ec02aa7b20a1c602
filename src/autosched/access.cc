// Access patterns of blocks.
#include "autosched/access.h"

#include "arith/analyzer.h"
#include "arith/linear.h"
#include "ir/build.h"
#include "ir/structural.h"

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

AccessPattern patternOf(const Buffer& b, const Array<Expr>& indices, bool write, const std::vector<Var>& axes,
                        Analyzer& analyzer) {
  AccessPattern p;
  p.buffer = b;
  p.write = write;
  p.linear = b->strides.empty();
  p.strides.assign(axes.size(), 0);
  std::vector<int64_t> dense = denseStrides(*b);
  for (size_t d = 0; d < indices.size() && p.linear; ++d) {
    auto coefficients = constStrides(indices[d], axes, analyzer);
    if (!coefficients) {
      p.linear = false;
      break;
    }
    p.dims.push_back(*coefficients);
    for (size_t k = 0; k < axes.size(); ++k) {
      int64_t c = (*coefficients)[k];
      if (c == 0) continue;
      bool symbolic = dense[d] >= kSymbolicStride || p.strides[k] >= kSymbolicStride;
      p.strides[k] = symbolic ? kSymbolicStride : p.strides[k] + c * dense[d];
    }
  }
  if (!p.linear) p.strides.clear(), p.dims.clear();
  return p;
}

void collectAccesses(BlockInfo& info, Analyzer& analyzer) {
  std::vector<Var> axes;
  for (const IterVar& a : info.block->iters) axes.push_back(a->var);
  std::vector<AccessPattern> stores;
  walk(info.block->body, [&](const NodeRef& n) {
    if (const auto* s = n.as<StoreNode>())
      stores.push_back(patternOf(s->buffer, s->indices, true, axes, analyzer));
    return true;
  });
  auto written = [&](const Buffer& b) {
    return std::any_of(stores.begin(), stores.end(),
                       [&](const AccessPattern& p) { return p.buffer->data == b->data; });
  };
  walk(info.block->body, [&](const NodeRef& n) {
    if (const auto* l = n.as<LoadNode>(); l && !written(l->buffer))
      info.accesses.push_back(patternOf(l->buffer, l->indices, false, axes, analyzer));
    return true;
  });
  info.accesses.insert(info.accesses.end(), stores.begin(), stores.end());
}

struct Collector {
  const std::vector<BlockInfo>& known;
  std::vector<BlockInfo> blocks;
  std::vector<const ForNode*> loops; // inside the scope
  std::string scope, outermost;
  size_t next = 0; // in `known`: it has the blocks in the same order

  static bool containsBlocks(const Stmt& body) {
    bool any = false;
    walk(body, [&](const NodeRef& n) {
      any |= n.is<BlockRealizeNode>();
      return !any && !n.is<ExprNode>();
    });
    return any;
  }

  void enter(const BlockNode& block) {
    std::vector<const ForNode*> outside;
    std::string parent = std::exchange(scope, block.name);
    bool first = !parent.empty() && outermost.empty();
    if (first) outermost = block.name;
    loops.swap(outside);
    visit(block.body);
    loops.swap(outside);
    if (first) outermost.clear();
    scope = parent;
  }

  void visit(const Stmt& s) {
    if (const auto* f = s.as<ForNode>()) {
      loops.push_back(f);
      visit(f->body);
      loops.pop_back();
    } else if (const auto* q = s.as<SeqNode>()) {
      for (const Stmt& x : q->stmts) visit(x);
    } else if (const auto* r = s.as<BlockRealizeNode>()) {
      containsBlocks(r->block->body) ? enter(*r->block) : add(*r);
    } else if (const auto* i = s.as<IfNode>()) {
      visit(i->thenBody);
      if (i->elseBody) visit(i->elseBody);
    }
  }

  void add(const BlockRealizeNode& r) {
    BlockInfo info;
    info.block = r.block;
    info.scope = scope;
    info.outermost = outermost.empty() ? r.block->name : outermost;
    for (const IterVar& a : r.block->iters) info.extents.push_back(a->domain->extent);
    size_t n = r.values.size();
    info.simpleLoops = isConst(r.predicate, 1) && loops.size() == n;
    for (size_t k = 0; info.simpleLoops && k < n; ++k) {
      const ForNode& f = *loops[k];
      info.simpleLoops = r.values[k] == Expr(f.var) && f.forKind == ForKind::kSerial && isConst(f.min, 0);
    }
    if (const BlockInfo* same = find(r.block)) {
      info.accesses = same->accesses;
    } else {
      Analyzer analyzer;
      for (const IterVar& a : r.block->iters) analyzer.bind(a->var, a->domain);
      collectAccesses(info, analyzer);
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

} // namespace

namespace {

// In this access axis k + 1 runs through a whole dimension of the buffer, and axis k through the one before
// it.
bool neighbours(const AccessPattern& a, size_t k, const Expr& extent) {
  for (size_t d = 0; d + 1 < a.dims.size(); ++d) {
    auto only = [&](size_t dim, size_t axis) {
      for (size_t x = 0; x < a.dims[dim].size(); ++x)
        if (a.dims[dim][x] != (x == axis ? 1 : 0)) return false;
      return true;
    };
    if (only(d, k) && only(d + 1, k + 1)) return same(a.buffer->shape[d + 1], extent);
  }
  return false;
}

} // namespace

bool contiguousPair(const BlockInfo& b, size_t k) {
  int64_t extent = b.extent(k + 1);
  return std::all_of(b.accesses.begin(), b.accesses.end(), [&](const AccessPattern& a) {
    if (!a.linear) return false;
    if (a.strides[k] == 0 && a.strides[k + 1] == 0) return true;
    if (extent < 0 || a.strides[k + 1] >= kSymbolicStride || a.strides[k] >= kSymbolicStride)
      return neighbours(a, k, b.extents[k + 1]);
    return a.strides[k] == a.strides[k + 1] * extent;
  });
}

std::vector<BlockInfo> analyseBlocks(const PrimFunc& f, const std::vector<BlockInfo>& known) {
  Collector c{known, {}, {}, {}, {}, 0};
  c.visit(f->body);
  return std::move(c.blocks);
}

int64_t bodyWork(const Block& block) {
  int64_t work = 0;
  walk(block->body, [&](const NodeRef& n) {
    if (const auto* c = n.as<CallNode>())
      work += c->op == Intrin::kIfThenElse || c->op == Intrin::kLikely ? 0 : 10;
    if (const auto* b = n.as<BinaryNode>(); b && b->dtype.isFloat()) work += b->op == BinaryOp::kDiv ? 5 : 1;
    return true;
  });
  return work;
}

} // namespace bevel
