// Replaces views made by T.match_buffer inside blocks by accesses of their source.
//
// before:  with T.sblock("b"):
//            V = T.match_buffer(A[vi*16:vi*16+16, 0:8], (16, 8), strides=[s, 1])
//            V[i, j] = 0
// after:   with T.sblock("b"):
//            A[vi*16 + i, j] = 0          (and s becomes A's row stride)
#include "loop/passes/context.h"
#include "loop/passes/passes.h"

#include <fmt/format.h>

namespace bevel {
namespace {

/// Strides of a buffer, computed when it is dense.
std::vector<Expr> stridesOf(const BufferNode& b) {
  if (!b.strides.empty()) return {b.strides.begin(), b.strides.end()};
  std::vector<Expr> out(b.rank());
  Expr step = intImm(1);
  for (size_t d = b.rank(); d-- > 0;) {
    out[d] = step;
    step = step * castTo(kInt64, b.shape[d]);
  }
  return out;
}

class MatchLowering : public Rewriter {
public:
  MatchLowering() { memoise = false; }
  std::optional<Error> error;

private:
  NodeRef visit(const NodeRef& node) override {
    if (const auto* block = node.as<BlockNode>(); block && !block->matches.empty())
      return lowerBlock(cast<BlockNode>(node));
    if (elementAccess(node)) {
      NodeRef out = visitChildren(node);
      auto access = elementAccess(out);
      auto it = views_.find(access->buffer->data);
      if (it == views_.end()) return out;
      return withAccess(out, it->second->buffer, elementThroughView(access->indices, *it->second));
    }
    if (node.is<BufferRegionNode>()) {
      BufferRegion r = cast<BufferRegionNode>(visitChildren(node));
      auto it = views_.find(r->buffer->data);
      if (it == views_.end()) return r;
      return make<const BufferRegionNode>(it->second->buffer, throughView(*it->second, r->region));
    }
    if (const auto* d = node.as<DeclBufferNode>(); d && views_.contains(d->buffer->data))
      refuse(*d->buffer, "is declared over another view");
    if (node.is<VarNode>()) {
      auto it = values_.find(cast<VarNode>(node));
      return it == values_.end() ? node : NodeRef(it->second);
    }
    return node.is<BufferNode>() ? node : visitChildren(node);
  }

  NodeRef lowerBlock(const Block& block) {
    for (const MatchBuffer& m : block->matches) {
      BufferRegion source = cast<BufferRegionNode>((*this)(NodeRef(m->source)));
      bindView(*m->buffer, source);
    }
    return visitChildren(with(block, &BlockNode::matches, Array<MatchBuffer>()));
  }

  void bindView(const BufferNode& view, const BufferRegion& source) {
    const BufferNode& from = *source->buffer;
    if (view.rank() > from.rank()) return refuse(view, "has more dimensions than its source");
    size_t lead = from.rank() - view.rank();
    for (size_t d = 0; d < lead; ++d)
      if (!isConst(source->region[d]->extent, 1))
        return refuse(view, "leaves out a dimension of extent other than 1");
    std::vector<Expr> strides = stridesOf(from);
    for (size_t d = 0; d < view.rank(); ++d)
      bindExpr(view, view.shape[d], source->region[lead + d]->extent, "shape");
    for (size_t d = 0; d < view.strides.size(); ++d)
      bindExpr(view, view.strides[d], strides[lead + d], "strides");
    if (view.elemOffset) {
      Expr offset = from.elemOffset ? castTo(kInt64, from.elemOffset) : intImm(0);
      for (size_t d = 0; d < from.rank(); ++d)
        offset = offset + castTo(kInt64, source->region[d]->min) * castTo(kInt64, strides[d]);
      bindExpr(view, view.elemOffset, offset, "offset");
    }
    views_[view.data] = source;
    values_[view.data] = from.data;
  }

  /// A variable of the view that nothing has bound takes the source's value; an expression must equal it.
  void bindExpr(const BufferNode& view, const Expr& declared, const Expr& actual, const char* what) {
    if (declared.is<VarNode>() && !values_.contains(cast<VarNode>(declared)) && !same(declared, actual)) {
      values_[cast<VarNode>(declared)] = castTo(declared->dtype, actual);
      return;
    }
    Analyzer analyzer;
    Expr known = substitute(declared, values_);
    if (isConst(known, 0) && std::string_view(what) == "offset") return; // not stated
    if (!analyzer.proveEqual(castTo(kInt64, known), castTo(kInt64, actual)))
      refuse(view, fmt::format("states {} that differ from its source's", what));
  }
  void refuse(const BufferNode& view, const std::string& why) {
    if (!error)
      error = Error(ErrorCode::kInvalid, fmt::format("the match_buffer view \"{}\" {}", view.name, why))
                  .at(Buffer(&view));
  }

  static Array<Expr> elementThroughView(const Array<Expr>& indices, const BufferRegionNode& source) {
    Array<Range> point;
    for (const Expr& i : indices) point.push_back(range(i, constant(i->dtype.scalar(), 1)));
    Array<Expr> out;
    for (const Range& r : throughView(source, point)) out.push_back(r->min);
    return out;
  }

  std::unordered_map<Var, BufferRegion, RefHash> views_;
  VarMap values_;
};

} // namespace

Result<PrimFunc> lowerMatchBuffer(const PrimFunc& f, const Target&) {
  MatchLowering lowering;
  Stmt body = lowering(f->body);
  if (lowering.error) return fail(std::move(*lowering.error));
  return withBody(f, body);
}

} // namespace bevel
