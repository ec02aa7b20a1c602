// Lowers block inits.
//
// before:  for i in 8:                              after:  for i in 8:
//            for k in 16:                                     with T.sblock("C_init"): C[vi] = 0
//              with T.sblock("C"):                            for k in 16:
//                with T.init(): C[vi] = 0                       with T.sblock("C"): C[vi] += A[vi, vk]
//                C[vi] += A[vi, vk]
//
// The init moves before the outermost reduction loop when the loops from there down to the block form a nest
// with nothing else in it whose first step provably is the one that initialises (dependence.h). Its
// predicate is the block's at that step. An empty reduction then gives the init's value. Otherwise the block
// runs its init under "all reduction axes at their start".
#include "loop/block_scope.h"
#include "loop/dependence.h"
#include "loop/passes/context.h"
#include "loop/passes/passes.h"

#include <string>
#include <unordered_set>

namespace bevel {
namespace {

class InitLowering : public Rewriter {
public:
  explicit InitLowering(const PrimFunc& f) : function_(f) {
    memoise = false;
    walk(f->body, [&](const NodeRef& n) {
      if (const auto* b = n.as<BlockNode>()) names_.insert(b->name);
      return !n.is<ExprNode>();
    });
  }

private:
  NodeRef visit(const NodeRef& node) override {
    if (node.is<ExprNode>()) return node;
    if (node.is<ForNode>())
      if (Stmt split = hoist(cast<ForNode>(node))) return (*this)(NodeRef(split));
    if (!node.is<BlockNode>()) return visitChildren(node);
    Block out = cast<BlockNode>(visitChildren(node));
    return out->init ? NodeRef(guarded(out)) : NodeRef(out);
  }

  /// if all reduction axes are at their start: init; then the body.
  static Block guarded(const Block& block) {
    std::vector<Expr> parts;
    for (const IterVar& v : block->iters)
      if (v->type == IterType::kReduce) parts.push_back(eq(v->var, v->domain->min));
    Stmt init = block->init;
    if (!parts.empty()) init = make<const IfNode>(conjunction(parts), init);
    return with(withoutInit(block), &BlockNode::body, seq({init, block->body}));
  }

  /// The init nest followed by the nest without init, or null when `top` does not begin the reduction or it
  /// cannot be proved right.
  Stmt hoist(const For& top) {
    std::vector<For> nest;
    Stmt inner = top;
    while (inner.is<ForNode>()) {
      nest.push_back(cast<ForNode>(inner));
      inner = nest.back()->body;
    }
    if (!inner.is<BlockRealizeNode>()) return nullptr;
    BlockRealize realize = cast<BlockRealizeNode>(inner);
    const BlockNode& block = *realize->block;
    if (!block.init || !block.matches.empty()) return nullptr;
    if (!drivenBy(*realize, top->var).reduce) return nullptr;
    auto found = hoistInit(function_, realize, nest);
    if (!found) return nullptr;
    Stmt update = with(realize, &BlockRealizeNode::block, withoutInit(realize->block));
    return seq({initNest(realize, *found, uniqueName(block.name + "_init"), ""), nestOf(nest, update)});
  }

  std::string uniqueName(const std::string& base) {
    std::string name = base;
    for (int i = 1; !names_.insert(name).second; ++i) name = base + "_" + std::to_string(i);
    return name;
  }

  const PrimFunc& function_;
  std::unordered_set<std::string> names_;
};

} // namespace

Result<PrimFunc> lowerInit(const PrimFunc& f, const Target&) {
  return withBody(f, InitLowering(f)(f->body));
}

} // namespace bevel
