// A question is a choice that a rule or a pass need not take itself: it names the candidates and the one that its
// model takes, and whoever asked for the compile may answer otherwise.
#pragma once

#include "base/result.h"
#include "ir/build.h"

#include <functional>

namespace bevel {

struct Question {
  std::string name;               // "register tile of C": unique in a program, or in a module
  Array<NodeRef> candidates;      // integers, lists of integers, or names
  std::vector<double> costs = {}; // the model's estimates, the least being best; empty: it has none
  size_t choice = 0;              // the model's candidate, which can be carried out
  std::string why = {};           // the reason of the choice, where costs do not tell it
};

/// Gives the position of a candidate. What cannot be carried out is refused with the reason.
using Answers = std::function<size_t(const Question&)>;

/// Gets an answer and records it. Null where nobody asks: what the model chooses is done.
using Ask = std::function<Result<size_t>(const Question&)>;

/// Candidate 0 is "yes", 1 is "no".
inline Question yesNo(std::string name, bool choice = true, std::string why = {}) {
  return {std::move(name), {str("yes"), str("no")}, {}, choice ? 0u : 1u, std::move(why)};
}

} // namespace bevel
