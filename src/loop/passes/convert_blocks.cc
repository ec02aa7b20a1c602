// Dissolves blocks: axes become their values, predicates become If.
//
// before:  for io, ii in T.grid(4, 32):                          after:  for io, ii in T.grid(4, 32):
//            with T.sblock("B"):                                           if T.likely(io*32 + ii < 100):
//              vi = T.axis.spatial(100, io*32 + ii)                           B[io*32 + ii] = A[io*32 + ii]
//              T.where(io*32 + ii < 100)
//              B[vi] = A[vi]
//
// What the blocks said of origins goes to their statements. An axis whose value is loaded from a place that the
// block writes is a variable. An axis of one value is that value, however its loops are written.
#include "loop/passes/context.h"
#include "loop/passes/passes.h"

namespace bevel {
namespace {

class BlockDissolver : public Rewriter {
public:
  BlockDissolver() { memoise = false; }
  bool leftover = false; // a block that holds allocations, views or an init: earlier passes were left out

private:
  NodeRef visit(const NodeRef& node) override {
    if (node.is<ExprNode>()) return node;
    if (!node.is<BlockRealizeNode>()) return visitChildren(node);
    const auto& r = static_cast<const BlockRealizeNode&>(*node);
    const Block& block = r.block;
    leftover |= block->init || !block->allocs.empty() || !block->matches.empty();
    VarMap values;
    std::vector<size_t> kept;
    for (size_t i = 0; i < r.values.size(); ++i) {
      const IterVar& axis = block->iters[i];
      bool oneValue = isConst(axis->domain->extent, 1) && asConst(axis->domain->min);
      if (!oneValue && changesCondition(block->body, r.values[i]))
        kept.push_back(i);
      else
        values[axis->var] = castTo(axis->var->dtype, oneValue ? axis->domain->min : r.values[i]);
    }
    Stmt body = cast<StmtNode>((*this)(substitute(NodeRef(block->body), values)));
    for (size_t i : kept) {
      const Var& axis = block->iters[i]->var;
      body = make<const LetStmtNode>(axis, castTo(axis->dtype, r.values[i]), body);
    }
    if (block->origin) body = withOriginBelow(body, block->origin);
    if (isConst(r.predicate, 1)) return body;
    return make<const IfNode>(call(Intrin::kLikely, {r.predicate}), body);
  }

  static Stmt withOriginBelow(const Stmt& s, const Origin& origin) {
    return cast<StmtNode>(rewrite(s, [&](const NodeRef& n) -> NodeRef {
      bool lacks = !n->origin && (n.is<StoreNode>() || n.is<EvaluateNode>() || n.is<ForNode>());
      return lacks ? withOrigin(n, origin) : n;
    }));
  }
};

} // namespace

Result<PrimFunc> convertBlocksToOpaque(const PrimFunc& f, const Target&) {
  BlockDissolver dissolver;
  Stmt body = dissolver(f->body);
  if (dissolver.leftover)
    return fail(ErrorCode::kUsage,
                "convert_blocks needs lower_init, lower_match_buffer and plan_allocations before it");
  return withBody(f, body);
}

} // namespace bevel
