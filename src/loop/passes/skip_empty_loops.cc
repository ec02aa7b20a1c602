// A loop around loops over nothing does not run.
//
// before:  for i in n:                     after:  for i in T.Select(m > 0, n, 0):
//            s = T.alloc_buffer((1,))                s = T.alloc_buffer((1,))
//            s[0] = 0                                s[0] = 0
//            for j in m:                             for j in m:
//              s[0] += A[i * m + j]                    s[0] += A[i * m + j]
//            for j in m:                             for j in m:
//              B[i * m + j] = s[0]                     B[i * m + j] = s[0]
//
// A program whose results have no elements at all becomes empty: it needs no workspace. One with a workspace of symbolic
// size asks for it at its head, as a condition around all.
// 2^40 rows without an element would take hours otherwise. What is stored into a buffer that the loop allocates for
// itself is not seen outside.
#include "loop/passes/context.h"
#include "loop/passes/passes.h"

#include "ir/build.h"

#include <algorithm>
#include <unordered_set>

namespace bevel {
namespace {

const Expr kNever = boolImm(false), kAlways = boolImm(true);

Expr either(const Expr& a, const Expr& b) {
  return structuralEqual(a, b) ? a : logicalOr(a, b);
}

/// When a statement does what is seen outside of it, as far as the sizes tell.
class Work {
public:
  Expr of(const Stmt& s) {
    if (!s) return kNever;
    switch (s->kind) {
    case Kind::kSeq: {
      Expr any = kNever;
      for (const Stmt& x : s.as<SeqNode>()->stmts)
        if (any = either(any, of(x)); isConst(any, 1)) break;
      return any;
    }
    case Kind::kIf:
      return either(of(s.as<IfNode>()->thenBody), of(s.as<IfNode>()->elseBody));
    case Kind::kFor:
      return ofLoop(*s.as<ForNode>());
    case Kind::kLetStmt:
      return outside(of(s.as<LetStmtNode>()->body), s.as<LetStmtNode>()->var);
    case Kind::kAlloc:
      own_.insert(s.as<AllocNode>()->buffer->data);
      return of(s.as<AllocNode>()->body);
    case Kind::kDeclBuffer:
    case Kind::kAttrStmt:
      return of(*bodyOf(s));
    case Kind::kStore:
      return own_.contains(s.as<StoreNode>()->buffer->data) ? kNever : kAlways;
    default:
      return kAlways;
    }
  }

private:
  static Expr outside(const Expr& condition, const Var& inner) {
    return usesVar(condition, inner) ? kAlways : condition;
  }

  Expr ofLoop(const ForNode& loop) {
    Expr body = outside(of(loop.body), loop.var);
    auto count = asConst(loop.extent);
    if (count) return *count > 0 ? body : kNever;
    bool isPlain = !readsMemory(loop.extent) && !mayTrap(loop.extent); // may be computed though nothing runs
    Expr some = loop.extent > constant(loop.extent->dtype, 0);
    return !isPlain || structuralEqual(some, body) ? body : logicalAnd(some, body);
  }

  std::unordered_set<Var, RefHash> own_;
};

class EmptyLoops : public Rewriter {
public:
  explicit EmptyLoops(std::vector<Expr> known) : known_(std::move(known)) { memoise = false; }

private:
  NodeRef visit(const NodeRef& node) override {
    if (!node.is<StmtNode>()) return node;
    auto inside = [&](const NodeRef& child) { return (*this)(child); };
    const auto* loop = node.as<ForNode>();
    Expr work = loop ? Work().of(loop->body) : kAlways;
    std::vector<Expr> unknown;
    for (const Expr& c : conjuncts(work))
      if (std::none_of(known_.begin(), known_.end(), [&](const Expr& k) { return structuralEqual(k, c); }))
        unknown.push_back(c);
    if (isConst(work, 1) || unknown.empty() || usesVar(work, loop->var)) return mapChildren(node, inside);
    size_t before = known_.size();
    known_.insert(known_.end(), unknown.begin(), unknown.end());
    For out = cast<ForNode>(mapChildren(node, inside));
    known_.resize(before);
    return with(out, &ForNode::extent,
                select(conjunction(unknown), out->extent, constant(out->extent->dtype, 0)));
  }

  std::vector<Expr> known_; // where the current place runs
};

} // namespace

Result<PrimFunc> skipEmptyLoops(const PrimFunc& f, const Target&) {
  Expr work = Work().of(f->body);
  if (isConst(work, 0)) return withBody(f, seq({}));
  bool grows = anyNode<AllocNode>(f->body, [](const AllocNode& a) {
    return a.buffer->scope == "global" && !asConst(a.buffer->shape[0]);
  });
  bool guarded = grows && !isConst(work, 1);
  Stmt body = guarded ? Stmt(make<const IfNode>(work, f->body)) : f->body;
  return withBody(f, EmptyLoops(guarded ? conjuncts(work) : std::vector<Expr>())(body));
}

} // namespace bevel
