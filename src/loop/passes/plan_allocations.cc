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
    case Kind::kFor:
      return descendFor(cast<ForNode>(s), buffers, here);
    case Kind::kBlockRealize:
      return descendRealize(cast<BlockRealizeNode>(s), buffers, here);
    case Kind::kIf:
      return descendIf(cast<IfNode>(s), buffers, here);
    case Kind::kLetStmt: {
      const auto& let = static_cast<const LetStmtNode&>(*s);
      auto copy = mutableCopy(cast<LetStmtNode>(s));
      copy->body =
          place(let.body, sift(buffers, here, [&](const Buffer& b) { return !touches(let.value, b); }));
      return copy;
    }
    case Kind::kAttrStmt: {
      auto copy = mutableCopy(cast<AttrStmtNode>(s));
      copy->body = place(copy->body, buffers);
      return copy;
    }
    case Kind::kAlloc: {
      auto copy = mutableCopy(cast<AllocNode>(s));
      copy->body = place(copy->body, buffers);
      return copy;
    }
    case Kind::kDeclBuffer: {
      auto copy = mutableCopy(cast<DeclBufferNode>(s));
      copy->body =
          place(copy->body,
                sift(buffers, here, [&](const Buffer& b) { return !touches(NodeRef(copy->buffer), b); }));
      return copy;
    }
    case Kind::kWhile: { // its iterations share what they touch
      auto copy = mutableCopy(cast<WhileNode>(s));
      copy->body = place(copy->body, sift(buffers, here, [](const Buffer&) { return false; }));
      return copy;
    }
    default:
      here.insert(here.end(), buffers.begin(), buffers.end());
      return s;
    }
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

  Stmt descendFor(const For& loop, std::vector<Buffer>& buffers, std::vector<Buffer>& here) {
    AccessModel inside(loop->body, {}, kInsideBlocks);
    auto mayEnter = [&](const Buffer& b) {
      if (loop->forKind == ForKind::kVectorized || touches(loop->min, b) || touches(loop->extent, b))
        return false;
      return isPrivateToIteration(inside, loop, b, analyzer_);
    };
    std::vector<Buffer> below = sift(buffers, here, mayEnter);
    analyzer_.bind(loop->var, range(loop->min, loop->extent));
    auto copy = mutableCopy(loop);
    copy->body = place(loop->body, below);
    analyzer_.unbind(loop->var);
    return copy;
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
    auto inner = mutableCopy(block);
    inner->allocs = {};
    inner->body = place(block->body, below);
    // What is allocated inside is none of the block's business with the outside.
    auto outside = [&](const Array<BufferRegion>& list) {
      Array<BufferRegion> out;
      for (const BufferRegion& r : list)
        if (std::none_of(below.begin(), below.end(), [&](const Buffer& b) { return touches(r, b); }))
          out.push_back(r);
      return out;
    };
    inner->reads = outside(block->reads);
    inner->writes = outside(block->writes);
    for (const IterVar& v : block->iters) analyzer_.unbind(v->var);
    auto copy = mutableCopy(r);
    copy->block = inner;
    return copy;
  }

  Stmt descendIf(const If& s, std::vector<Buffer>& buffers, std::vector<Buffer>& here) {
    auto mayEnter = [&](const Buffer& b) {
      return !touches(s->condition, b) && !(touches(s->thenBody, b) && touches(s->elseBody, b));
    };
    std::vector<Buffer> below = sift(buffers, here, mayEnter);
    auto copy = mutableCopy(s);
    copy->thenBody = place(s->thenBody, below);
    if (s->elseBody) copy->elseBody = place(s->elseBody, below);
    return copy;
  }

  Analyzer analyzer_;
};

} // namespace

Result<PrimFunc> planAllocations(const PrimFunc& f, const Target&) {
  return withBody(f, AllocationPlanner(f).place(f->body, {}));
}

} // namespace bevel
