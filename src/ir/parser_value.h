// What an expression of the notation evaluates to while it is parsed: an IR node, or a value of Python.
#pragma once

#include "ir/graph.h"
#include "ir/lexer.h"

#include <concepts>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace bevel::detail {

struct Value {
  enum Tag : uint8_t {
    kFailed, // an error has been reported
    kNode,   // IR: an expression, buffer, region, graph value, type, …
    kInt,
    kFloat,
    kBool,
    kString,
    kNone, // bare Python constants: they take the dtype of their surroundings
    kList,
    kTuple,
    kDict,
    kSlice,     // items: start, stop (kNone when left out)
    kPath,      // a dotted name of the notation: "T.exp"
    kModule,    // the class, or `cls`
    kMatchCast, // node: the value; items[0]: the type
    kLoops,     // what a `for` runs over: a row of ranges, with kind, annotations and thread
    kLet,       // head of `with T.LetStmt(…)`: node is the value, items[0] its type if given
    kBlock,     // head of `with T.sblock("name")`: number says whether it is one of the older spelling
    kInit,      // head of `with T.init()`
    kBindings,  // head of `with R.dataflow()` (number 1) or R.bindings()
    kUnread,    // an argument that its form reads later; number: the token where it begins
  };
  Tag tag = kFailed;
  bool fresh = false; // the call declared a name of its own: an assignment only binds it
  int depth = 1;      // of the expression tree
  int64_t count = 1;  // of a list, with what its items hold
  int64_t number = 0; // kInt, kBool
  double real = 0;
  NodeRef node{};
  std::string text{};
  std::vector<Value> items{};
  std::vector<std::string> keys{};

  bool ok() const { return tag != kFailed; }
  bool isNumber() const { return tag == kInt || tag == kFloat || tag == kBool; }
  bool isSequence() const { return tag == kList || tag == kTuple; }
  std::span<const Value> parts() const { return isSequence() ? std::span(items) : std::span(this, 1); }
  double toDouble() const { return tag == kFloat ? real : double(number); } // of a number
  template <class T> const T* as() const { return tag == kNode ? node.as<T>() : nullptr; }
  template <class T> bool is() const { return as<T>(); }
  template <class T> Ref<const T> to() const { return Ref<const T>(as<T>()); } // null for anything else

  static Value of(NodeRef n, int depth = 1) {
    if (!n) return {};
    return {.tag = kNode, .depth = depth, .node = std::move(n)};
  }
  static Value declared(NodeRef n) {
    Value v = of(std::move(n));
    v.fresh = true;
    return v;
  }
  static Value integer(int64_t i) { return {.tag = kInt, .number = i}; }
  static Value boolean(bool b) { return {.tag = kBool, .number = b}; }
  static Value floating(double d) { return {.tag = kFloat, .real = d}; }
  static Value string(std::string s) { return {.tag = kString, .text = std::move(s)}; }
  static Value path(std::string s) { return {.tag = kPath, .text = std::move(s)}; }
  static Value none() { return {.tag = kNone}; }
  static Value done() { return {.tag = kNone, .fresh = true}; } // a statement-like call
  static Value sequence(Tag tag, std::vector<Value> items) { return {.tag = tag, .items = std::move(items)}; }
  template <class T> static Value listOf(const Array<T>& nodes) {
    Value v{.tag = kList};
    for (const T& n : nodes) v.items.push_back(of(n));
    return v;
  }
};

/// What a failed member of the parser returns, whatever it returns otherwise: a failed value, false, null or nothing.
struct Failed {
  operator Value() const { return {}; }
  template <std::same_as<bool> B> operator B() const { return false; }
  template <class T> operator Ref<T>() const { return nullptr; }
  template <class T> operator std::optional<T>() const { return std::nullopt; }
};

/// Evaluated arguments of one call. Parser::bindArguments gives them the names of the form's arguments.
struct Args {
  std::string name; // of the callee, for messages
  Token at;         // the callee
  std::vector<Value> pos;
  std::vector<Token> posAt;
  std::vector<std::pair<std::string, Value>> kw;
  std::vector<Token> kwAt;
  int code = 0;                    // of the form
  size_t rest = 0;                 // the first positional argument without a name
  size_t end = 0;                  // the token behind the call, where the form reads the arguments itself
  Value self;                      // whose method is called
  std::vector<bool> takenKeywords; // parallel to kw: those with a name in the form
  struct Bound {
    std::string_view name;
    const Value* value;
    Token where;
  };
  std::vector<Bound> bound;

  /// The argument of that name, or null. kNone counts as given.
  const Value* find(std::string_view key) const;
  /// The argument, or null where it is left out or None.
  const Value* given(std::string_view key) const {
    const Value* v = find(key);
    return v && v->tag != Value::kNone ? v : nullptr;
  }
  /// The place of that argument, or of the callee.
  const Token& where(std::string_view key) const;
};

} // namespace bevel::detail
