// The kind table, and spellings of the IR's enumerations.
#include "ir/graph.h"
#include "ir/step.h"

#include <array>

namespace bevel {

template <class T> static KindInfo infoOf(const char* name) {
  return {name, T::fields(), [](const Node& n) -> Node* { return new T(static_cast<const T&>(n)); }};
}

const KindInfo& kindInfo(Kind kind) {
  static const std::array<KindInfo, size_t(kNumKinds)> table = {
#define KIND(name) infoOf<name##Node>(#name),
#define ENDGROUP(group, first, last)
#include "ir/kinds.def"
#undef KIND
#undef ENDGROUP
  };
  return table[size_t(kind)];
}

const KindInfo& kindInfo(const Node& node) {
  return node.kind == Kind::kStep ? static_cast<const StepNode&>(node).step->node : kindInfo(node.kind);
}

bool isThreadAxis(std::string_view name) {
  for (std::string_view kind : {"blockIdx", "threadIdx", "vthread"})
    if (name.starts_with(kind)) {
      name.remove_prefix(kind.size());
      return name == ".x" || name == ".y" || name == ".z" || (name.empty() && kind == "vthread");
    }
  return false;
}

const char* const kUnaryNames[] = {"neg", "not", "bitwise_not"};
const char* const kBinaryNames[] = {
    "add", "sub",         "mul",        "div",         "mod",        "floordiv",   "floormod", "min",
    "max", "eq",          "ne",         "lt",          "le",         "gt",         "ge",       "and",
    "or",  "bitwise_and", "bitwise_or", "bitwise_xor", "shift_left", "shift_right"};
const char* const kIterTypeNames[] = {"spatial", "reduce", "scan", "opaque"};
const char* const kForKindNames[] = {"serial", "parallel", "vectorized", "unroll", "thread_binding"};
const char* const kIntrinNames[] = {
#define INTRIN(id, name, ...) name,
#include "ir/intrinsics.def"
#undef INTRIN
};

static const IntrinInfo kIntrins[] = {
#define INTRIN(id, name, effect, arity, rule, adapts, library, ...)                                          \
  {name, Effect::effect, arity, DTypeRule::rule, adapts, library},
#include "ir/intrinsics.def"
#undef INTRIN
};

const IntrinInfo& intrinInfo(Intrin op) {
  return kIntrins[size_t(op)];
}
int numIntrins() {
  return int(std::size(kIntrins));
}

DType impliedDType(Intrin op, const Array<NodeRef>& args) {
  auto dtypeOf = [&](size_t i) {
    const auto* e = i < args.size() ? args[i].as<ExprNode>() : nullptr;
    return e ? e->dtype : DType::Void();
  };
  switch (intrinInfo(op).rule) {
  case DTypeRule::kSame:
    return dtypeOf(0);
  case DTypeRule::kBoolLanes:
    return DType::Bool(dtypeOf(0).lanes);
  case DTypeRule::kInt:
    return kInt32;
  case DTypeRule::kPointer:
    return DType::Handle();
  case DTypeRule::kSecond:
    return dtypeOf(1);
  case DTypeRule::kLane:
    return dtypeOf(0).scalar();
  case DTypeRule::kFloat:
    return kFloat32.withLanes(dtypeOf(0).lanes);
  case DTypeRule::kDTypeFirst:
  case DTypeRule::kNone:
    break;
  }
  return DType::Void();
}

LoadNode::LoadNode(Buffer b, Array<Expr> i, Expr p)
    : ExprNode(kKind, b->dtype.withLanes(b->dtype.lanes * (i.empty() ? 1 : i.back()->dtype.lanes))),
      buffer(std::move(b)), indices(std::move(i)), predicate(std::move(p)) {}

NodeRef DictNode::find(std::string_view key) const {
  for (size_t i = 0; i < keys.size(); ++i)
    if (keys[i] == key) return values[i];
  return nullptr;
}

} // namespace bevel
