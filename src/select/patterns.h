// Matching of small graphs of calls against the bindings of a function.
//
//   Pattern x = wild(0), e = call("exp", {call("subtract", {x, call("max", {x}, 1)})});
//   Pattern softmax = call("divide", {e, call("sum", {e}, 2)});
//   if (auto m = match(softmax, binding, bindings)) …  m->slots[0] is x, m->slots[1] the call of max
//
// A pattern used twice stands for one value used twice.
#pragma once

#include "ir/graph.h"

#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace bevel {

/// Which value each variable of a function is bound to, and how often it is used.
class Bindings {
public:
  explicit Bindings(const Function& f);
  /// The value behind a variable (and variables bound to variables); e itself when it is none or a parameter.
  GraphExpr value(const GraphExpr& e) const;
  /// The call of that operator behind e, or null.
  const GraphCallNode* call(const GraphExpr& e, std::string_view op) const;
  int uses(const GraphVar& v) const;

private:
  std::unordered_map<GraphVar, GraphExpr, RefHash> values_;
  std::unordered_map<GraphVar, int, RefHash> uses_;
};

/// The value of a real or integer constant of one element.
std::optional<double> scalarOf(const GraphExpr& e);
/// The tensor of a constant, or null.
Tensor tensorOfConstant(const GraphExpr& e);

struct PatternNode {
  enum class Form : uint8_t { kWild, kScalar, kCall, kOneOf } form;
  int slot = -1; // where the matched expression goes; -1: nowhere
  std::string op;
  std::vector<std::shared_ptr<const PatternNode>> parts;
  std::optional<double> equals; // of a scalar
};
using Pattern = std::shared_ptr<const PatternNode>;

/// Any value; the same one at every use of the slot.
Pattern wild(int slot);
/// A constant of one element.
Pattern scalar(int slot);
Pattern scalarEqual(double value);
/// A call of the operator; commutative operators match in both orders. The slot gets the call.
Pattern call(std::string op, std::vector<Pattern> args, int slot = -1);
Pattern oneOf(std::vector<Pattern> alternatives);

struct Match {
  std::vector<GraphExpr> slots = std::vector<GraphExpr>(8);
  /// Variables inside the pattern (not its leaves, not the root) and how often it uses them.
  std::vector<std::pair<GraphVar, std::pair<const PatternNode*, int>>> interior;
  /// The call in a slot.
  const GraphCallNode* call(int slot) const { return slots[size_t(slot)].as<GraphCallNode>(); }
};

/// Matches the value `root` is bound to; nothing when something outside the pattern uses what lies inside.
std::optional<Match> match(const Pattern& pattern, const GraphExpr& root, const Bindings& bindings);

} // namespace bevel
