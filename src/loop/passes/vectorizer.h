// One loop's body as vector code: what the pass vectorize_loops does at each vectorised loop.
#pragma once

#include "loop/passes/context.h"

namespace bevel {

/// Translates the body of a vectorised loop of `lanes` iterations. Every value is uniform (scalar, the same
/// in all lanes) or a vector of `lanes`. Statements that have no vector form become a serial loop over the
/// lanes where they stand; when that is impossible (they use a vector let), the caller runs the loop
/// serially.
class Vectorizer {
public:
  /// `kind`: of the target.
  Vectorizer(const For& loop, int lanes, Analyzer& analyzer, std::string_view kind);
  /// Null when the loop must be serial.
  Stmt run();

private:
  struct Guard {
    Expr scalar, vector; // a condition before and after translation
  };
  // Statements; null: no vector form.
  Stmt stmt(const Stmt& s);
  Stmt store(const Store& s);
  Stmt reduction(const Store& s, const Expr& at); // into one element that all lanes share
  Stmt seqOf(const Seq& s);
  Stmt ifOf(const If& s);
  Stmt forOf(const For& s);
  Stmt overLanes(const Stmt& s);
  // Expressions; null: no vector form.
  Expr expr(const Expr& e);
  Expr index(const Expr& e);
  Expr load(const Load& l);
  Expr uniformLoad(const Load& l, const Expr& at, const Expr& mask);
  Expr callOf(const Call& c);
  Expr ifThenElse(const Call& c);
  Expr binaryOf(const Binary& b);
  Expr mask() const; // null: all lanes
  Expr condition(const Expr& e);
  // Either.
  Stmt translated(const Stmt& s) { return stmt(s); }
  Expr translated(const Expr& e) { return expr(e); }
  template <class L> Ref<const L> letOf(const Ref<const L>& let);
  /// What runs where a condition holds, given before and after translation: under its mask if it is a vector.
  template <class T> T under(const Expr& scalar, const Expr& vector, const T& body);
  /// The conjuncts that are the same for all lanes, and the others; nothing unless there are both.
  std::optional<std::pair<Expr, Expr>> splitByLane(const Expr& condition) const;
  bool varies(const NodeRef& e) const;

  For loop_;
  int lanes_;
  Analyzer& analyzer_;
  std::string_view kind_;
  VarMap lets_; // let variables with a vector value
  std::vector<Guard> guards_;
};

template <class L> Ref<const L> Vectorizer::letOf(const Ref<const L>& let) {
  Expr value = expr(let->value);
  if (!value) return nullptr;
  Var bound = let->var;
  if (value->dtype.isVector()) lets_[let->var] = bound = with(let->var, &VarNode::dtype, value->dtype);
  // Arithmetic on it wraps when it holds a loaded value.
  bool data = let->value->dtype.isInteger() && readsMemory(let->value);
  if (data) analyzer_.bind(let->var, let->value);
  auto body = translated(let->body);
  if (data) analyzer_.unbind(let->var);
  lets_.erase(let->var);
  return body ? withOrigin(make<const L>(bound, value, body), let->origin) : nullptr;
}

template <class T> T Vectorizer::under(const Expr& scalar, const Expr& vector, const T& body) {
  if (!vector->dtype.isVector()) {
    auto scope = analyzer_.assume(stripLikely(scalar));
    return translated(body);
  }
  // The analyzer is not told: with all lanes off, the condition holds for none.
  guards_.push_back({scalar, vector});
  T out = translated(body);
  guards_.pop_back();
  return out;
}

} // namespace bevel
