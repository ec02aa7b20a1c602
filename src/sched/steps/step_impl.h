// How a step file is written. The header holds the struct with its fields (arguments in the order of the text,
// then the result). The file holds the documentation; check, which proves the step legal and makes a plan or says
// why not; apply, which carries the plan out and cannot fail; and the row. An example with its result is the golden
// file tests/golden/steps/<name>.txt, which docs/steps.md shows.
//
//     constexpr const char* kDoc = R"(Vectorizes a loop. …)";
//     static Result<Path> check(const Schedule& sch, const Vectorize& s) { … }
//     static void apply(Schedule& sch, Vectorize& s, Path&& plan) { … }
//     STEP_INFO(Vectorize, "vectorize", kDoc)
#pragma once

#include "sched/schedule.h"
#include "sched/scope.h"
#include "sched/tree.h"

namespace bevel {

/// The row of a step: its struct, and what executes it.
template <class S>
StepInfo stepRow(const char* name, const char* doc, std::vector<std::string> aliases,
                 std::function<Status(Schedule&, S&)> execute) {
  StepInfo row;
  row.fields = S::fields();
  for (const StepField& f : row.fields) row.fieldTable.push_back(f.field);
  row.node = {name, row.fieldTable,
              [](const Node& n) -> Node* { return new StepOf<S>(static_cast<const StepOf<S>&>(n)); }};
  row.create = [](const StepKind&) { return Ref<StepNode>(make<StepOf<S>>(S{})); };
  row.aliases = std::move(aliases);
  row.doc = doc;
  row.execute = [execute = std::move(execute)](Schedule& sch, StepNode& node) {
    return execute(sch, static_cast<StepOf<S>&>(node).value);
  };
  return row;
}

#define STEP_INFO(Struct, text, doc, ...)                                                                    \
  template <> const StepInfo& info<Struct>() {                                                               \
    static const StepInfo row =                                                                              \
        stepRow<Struct>(text, doc, {__VA_ARGS__}, [](Schedule& sch, Struct& step) -> Status {                \
          auto plan = check(std::as_const(sch), std::as_const(step));                                        \
          if (!plan) return fail(std::move(plan.error()));                                                   \
          apply(sch, step, std::move(*plan));                                                                \
          return {};                                                                                         \
        });                                                                                                  \
    return row;                                                                                              \
  }

/// A plan of steps that only look: nothing to carry out but what apply reads from the step.
struct NoPlan {};

} // namespace bevel
