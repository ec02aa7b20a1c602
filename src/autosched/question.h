// The questions of the rules, for callers that answer them (autosched/decisions.h tells how rules ask).
#pragma once

#include "sched/trace.h"
#include "sched/value.h"

#include <functional>

namespace bevel {

struct Question {
  std::string name;               // "register tile of C": unique in a program
  std::vector<AnyArg> candidates; // integers, lists of integers, or names
  std::vector<double> costs;      // the model's estimates, the least being best; empty: it has none
  size_t choice = 0;              // the model's candidate, which can be carried out
};

/// Gives the position of a candidate. What cannot be carried out is refused with the reason.
using Answers = std::function<size_t(const Question&)>;

/// The answers that a trace records; the model's where it has none.
Answers recordedAnswers(const Trace& trace);

/// What a trace decided, for people and JSON.
struct DecisionReport {
  std::string name;
  std::vector<std::string> candidates;
  std::vector<double> costs;
  size_t decision = 0;
};
std::vector<DecisionReport> decisionsOf(const Trace& trace);

} // namespace bevel
