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
  Stmt letOf(const LetStmt& s);
  Stmt guarded(const Expr& scalar, const Expr& vector, const Stmt& body);
  Stmt overLanes(const Stmt& s);
  // Expressions; null: no vector form.
  Expr expr(const Expr& e);
  Expr index(const Expr& e);
  Expr load(const Load& l);
  Expr uniformLoad(const Load& l, const Expr& at, const Expr& mask);
  Expr callOf(const Call& c);
  Expr ifThenElse(const Call& c);
  Expr binaryOf(const Binary& b);
  Expr letOf(const Let& e);
  Expr mask() const; // null: all lanes
  Expr condition(const Expr& e);
  bool varies(const NodeRef& e) const;

  For loop_;
  int lanes_;
  Analyzer& analyzer_;
  std::string_view kind_;
  VarMap lets_; // let variables with a vector value
  std::vector<Guard> guards_;
};

/// A mask in the cheapest form: `base + stride*lane < limit` becomes a comparison of small lane numbers with
/// one scalar.
Expr canonicalMask(const Expr& condition, Analyzer& analyzer);

} // namespace bevel
