// What an expression of the notation evaluates to while it is parsed: an IR node, or a value of Python.
#pragma once

#include "ir/graph.h"
#include "ir/lexer.h"

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
  };
  Tag tag = kFailed;
  bool fresh = false; // the call declared a name of its own: an assignment only binds it
  int depth = 1;      // of the expression tree
  int64_t count = 1;  // of a list, with what its items hold
  int64_t number = 0; // kInt, kBool
  double real = 0;
  NodeRef node;
  std::string text;
  std::vector<Value> items;
  std::vector<std::string> keys;

  bool ok() const { return tag != kFailed; }
  bool isNumber() const { return tag == kInt || tag == kFloat || tag == kBool; }
  bool isSequence() const { return tag == kList || tag == kTuple; }
  template <class T> const T* as() const { return tag == kNode ? node.as<T>() : nullptr; }

  static Value of(NodeRef n, int depth = 1) {
    Value v;
    if (!n) return v;
    v.tag = kNode, v.node = std::move(n), v.depth = depth;
    return v;
  }
  static Value declared(NodeRef n) {
    Value v = of(std::move(n));
    v.fresh = true;
    return v;
  }
  static Value integer(int64_t i) {
    Value v;
    v.tag = kInt, v.number = i;
    return v;
  }
  static Value boolean(bool b) {
    Value v;
    v.tag = kBool, v.number = b;
    return v;
  }
  static Value floating(double d) {
    Value v;
    v.tag = kFloat, v.real = d;
    return v;
  }
  static Value string(std::string s) {
    Value v;
    v.tag = kString, v.text = std::move(s);
    return v;
  }
  static Value none() {
    Value v;
    v.tag = kNone;
    return v;
  }
  static Value done() {
    Value v = none();
    v.fresh = true;
    return v;
  } // a statement-like call
  static Value path(std::string s) {
    Value v;
    v.tag = kPath, v.text = std::move(s);
    return v;
  }
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
