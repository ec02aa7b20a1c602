// The choices of the passes that look at a whole module (algorithm, layout, fusion), recorded like those of schedules.
#pragma once

#include "autosched/question.h"

#include <map>

namespace bevel {

/// Answers by the names of questions, each a candidate as people write it.
using NamedAnswers = std::map<std::string, std::string>;

class ModuleDecisions {
public:
  NamedAnswers answers; // the models choose what is not here
  Trace trace;          // a `decide` step for each question

  /// Answers a question and records it. A name that was asked before gets a number.
  Result<size_t> answer(Question q);
  /// The same for passes that ask; it refers to this object.
  Ask ask() {
    return [this](const Question& q) { return answer(q); };
  }
  /// Fails for answers to questions that nobody asked.
  Status checkAnswers() const;

private:
  std::map<std::string, int> asked_;
};

} // namespace bevel
