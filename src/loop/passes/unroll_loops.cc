// Unrolled loops become sequences.
//
// before:  for i in T.unroll(2): A[i] = i * 2            after:  A[0] = 0
//                                                                A[1] = 2
//
// Unrolled are: loops of kind unroll with a constant extent; serial loops of constant extent whose variable
// indexes a register buffer (its slots must have constant numbers); and serial loops under
// `pragma_auto_unroll_max_step` = N (a loop annotation or T.attr), innermost first, while the statements they
// become stay at most N. Loops of unknown or too large extent (more than 4096 statements) run serially.
#include "loop/passes/context.h"
#include "loop/passes/passes.h"

#include <algorithm>

namespace bevel {
namespace {

constexpr int64_t kMaxStatements = 4096;
constexpr const char* kAutoUnroll = "pragma_auto_unroll_max_step";

/// A loop variable that picks a slot of a register buffer.
bool indexesRegisters(const NodeRef& body, const Var& v, std::string_view kind) {
  return anyNode(body, [&](const NodeRef& n) {
    auto access = elementAccess(n);
    return access && inRegisters(access->buffer->scope, kind) &&
           std::ranges::any_of(access->indices, [&](const Expr& i) { return usesVar(i, v); });
  });
}

class UnrollLoops : public ContextRewriter {
public:
  UnrollLoops(const PrimFunc& f, std::string_view kind) : ContextRewriter(f), kind_(kind) {}

private:
  NodeRef visit(const NodeRef& node) override {
    if (const auto* a = node.as<AttrStmtNode>(); a && a->key == kAutoUnroll) {
      auto limit = a->value.is<ExprNode>() ? asConst(cast<ExprNode>(a->value)) : std::nullopt;
      return withLimit(limit.value_or(0), [&] { return (*this)(NodeRef(a->body)); });
    }
    const auto* loop = node.as<ForNode>();
    if (!loop) return ContextRewriter::visit(node);
    if (!attr(loop->annotations, kAutoUnroll)) return visitLoop(For(loop));
    Dict others = withAttr(loop->annotations, kAutoUnroll, nullptr);
    For plain = with(For(loop), &ForNode::annotations, others->keys.empty() ? nullptr : others);
    return withLimit(attrInt(loop->annotations, kAutoUnroll), [&] { return visitLoop(plain); });
  }

  NodeRef withLimit(int64_t limit, FunctionRef<NodeRef()> f) {
    std::swap(limit, autoLimit_);
    NodeRef out = f();
    std::swap(limit, autoLimit_);
    return out;
  }

  NodeRef visitLoop(const For& loop) {
    NodeRef visited = ContextRewriter::visit(loop);
    if (!visited) return nullptr;
    For inner = cast<ForNode>(visited);
    if (inner->forKind != ForKind::kUnrolled && inner->forKind != ForKind::kSerial) return inner;
    auto extent = asConst(analyzer.simplify(inner->extent));
    if (extent && *extent <= kMaxStatements && wanted(inner, *extent)) return unrolled(inner, *extent);
    return inner->forKind == ForKind::kSerial ? inner : with(inner, &ForNode::forKind, ForKind::kSerial);
  }

  bool wanted(const For& loop, int64_t extent) {
    int64_t count = std::max<int64_t>(extent, 0) * std::max<int64_t>(countStatements(loop->body), 1);
    if (count > kMaxStatements) return false;
    if (loop->forKind == ForKind::kUnrolled) return true;
    return (autoLimit_ > 0 && count <= autoLimit_) || indexesRegisters(loop->body, loop->var, kind_);
  }

  NodeRef unrolled(const For& loop, int64_t extent) {
    std::vector<Stmt> out;
    for (int64_t i = 0; i < extent; ++i) {
      Expr value = analyzer.simplify(loop->min + i);
      // Variables bound in the body stay unique: every copy but the first gets its own.
      Stmt body = substitute(loop->body, {{loop->var, value}});
      out.push_back(i == 0 ? body : freshen(body));
    }
    return seq(out);
  }

  std::string_view kind_; // of the target
  int64_t autoLimit_ = 0;
};

} // namespace

Result<PrimFunc> unrollLoops(const PrimFunc& f, const Target& target) {
  return UnrollLoops(f, target.kind()).run(f);
}

} // namespace bevel
