// Schedule steps and traces as IR.
//
//     i0, i1 = sch.split(loop=i, factors=[None, 32])
//
// Steps are an open set: a kind of step is registered at run time (sched/step.h), so the kind of node is one,
// Step, and each step points to what is known of its own kind. Its fields are listed once, in the order of the
// text: arguments use the variables (handles) that earlier steps of the trace define, the result defines
// handles. Printing, parsing, equality and hash follow from the list.
#pragma once

#include "base/result.h"
#include "ir/expr.h"

namespace bevel {

/// How a field takes part in a step.
enum class StepRole : uint8_t {
  kIn,       // an argument without default
  kVariadic, // the first argument: a list written without brackets, `sch.reorder(l1, l2)`
  kOption,   // an argument with default: left out of the text when it has it
  kDecision, // an option that a sampling step fills in when it is absent, and that search changes
  kOut,      // a result; the last field
};

/// One argument or the result of a kind of step.
struct StepField {
  Field field;
  std::string name; // the text's name: snake case
  StepRole role;
  bool isTuple;       // a list that is written with parentheses
  const char* handle; // of a result: "block", "loop" or "integer"
  /// Takes over a value that the text or another language gives (null: None). Fails with what was expected.
  Status (*set)(StepNode& step, const Field& field, const NodeRef& value);
  bool isOptional() const { return role == StepRole::kOption || role == StepRole::kDecision; }
};

/// What the IR knows of a kind of step.
struct StepKind {
  KindInfo node;                                      // the name, the fields, the copy
  std::vector<Field> fieldTable;                      // what node.fields shows
  std::vector<StepField> fields;                      // the same, in order
  Ref<StepNode> (*create)(const StepKind&) = nullptr; // with defaults
  const StepField* result() const {
    return !fields.empty() && fields.back().role == StepRole::kOut ? &fields.back() : nullptr;
  }
};

class StepNode : public Node {
public:
  const StepKind* step;
  explicit StepNode(const StepKind& k) : Node(kKind), step(&k) {}
  /// The handles that it defines, in order.
  Array<Var> outputs() const;
  template <class T> const T& at(const Field& f) const { return fieldAs<T>(*this, f); }
  template <class T> T& at(const Field& f) { return fieldAs<T>(*this, f); }
  NODE(Step)
  static std::span<const Field> fields() { return {}; } // each kind has its own
};

/// Steps in order; each sees the handles of those before it.
class StepListNode : public Node {
public:
  Array<Step> steps;
  explicit StepListNode(Array<Step> s) : Node(kKind), steps(std::move(s)) {}
  NODE(StepList) FIELDS(USE(steps))
};

} // namespace bevel
