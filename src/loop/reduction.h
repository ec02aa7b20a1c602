// Updates that combine one element with values in any order: what rfactor, vectorised reductions and their
// legality rest on.
#pragma once

#include "ir/build.h"

#include <optional>

namespace bevel {

/// `B[i] = op(B[i], value)` or `B[i] = op(value, B[i])`, where op is a sum, product, minimum or maximum and
/// the value does not read B. The load of B[i] has no predicate; the store may.
struct Accumulation {
  BinaryOp op;
  Expr value;
};
std::optional<Accumulation> accumulationOf(const StoreNode& update);

/// The same indices, as they are written.
bool sameElement(const Array<Expr>& a, const Array<Expr>& b);

/// What a body reduces into: one store for each result, all at the same indices, after the lets that they use. A
/// result accumulates (`and` and `or` count too), or is kept or replaced by what a comparison of one result with the
/// step's value says: the arguments of a maximum.
struct Reducer {
  std::vector<Store> updates;
  Array<Expr> values;     // what a step contributes to each; none reads a result
  Array<Var> left, right; // for each result: as it is, and what comes to it
  Array<Expr> combined;   // of left and right
  bool firstWins = false; // of equal ones the first is kept: their order matters
};
std::optional<Reducer> reducerOf(const Stmt& body);
/// The stores of a body that reads no buffer after it stored into it, without its lets; nothing for other bodies.
std::optional<std::vector<Store>> plainStores(const Stmt& body);

/// The block's body is a reducer to which order does not matter: over the reals its instances may run in any order,
/// once their elements are initialised.
bool accumulates(const BlockNode& block);

/// The block sums products of elements of two buffers (a contraction).
bool sumsProducts(const BlockNode& block);

/// What one execution of a statement computes on floats. Choices count nothing.
struct Work {
  int64_t operations = 0; // one each, comparisons too
  int64_t cost = 0;       // about as much as this many additions: a division five, a call of any type ten
};
Work workOf(const Stmt& body);

/// The intrinsic that combines the lanes of a vector; nothing for operators that an accumulation may not
/// have.
std::optional<Intrin> laneReduction(BinaryOp op);

/// Combining the value any number of times is the same as once: neutral elements, and all values of minima,
/// maxima, `and` and `or`.
bool isIdempotent(const Expr& value, BinaryOp op);

} // namespace bevel
