#include "select/decisions.h"

#include "base/near_name.h"

#include <fmt/format.h>

namespace bevel {

Result<size_t> ModuleDecisions::answer(Question q) {
  if (int before = asked_[q.name]++) asked_[q.name += fmt::format(" ({})", before + 1)] = 1;
  size_t chosen = q.choice;
  if (auto it = answers.find(q.name); it != answers.end()) {
    std::string all;
    for (chosen = 0; chosen < q.candidates.size(); ++chosen) {
      std::string text = candidateText(q.candidates[chosen]);
      if (text == it->second) break;
      all += (all.empty() ? "" : ", ") + text;
    }
    if (chosen == q.candidates.size())
      return fail(ErrorCode::kUsage,
                  fmt::format("'{}' is no answer to \"{}\": there are {}", it->second, q.name, all));
  }
  if (chosen != q.choice) q.why = "answered so";
  recordIn(trace, q, chosen);
  return chosen;
}

Status ModuleDecisions::checkAnswers() const {
  for (const auto& [name, answer] : answers) {
    if (asked_.count(name)) continue;
    std::vector<std::string> known;
    for (const auto& [question, times] : asked_) known.push_back(question);
    std::string near = didYouMean(name, known);
    return fail(
        Error(ErrorCode::kUsage, fmt::format("nothing asks for \"{}\"", name))
            .help(near + (near.empty() ? "" : " ") +
                  "`bevel explain` lists the questions: those over the module are answered here, those of a "
                  "kernel in its trace (--schedule)"));
  }
  return {};
}

} // namespace bevel
