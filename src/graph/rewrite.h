// Rewriting graph functions by rules, each a pattern and what replaces it:
//
//   {"square", call("power", {x, 2}), call("multiply", {x, x})}
//   {"norm", norm, [=](const Match& m) -> GraphExpr { … return opCall("nn.layer_norm", {m[x]}, …); }}
//
// 1. Bindings are visited in program order, so that the operands of a call are rewritten before it. The first rule
//    of the list that fits is applied, then the result and what it is made of are looked at in the same way.
// 2. The whole is repeated until nothing changes, because a rule may leave a value with fewer users, which others wait for.
// 3. A replacement is taken only where it has the type of what it replaces, all shapes being known, and where it uses
//    only variables that are visible there. A rule need not ask for either.
#pragma once

#include "graph/pattern.h"
#include "ir/question.h"

namespace bevel {

class Rule {
public:
  /// Gives null where the rule does not fit after all.
  using Replacement = std::function<GraphExpr(const Match&)>;
  Rule(std::string name, Pattern pattern, Replacement replacement, std::string why = {})
      : name(std::move(name)), pattern(std::move(pattern)), replacement(std::move(replacement)),
        why(std::move(why)) {}
  Rule(std::string name, Pattern pattern, Pattern made)
      : Rule(std::move(name), std::move(pattern),
             [made = std::move(made)](const Match& m) { return instantiate(made, m); }) {}

  std::string name;
  Pattern pattern;
  Replacement replacement;
  std::string why; // it is a good choice, for questions
};
using Rules = std::vector<Rule>;

/// Applies the rules to every graph function, then removes what is dead. With `ask`, each application is a question,
/// "RULE of BINDING", whose answer is yes by default.
Result<Module> rewriteGraph(const Module& module, const Rules& rules, const Ask& ask = {});

/// Adds a rule of the program to a list of ours, which the pass of that name applies: "simplify", "fold_affine",
/// "recognize" or "choose_algorithm". It is tried after ours. A name that the list has is replaced.
void addGraphRule(const std::string& list, Rule rule);
/// Ours, and those of the program.
Rules withAddedRules(const std::string& list, Rules ours);

} // namespace bevel
