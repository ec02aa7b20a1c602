// Verification of tensor programs.
#include "ir/build.h"
#include "ir/storage_scope.h"
#include "ir/structural.h"
#include "ir/verify_impl.h"

namespace bevel::detail {

void Verifier::defineBuffer(const Buffer& b, const RefBase& node) {
  if (!b || !b->data) return error(node, "a buffer is missing");
  define(b->data, ("buffer '" + b->name + "'").c_str());
  if (Status ok = checkScope(b->scope); !ok)
    error(node, "buffer '" + b->name + "': " + ok.error().message, ok.error().hint);
}

/// A layout that binds the variables of its shape, strides and offset.
void Verifier::bindLayout(const Buffer& b, const RefBase& node) {
  for (const auto* list : {&b->shape, &b->strides})
    for (const Expr& e : *list) bindFree(e);
  bindFree(b->elemOffset);
  bufferLayout(b, node);
}

void Verifier::primFunc(const PrimFuncNode& f) {
  NodeRef node(&f);
  if (f.params.size() != f.buffers.size())
    return error(node, "a tensor program has one buffer (or null) for each parameter");
  for (size_t i = 0; i < f.params.size(); ++i) {
    const Var& p = f.params[i];
    define(p, "a parameter");
    if (!p || !f.buffers[i]) continue;
    if (!p->dtype.isHandle()) error(node, "parameter '" + p->name + "' has a buffer, but is no handle");
    if (f.buffers[i]->data && !(f.buffers[i]->data == p)) defineBuffer(f.buffers[i], node);
  }
  for (const Buffer& b : f.buffers) {
    if (!b) continue;
    bindLayout(b, node);
  }
  if (!f.body) return error(node, "the body is missing");
  stmt(f.body, node);
}

void Verifier::forLoop(const ForNode& n) {
  NodeRef node(&n);
  expr(n.min, node), expr(n.extent, node);
  if (!n.var || !n.min || !n.extent) return error(node, "a loop needs a variable, a start and an extent");
  DType t = n.var->dtype;
  if (!t.isInteger() || t.isVector()) error(node, "a loop variable is an integer, not " + t.str());
  if (n.min->dtype != t || n.extent->dtype != t)
    error(node, "loop '" + n.var->name + "' is " + t.str() + ", its range " + n.min->dtype.str() + " and " +
                    n.extent->dtype.str());
  if ((n.forKind == ForKind::kThreadBinding) == n.thread.empty())
    error(node, "a loop has a thread exactly when it is bound to one");
  else if (!n.thread.empty() && !isThreadAxis(n.thread))
    error(node, "there is no thread axis '" + n.thread + "'");
  size_t scope = mark();
  define(n.var, ("loop variable '" + n.var->name + "'").c_str());
  loopLevel_[n.var.get()] = level_;
  stmt(n.body, node);
  leave(scope);
}

void Verifier::store(const StoreNode& n) {
  NodeRef node(&n);
  indices(n.buffer, n.indices, node);
  expr(n.value, node);
  if (!n.buffer || !n.value) return;
  int lanes = n.indices.empty() || !n.indices.back() ? 1 : n.indices.back()->dtype.lanes;
  DType expected = n.buffer->dtype.withLanes(n.buffer->dtype.lanes * lanes);
  if (n.value->dtype != expected)
    error(node,
          "a value of type " + n.value->dtype.str() + " is stored where " + expected.str() + " is expected");
  if (!n.predicate) return;
  expr(n.predicate, node);
  if (n.predicate->dtype != DType::Bool(lanes))
    error(node, "the predicate of a store has one bool for each lane, not " + n.predicate->dtype.str());
}

void Verifier::realize(const BlockRealizeNode& n) {
  NodeRef node(&n);
  if (!n.block) return error(node, "a block is missing");
  if (n.values.size() != n.block->iters.size())
    error(node, "block '" + n.block->name + "' has " + std::to_string(n.block->iters.size()) + " axes, but " +
                    std::to_string(n.values.size()) + " values are given");
  for (size_t i = 0; i < n.values.size(); ++i) {
    expr(n.values[i], node);
    if (!n.values[i] || i >= n.block->iters.size() || !n.block->iters[i] || !n.block->iters[i]->var) continue;
    const IterVarNode& iter = *n.block->iters[i];
    if (iter.var->dtype != n.values[i]->dtype)
      error(node, "axis '" + iter.var->name + "' is " + iter.var->dtype.str() + ", its value " +
                      n.values[i]->dtype.str());
  }
  condition(n.predicate, node, "the condition of a block");
  block(*n.block);
}

void Verifier::block(const BlockNode& b) {
  NodeRef node(&b);
  if (!blocks_.insert(b.name).second)
    error(node, "two blocks are named '" + b.name + "'", "a block is its name; choose another");
  size_t scope = mark();
  for (const IterVar& i : b.iters) {
    if (!i || !i->domain || !i->var) {
      error(node, "an axis of block '" + b.name + "' is incomplete");
      continue;
    }
    expr(i->domain->min, node), expr(i->domain->extent, node);
    if (!i->domain->min || !i->domain->extent) continue;
    if (i->var->dtype != i->domain->extent->dtype || i->var->dtype != i->domain->min->dtype)
      error(node, "axis '" + i->var->name + "' and its domain have different types");
  }
  for (const IterVar& i : b.iters)
    if (i && i->var) define(i->var, ("axis '" + i->var->name + "'").c_str());
  int savedIsolation = isolation_;
  ++level_;
  if (!b.iters.empty()) isolation_ = level_;
  for (const Buffer& a : b.allocs) {
    defineBuffer(a, node);
    if (a) bufferLayout(a, node);
  }
  for (const MatchBuffer& m : b.matches) {
    if (!m || !m->source || !m->buffer) {
      error(node, "a view is incomplete");
      continue;
    }
    region(*m->source);
    defineBuffer(m->buffer, node);
    bindLayout(m->buffer, node);
  }
  for (const auto* list : {&b.reads, &b.writes})
    for (const BufferRegion& r : *list) r ? region(*r) : error(node, "a region is missing");
  if (b.init) stmt(b.init, node);
  stmt(b.body, node);
  --level_;
  isolation_ = savedIsolation;
  leave(scope);
}

void Verifier::stmt(const Stmt& s, const RefBase& parent) {
  if (full()) return;
  if (!s) return error(parent, "a statement is missing");
  Origin around = place_;
  if (s->origin) place_ = s->origin;
  statement(s);
  place_ = std::move(around);
}

void Verifier::statement(const Stmt& s) {
  size_t scope = mark();
  if (auto* n = s.as<StoreNode>()) return store(*n);
  if (auto* n = s.as<ForNode>()) return forLoop(*n);
  if (auto* n = s.as<BlockRealizeNode>()) return realize(*n);
  if (auto* n = s.as<EvaluateNode>()) return expr(n->value, s);
  if (auto* n = s.as<SeqNode>()) {
    if (n->stmts.size() < 2) error(s, "a sequence has at least two statements");
    for (const Stmt& x : n->stmts) {
      if (x.is<SeqNode>()) error(s, "sequences do not nest", "build them with seq()");
      stmt(x, s);
    }
  } else if (auto* n = s.as<IfNode>()) {
    condition(n->condition, s, "the condition of an 'if'");
    stmt(n->thenBody, s);
    if (n->elseBody) stmt(n->elseBody, s);
  } else if (auto* n = s.as<WhileNode>()) {
    condition(n->condition, s, "the condition of a 'while'");
    stmt(n->body, s);
  } else if (auto* n = s.as<LetStmtNode>()) {
    expr(n->value, s);
    define(n->var, n->var ? ("variable '" + n->var->name + "'").c_str() : "a variable");
    sameType(n->var, n->value, s);
    stmt(n->body, s);
  } else if (auto* n = s.as<AllocNode>()) {
    if (n->buffer) bufferLayout(n->buffer, s);
    defineBuffer(n->buffer, s);
    stmt(n->body, s);
  } else if (auto* n = s.as<DeclBufferNode>()) {
    bufferUse(n->buffer, s);
    if (n->buffer) bufferLayout(n->buffer, s);
    stmt(n->body, s);
  } else if (auto* n = s.as<AttrStmtNode>()) {
    if (auto* iter = n->node.as<IterVarNode>(); iter && iter->var && !visible(iter->var.get()))
      define(iter->var, "the axis of an attribute");
    if (n->node.is<ExprNode>()) expr(cast<ExprNode>(n->node), s);
    if (n->value.is<ExprNode>()) expr(cast<ExprNode>(n->value), s);
    stmt(n->body, s);
  } else if (auto* n = s.as<AssertNode>())
    condition(n->condition, s, "the condition of an assertion");
  else if (auto* n = s.as<BlockNode>())
    error(s, "block '" + n->name + "' has no values for its axes");
  leave(scope);
}

} // namespace bevel::detail
