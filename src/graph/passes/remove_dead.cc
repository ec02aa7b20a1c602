// Dead code elimination.
//
//   lv = R.add(x, x)          →     (nothing)
//   lv1 = R.relu(x)                 lv1 = R.relu(x)
//   return lv1                      return lv1
#include "graph/op.h"
#include "graph/passes/passes.h"
#include "graph/visitor.h"
#include "ir/structural.h"

#include <algorithm>

namespace bevel {
namespace {

using Used = std::unordered_set<NodeRef, RefHash>;

class Remover {
public:
  explicit Remover(const Module& m) : module_(m) {}

  SeqExpr clean(const SeqExpr& seq) {
    markUses(seq->body);
    std::vector<BindingBlock> blocks;
    for (size_t i = seq->blocks.size(); i-- > 0;) {
      BindingBlock b = cleanBlock(seq->blocks[i]);
      if (!b->bindings.empty()) blocks.insert(blocks.begin(), b);
    }
    return with(seq, &SeqExprNode::blocks, Array<BindingBlock>(blocks));
  }

private:
  void markUses(const NodeRef& n) {
    walk(n, [&](const NodeRef& x) {
      if (isVariable(*x)) used_.insert(x);
      // Shapes in the types of variables use symbolic dimensions as well.
      if (const auto* e = x.as<GraphExprNode>(); e && e->type && seenTypes_.insert(e->type.get()).second)
        markUses(e->type);
      return true;
    });
  }

  bool bindsUsedDim(const MatchCastNode& m) {
    return usesAnyVar(m.pattern, [&](const VarNode* v) { return used_.count(Var(v)) > 0; });
  }

  // Nothing is compared: values get names.
  static bool onlyNames(const MatchCastNode& m) {
    const auto* pattern = m.pattern.as<ShapeTypeNode>();
    if (!m.value.is<ShapeExprNode>() || !pattern || !pattern->known) return false;
    return std::all_of(pattern->values.begin(), pattern->values.end(),
                       [](const Expr& e) { return e.is<VarNode>(); });
  }

  BindingBlock cleanBlock(const BindingBlock& block) {
    std::vector<NodeRef> kept;
    for (size_t i = block->bindings.size(); i-- > 0;) {
      const NodeRef& b = block->bindings[i];
      if (const auto* m =
              b.as<MatchCastNode>()) { // a check of shapes is an effect: what follows relies on it
        if (!used_.count(m->var) && !bindsUsedDim(*m) && onlyNames(*m)) continue;
        markUses(m->value);
        markUses(m->pattern);
        kept.push_back(b);
        continue;
      }
      const auto* v = b.as<VarBindingNode>();
      if (!used_.count(v->var) && isPure(v->value, module_)) continue;
      markUses(v->var->type);
      kept.push_back(cleanBinding(VarBinding(v)));
    }
    std::reverse(kept.begin(), kept.end());
    return make<const BindingBlockNode>(Array<NodeRef>(kept), block->dataflow);
  }

  NodeRef cleanBinding(const VarBinding& b) {
    NodeRef cleaned =
        *mapBranches(b, [&](const SeqExpr& branch) -> Result<SeqExpr> { return clean(branch); });
    const auto* branch = b->value.as<GraphIfNode>();
    markUses(branch ? branch->condition : b->value);
    return cleaned;
  }

  Module module_;
  Used used_;
  std::unordered_set<const Node*> seenTypes_;
};

// Functions that can be reached from those visible outside (all but "private" ones).
Module reachable(const Module& module) {
  std::vector<std::string> work;
  std::unordered_set<std::string> seen;
  for (size_t i = 0; i < module->names.size(); ++i) {
    const auto* f = module->functions[i].as<FunctionNode>();
    const auto* p = module->functions[i].as<PrimFuncNode>();
    Dict attrs = f ? f->attrs : p ? p->attrs : nullptr;
    bool visible = attr(attrs, "global_symbol") != nullptr ||
                   (f && !attrInt(attrs, "private") && !attrInt(attrs, "Primitive"));
    if (visible && seen.insert(module->names[i]->name).second) work.push_back(module->names[i]->name);
  }
  if (work.empty()) return module; // nothing is declared visible: a module under construction
  while (!work.empty()) {
    GraphExpr f = module->find(work.back());
    work.pop_back();
    if (f)
      walk(f, [&](const NodeRef& n) {
        if (const auto* g = n.as<GlobalVarNode>(); g && seen.insert(g->name).second) work.push_back(g->name);
        return true;
      });
  }
  Module out = module;
  for (const GlobalVar& g : module->names)
    if (!seen.count(g->name)) out = withoutFunction(out, g->name);
  return out;
}

} // namespace

Result<Module> removeDead(const Module& module) {
  BEVEL_TRY(Module out, mapFunctions(module, [&](const Module&, const Function& f) -> Result<Function> {
              return with(f, &FunctionNode::body, Remover(module).clean(f->body));
            }));
  return reachable(out);
}

} // namespace bevel
