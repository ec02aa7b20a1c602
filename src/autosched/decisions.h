// What the rules ask: each choice that is not forced is a question with candidates, and the answer stands in the
// trace as a `decide` step. The target model answers by default; a caller that searches answers otherwise and runs
// the rules again. The trace is the record, the rules are the space.
#pragma once

#include "autosched/question.h"
#include "sched/schedule.h"
#include "target/target.h"

namespace bevel {

/// What a rule is given beside the program.
struct RuleContext {
  const Target& target;
  const Answers& answers; // empty: the model's choices
};

/// The chosen candidate, and its integers as the trace's handles.
struct Decision {
  size_t index = 0;
  Array<ExprRV> values;
};

/// Asks and records.
Result<Decision> decide(Schedule& sch, const RuleContext& context, const Question& q);
/// Records an answer.
Result<Decision> record(Schedule& sch, const Question& q, size_t answer);
/// An answer that was not the model's and cannot be carried out.
Error refusedAnswer(const Question& q, size_t answer, const Error& why);

/// Asks where what the model chose is legal, and carries the answer out: `apply(schedule, decision)` gives a Status.
/// Where it is not, nothing is asked and nothing is done: no answer.
template <class Apply>
Result<std::optional<size_t>> decideWhereLegal(Schedule& sch, const RuleContext& context, const Question& q,
                                               Apply apply) {
  Schedule modelled = sch;
  BEVEL_TRY(Decision choice, record(modelled, q, q.choice));
  if (!apply(modelled, choice)) return std::nullopt;
  size_t answer = context.answers ? context.answers(q) : q.choice;
  if (answer == q.choice) {
    sch = std::move(modelled);
    return answer;
  }
  BEVEL_TRY(Decision other, record(sch, q, answer));
  if (Status done = apply(sch, other); !done) return fail(refusedAnswer(q, answer, done.error()));
  return answer;
}

} // namespace bevel
