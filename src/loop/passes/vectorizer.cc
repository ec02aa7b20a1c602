// Vector forms of statements. See the header; expressions are in vectorizer_expr.cc.
#include "loop/passes/vectorizer.h"

#include "loop/passes/vector_util.h"

namespace bevel {

Vectorizer::Vectorizer(const For& loop, int lanes, Analyzer& analyzer, std::string_view kind)
    : loop_(loop), lanes_(lanes), analyzer_(analyzer), kind_(kind) {}

Stmt Vectorizer::run() {
  analyzer_.bind(loop_->var, range(loop_->min, loop_->extent));
  Stmt out = stmt(loop_->body);
  analyzer_.unbind(loop_->var);
  return out;
}

bool Vectorizer::varies(const NodeRef& e) const {
  return usesAnyVar(e, [&](const VarNode* v) { return v == loop_->var.get() || lets_.contains(Var(v)); });
}

Expr Vectorizer::mask() const {
  Expr out;
  for (const Guard& g : guards_) out = out ? make<const BinaryNode>(BinaryOp::kAnd, out, g.vector) : g.vector;
  return out;
}

Stmt Vectorizer::stmt(const Stmt& s) {
  Stmt out;
  switch (s->kind) {
  case Kind::kStore:
    out = store(cast<StoreNode>(s));
    break;
  case Kind::kSeq:
    return seqOf(cast<SeqNode>(s));
  case Kind::kIf:
    out = ifOf(cast<IfNode>(s));
    break;
  case Kind::kFor:
    out = forOf(cast<ForNode>(s));
    break;
  case Kind::kLetStmt:
    out = letOf(cast<LetStmtNode>(s));
    break;
  case Kind::kAttrStmt:
    if (Stmt body = stmt(*bodyOf(s))) out = withBody(s, body);
    break;
  case Kind::kEvaluate: {
    const Expr& value = static_cast<const EvaluateNode&>(*s).value;
    if (isPure(value))
      return varies(value) ? Stmt(make<const EvaluateNode>(constant(kInt32, 0))) : s; // no effect
    break;
  }
  default:
    break;
  }
  return out ? out : overLanes(s);
}

/// for lane: if guards: s — where s depends on nothing that exists only as a vector.
Stmt Vectorizer::overLanes(const Stmt& s) {
  Stmt body = s; // a condition may read only where those around it hold: `and` reads both sides
  for (size_t i = guards_.size(); i-- > 0;) body = make<const IfNode>(guards_[i].scalar, body);
  bool needsVector = usesAnyVar(body, [&](const VarNode* v) { return lets_.contains(Var(v)); });
  if (needsVector) return nullptr;
  return freshen(
      with(loop_, &ForNode::forKind, ForKind::kSerial, &ForNode::annotations, nullptr, &ForNode::body, body));
}

Stmt Vectorizer::seqOf(const Seq& s) {
  std::vector<Stmt> out;
  for (const Stmt& x : s->stmts) {
    Stmt v = stmt(x);
    if (!v) return nullptr;
    out.push_back(v);
  }
  return seq(out);
}

Stmt Vectorizer::store(const Store& s) {
  if (s->indices.size() != 1 || s->predicate || s->indices[0]->dtype.isVector()) return nullptr;
  Expr at = index(s->indices[0]);
  if (!at) return nullptr;
  auto stored = [&](const Expr& value, const Expr& mask) -> Stmt {
    return with(s, &StoreNode::value, value, &StoreNode::indices, Array<Expr>{at}, &StoreNode::predicate,
                mask);
  };
  if (!at->dtype.isVector()) {
    // One element for all lanes: a reduction, or every lane writes the same, once.
    if (Stmt reduced = reduction(s, at)) return reduced;
    bool readsItself = usesVar(s->value, s->buffer->data);
    if (readsItself || varies(s->value) || mask()) return nullptr;
    Expr value = expr(s->value);
    return value ? stored(value, nullptr) : nullptr;
  }
  const auto* ramp = at.as<RampNode>();
  if (!ramp || !asConst(ramp->stride) || isConst(ramp->stride, 0)) return nullptr;
  Expr value = expr(s->value);
  return value ? stored(broadcastTo(value, lanes_), mask()) : nullptr;
}

std::optional<std::pair<Expr, Expr>> Vectorizer::splitByLane(const Expr& condition) const {
  std::vector<Expr> uniform, varying;
  for (const Expr& c : conjuncts(condition)) (varies(c) ? varying : uniform).push_back(c);
  if (uniform.empty() || varying.empty()) return std::nullopt;
  return std::pair(conjunction(uniform), conjunction(varying));
}

Stmt Vectorizer::ifOf(const If& s) {
  // A mask is evaluated anew at every store below it. A body that changes what it reads has no vector form.
  if (changesCondition(s, s->condition)) return nullptr;
  // What is the same for all lanes stays an If around the masked rest.
  if (auto split = splitByLane(s->condition); split && !s->elseBody)
    return ifOf(make<const IfNode>(split->first, make<const IfNode>(split->second, s->thenBody)));
  Expr c = condition(s->condition);
  if (!c) return nullptr;
  Stmt thenBody = under(s->condition, c, s->thenBody), elseBody;
  if (thenBody && s->elseBody)
    elseBody = under(logicalNot(s->condition), make<const UnaryNode>(UnaryOp::kNot, c), s->elseBody);
  if (!thenBody || (s->elseBody && !elseBody)) return nullptr;
  if (c->dtype.isVector()) return elseBody ? seq({thenBody, elseBody}) : thenBody;
  return with(s, &IfNode::condition, c, &IfNode::thenBody, thenBody, &IfNode::elseBody, elseBody);
}

Stmt Vectorizer::forOf(const For& s) {
  if (varies(s->min) || varies(s->extent) || s->forKind == ForKind::kParallel) return nullptr;
  analyzer_.bind(s->var, range(s->min, s->extent));
  Stmt body = stmt(s->body);
  analyzer_.unbind(s->var);
  return body ? withBody(s, body) : nullptr;
}

} // namespace bevel
