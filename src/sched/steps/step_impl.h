// How a step file is written. In order: the documentation with an example that a test executes; the struct
// with its fields (arguments in the order of the text, then the result); check, which proves the step legal
// and makes a plan or says why not; apply, which carries the plan out and cannot fail; and the C++ method
// declared by steps.def.
//
//     constexpr StepDoc kDoc = {"Vectorizes a loop. …", before, script, after};
//     struct Vectorize {
//       LoopRV loop;
//       STEP_FIELDS(Vectorize, IN(loop))
//     };
//     static Result<Stmt> check(const Schedule& sch, const Vectorize& s) { … }
//     static void apply(Schedule& sch, Vectorize& s, Stmt&& plan) { … }
//     STEP_INFO(Vectorize, "vectorize", kDoc)
//     …
//     Status Schedule::vectorize(LoopRV loop) { return runStep(*this, steps::Vectorize{loop}); }
#pragma once

#include "sched/schedule.h"
#include "sched/scope.h"
#include "sched/tree.h"

namespace bevel {

template <class S> class StepOf final : public StepNode {
public:
  S value;
  StepOf(const StepInfo& info, S v) : StepNode(info), value(std::move(v)) {}
  void* data() override { return &value; }
  const void* data() const override { return &value; }
};

namespace steps {
/// The table row of a step's struct, defined in its file.
template <class S> const StepInfo& info();
} // namespace steps

/// "preserveUnitIters" to "preserve_unit_iters".
std::string snakeCase(std::string_view camelCase);

namespace detail {
template <class T> struct MemberOf;
template <class S, class F> struct MemberOf<F S::*> {
  using Struct = S;
  using Field = F;
};
template <class F> struct HandleOf {
  static constexpr RVKind kind = RVKind::kExpr;
  static constexpr bool isList = false;
};
template <RVKind K> struct HandleOf<TypedRV<K>> {
  static constexpr RVKind kind = K;
  static constexpr bool isList = false;
};
template <class T> struct HandleOf<std::vector<T>> {
  static constexpr RVKind kind = HandleOf<T>::kind;
  static constexpr bool isList = true;
};
} // namespace detail

template <auto Member> StepField stepField(const char* name, StepRole role) {
  using S = typename detail::MemberOf<decltype(Member)>::Struct;
  using Handle = detail::HandleOf<typename detail::MemberOf<decltype(Member)>::Field>;
  return {name,
          snakeCase(name),
          role,
          [](const void* s) { return toValue(static_cast<const S*>(s)->*Member); },
          [](void* s, const StepValue& v) { return fromValue(v, static_cast<S*>(s)->*Member); },
          Handle::kind,
          Handle::isList};
}
#define IN(f) ::bevel::stepField<&Self::f>(#f, ::bevel::StepRole::kIn)
#define VARIADIC(f) ::bevel::stepField<&Self::f>(#f, ::bevel::StepRole::kVariadic)
#define OPTION(f) ::bevel::stepField<&Self::f>(#f, ::bevel::StepRole::kOption)
#define DECISION(f) ::bevel::stepField<&Self::f>(#f, ::bevel::StepRole::kDecision)
#define OUT(f) ::bevel::stepField<&Self::f>(#f, ::bevel::StepRole::kOut)
#define STEP_FIELDS(Struct, ...)                                                                             \
  using Self = Struct;                                                                                       \
  static std::vector<::bevel::StepField> fields() {                                                          \
    return {__VA_ARGS__};                                                                                    \
  }

template <class S> Ref<StepNode> createStep() {
  return make<StepOf<S>>(steps::info<S>(), S{});
}
template <class S> Ref<StepNode> cloneStep(const StepNode& step) {
  return make<StepOf<S>>(*step.info, static_cast<const StepOf<S>&>(step).value);
}
template <class S, auto Check, auto Apply> Status executeStep(Schedule& schedule, StepNode& node) {
  S& step = static_cast<StepOf<S>&>(node).value;
  auto plan = Check(schedule, step);
  if (!plan) return fail(std::move(plan.error()));
  Apply(schedule, step, std::move(*plan));
  return {};
}
#define STEP_INFO(Struct, text, doc, ...)                                                                    \
  template <> const StepInfo& info<Struct>() {                                                               \
    static const StepInfo row = {                                                                            \
        text,                                                                                                \
        {__VA_ARGS__},                                                                                       \
        doc,                                                                                                 \
        Struct::fields(),                                                                                    \
        createStep<Struct>,                                                                                  \
        cloneStep<Struct>,                                                                                   \
        executeStep<                                                                                         \
            Struct,                                                                                          \
            static_cast<decltype(check(std::declval<const Schedule&>(), std::declval<const Struct&>())) (*)( \
                const Schedule&, const Struct&)>(&check),                                                    \
            [](Schedule& s, Struct& x, auto&& p) { apply(s, x, std::move(p)); }>};                           \
    return row;                                                                                              \
  }

/// Runs a step given as its struct, and gives its result.
template <class S> Status runStep(Schedule& schedule, S step) {
  return schedule.execute(make<StepOf<S>>(steps::info<S>(), std::move(step)));
}
template <class S, class R> Result<R> runStep(Schedule& schedule, S step, R S::* result) {
  auto node = make<StepOf<S>>(steps::info<S>(), std::move(step));
  BEVEL_CHECK(schedule.execute(node));
  return node->value.*result;
}

/// A plan of steps that only look: nothing to carry out but what apply reads from the step.
struct NoPlan {};

} // namespace bevel
