// Shrinks allocated buffers to the region that is touched.
//
// before:  for io in 8:                                  after:  for io in 8:
//            with T.allocate(B, (128,)):                           with T.allocate(B, (16,)):
//              for ii in 16: B[io*16 + ii] = A[io*16 + ii]           for ii in 16: B[ii] = A[io*16 + ii]
//              for ii in 16: C[io*16 + ii] = B[io*16 + ii]           for ii in 16: C[io*16 + ii] = B[ii]
//
// The region is the union of all accesses, relaxed over the loops inside the allocation. A dimension shrinks
// to a constant where one bounds its extent, else to an expression of the function's dimensions where that is
// no larger than before. Rows of register tiles become whole vectors, so that tails need no mask inside the
// tile. Buffers with strides, and buffers whose address is taken, stay.
#include "loop/passes/context.h"
#include "loop/passes/passes.h"
#include "loop/regions.h"

#include <algorithm>

namespace bevel {
namespace {

class Compaction : public ContextRewriter {
public:
  Compaction(const PrimFunc& f, std::string_view kind) : ContextRewriter(f), kind_(kind) {}

private:
  struct Shrunk {
    Buffer buffer;
    std::vector<Expr> mins;
  };

  NodeRef visit(const NodeRef& node) override {
    if (node.is<AllocNode>()) return visitAlloc(cast<AllocNode>(node));
    NodeRef out = ContextRewriter::visit(node);
    auto access = elementAccess(out);
    auto it = access ? shrunk_.find(access->buffer->data) : shrunk_.end();
    if (it == shrunk_.end()) return out;
    return withAccess(out, it->second.buffer, shifted(access->indices, it->second));
  }

  Array<Expr> shifted(const Array<Expr>& indices, const Shrunk& s) {
    Array<Expr> out;
    for (size_t d = 0; d < indices.size(); ++d)
      out.push_back(isConst(s.mins[d], 0) ? indices[d] : analyzer.simplify(indices[d] - s.mins[d]));
    return out;
  }

  NodeRef visitAlloc(const Alloc& a) {
    BufferRegion region = touched(a);
    if (region) shrink(a->buffer, *region, vectorWidths(a));
    auto it = shrunk_.find(a->buffer->data);
    Buffer made = it == shrunk_.end() ? a->buffer : it->second.buffer;
    Stmt body = (*this)(a->body);
    return body ? NodeRef(with(a, &AllocNode::buffer, made, &AllocNode::body, body)) : NodeRef();
  }

  /// Union of the accesses, or null when it is not known.
  BufferRegion touched(const Alloc& a) {
    if (!a->buffer->strides.empty() || a->buffer->elemOffset) return nullptr;
    BufferRegion region;
    for (const BufferAccess& x : collectAccesses(a->body)) {
      if (!x.buffer || !x.buffer->sameAs(*a->buffer)) continue;
      if (x.opaque || x.buffer->rank() != a->buffer->rank() || !same(x.buffer, a->buffer)) return nullptr;
      BufferRegion r = relaxRegion(a->buffer, x.region, x.loops, x.conditions, analyzer);
      region = region ? regionUnion(region, r, analyzer) : r;
    }
    return region && addressTaken(a->body, a->buffer) ? nullptr : region;
  }

  /// For each dimension of a register buffer: the widest vectorised loop that indexes it; 1 when none does.
  std::vector<int64_t> vectorWidths(const Alloc& a) const {
    std::vector<int64_t> widths(a->buffer->rank(), 1);
    if (!inRegisters(a->buffer->scope, kind_)) return widths;
    for (const BufferAccess& x : collectAccesses(a->body)) {
      if (!x.buffer || !x.buffer->sameAs(*a->buffer)) continue;
      walk(a->body, [&](const NodeRef& n) {
        const auto* f = n.as<ForNode>();
        for (size_t d = 0; f && f->forKind == ForKind::kVectorized && d < x.region.size(); ++d)
          if (usesVar(x.region[d]->min, f->var))
            widths[d] = std::max(widths[d], asConst(f->extent).value_or(1));
        return true;
      });
    }
    return widths;
  }

  void shrink(const Buffer& buffer, const BufferRegionNode& region, const std::vector<int64_t>& widths) {
    std::vector<Expr> mins;
    Array<Expr> shape = buffer->shape;
    for (size_t d = 0; d < buffer->rank(); ++d) {
      Expr extent = boundedExtent(region.region[d]->extent, buffer->shape[d]);
      Expr lo = analyzer.simplify(region.region[d]->min);
      if (readsMemory(lo)) extent = nullptr, lo = intImm(0); // what it loads may change
      auto whole = asConst(extent ? extent : buffer->shape[d]);
      if (whole && *whole % widths[d] != 0) {
        lo = extent ? lo : intImm(0);
        extent = intImm((*whole + widths[d] - 1) / widths[d] * widths[d]);
      }
      if (extent) shape.set(d, extent);
      mins.push_back(extent ? lo : intImm(0));
    }
    if (shape == buffer->shape) return;
    shrunk_[buffer->data] = {with(buffer, &BufferNode::shape, shape), std::move(mins)};
  }

  /// A size that holds the extent and is smaller than the whole dimension; null when none is known.
  Expr boundedExtent(const Expr& extent, const Expr& whole) {
    Expr e = analyzer.simplify(extent);
    ConstBound bound = analyzer.bound(e);
    auto size = asConst(analyzer.simplify(whole));
    if (bound.max != kPosInf) {
      int64_t fits = std::max<int64_t>(bound.max, 1);
      bool smaller = size ? fits < *size : !analyzer.prove(whole <= intImm(fits));
      return smaller ? intImm(fits) : nullptr;
    }
    bool overLoops = std::ranges::any_of(loops, [&](const For& l) { return usesVar(e, l->var); });
    if (overLoops || readsMemory(e) || hasMinMax(e) || !analyzer.prove(e <= whole) ||
        analyzer.proveEqual(e, whole))
      return nullptr;
    return e;
  }

  /// A bound that could not be decided: seldom less than the whole.
  static bool hasMinMax(const Expr& e) {
    return anyNode<BinaryNode>(
        e, [](const BinaryNode& b) { return b.op == BinaryOp::kMin || b.op == BinaryOp::kMax; });
  }

  std::string_view kind_; // of the target
  std::unordered_map<Var, Shrunk, RefHash> shrunk_;
};

} // namespace

Result<PrimFunc> compactBuffers(const PrimFunc& f, const Target& target) {
  return Compaction(f, target.kind()).run(f);
}

} // namespace bevel
