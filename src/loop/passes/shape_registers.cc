// Brings register buffers into slot form, and refuses what has none.
//
// before:  acc = T.allocate((96,), scope="register")     after:  the same, with annotation {"lanes": 16}:
//          acc[Ramp(0, 1, 16)] = …                               6 slots of one 16-lane vector each
//          acc[Ramp(80, 1, 16)] = …
//
// Every access must be a whole slot: Ramp(c, 1, lanes) with a constant c that is a multiple of lanes, all
// accesses of a buffer agreeing in lanes (1: scalar constant indices). A single element that is read out of a slot, as at a tail
// of one column, becomes a lane of it. Buffers of scope "local" that are accessed so become registers too when they are small,
// since a slot that is one SSA value needs no memory.
#include "loop/passes/context.h"
#include "loop/passes/passes.h"

#include <fmt/format.h>

namespace bevel {
namespace {

constexpr int64_t kMaxSlots = 256;

struct SlotUse {
  int lanes = 0;         // 0: none seen
  std::string complaint; // empty: every access is a slot
  NodeRef at;
};

/// How the accesses of a buffer under a statement use it.
SlotUse slotUse(const Stmt& body, const Buffer& buffer) {
  SlotUse use;
  auto complain = [&](std::string why, const NodeRef& at) {
    if (use.complaint.empty()) use.complaint = std::move(why), use.at = at;
  };
  bool elements = false; // read one by one
  auto check = [&](const ElementAccess& access, const NodeRef& at) {
    if (!same(access.buffer, buffer)) return complain("is accessed through a second view", at);
    const Expr& i = access.indices[0];
    int lanes = i->dtype.lanes;
    const auto* ramp = i.as<RampNode>();
    auto slot = asConst(ramp ? ramp->base : i);
    if (!slot || (lanes > 1 && !ramp))
      return complain("has an index that is not constant after unrolling", at);
    if (ramp && !isConst(ramp->stride, 1)) return complain("is accessed with a stride", at);
    if (*slot % lanes != 0) return complain("is accessed across two slots", at);
    if (access.predicate) return complain("is accessed under a mask", at);
    if (lanes == 1 && at.is<LoadNode>()) return void(elements = true);
    if (use.lanes != 0 && use.lanes != lanes)
      return complain(fmt::format("is accessed by vectors of {} and of {} lanes", use.lanes, lanes), at);
    use.lanes = lanes;
  };
  walk(body, [&](const NodeRef& n) {
    if (auto access = elementAccess(n); access && access->buffer->sameAs(*buffer))
      check(*access, n);
    else if (n == buffer->data)
      complain("has its address taken", n);
    return !n.is<BufferNode>();
  });
  if (elements && use.lanes == 0) use.lanes = 1;
  return use;
}

/// Elements that are read one by one as lanes of their slots.
Stmt elementsOfSlots(const Stmt& body, const Buffer& buffer, int lanes) {
  return cast<StmtNode>(rewrite(body, [&](const NodeRef& n) -> NodeRef {
    const auto* l = n.as<LoadNode>();
    if (!l || l->dtype.lanes > 1 || !l->buffer->sameAs(*buffer)) return n;
    int64_t at = *asConst(l->indices[0]);
    DType index = l->indices[0]->dtype;
    Expr slot = make<const RampNode>(constant(index, at / lanes * lanes), constant(index, 1), lanes);
    Expr whole = make<const LoadNode>(l->buffer, Array<Expr>{slot});
    return make<const ShuffleNode>(Array<Expr>{whole}, Array<Expr>{constant(kInt32, at % lanes)});
  }));
}

} // namespace

Result<PrimFunc> shapeRegisters(const PrimFunc& f, const Target& target) {
  std::optional<Error> error;
  NodeRef body = rewrite(f->body, [&](const NodeRef& n) -> NodeRef {
    const auto* a = n.as<AllocNode>();
    const StorageScope* scope = a ? findScope(a->buffer->scope, target.kind()) : nullptr;
    if (!scope || scope->place == StorageScope::kWorkspace) return n;
    bool demanded = scope->place == StorageScope::kRegisters;
    auto size = asConst(a->buffer->shape[0]);
    SlotUse use = slotUse(a->body, a->buffer);
    if (use.lanes == 0) use.lanes = 1;
    if (!size) use.complaint = "has a size that is not constant";
    if (!use.complaint.empty() || (!demanded && *size / use.lanes > kMaxSlots)) {
      if (demanded && !error)
        error = Error(ErrorCode::kInvalid,
                      fmt::format("register buffer \"{}\" {}", a->buffer->name, use.complaint))
                    .at(use.at)
                    .help("unroll the loops that index it, vectorise along its last axis by one width, or "
                          "use scope \"local\"");
      return n;
    }
    Array<Expr> shape = {intImm((*size + use.lanes - 1) / use.lanes * use.lanes)};
    Buffer made = with(a->buffer, &BufferNode::scope, "register", &BufferNode::shape, shape);
    Stmt body = use.lanes > 1 ? elementsOfSlots(a->body, a->buffer, use.lanes) : a->body;
    return with(Alloc(a), &AllocNode::annotations, withAttr(a->annotations, "lanes", intImm(use.lanes)),
                &AllocNode::buffer, made, &AllocNode::body, replaceBuffers(body, {{made->data, made}}));
  });
  if (error) return fail(std::move(*error));
  return withBody(f, cast<StmtNode>(body));
}

} // namespace bevel
