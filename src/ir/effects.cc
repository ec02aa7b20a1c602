#include "ir/effects.h"

#include "ir/build.h"
#include "ir/structural.h"

#include <algorithm>

namespace bevel {

bool readsMemory(const NodeRef& node) {
  if (node.is<VarNode>() || node.is<IntImmNode>()) return false;
  return anyNode(node, [](const NodeRef& n) {
    const auto* call = n.as<CallNode>();
    return n.is<LoadNode>() || (call && intrinInfo(call->op).effect != Effect::kPure);
  });
}

// The worst effect of the calls under a node, without those that `leftOut` names.
static Effect worstEffect(const NodeRef& node, FunctionRef<bool(const CallNode&)> leftOut) {
  Effect worst = Effect::kPure;
  walk(node, [&](const NodeRef& n) {
    if (const auto* c = n.as<CallNode>(); c && !leftOut(*c))
      worst = std::max(worst, intrinInfo(c->op).effect);
    return true;
  });
  return worst;
}

Effect effectOf(const NodeRef& node) {
  return worstEffect(node, [](const CallNode&) { return false; });
}

bool isDescribed(const CallNode& call) {
  if (call.op != Intrin::kCallExtern) return false;
  bool writes = false;
  for (const NodeRef& arg : call.args) {
    const auto* pointer = arg.as<CallNode>();
    if (pointer && pointer->op == Intrin::kAccessPtr) {
      writes |= (asConst(pointer->arg(4)).value_or(3) & 2) != 0;
      continue;
    }
    const auto* value = arg.as<ExprNode>();
    bool plain =
        arg.is<StringImmNode>() || (value && !value->dtype.isHandle() && effectOf(arg) == Effect::kPure);
    if (!plain) return false;
  }
  return writes;
}

Effect undescribedEffectOf(const NodeRef& node) {
  return worstEffect(node, [](const CallNode& c) { return isDescribed(c) || c.op == Intrin::kAccessPtr; });
}

} // namespace bevel
