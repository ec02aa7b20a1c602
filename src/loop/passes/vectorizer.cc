// Vector forms of statements. See the header; expressions are in vectorizer_expr.cc.
#include "loop/passes/vectorizer.h"

#include "loop/passes/vector_util.h"

#include <algorithm>

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
  case Kind::kAttrStmt: {
    auto copy = mutableCopy(cast<AttrStmtNode>(s));
    copy->body = stmt(copy->body);
    if (copy->body) out = copy;
    break;
  }
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
  auto serial = mutableCopy(loop_);
  serial->forKind = ForKind::kSerial;
  serial->annotations = nullptr;
  serial->body = body;
  return freshen(For(serial));
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
  auto copy = mutableCopy(s);
  if (!at->dtype.isVector()) {
    // One element for all lanes: a reduction, or every lane writes the same, once.
    if (Stmt reduced = reduction(s, at)) return reduced;
    bool readsItself = usesVar(s->value, s->buffer->data);
    if (readsItself || varies(s->value) || mask()) return nullptr;
    copy->value = expr(s->value);
    copy->indices = {at};
    return copy->value ? Stmt(copy) : nullptr;
  }
  const auto* ramp = at.as<RampNode>();
  if (!ramp || !asConst(ramp->stride) || isConst(ramp->stride, 0)) return nullptr;
  Expr value = expr(s->value);
  if (!value) return nullptr;
  copy->value = broadcastTo(value, lanes_);
  copy->indices = {at};
  copy->predicate = mask();
  return Store(copy);
}

Stmt Vectorizer::guarded(const Expr& scalar, const Expr& vector, const Stmt& body) {
  // The analyzer is not told: with all lanes off, the condition holds for none.
  guards_.push_back({scalar, vector});
  Stmt out = stmt(body);
  guards_.pop_back();
  return out;
}

Stmt Vectorizer::ifOf(const If& s) {
  // A mask is evaluated anew at every store below it. A body that changes what it reads has no vector form.
  if (changesCondition(s, s->condition)) return nullptr;
  // What is the same for all lanes stays an If around the masked rest.
  std::vector<Expr> uniform, varying;
  for (const Expr& c : conjuncts(s->condition)) (varies(c) ? varying : uniform).push_back(c);
  if (!s->elseBody && !uniform.empty() && !varying.empty())
    return ifOf(
        make<const IfNode>(conjunction(uniform), make<const IfNode>(conjunction(varying), s->thenBody)));
  Expr c = condition(s->condition);
  if (!c) return nullptr;
  if (!c->dtype.isVector()) {
    auto copy = mutableCopy(s);
    copy->condition = c;
    auto branch = [&](const Expr& holds, const Stmt& body) {
      auto scope = analyzer_.assume(stripLikely(holds));
      return stmt(body);
    };
    copy->thenBody = branch(s->condition, s->thenBody);
    if (s->elseBody) copy->elseBody = branch(logicalNot(s->condition), s->elseBody);
    bool ok = copy->thenBody && (!s->elseBody || copy->elseBody);
    return ok ? Stmt(copy) : nullptr;
  }
  Stmt thenBody = guarded(s->condition, c, s->thenBody);
  if (!thenBody || !s->elseBody) return thenBody;
  Expr other = make<const UnaryNode>(UnaryOp::kNot, c);
  Stmt elseBody = guarded(logicalNot(s->condition), other, s->elseBody);
  return elseBody ? seq({thenBody, elseBody}) : nullptr;
}

Stmt Vectorizer::forOf(const For& s) {
  if (varies(s->min) || varies(s->extent) || s->forKind == ForKind::kParallel) return nullptr;
  auto copy = mutableCopy(s);
  analyzer_.bind(s->var, range(s->min, s->extent));
  copy->body = stmt(s->body);
  analyzer_.unbind(s->var);
  return copy->body ? Stmt(copy) : nullptr;
}

Stmt Vectorizer::letOf(const LetStmt& s) {
  auto copy = mutableCopy(s);
  copy->value = expr(s->value);
  if (!copy->value) return nullptr;
  if (copy->value->dtype.isVector()) {
    auto wide = mutableCopy(s->var);
    wide->dtype = copy->value->dtype;
    copy->var = wide;
    lets_[s->var] = copy->var;
  }
  // Arithmetic on it wraps when it holds a loaded value.
  bool data = s->value->dtype.isInteger() && readsMemory(s->value);
  if (data) analyzer_.bind(s->var, s->value);
  copy->body = stmt(s->body);
  if (data) analyzer_.unbind(s->var);
  lets_.erase(s->var);
  return copy->body ? Stmt(copy) : nullptr;
}

} // namespace bevel
