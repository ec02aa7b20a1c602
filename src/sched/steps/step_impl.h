// How a step file is written. The header of its kind holds the struct with its fields (arguments in the order of
// the text, then the result). The file holds the documentation; check, which proves the step legal and plans what
// it does, or says why not; and the row. Schedule carries the plan out, which cannot fail. An example with its
// result is the golden file tests/golden/steps/<name>.txt, which docs/steps.md shows.
//
//     constexpr const char* kDoc = R"(Vectorizes a loop. …)";
//     static Result<Plan> check(const Schedule& sch, const Vectorize& s) { … }
//     STEP_INFO(Vectorize, "vectorize", kDoc)
#pragma once

#include "sched/schedule.h"
#include "sched/scope.h"
#include "sched/tree.h"

namespace bevel {

/// The row of a step: its struct, and its check.
template <class S>
StepInfo stepRow(const char* name, const char* doc, std::vector<std::string> aliases,
                 std::function<Result<Plan>(Schedule&, StepNode&)> check) {
  StepInfo row;
  row.fields = S::fields();
  for (const StepField& f : row.fields) row.fieldTable.push_back(f.field);
  row.node = {name, row.fieldTable,
              [](const Node& n) -> Node* { return new StepOf<S>(static_cast<const StepOf<S>&>(n)); }};
  row.create = [](const StepKind&) { return Ref<StepNode>(make<StepOf<S>>(S{})); };
  row.aliases = std::move(aliases);
  row.doc = doc;
  row.check = std::move(check);
  return row;
}

#define STEP_INFO(Struct, text, doc, ...)                                                                    \
  template <> const StepInfo& info<Struct>() {                                                               \
    static const StepInfo row =                                                                              \
        stepRow<Struct>(text, doc, {__VA_ARGS__}, [](Schedule& sch, StepNode& node) -> Result<Plan> {        \
          return check(sch, static_cast<StepOf<Struct>&>(node).value);                                       \
        });                                                                                                  \
    return row;                                                                                              \
  }

} // namespace bevel
