// Types of a whole module, as its text leaves them open or states them.
//
//   def main(x: R.Tensor((2, 3), "float32")):            def main(…) -> R.Tensor((2, 3), "float32"):
//       y = cls.f(x)                              →          y: R.Tensor((2, 3), "float32") = cls.f(x)
//       return y                                              return y
//
// Variables that get a type are new ones; what lies around them is copied, the rest of a function is shared.
#include "arith/analyzer.h"
#include "graph/infer.h"
#include "graph/passes/passes.h"
#include "graph/shape_util.h"
#include "graph/visitor.h"
#include "ir/printer.h"

#include <fmt/format.h>
#include <unordered_set>

namespace bevel {
namespace {

Error placed(Error error, const NodeRef& node) {
  if (node->origin && error.span.line == 0) error.file = node->origin->file, error.span = node->origin->span;
  return error;
}

// No value has both dimensions. Of two plain ones that are not equal one is a mistake; other expressions that are not
// proved equal may be.
bool contradicts(const Expr& a, const Expr& b, Analyzer& analyzer) {
  if (provedEqual(analyzer, a, b)) return false;
  auto plain = [](const Expr& e) { return e.is<VarNode>() || asConst(e); };
  return (plain(a) && plain(b)) || analyzer.prove(ne(castTo(kInt64, a), castTo(kInt64, b)));
}

// No value has both types.
bool contradicts(const Type& a, const Type& b, Analyzer& analyzer) {
  if (!a || !b || a.is<ObjectTypeNode>() || b.is<ObjectTypeNode>()) return false;
  if (a->kind != b->kind) return true;
  auto apart = [&](const auto& x, const auto& y) { // items of two lists
    return !std::equal(x.begin(), x.end(), y.begin(), y.end(),
                       [&](const auto& f, const auto& g) { return !contradicts(f, g, analyzer); });
  };
  if (const auto* x = a.as<TupleTypeNode>()) return apart(x->fields_, b.as<TupleTypeNode>()->fields_);
  if (const auto* x = a.as<PrimTypeNode>()) return x->dtype != b.as<PrimTypeNode>()->dtype;
  auto x = dimsOf(a), y = dimsOf(b);
  if (!x) return false;
  if (!x->dtype.isVoid() && !y->dtype.isVoid() && x->dtype != y->dtype) return true;
  if (x->ndim >= 0 && y->ndim >= 0 && x->ndim != y->ndim) return true;
  return x->known && y->known && apart(*x->known, *y->known);
}

enum class State : uint8_t { kOpen, kRunning, kDone };

struct ModuleTypes {
  explicit ModuleTypes(const Module& m) : module(mutableCopy(m)), states(m->functions.size()) {}
  Ref<ModuleNode> module;
  std::vector<State> states;

  Status function(size_t i);
  Status needs(const GraphExpr& name, const NodeRef& at);
};

// The types of one function; those of functions inside it too.
class FunctionTypes {
public:
  explicit FunctionTypes(ModuleTypes& all) : all_(all) {}

  Result<Function> function(const Function& f, const std::string& name) {
    for (const GraphVar& p : f->params) {
      if (!p->type)
        return fail(placed(Error(ErrorCode::kInvalid,
                                 fmt::format("parameter '{}' of function '{}' has no type", p->name, name))
                               .help(fmt::format("state it: {}: R.Tensor((n, m), \"float32\")", p->name)),
                           f));
      bindDims(p->type);
    }
    std::unordered_set<Var, RefHash> outer = dims_;
    BEVEL_TRY(SeqExpr body, sequence(f->body));
    Type type = eraseVars(body->type, [&](const Var& v) { return outer.count(v) > 0; });
    if (f->result && contradicts(f->result, type, analyzer_))
      return fail(placed(mismatch("function '" + name + "'", f->result, type), f));
    if (body == f->body && f->result) return f;
    return with(f, &FunctionNode::body, body, &FunctionNode::result, f->result ? f->result : type);
  }

private:
  static Error mismatch(const std::string& what, const Type& stated, const Type& inferred) {
    return Error(ErrorCode::kInvalid,
                 fmt::format("{} is stated to be {}, but is {}", what, print(stated), print(inferred)))
        .help("state the inferred type or none; R.match_cast checks a type at run time");
  }

  void bindDims(const Type& type) {
    for (const Var& v : shapeVars(type))
      if (dims_.insert(v).second && !type.is<ShapeTypeNode>()) analyzer_.bind(v, ConstBound{0, kPosInf});
  }
  Type visible(const Type& type) {
    return eraseVars(type, [&](const Var& v) { return dims_.count(v) > 0; });
  }

  Result<SeqExpr> sequence(const SeqExpr& s) {
    Array<BindingBlock> blocks;
    for (const BindingBlock& block : s->blocks) {
      Array<NodeRef> bindings;
      for (const NodeRef& b : block->bindings) {
        BEVEL_TRY(NodeRef next, b.is<VarBindingNode>() ? binding(cast<VarBindingNode>(b))
                                                       : matchCast(cast<MatchCastNode>(b)));
        bindings.push_back(std::move(next));
      }
      bool same = bindings == block->bindings;
      blocks.push_back(same ? block : with(block, &BindingBlockNode::bindings, std::move(bindings)));
    }
    BEVEL_TRY(GraphExpr body, renamed(s->body));
    InferContext context(analyzer_);
    BEVEL_TRY(Type type, inferType(body, all_.module.get(), context));
    if (blocks == s->blocks && body == s->body && s->type) return s;
    auto copy = make<SeqExprNode>(blocks, body);
    copy->type = type;
    copy->origin = s->origin;
    return SeqExpr(copy);
  }

  Result<NodeRef> binding(const VarBinding& b) {
    auto value = renamed(b->value);
    if (!value) return fail(placed(std::move(value.error()), b));
    BEVEL_TRY(Type type, typeOf(*value, b));
    const Type& stated = b->var->type;
    if (stated && contradicts(stated, type, analyzer_))
      return fail(placed(mismatch("variable '" + b->var->name + "'", stated, type), b));
    if (stated && *value == b->value) return NodeRef(b);
    GraphVar var = b->var;
    if (!stated) var = variables_[var] = make<const GraphVarNode>(var->name, type, var->dataflow);
    return NodeRef(with(b, &VarBindingNode::value, *value, &VarBindingNode::var, var));
  }

  Result<NodeRef> matchCast(const MatchCast& b) {
    BEVEL_TRY(GraphExpr value, renamed(b->value));
    bindDims(b->pattern);
    if (b->var->type && contradicts(b->var->type, b->pattern, analyzer_))
      return fail(placed(mismatch("variable '" + b->var->name + "'", b->var->type, b->pattern), b));
    if (value == b->value) return NodeRef(b);
    return NodeRef(with(b, &MatchCastNode::value, std::move(value)));
  }

  // The type of a bound value; what its variable states (or nothing) where that is all there is to know.
  Result<Type> typeOf(const GraphExpr& value, const VarBinding& b) {
    const auto* call = value.as<GraphCallNode>();
    if (const auto* g = call ? call->op.as<GlobalVarNode>() : nullptr) {
      // Memory is explicit: programs are called with their results among the arguments.
      if (all_.module->find(g->name).is<PrimFuncNode>() && b->var->type) return b->var->type;
    }
    InferContext context(analyzer_);
    auto type = inferType(value, all_.module.get(), context);
    if (type) return visible(*type);
    if (type.error().code == ErrorCode::kUnsupported && b->var->type) return b->var->type;
    return fail(placed(std::move(type.error()).at(value), b));
  }

  Result<GraphExpr> renamed(const GraphExpr& e) {
    if (e.is<GraphVarNode>()) {
      auto it = variables_.find(cast<GraphVarNode>(e));
      return it == variables_.end() ? e : GraphExpr(it->second);
    }
    if (e.is<GraphIfNode>()) return branches(cast<GraphIfNode>(e));
    if (e.is<FunctionNode>()) {
      FunctionTypes inside(*this);
      BEVEL_TRY(Function f, inside.function(cast<FunctionNode>(e), "inside another"));
      return GraphExpr(f);
    }
    BEVEL_TRY(GraphExpr out, mapOperands(e, [&](const GraphExpr& operand) { return renamed(operand); }));
    return e.is<GraphCallNode>() ? call(cast<GraphCallNode>(e), cast<GraphCallNode>(out)) : out;
  }

  // The arguments of a call; a number in place of a tensor is a constant of the dtype that like inputs have.
  static Array<GraphExpr> withConstants(const GraphCallNode& c) {
    Array<GraphExpr> args = c.args;
    const Op* op = c.op.is<OpRefNode>() ? findOp(c.opName()) : nullptr;
    auto input = [&](size_t i) { return op->inputs[std::min(i, op->inputs.size() - 1)]; };
    for (size_t i = 0; op && !op->inputs.empty() && i < args.size(); ++i) {
      const auto* number = args[i].as<PrimValueNode>();
      bool tensor = input(i).kind <= InputKind::kVariadic;
      if (!number || !tensor || !(number->value.is<IntImmNode>() || number->value.is<FloatImmNode>()))
        continue;
      for (size_t k = 0; k < args.size(); ++k) {
        const auto* t = args[k]->type.as<TensorTypeNode>();
        if (!t || input(k).elements != input(i).elements || !(t->dtype.isFloat() || t->dtype.isInteger()))
          continue;
        auto value = TensorObject::zeros(t->dtype, {});
        const auto* real = number->value.as<FloatImmNode>();
        bool fits = t->dtype.isFloat() || (!real && asConst(number->value) >= minValue(t->dtype) &&
                                           asConst(number->value) <= maxValue(t->dtype));
        if (!fits) break;
        if (t->dtype.isFloat())
          value->setDouble(0, real ? real->value : double(*asConst(number->value)));
        else
          value->setInt(0, *asConst(number->value));
        args.set(i, make<const ConstantNode>(Tensor(value)));
        break;
      }
    }
    return args;
  }

  // The call c with its operands renamed.
  Result<GraphExpr> call(const GraphCall& c, const GraphCall& renamed) {
    BEVEL_CHECK(all_.needs(renamed->op, c));
    for (const GraphExpr& a : renamed->args) BEVEL_CHECK(all_.needs(a, c));
    // A variable that is a tuple of tensors: only its type tells it from a tensor.
    const auto* tensors =
        c->args.size() > 1 && !c->typeArgs.empty() ? renamed->args[1].as<TupleNode>() : nullptr;
    bool spread = tensors && tensors->items.size() == 1 && tensors->items[0]->type.is<TupleTypeNode>();
    Array<GraphExpr> args = withConstants(*renamed);
    if (renamed == c && !spread && args == c->args) return GraphExpr(c);
    if (spread) args.set(1, tensors->items[0]);
    return GraphExpr(with(renamed, &GraphCallNode::type, c->type, &GraphCallNode::args, std::move(args)));
  }

  Result<GraphExpr> branches(const GraphIf& e) {
    BEVEL_TRY(GraphExpr condition, renamed(e->condition));
    SeqExpr parts[2];
    Type types[2];
    for (int k = 0; k < 2; ++k) {
      std::unordered_set<Var, RefHash> outer = dims_;
      BEVEL_TRY(parts[k], sequence(k == 0 ? e->thenBranch : e->elseBranch));
      dims_ = std::move(outer);
      types[k] = visible(parts[k]->type);
    }
    BEVEL_TRY(Type joined, joinTypes(types[0], types[1], analyzer_));
    if (e->type && contradicts(e->type, joined, analyzer_))
      return fail(placed(mismatch("the value of a branch", e->type, joined), e));
    if (e->type && condition == e->condition && parts[0] == e->thenBranch && parts[1] == e->elseBranch)
      return GraphExpr(e);
    return GraphExpr(with(e, &GraphIfNode::condition, condition, &GraphIfNode::thenBranch, parts[0],
                          &GraphIfNode::elseBranch, parts[1], &GraphIfNode::type,
                          e->type ? e->type : joined));
  }

  ModuleTypes& all_;
  Analyzer analyzer_;
  std::unordered_set<Var, RefHash> dims_; // bound so far
  std::unordered_map<GraphVar, GraphVar, RefHash> variables_;

  FunctionTypes(const FunctionTypes& outer)
      : all_(outer.all_), dims_(outer.dims_), variables_(outer.variables_) {}
};

Status ModuleTypes::function(size_t i) {
  if (states[i] != State::kOpen || !module->functions[i].is<FunctionNode>()) return {};
  states[i] = State::kRunning;
  auto f = cast<FunctionNode>(module->functions[i]);
  FunctionTypes types(*this);
  BEVEL_TRY(Function typed, types.function(f, module->names[i]->name));
  if (typed != f) module->functions.set(i, typed);
  states[i] = State::kDone;
  return {};
}

// The type of a function that is named is known, or becomes so.
Status ModuleTypes::needs(const GraphExpr& name, const NodeRef& at) {
  const auto* g = name.as<GlobalVarNode>();
  GraphExpr callee = g ? module->find(g->name) : nullptr;
  const auto* f = callee.as<FunctionNode>();
  if (!f || f->result) return {};
  for (size_t i = 0; i < states.size(); ++i) {
    if (!(module->functions[i] == callee)) continue;
    if (states[i] != State::kRunning) return function(i);
    return fail(
        placed(Error(ErrorCode::kInvalid,
                     fmt::format("function '{}' calls itself: its result type cannot be inferred", g->name))
                   .help(fmt::format("state it: def {}(…) -> R.Tensor((n, m), \"float32\")", g->name)),
               at));
  }
  return {};
}

} // namespace

Result<Module> inferTypes(const Module& module) {
  ModuleTypes all(module);
  for (size_t i = 0; i < module->functions.size(); ++i) BEVEL_CHECK(all.function(i));
  return all.module->functions == module->functions ? module : Module(all.module);
}

} // namespace bevel
