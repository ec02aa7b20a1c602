// What printer and parser must agree on about calls: the dtype that a spelling implies.
#pragma once

#include "ir/expr.h"

#include <string_view>

namespace bevel::detail {

struct CallNotation {
  enum Rule : uint8_t {
    kSame,
    kBoolLanes,
    kDTypeFirst,
    kInt,
    kPointer,
    kNone,
    kSecond,
    kLane,
    kFloat
  } dtype = kSame;
  int adapts = -1;
};
const CallNotation& callNotation(Intrin op);
/// The dtype of `T.name(args)` without a `dtype=` keyword (void for kDTypeFirst).
DType defaultDType(Intrin op, const Array<NodeRef>& args);
/// Keywords of calls that no attribute may be called by (such attributes are written in `attrs={…}`).
bool isReservedKeyword(std::string_view key);

} // namespace bevel::detail
