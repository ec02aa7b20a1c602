// Patterns of calls, which rules (graph/rewrite.h) look for and make.
//
//   Pattern x = anything(), e = call("exp", {call("subtract", {x, call("max", {x})})});
//   Pattern softmax = call("divide", {e, call("sum", {e})});
//   if (auto m = match(softmax, value, values)) … (*m)[x]
//
// A pattern used twice stands for one value used twice. What lies between the root and the leaves is used by nothing
// else, unless the pattern says shared(): a rule may then drop it.
#pragma once

#include "ir/graph.h"

#include <functional>
#include <memory>
#include <optional>
#include <string_view>

namespace bevel {

/// What patterns ask of the function that they are matched in.
class MatchContext {
public:
  virtual ~MatchContext() = default;
  /// What a variable (or a variable bound to variables) stands for; e itself when it is none or a parameter.
  virtual GraphExpr valueOf(const GraphExpr& e) const = 0;
  virtual int uses(const GraphVar& v) const = 0;
};

struct PatternNode;

class Pattern {
public:
  /// The constant of one element that has this value. In a replacement its dtype is that of the root.
  Pattern(double value);
  Pattern(int value) : Pattern(double(value)) {}
  explicit Pattern(PatternNode node);

  /// The same, where the value that it matches fulfils the condition.
  using Condition = std::function<bool(const GraphExpr& value, const MatchContext& values)>;
  Pattern where(Condition holds) const;
  /// The call has this attribute. In a replacement it gets it.
  Pattern with(std::string attribute, NodeRef value) const;
  /// Others may use the value as well.
  Pattern shared() const;

  const PatternNode* operator->() const { return node_.get(); }
  const PatternNode* get() const { return node_.get(); }

private:
  std::shared_ptr<const PatternNode> node_;
};

struct PatternNode {
  enum class Form : uint8_t { kAnything, kConstant, kCall, kOneOf } form;
  std::vector<std::string> ops = {}; // of a call: one of them
  std::vector<Pattern> parts = {};   // arguments, or alternatives
  std::optional<double> equals = {};
  std::vector<std::pair<std::string, NodeRef>> attrs = {};
  std::vector<Pattern::Condition> conditions = {};
  bool isShared = false;
};

/// Any value.
Pattern anything();
/// Any tensor constant.
Pattern constantTensor();
/// A constant of one element, real or integer.
Pattern scalar();
/// A call of the operator; operators that commute match in both orders.
Pattern call(std::string op, std::vector<Pattern> args);
/// A call of any of the operators.
Pattern callAny(std::vector<std::string> ops, std::vector<Pattern> args);
/// The first of the alternatives that matches.
Pattern oneOf(std::vector<Pattern> alternatives);

/// Which value each part of a pattern matched: constants and calls themselves, and leaves as they are used.
class Match {
public:
  /// Null for a part of an alternative that was not taken.
  GraphExpr operator[](const Pattern& p) const;
  const GraphCallNode& call(const Pattern& p) const { return *(*this)[p].as<GraphCallNode>(); }
  Tensor tensor(const Pattern& p) const;
  double scalar(const Pattern& p) const;
  const TensorTypeNode& type(const Pattern& p) const { return *(*this)[p]->type.as<TensorTypeNode>(); }
  /// The call at the root.
  const GraphCallNode& root() const { return *bound_.front().second.as<GraphCallNode>(); }

private:
  friend class Matcher;
  std::vector<std::pair<const PatternNode*, GraphExpr>> bound_; // the root first
  std::vector<std::pair<GraphVar, int>>
      inside_; // variables between the root and the leaves, and their uses there
};

/// Matches a call.
std::optional<Match> match(const Pattern& pattern, const GraphExpr& root, const MatchContext& values);
/// The pattern as an expression: parts that the match has are its values, the others are made.
GraphExpr instantiate(const Pattern& pattern, const Match& m);

/// The value of a real or integer constant of one element.
std::optional<double> scalarOf(const GraphExpr& e);
/// The tensor of a constant, or null.
Tensor tensorOfConstant(const GraphExpr& e);
/// The constant of one element.
GraphExpr scalarConstant(DType dtype, double value);
/// The type of a tensor whose shape is known, or null.
const TensorTypeNode* knownTensor(const GraphExpr& e);

} // namespace bevel
