// Turns vectorised loops into vector statements.
//
// before:  for j in T.vectorized(16):  after:  B[Ramp(i*16, 1, 16)] = A[Ramp(i*16, 1, 16)] + Broadcast(1, 16)
//            if i*16 + j < n:                    where Ramp(0, 1, 16) < Broadcast(min(n - i*16, 16), 16)
//              B[i*16 + j] = A[i*16 + j] + 1
//
// Conditions that differ by lane become masks on the loads and stores below them. What has no vector form
// (calls without one, stores to scattered or repeated places) runs as a serial loop over the lanes in its
// place; so does the loop as a whole when its statements hand values on through an element that all lanes
// share. Loops longer than 64 are cut into vectors of the largest of 64, 32, 16, 8 that divides them; loops
// of unknown length run serially.
#include "ir/effects.h"
#include "loop/passes/passes.h"
#include "loop/passes/vectorizer.h"

#include <algorithm>
#include <unordered_set>

namespace bevel {
namespace {

// Whether an iteration hands a value of its own from one statement to another through an element that all
// iterations share (J[0] = 7 - i; B[i] = A[J[0]]). Statement by statement over the lanes, all would read
// the last one's.
class SharedElements {
public:
  static bool carry(const ForNode& loop) {
    SharedElements s;
    s.own_.insert(loop.var.get());
    s.visit(loop.body, false, nullptr);
    return std::ranges::any_of(s.stored_, [&](const Object* data) { return s.read_.contains(data); });
  }

private:
  bool varies(const NodeRef& e) const {
    return usesAnyVar(e, [&](const VarNode* v) { return own_.contains(v); });
  }

  /// `target`: the data of the buffer to which the value around n is stored; reading it there is a reduction.
  void visit(const NodeRef& n, bool conditional, const Object* target) {
    if (!n || n->kind == Kind::kBuffer) return;
    if (const auto* load = n.as<LoadNode>(); load && load->buffer->data.get() != target)
      read_.insert(load->buffer->data.get());
    if (const auto* let = n.as<LetStmtNode>()) own_.insert(let->var.get());
    if (const auto* let = n.as<LetNode>()) own_.insert(let->var.get());
    if (const auto* s = n.as<StoreNode>()) return store(*s, conditional);
    conditional |=
        n.is<IfNode>() || n.is<WhileNode>() || (n.is<ForNode>() && varies(n.as<ForNode>()->extent));
    forEachChild(n, [&](const NodeRef& child, Role) { visit(child, conditional, target); });
  }

  void store(const StoreNode& s, bool conditional) {
    const Object* data = s.buffer->data.get();
    for (const Expr& i : s.indices) visit(i, conditional, nullptr);
    visit(s.predicate, conditional, nullptr);
    visit(s.value, conditional, data);
    bool shared = std::ranges::none_of(s.indices, [&](const Expr& i) { return varies(i); });
    if (shared && (conditional || varies(s.value) || readsMemory(s.value))) stored_.insert(data);
  }

  std::unordered_set<const Object*> own_; // variables whose value may differ by lane
  std::unordered_set<const Object*> stored_,
      read_; // data: with a value of the lane's own; by other statements
};

class VectorizeLoops : public ContextRewriter {
public:
  VectorizeLoops(const PrimFunc& f, std::string_view kind) : ContextRewriter(f), kind_(kind) {}

private:
  NodeRef visit(const NodeRef& node) override {
    const auto* loop = node.as<ForNode>();
    if (!loop || loop->forKind != ForKind::kVectorized) return ContextRewriter::visit(node);
    auto extent = asConst(analyzer.simplify(loop->extent));
    if (!extent || *extent < 1) return serial(*loop);
    if (*extent == 1) return (*this)(substitute(NodeRef(loop->body), {{loop->var, loop->min}}));
    if (holdsVectorised(loop->body) || SharedElements::carry(*loop)) return serial(*loop);
    if (*extent > 64) return stripMine(*loop, *extent);
    Stmt out = Vectorizer(For(loop), int(*extent), analyzer, kind_).run();
    return out ? (*this)(NodeRef(out)) : serial(*loop);
  }

  static bool holdsVectorised(const Stmt& body) {
    return anyNode<ForNode>(body, [](const ForNode& f) { return f.forKind == ForKind::kVectorized; });
  }

  NodeRef serial(const ForNode& loop) {
    return ContextRewriter::visit(with(For(&loop), &ForNode::forKind, ForKind::kSerial));
  }

  NodeRef stripMine(const ForNode& loop, int64_t extent) {
    int64_t width = 64;
    while (width > 4 && extent % width != 0) width /= 2;
    if (extent % width != 0) return serial(loop);
    Var outer = var(loop.var->name + "_o"), inner = var(loop.var->name + "_v");
    Expr at = loop.min + outer * width + inner;
    Stmt body = substitute(loop.body, {{loop.var, castTo(loop.var->dtype, at)}});
    Stmt vector = forLoop(inner, intImm(width), body, ForKind::kVectorized);
    return (*this)(NodeRef(forLoop(outer, intImm(extent / width), vector)));
  }

  std::string_view kind_; // of the target
};

} // namespace

Result<PrimFunc> vectorizeLoops(const PrimFunc& f, const Target& target) {
  return VectorizeLoops(f, target.kind()).run(f);
}

} // namespace bevel
