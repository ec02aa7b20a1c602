// Removes statements without effect.
//
// before:  for i in 8:                          after:  B[0] = 1
//            T.evaluate(0)
//          if n < 4: T.evaluate(i)
//          B[0] = 1
//
// Also: stores of what an element holds already, empty sequences, lets nobody uses, allocations nobody uses.
#include "loop/passes/context.h"
#include "loop/passes/passes.h"

namespace bevel {
namespace {

class NoOpRemoval : public Rewriter {
public:
  NoOpRemoval() { memoise = false; }

private:
  // Null stands for "nothing left".
  NodeRef visit(const NodeRef& node) override {
    if (node.is<ExprNode>() || node.is<BufferNode>() || node.is<DictNode>()) return node;
    switch (node->kind) {
    case Kind::kEvaluate:
      return isPure(node.as<EvaluateNode>()->value) ? NodeRef() : node;
    case Kind::kStore:
      return writesItself(static_cast<const StoreNode&>(*node)) ? NodeRef() : node;
    case Kind::kSeq: {
      std::vector<Stmt> out;
      for (const Stmt& s : static_cast<const SeqNode&>(*node).stmts)
        if (Stmt kept = (*this)(s)) out.push_back(kept);
      return out.empty() ? NodeRef() : NodeRef(seq(out));
    }
    case Kind::kIf:
      return visitIf(cast<IfNode>(node));
    case Kind::kFor:
    case Kind::kAttrStmt:
    case Kind::kDeclBuffer:
    case Kind::kAlloc:
    case Kind::kLetStmt:
      return visitBody(cast<StmtNode>(node));
    case Kind::kBlockRealize:
    case Kind::kBlock:
    case Kind::kWhile:
      return visitKept(node);
    default:
      return node;
    }
  }

  NodeRef visitKept(const NodeRef& node) {
    return mapChildren(node, [&](const NodeRef& child) {
      NodeRef out = (*this)(child);
      return out || !child.is<StmtNode>() ? out : NodeRef(seq({}));
    });
  }

  NodeRef visitBody(const Stmt& s) {
    const Stmt& before = *bodyOf(s);
    const auto* loop = s.as<ForNode>();
    const auto* let = s.as<LetStmtNode>();
    const auto* alloc = s.as<AllocNode>();
    bool removable = loop ? isPure(loop->extent) : !let || isPure(let->value);
    Stmt body = (*this)(before);
    bool unused = alloc ? !usesVar(body, alloc->buffer->data) : let && !usesVar(body, let->var);
    if (removable && (!body || unused)) return body;
    return body == before ? s : withBody(s, orNoOp(body));
  }

  NodeRef visitIf(const If& s) {
    Stmt a = (*this)(s->thenBody), b = s->elseBody ? (*this)(s->elseBody) : nullptr;
    if (!a && !b) return isPure(s->condition) ? NodeRef() : NodeRef(make<const EvaluateNode>(s->condition));
    if (a == s->thenBody && b == s->elseBody) return s;
    return withBranches(s, s->condition, a, b);
  }

  static bool writesItself(const StoreNode& s) {
    const auto* l = s.value.as<LoadNode>();
    if (!l || !l->buffer->sameAs(*s.buffer) || l->predicate || l->indices.size() != s.indices.size())
      return false;
    for (size_t i = 0; i < s.indices.size(); ++i)
      if (!same(l->indices[i], s.indices[i]) || readsMemory(s.indices[i])) return false;
    return same(l->buffer, s.buffer);
  }
};

} // namespace

Result<PrimFunc> removeNoOp(const PrimFunc& f, const Target&) {
  return withBody(f, NoOpRemoval()(f->body));
}

} // namespace bevel
