// A step as its struct. The struct lists its fields once, with their roles; text, parsing, equality, hash and calls
// from other languages follow from the list:
//
//     /// Vectorizes a loop.
//     struct Split {
//       LoopRV loop;
//       Factors factors;
//       bool preserveUnitIters = true;
//       Array<LoopRV> results = {};
//       STEP_FIELDS(Split, IN(loop), IN(factors), OPTION(preserveUnitIters), OUT(results))
//     };
#pragma once

#include "sched/step.h"

namespace bevel {

namespace steps {
/// The table row of a step's struct, defined in its file.
template <class S> const StepInfo& info();
} // namespace steps

/// The node of a step whose fields are those of S.
template <class S> class StepOf final : public StepNode {
public:
  S value;
  explicit StepOf(S v) : StepNode(steps::info<S>()), value(std::move(v)) {}
  static uint16_t offset() { return uint16_t(offsetof(StepOf, value)); }
};

/// "preserveUnitIters" to "preserve_unit_iters".
std::string snakeCase(std::string_view camelCase);

namespace detail {
template <class T> constexpr const char* handleName() {
  if constexpr (requires { typename T::Iterator; })
    return handleName<std::remove_cvref_t<decltype(std::declval<T>()[0])>>();
  else
    return std::is_same_v<T, BlockRV> ? "block" : std::is_same_v<T, LoopRV> ? "loop" : "integer";
}
} // namespace detail

template <class S, class T> StepField stepField(const char* member, T S::*, size_t offset, StepRole role) {
  Field field{member, uint16_t(StepOf<S>::offset() + offset), detail::fieldType<T>(),
              role == StepRole::kOut ? Role::kDef : Role::kUse, nullptr};
  auto set = [](StepNode& step, const Field& f, const NodeRef& v) { return setValue(step.at<T>(f), v); };
  return {field, snakeCase(member), role, std::is_same_v<T, BufferArg>, detail::handleName<T>(), set};
}
#define BEVEL_STEP_FIELD(f, role) ::bevel::stepField(#f, &Self::f, offsetof(Self, f), ::bevel::StepRole::role)
#define IN(f) BEVEL_STEP_FIELD(f, kIn)
#define VARIADIC(f) BEVEL_STEP_FIELD(f, kVariadic)
#define OPTION(f) BEVEL_STEP_FIELD(f, kOption)
#define DECISION(f) BEVEL_STEP_FIELD(f, kDecision)
#define OUT(f) BEVEL_STEP_FIELD(f, kOut)
#define STEP_FIELDS(Struct, ...)                                                                             \
  using Self = Struct;                                                                                       \
  static std::vector<::bevel::StepField> fields() {                                                          \
    return {__VA_ARGS__};                                                                                    \
  }

} // namespace bevel
