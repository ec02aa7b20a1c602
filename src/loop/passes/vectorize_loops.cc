// Turns vectorised loops into vector statements.
//
// before:  for j in T.vectorized(16):  after:  B[Ramp(i*16, 1, 16)] = A[Ramp(i*16, 1, 16)] + Broadcast(1, 16)
//            if i*16 + j < n:                    where Ramp(0, 1, 16) < Broadcast(min(n - i*16, 16), 16)
//              B[i*16 + j] = A[i*16 + j] + 1
//
// Conditions that differ by lane become masks on the loads and stores below them. What has no vector form
// (calls without one, stores to scattered or repeated places) runs as a serial loop over the lanes in its
// place. Loops longer than 64 are cut into vectors of the largest of 64, 32, 16, 8 that divides them; loops
// of unknown length run serially.
#include "loop/passes/passes.h"
#include "loop/passes/vectorizer.h"

namespace bevel {
namespace {

class VectorizeLoops : public ContextRewriter {
public:
  using ContextRewriter::ContextRewriter;

private:
  NodeRef visit(const NodeRef& node) override {
    const auto* loop = node.as<ForNode>();
    if (!loop || loop->forKind != ForKind::kVectorized) return ContextRewriter::visit(node);
    auto extent = asConst(analyzer.simplify(loop->extent));
    if (!extent || *extent < 1) return serial(*loop);
    if (*extent == 1) return (*this)(substitute(NodeRef(loop->body), {{loop->var, loop->min}}));
    if (holdsVectorised(loop->body)) return serial(*loop);
    if (*extent > 64) return stripMine(*loop, *extent);
    Stmt out = Vectorizer(For(loop), int(*extent), analyzer).run();
    return out ? (*this)(NodeRef(out)) : serial(*loop);
  }

  static bool holdsVectorised(const Stmt& body) {
    bool found = false;
    walk(body, [&](const NodeRef& n) {
      if (const auto* f = n.as<ForNode>()) found |= f->forKind == ForKind::kVectorized;
      return !found && !n.is<ExprNode>();
    });
    return found;
  }

  NodeRef serial(const ForNode& loop) {
    auto copy = make<ForNode>(loop);
    copy->forKind = ForKind::kSerial;
    return ContextRewriter::visit(For(copy));
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
};

} // namespace

Result<PrimFunc> vectorizeLoops(const PrimFunc& f) {
  return VectorizeLoops(f).run(f);
}

} // namespace bevel
