// Turns the buffers that blocks allocate into Alloc statements at the innermost place that holds all accesses
// and keeps the meaning.
//
// before:  with T.sblock("root"):                      after:  for i in 8:
//            B = T.sblock_alloc_buffer((8, 16))                   with T.allocate(B, (8, 16)):
//            for i in 8:                                             for j in 16: B[i, j] = A[i, j]
//              for j in 16: B[i, j] = A[i, j]                        for j in 16: C[i, j] = B[i, j] * 2
//              for j in 16: C[i, j] = B[i, j] * 2
//
// An allocation enters a loop only when nothing of the buffer passes from one iteration to another
// (isPrivateToIteration): so it stays outside of every reduction loop of what it accumulates, and outside of
// a loop that reads what an earlier iteration wrote. It does not enter vectorised loops, where it would be
// one buffer a lane.
#include "loop/dependence.h"
#include "loop/passes/context.h"
#include "loop/passes/passes.h"

#include <algorithm>

namespace bevel {
namespace {

bool touches(const NodeRef& node, const Buffer& buffer) {
  return node && usesVar(node, buffer->data);
}

class AllocationPlanner {
public:
  explicit AllocationPlanner(const PrimFunc& f) { bindDims(f, analyzer_); }

  Stmt place(const Stmt& s, std::vector<Buffer> buffers) {
    std::erase_if(buffers, [&](const Buffer& b) { return !touches(s, b); });
    std::vector<Buffer> here;
    Stmt out = descend(s, buffers, here);
    for (size_t i = here.size(); i-- > 0;) out = make<const AllocNode>(here[i], out);
    return out;
  }

private:
  /// Splits off into `here` the buffers that stay at s; passes the others below.
  std::vector<Buffer> sift(std::vector<Buffer>& buffers, std::vector<Buffer>& here,
                           FunctionRef<bool(const Buffer&)> mayEnter) {
    std::vector<Buffer> below;
    for (const Buffer& b : buffers) (mayEnter(b) ? below : here).push_back(b);
    return below;
  }

  Stmt descend(const Stmt& s, std::vector<Buffer>& buffers, std::vector<Buffer>& here) {
    switch (s->kind) {
    case Kind::kSeq:
      return descendSeq(cast<SeqNode>(s), buffers, here);
    case Kind::kBlockRealize:
      return descendRealize(cast<BlockRealizeNode>(s), buffers, here);
    case Kind::kIf:
      return descendIf(cast<IfNode>(s), buffers, here);
    default:
      if (bodyOf(s)) return descendBody(s, *bodyOf(s), buffers, here);
      here.insert(here.end(), buffers.begin(), buffers.end());
      return s;
    }
  }

  /// Whether something of s but its body touches the buffer.
  static bool touchesHead(const Stmt& s, const Stmt& body, const Buffer& buffer) {
    bool found = false;
    forEachChild(s, [&](const NodeRef& n, Role) { found = found || (n != body && touches(n, buffer)); });
    return found;
  }

  Stmt descendSeq(const Seq& s, std::vector<Buffer>& buffers, std::vector<Buffer>& here) {
    auto users = [&](const Buffer& b) {
      return std::count_if(s->stmts.begin(), s->stmts.end(), [&](const Stmt& x) { return touches(x, b); });
    };
    std::vector<Buffer> below = sift(buffers, here, [&](const Buffer& b) { return users(b) == 1; });
    std::vector<Stmt> out;
    for (const Stmt& x : s->stmts) out.push_back(place(x, below)); // place keeps only what x touches
    return seq(out);
  }

  Stmt descendBody(const Stmt& s, const Stmt& body, std::vector<Buffer>& buffers, std::vector<Buffer>& here) {
    const auto* loop = s.as<ForNode>();
    AccessModel inside(body, {}, kInsideBlocks);
    auto mayEnter = [&](const Buffer& b) {
      if (s.is<WhileNode>() || touchesHead(s, body, b)) return false; // iterations share what they touch
      if (!loop) return true;
      return loop->forKind != ForKind::kVectorized && isPrivateToIteration(inside, For(loop), b, analyzer_);
    };
    std::vector<Buffer> below = sift(buffers, here, mayEnter);
    if (loop) analyzer_.bind(loop->var, range(loop->min, loop->extent));
    Stmt out = withBody(s, place(body, below));
    if (loop) analyzer_.unbind(loop->var);
    return out;
  }

  Stmt descendRealize(const BlockRealize& r, std::vector<Buffer>& buffers, std::vector<Buffer>& here) {
    auto mayEnter = [&](const Buffer& b) {
      if (touches(r->predicate, b) || touches(r->block->init, b)) return false;
      return std::none_of(r->values.begin(), r->values.end(), [&](const Expr& v) { return touches(v, b); });
    };
    std::vector<Buffer> below = sift(buffers, here, mayEnter);
    const Block& block = r->block;
    below.insert(below.end(), block->allocs.begin(), block->allocs.end());
    for (const IterVar& v : block->iters) analyzer_.bind(v->var, v->domain);
    Stmt body = place(block->body, below);
    // What is allocated inside is none of the block's business with the outside.
    auto outside = [&](const Array<BufferRegion>& list) {
      Array<BufferRegion> out;
      for (const BufferRegion& r : list)
        if (std::none_of(below.begin(), below.end(), [&](const Buffer& b) { return touches(r, b); }))
          out.push_back(r);
      return out;
    };
    for (const IterVar& v : block->iters) analyzer_.unbind(v->var);
    return with(r, &BlockRealizeNode::block,
                with(block, &BlockNode::allocs, Array<Buffer>(), &BlockNode::body, body, &BlockNode::reads,
                     outside(block->reads), &BlockNode::writes, outside(block->writes)));
  }

  Stmt descendIf(const If& s, std::vector<Buffer>& buffers, std::vector<Buffer>& here) {
    auto mayEnter = [&](const Buffer& b) {
      return !touches(s->condition, b) && !(touches(s->thenBody, b) && touches(s->elseBody, b));
    };
    std::vector<Buffer> below = sift(buffers, here, mayEnter);
    return with(s, &IfNode::thenBody, place(s->thenBody, below), &IfNode::elseBody,
                s->elseBody ? place(s->elseBody, below) : nullptr);
  }

  Analyzer analyzer_;
};

} // namespace

Result<PrimFunc> planAllocations(const PrimFunc& f, const Target&) {
  return withBody(f, AllocationPlanner(f).place(f->body, {}));
}

} // namespace bevel
