// Decisions as traces record them (ir/question.h tells what is asked, autosched/decisions.h how schedule rules ask).
#pragma once

#include "ir/question.h"
#include "sched/trace.h"

namespace bevel {

/// Adds an answer to a trace that belongs to no schedule.
void recordIn(Trace& trace, const Question& q, size_t answer);

/// The answers that a trace records; the model's where it has none.
Answers recordedAnswers(const Trace& trace);

/// A candidate as people write it.
std::string candidateText(const NodeRef& candidate);

/// What a trace decided, for people and JSON.
struct DecisionReport {
  std::string name;
  std::vector<std::string> candidates;
  std::vector<double> costs;
  size_t decision = 0;
  std::string why = {};
};
std::vector<DecisionReport> decisionsOf(const Trace& trace);

} // namespace bevel
