// Gives every allocation one of the scopes that code generation knows: by the table of storage scopes, the one for its
// place on this kind of target.
//
// before:  T.allocate(acc, (4,), scope="global")      after:  scope="local", on the stack
//          T.allocate(big, (65536,), scope="local")           scope="global", in the workspace
//          T.allocate(a, (64,), scope="global.A_reg")         scope="local"
//
// "local" are small buffers of constant size that live within one thread's part; everything that is large,
// symbolic or shared by the iterations of a parallel loop is "global". "register" stays and is checked by
// shape_registers.
#include "loop/passes/context.h"
#include "loop/passes/passes.h"

#include <fmt/format.h>

namespace bevel {
namespace {

constexpr int64_t kSmallBytes = 1024; // buffers of the workspace up to this size move to the stack

/// Used inside a parallel loop under s, that is: by another thread than allocates it.
bool crossesThreads(const Stmt& s, const Var& data) {
  return anyNode<ForNode>(
      s, [&](const ForNode& f) { return f.forKind == ForKind::kParallel && usesVar(f.body, data); });
}

/// All views of the data.
Stmt withScope(const Stmt& s, const Var& data, const std::string& scope) {
  return cast<StmtNode>(rewrite(s, [&](const NodeRef& n) -> NodeRef {
    const auto* b = n.as<BufferNode>();
    return b && b->data == data ? with(Buffer(b), &BufferNode::scope, scope) : n;
  }));
}

} // namespace

Result<PrimFunc> assignScopes(const PrimFunc& f, const Target& target) {
  std::optional<Error> error;
  NodeRef body = rewrite(f->body, [&](const NodeRef& n) -> NodeRef {
    const auto* a = n.as<AllocNode>();
    if (!a) return n;
    const Buffer& b = a->buffer;
    auto size = asConst(b->shape[0]);
    int64_t bytes = size && *size < (int64_t(1) << 40) ? b->dtype.bytesFor(*size) : INT64_MAX;
    bool shared = crossesThreads(a->body, b->data);
    auto refuse = [&](const std::string& why) {
      if (!error) error = Error(ErrorCode::kInvalid, why).at(b);
      return n;
    };
    const StorageScope* scope = findScope(b->scope, target.kind());
    if (!scope)
      return refuse(
          fmt::format("buffer \"{}\": a {} has no storage scope \"{}\"", b->name, target.kind(), b->scope));
    bool hidden = scope->seenBy == StorageScope::kThread && shared;
    if (hidden && !scope->spill)
      return refuse(
          fmt::format("{} buffer \"{}\" is shared by the iterations of a parallel loop", b->scope, b->name));
    if (hidden || (scope->capacity && bytes > scope->capacity))
      scope = findScope(scope->spill, target.kind());
    const char* name = scope->place == StorageScope::kRegisters ? "register"
                       : scope->place == StorageScope::kStack || (bytes <= kSmallBytes && !shared) ? "local"
                                                                                                   : "global";
    if (name == b->scope) return n;
    return with(Alloc(a), &AllocNode::buffer, with(b, &BufferNode::scope, name), &AllocNode::body,
                withScope(a->body, b->data, name));
  });
  if (error) return fail(std::move(*error));
  return withBody(f, cast<StmtNode>(body));
}

} // namespace bevel
