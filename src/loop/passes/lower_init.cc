// Lowers block inits.
//
// before:  for i in 8:                              after:  for i in 8:
//            for k in 16:                                     with T.sblock("C_init"): C[vi] = 0
//              with T.sblock("C"):                            for k in 16:
//                with T.init(): C[vi] = 0                       with T.sblock("C"): C[vi] += A[vi, vk]
//                C[vi] += A[vi, vk]
//
// The init moves before the outermost reduction loop when the loops from there down to the block form a nest
// with nothing else in it, and no loop outside takes part in a reduction axis. Its predicate is the block's
// at the first step. An empty reduction then gives the init's value. Otherwise the block runs its init under
// "all reduction axes at their start".
#include "loop/passes/context.h"
#include "loop/passes/passes.h"

#include <string>
#include <unordered_set>

namespace bevel {
namespace {

using VarSet = std::unordered_set<const VarNode*>;

bool usesAny(const NodeRef& e, const VarSet& vars) {
  return usesAnyVar(e, [&](const VarNode* v) { return vars.contains(v); });
}

class InitLowering : public Rewriter {
public:
  explicit InitLowering(const PrimFunc& f) {
    memoise = false;
    walk(f->body, [&](const NodeRef& n) {
      if (const auto* b = n.as<BlockNode>()) names_.insert(b->name);
      return !n.is<ExprNode>();
    });
  }

private:
  NodeRef visit(const NodeRef& node) override {
    if (node.is<ExprNode>()) return node;
    if (const auto* loop = node.as<ForNode>()) {
      if (Stmt split = hoist(cast<ForNode>(node))) return (*this)(NodeRef(split));
      outer_.insert(loop->var.get());
      NodeRef out = visitChildren(node);
      outer_.erase(loop->var.get());
      return out;
    }
    if (const auto* block = node.as<BlockNode>()) {
      for (const IterVar& v : block->iters) outer_.insert(v->var.get());
      Block out = cast<BlockNode>(visitChildren(node));
      for (const IterVar& v : block->iters) outer_.erase(v->var.get());
      return out->init ? NodeRef(guarded(out)) : NodeRef(out);
    }
    return visitChildren(node);
  }

  /// if all reduction axes are at their start: init; then the body.
  static Block guarded(const Block& block) {
    std::vector<Expr> parts;
    for (const IterVar& v : block->iters)
      if (v->type == IterType::kReduce) parts.push_back(eq(v->var, v->domain->min));
    auto copy = mutableCopy(block);
    Stmt init = block->init;
    if (!parts.empty()) init = make<const IfNode>(conjunction(parts), init);
    copy->init = nullptr;
    copy->body = seq({init, block->body});
    return copy;
  }

  /// The init nest followed by the nest without init, or null when it cannot be proved right.
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

    VarSet reduce, spatial, inNest;
    for (const For& l : nest) inNest.insert(l->var.get());
    for (size_t i = 0; i < block.iters.size(); ++i) {
      bool isReduce = block.iters[i]->type == IterType::kReduce;
      bool usesOuter = usesAny(realize->values[i], outer_);
      if (isReduce && usesOuter) return nullptr;
      usesAnyVar(realize->values[i], [&](const VarNode* v) {
        if (inNest.contains(v)) (isReduce ? reduce : spatial).insert(v);
        return false;
      });
    }
    if (!reduce.contains(top->var.get())) return nullptr;
    for (const VarNode* v : reduce)
      if (spatial.contains(v)) return nullptr;
    return split(nest, realize, reduce, spatial);
  }

  Stmt split(const std::vector<For>& nest, const BlockRealize& realize, const VarSet& reduce,
             const VarSet& spatial) {
    VarMap firstStep; // loops that the init does not need, at their start
    std::vector<For> kept;
    for (const For& l : nest) {
      if (!spatial.contains(l->var.get())) {
        firstStep[l->var] = substitute(l->min, firstStep);
        continue;
      }
      if (usesAny(l->min, reduce) || usesAny(l->extent, reduce)) return nullptr;
      kept.push_back(l);
    }
    std::vector<Expr> conditions;
    for (const Expr& c : conjuncts(realize->predicate)) {
      bool onlyReduce = usesAny(c, reduce) && !usesAny(c, spatial) && !usesAny(c, outer_);
      if (!onlyReduce) conditions.push_back(substitute(c, firstStep));
    }
    Stmt init = initRealize(realize, conditions);
    for (size_t i = kept.size(); i-- > 0;) {
      auto loop = mutableCopy(kept[i]);
      loop->body = init;
      init = loop;
    }
    return seq({freshen(init), withoutInit(nest, realize)});
  }

  Stmt initRealize(const BlockRealize& realize, const std::vector<Expr>& conditions) {
    const BlockNode& block = *realize->block;
    auto made = make<BlockNode>(uniqueName(block.name + "_init"));
    VarMap starts;
    Array<Expr> values;
    for (size_t i = 0; i < block.iters.size(); ++i) {
      if (block.iters[i]->type == IterType::kReduce) {
        starts[block.iters[i]->var] = block.iters[i]->domain->min;
        continue;
      }
      made->iters.push_back(block.iters[i]);
      values.push_back(realize->values[i]);
    }
    made->body = substitute(block.init, starts);
    for (const BufferRegion& w : block.writes) made->writes.push_back(substitute(w, starts));
    made->origin = block.origin;
    auto out = make<BlockRealizeNode>(values, conjunction(conditions), Block(made));
    out->origin = realize->origin;
    return BlockRealize(out);
  }

  static Stmt withoutInit(const std::vector<For>& nest, const BlockRealize& realize) {
    auto block = mutableCopy(realize->block);
    block->init = nullptr;
    auto inner = mutableCopy(realize);
    inner->block = block;
    Stmt out = inner;
    for (size_t i = nest.size(); i-- > 0;) {
      auto loop = mutableCopy(nest[i]);
      loop->body = out;
      out = loop;
    }
    return out;
  }

  std::string uniqueName(const std::string& base) {
    std::string name = base;
    for (int i = 1; !names_.insert(name).second; ++i) name = base + "_" + std::to_string(i);
    return name;
  }

  std::unordered_set<std::string> names_;
  VarSet outer_; // loops and axes around the current place
};

} // namespace

Result<PrimFunc> lowerInit(const PrimFunc& f) {
  return withBody(f, cast<StmtNode>(InitLowering(f)(NodeRef(f->body))));
}

} // namespace bevel
