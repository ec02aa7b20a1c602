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

/// The block's body is such an update without condition, or one by `and` / `or`: over the reals its instances
/// may run in any order, once their elements are initialised.
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

/// Combining it with any value of the type gives that value. Not for 64-bit unsigned minima: their neutral
/// element is no constant of the IR (null).
Expr neutralElement(BinaryOp op, DType t);
/// Combining the value any number of times is the same as once: neutral elements, and all values of minima
/// and maxima.
bool isIdempotent(const Expr& value, BinaryOp op);

} // namespace bevel
