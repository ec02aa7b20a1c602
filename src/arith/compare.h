// Fast equality of scalar expressions, modulo the order of commutative operands.
#pragma once

#include "ir/expr.h"

namespace bevel::arith {

/// Equal in value whatever the variables are: a*b and b*a, min(a, b) and min(b, a) are the same. Never true
/// for expressions with side effects.
bool sameExpr(const Expr& a, const Expr& b);
/// Equal node by node.
bool identicalExpr(const Expr& a, const Expr& b);

/// A load, call or conversion from floating point: its value may be anything.
bool readsData(const Expr& e);
/// A call that is not pure and does more than read.
bool hasEffects(const Expr& e);
/// A load, call or division by what may be zero: unsafe to evaluate where it was not evaluated before.
bool mayFault(const Expr& e);
/// Addition, subtraction, multiplication or negation of integers.
bool isRing(const Expr& e);
/// Factors of a product of non-constants, left to right.
void collectFactors(const Expr& e, std::vector<Expr>& out);
/// Their product, as it stands (not simplified); at least one factor.
Expr productOf(const std::vector<Expr>& factors);

} // namespace bevel::arith
