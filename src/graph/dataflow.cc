// Pure bindings to dataflow blocks:
//
//   lv = R.add(x, y)                     with R.dataflow():
//   lv1 = R.multiply(lv, lv)      →          lv = R.add(x, y)
//   return lv1                               lv1 = R.multiply(lv, lv)
//                                            R.output(lv1)
//                                        return lv1
#include "graph/op.h"
#include "graph/passes/passes.h"
#include "graph/visitor.h"
#include "ir/structural.h"

namespace bevel {

namespace {

using VarSet = std::unordered_set<NodeRef, RefHash>;

// Uses of graph variables outside the block that defines them decide what stays visible.
class Grouper {
public:
  explicit Grouper(const Module& module) : module_(module) {}

  SeqExpr seq(const SeqExpr& e) {
    Array<BindingBlock> blocks;
    for (const BindingBlock& block : e->blocks) {
      if (block->dataflow) {
        blocks.push_back(block);
        continue;
      }
      Array<NodeRef> run;
      bool pure = true;
      auto flush = [&] {
        if (!run.empty()) blocks.push_back(make<const BindingBlockNode>(run, pure));
        run = {};
      };
      for (const NodeRef& b : block->bindings) {
        const auto* v = b.as<VarBindingNode>();
        bool groups = !v || (!v->value.is<GraphIfNode>() && isPure(v->value, module_));
        if (groups != pure) flush();
        pure = groups;
        run.push_back(*mapBranches(b, [&](const SeqExpr& branch) -> Result<SeqExpr> { return seq(branch); }));
      }
      flush();
    }
    return mark(blocks, e->body);
  }

private:
  static void usesOf(const NodeRef& node, VarSet& out) {
    walk(node, [&](const NodeRef& n) {
      if (n.is<GraphVarNode>()) out.insert(n);
      return !n.is<ConstantNode>();
    });
  }

  // Which block last uses each variable; variables of a dataflow block used in no other become dataflow
  // variables.
  SeqExpr mark(const Array<BindingBlock>& blocks, const GraphExpr& body) {
    std::vector<VarSet> uses(blocks.size() + 1);
    for (size_t i = 0; i < blocks.size(); ++i)
      for (const NodeRef& b : blocks[i]->bindings) {
        if (const auto* vb = b.as<VarBindingNode>())
          usesOf(vb->value, uses[i]);
        else
          usesOf(b.as<MatchCastNode>()->value, uses[i]);
      }
    usesOf(body, uses.back());
    std::unordered_map<NodeRef, NodeRef, RefHash> map;
    for (size_t i = 0; i < blocks.size(); ++i) {
      if (!blocks[i]->dataflow) continue;
      for (const NodeRef& b : blocks[i]->bindings) {
        GraphVar v = b.is<VarBindingNode>() ? b.as<VarBindingNode>()->var : b.as<MatchCastNode>()->var;
        bool outside = false;
        for (size_t k = i + 1; k < uses.size() && !outside; ++k) outside = uses[k].count(v) > 0;
        if (!outside && !v->dataflow) map[v] = make<const GraphVarNode>(v->name, v->type, true);
      }
    }
    auto made = make<const SeqExprNode>(blocks, body);
    if (map.empty()) return made;
    return cast<SeqExprNode>(rewrite(made, [&](const NodeRef& n) -> NodeRef {
      auto it = map.find(n);
      return it == map.end() ? n : it->second;
    }));
  }

  const Module& module_;
};

} // namespace

Module convertToDataflow(const Module& module) {
  return *mapFunctions(module, [](const Module& soFar, const Function& f) -> Result<Function> {
    return with(f, &FunctionNode::body, Grouper(soFar).seq(f->body));
  });
}

} // namespace bevel
