// Gives every allocation one of the scopes that code generation for the host knows.
//
// before:  T.allocate(acc, (4,), scope="global")      after:  scope="local", on the stack
//          T.allocate(big, (65536,), scope="local")           scope="global", in the workspace
//          T.allocate(a, (64,), scope="global.A_reg")         scope="local"
//
// "local" are small buffers of constant size that live within one thread's part; everything that is large,
// symbolic or shared by the iterations of a parallel loop is "global". "register" stays and is checked by
// shape_registers. Scopes of other targets mean plain memory here.
#include "loop/passes/context.h"
#include "loop/passes/passes.h"

#include <fmt/format.h>

namespace bevel {
namespace {

constexpr int64_t kSmallBytes = 1024;       // global buffers up to this size move to the stack
constexpr int64_t kLargestLocal = 16 << 10; // local buffers beyond it leave the stack

/// Used inside a parallel loop under s, that is: by another thread than allocates it.
bool crossesThreads(const Stmt& s, const Var& data) {
  bool found = false;
  walk(s, [&](const NodeRef& n) {
    if (const auto* f = n.as<ForNode>(); f && f->forKind == ForKind::kParallel)
      found |= usesVar(f->body, data);
    return !found && !n.is<ExprNode>();
  });
  return found;
}

/// All views of the data.
Stmt withScope(const Stmt& s, const Var& data, const std::string& scope) {
  return cast<StmtNode>(rewrite(s, [&](const NodeRef& n) -> NodeRef {
    const auto* b = n.as<BufferNode>();
    if (!b || b->data != data) return n;
    auto copy = make<BufferNode>(*b);
    copy->scope = scope;
    return Buffer(copy);
  }));
}

} // namespace

Result<PrimFunc> assignScopes(const PrimFunc& f) {
  std::optional<Error> error;
  NodeRef body = rewrite(f->body, [&](const NodeRef& n) -> NodeRef {
    const auto* a = n.as<AllocNode>();
    if (!a) return n;
    const Buffer& b = a->buffer;
    auto size = asConst(b->shape[0]);
    int64_t bytes = size && *size < (int64_t(1) << 40) ? b->dtype.bytesFor(*size) : INT64_MAX;
    bool shared = crossesThreads(a->body, b->data);
    std::string scope = b->scope;
    if (scope == "register" && shared && !error)
      error =
          Error(ErrorCode::kInvalid,
                fmt::format("register buffer \"{}\" is shared by the iterations of a parallel loop", b->name))
              .at(b);
    if (scope != "register") {
      bool local = scope == "local" ? bytes <= kLargestLocal : bytes <= kSmallBytes;
      scope = local && !shared ? "local" : "global";
    }
    if (scope == b->scope) return n;
    auto buffer = mutableCopy(b);
    buffer->scope = scope;
    Buffer made = buffer;
    auto copy = mutableCopy(cast<AllocNode>(n));
    copy->buffer = made;
    copy->body = withScope(a->body, b->data, scope);
    return Alloc(copy);
  });
  if (error) return fail(std::move(*error));
  return withBody(f, cast<StmtNode>(body));
}

} // namespace bevel
