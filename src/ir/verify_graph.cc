// Verification of graph functions.
#include "ir/structural.h"
#include "ir/verify_impl.h"

namespace bevel::detail {

void Verifier::typed(const GraphVarNode& v) {
  if (!v.type)
    error(NodeRef(&v), "variable '" + v.name + "' has no type",
          "run the shape inference (BlockBuilder::normalize)");
}

void Verifier::graphFunction(const FunctionNode& f) {
  NodeRef node(&f);
  for (const GraphVar& p : f.params) {
    define(p, "a parameter");
    if (!p) continue;
    typed(*p);
    if (p->dataflow) error(p, "parameter '" + p->name + "' is marked as a variable of a dataflow block");
    bindFree(p->type);
  }
  if (!f.body) return error(node, "the body is missing");
  size_t scope = mark();
  sequence(*f.body, node);
  leave(scope);
  if (f.result) scalars(f.result);
}

void Verifier::sequence(const SeqExprNode& s, const RefBase& parent) {
  for (const BindingBlock& b : s.blocks) {
    if (full()) return;
    if (!b)
      error(parent, "a binding block is missing");
    else
      bindingBlock(*b);
  }
  leafValue(s.body, parent);
}

void Verifier::bindingBlock(const BindingBlockNode& b) {
  NodeRef node(&b);
  if (b.dataflow && inDataflow_) error(node, "dataflow blocks do not nest");
  bool saved = std::exchange(inDataflow_, b.dataflow);
  for (const NodeRef& x : b.bindings) binding(x, b.dataflow);
  inDataflow_ = saved;
  if (!b.dataflow) return;
  for (const NodeRef& x : b.bindings) { // variables of the block end with it
    if (GraphVar v = boundVar(x); v && v->dataflow) visible_.erase(v.get());
  }
}

void Verifier::binding(const NodeRef& b, bool dataflow) {
  if (full()) return;
  if (!b) return error(b, "a binding is missing");
  if (b->origin) place_ = b->origin;
  GraphVar var;
  if (auto* n = b.as<VarBindingNode>()) {
    value(n->value, b);
    var = n->var;
    if (dataflow && (n->value.is<GraphIfNode>() || n->value.is<FunctionNode>()))
      error(b, "a dataflow block has no branches and no functions", "end the dataflow block before");
  } else if (auto* m = b.as<MatchCastNode>()) {
    leafValue(m->value, b);
    if (!m->pattern) error(b, "a match_cast has no type");
    bindFree(m->pattern);
    var = m->var;
  } else
    return error(b, "expected a binding");
  if (!var) return error(b, "a binding has no variable");
  define(var, ("variable '" + var->name + "'").c_str());
  typed(*var);
  if (var->type) scalars(var->type);
  if (var->dataflow && !dataflow)
    error(b, "'" + var->name + "' is a variable of a dataflow block, but is bound outside one");
}

/// What may be an argument: no call, branch or function.
void Verifier::leafValue(const GraphExpr& e, const RefBase& parent) {
  if (full()) return;
  if (!e) return error(parent, "a value is missing");
  if (auto* v = e.as<GraphVarNode>()) {
    if (!visible(v))
      error(e, "variable '" + v->name + "' is used outside the scope that binds it",
            v->dataflow ? "list it in R.output to use it after its dataflow block" : "");
  } else if (auto* g = e.as<GlobalVarNode>())
    moduleHas(*g, e);
  else if (auto* c = e.as<ConstantNode>()) {
    if (!c->value) error(e, "a constant has no value");
  } else if (auto* shape = e.as<ShapeExprNode>()) {
    for (const Expr& d : shape->values) {
      expr(d, e);
      if (d && (!d->dtype.isInteger() || d->dtype.isVector()))
        error(e, "a dimension is an integer, not " + d->dtype.str());
    }
  } else if (auto* tuple = e.as<TupleNode>()) {
    for (const GraphExpr& item : tuple->items) leafValue(item, e);
  } else if (auto* n = e.as<TupleGetNode>()) {
    leafValue(n->tuple, e);
    const auto* t = n->tuple ? n->tuple->type.as<TupleTypeNode>() : nullptr;
    if (n->index < 0 || (t && size_t(n->index) >= t->fields_.size()))
      error(e, "index " + std::to_string(n->index) + " is outside the tuple");
  } else if (auto* prim = e.as<PrimValueNode>())
    expr(prim->value, e);
  else if (e.is<GraphCallNode>() || e.is<GraphIfNode>())
    error(e, "a call or branch is nested in another expression",
          "bind it to a variable (BlockBuilder::normalize)");
  else if (!e.is<DTypeImmNode>() && !e.is<ExternFuncNode>())
    error(e, std::string("a ") + e->kindName() + " is no value here");
}

void Verifier::moduleHas(const GlobalVarNode& g, const NodeRef& node) {
  if (module_ && !module_->find(g.name)) error(node, "the module has no function '" + g.name + "'");
}

void Verifier::value(const GraphExpr& e, const RefBase& parent) {
  if (!e) return error(parent, "a value is missing");
  if (auto* n = e.as<GraphCallNode>()) return graphCall(*n);
  if (auto* n = e.as<GraphIfNode>()) return graphIf(*n);
  if (auto* f = e.as<FunctionNode>()) {
    size_t scope = mark();
    bool saved = std::exchange(inDataflow_, false);
    graphFunction(*f);
    inDataflow_ = saved;
    return leave(scope);
  }
  leafValue(e, parent);
}

void Verifier::graphIf(const GraphIfNode& n) {
  NodeRef node(&n);
  leafValue(n.condition, node);
  for (const SeqExpr& branch : {n.thenBranch, n.elseBranch}) {
    if (!branch) {
      error(node, "a branch is missing");
      continue;
    }
    size_t scope = mark();
    sequence(*branch, node);
    leave(scope);
  }
}

void Verifier::callTir(const GraphCallNode& n) {
  NodeRef node(&n);
  if (n.args.size() < 2) return error(node, "R.call_tir takes a function and a tuple of tensors");
  if (n.typeArgs.empty()) error(node, "R.call_tir states the type of its result (out_sinfo)");
  auto* callee = n.args[0].as<GlobalVarNode>();
  if (!callee) return error(node, "R.call_tir calls a tensor program of the module");
  if (!module_) return;
  GraphExpr f = module_->find(callee->name);
  if (!f) return; // reported as a leaf
  auto* program = f.as<PrimFuncNode>();
  if (!program) return error(node, "'" + callee->name + "' is no tensor program");
  auto* tensors = n.args[1].as<TupleNode>();
  if (!tensors) return;
  size_t handles = 0, scalarParams = 0;
  for (const Buffer& b : program->buffers) ++(b ? handles : scalarParams);
  size_t given = tensors->items.size() + n.typeArgs.size();
  if (given != handles)
    error(node, "'" + callee->name + "' has " + std::to_string(handles) + " buffers, but " +
                    std::to_string(tensors->items.size()) + " tensors and " +
                    std::to_string(n.typeArgs.size()) + " results are given");
  auto* extra = n.args.size() > 2 ? n.args[2].as<ShapeExprNode>() : nullptr;
  if (n.args.size() > 2 && !extra) return;
  size_t values = extra ? extra->values.size() : 0;
  if (values != scalarParams)
    error(node, "'" + callee->name + "' has " + std::to_string(scalarParams) +
                    " scalar parameters, but tir_vars has " + std::to_string(values));
}

// One name means one function: what the module defines is not looked for among the packed functions.
void Verifier::packedName(const GraphExpr& callee, const NodeRef& node) {
  const std::string& name = callee.as<ExternFuncNode>()->name;
  if (module_ && module_->find(name))
    error(node, "'" + name + "' is a function of the module, not a packed function",
          "call it as cls." + name);
}

void Verifier::graphCall(const GraphCallNode& n) {
  NodeRef node(&n);
  if (!n.op) return error(node, "a call has no operator");
  for (const GraphExpr& arg : n.args) leafValue(arg, node);
  for (const Type& t : n.typeArgs) t ? scalars(t) : error(node, "a result type is missing");
  if (n.op.is<OpRefNode>()) {
    if (n.isOp("call_tir")) callTir(n);
    if (n.isOp("call_dps_packed")) {
      if (n.args.size() < 2 || !n.args[0].is<ExternFuncNode>())
        error(node, "R.call_dps_packed takes the name of a packed function and a tuple of tensors");
      else
        packedName(n.args[0], node);
      if (n.typeArgs.empty()) error(node, "R.call_dps_packed states the type of its result (out_sinfo)");
    }
    return;
  }
  if (n.op.is<ExternFuncNode>()) return packedName(n.op, node);
  leafValue(n.op, node);
  auto* g = n.op.as<GlobalVarNode>();
  GraphExpr f = g && module_ ? module_->find(g->name) : GraphExpr();
  if (!f) {
    if (!g && !n.op.is<GraphVarNode>())
      error(node, std::string("a ") + n.op->kindName() + " cannot be called");
    return;
  }
  // Once memory is explicit, programs are called with their results among the arguments; a shape gives their scalars.
  size_t given = 0;
  for (const GraphExpr& arg : n.args)
    given += arg.is<ShapeExprNode>() ? arg.as<ShapeExprNode>()->values.size() : 1;
  if (const auto* program = f.as<PrimFuncNode>(); program && given == program->params.size()) return;
  auto* callee = f.as<FunctionNode>();
  if (!callee) return error(node, "'" + g->name + "' is a tensor program", "call it with R.call_tir");
  if (callee->params.size() != n.args.size())
    error(node, "'" + g->name + "' takes " + std::to_string(callee->params.size()) + " arguments, but " +
                    std::to_string(n.args.size()) + " are given");
}

} // namespace bevel::detail
