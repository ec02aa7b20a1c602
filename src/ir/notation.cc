// Table of call notations.
#include "ir/notation.h"

#include <vector>

namespace bevel::detail {

const CallNotation& callNotation(Intrin op) {
  static const std::vector<CallNotation> table = [] {
    std::vector<CallNotation> t(static_cast<size_t>(numIntrins()));
#define CALL(id, rule, adapts) t[size_t(Intrin::k##id)] = {CallNotation::rule, adapts};
#include "ir/notation.def"
#undef CALL
    return t;
  }();
  return table[size_t(op)];
}

DType defaultDType(Intrin op, const Array<NodeRef>& args) {
  auto dtypeOf = [&](size_t i) {
    if (i >= args.size() || !args[i]) return DType::Void();
    auto* e = args[i].as<ExprNode>();
    return e ? e->dtype : DType::Void();
  };
  switch (callNotation(op).dtype) {
  case CallNotation::kSame:
    return dtypeOf(0);
  case CallNotation::kBoolLanes:
    return DType::Bool(dtypeOf(0).lanes);
  case CallNotation::kInt:
    return kInt32;
  case CallNotation::kPointer:
    return DType::Handle();
  case CallNotation::kSecond:
    return dtypeOf(1);
  case CallNotation::kLane:
    return dtypeOf(0).scalar();
  case CallNotation::kFloat:
    return kFloat32;
  case CallNotation::kDTypeFirst:
  case CallNotation::kNone:
    return DType::Void();
  }
  return DType::Void();
}

bool isReservedKeyword(std::string_view key) {
  for (std::string_view word : {"out_sinfo", "out_ty", "sinfo_args", "ty_args", "tir_vars", "attrs"})
    if (key == word) return true;
  return false;
}

} // namespace bevel::detail
