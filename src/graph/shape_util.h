// Arithmetic on shapes with symbolic dimensions, for type inference and importers.
#pragma once

#include "graph/op.h"
#include "ir/structural.h"

namespace bevel {

/// a == b for certain.
bool provedEqual(Analyzer& analyzer, const Expr& a, const Expr& b);
/// Product of dims [first, last), simplified; 1 when empty.
Expr product(Analyzer& analyzer, const Array<Expr>& dims, size_t first = 0, size_t last = size_t(-1));

/// What tensors and shapes have in common: the dimensions, null where they are not known. A shape has no dtype.
struct Dims {
  int64_t ndim;
  const Array<Expr>* known;
  DType dtype;
};
std::optional<Dims> dimsOf(const Type& type);
bool sameDims(const Array<Expr>& a, const Array<Expr>& b, Analyzer& analyzer);

/// Result of numpy broadcasting. Two symbolic dimensions that cannot be proved equal give select(a == 1, b,
/// a) and a condition required at run time.
Result<Array<Expr>> broadcastShapes(const OpCall& call, InferContext& context, const Array<Expr>& a,
                                    const Array<Expr>& b);

/// Axis in [-rank, rank) made non-negative; an error of the call otherwise.
Result<int64_t> normalizeAxis(const OpCall& call, int64_t axis, size_t rank);
/// Sorted, unique, non-negative.
Result<std::vector<int64_t>> normalizeAxes(const OpCall& call, const std::vector<int64_t>& axes, size_t rank);

/// Finds values of the variables in `pattern` that make it `actual`: plain variables are bound at first
/// sight, everything else must then be equal. Used to instantiate callee types and to find the dims of a
/// kernel. Equalities that are neither proved nor refuted go to `unproved`, where it is given.
Status unify(const Type& pattern, const Type& actual, VarMap& bindings, Analyzer& analyzer);
Status unifyShape(const Array<Expr>& pattern, const Array<Expr>& actual, VarMap& bindings, Analyzer& analyzer,
                  std::vector<Expr>* unproved = nullptr);

/// The type with dimensions that use variables outside `keep` forgotten: such a shape becomes unknown, rank
/// stays.
Type eraseVars(const Type& type, FunctionRef<bool(const Var&)> keep);
/// The most precise type of which both are instances (branches of an If).
Result<Type> joinTypes(const Type& a, const Type& b, Analyzer& analyzer);
bool sameType(const Type& a, const Type& b, Analyzer& analyzer);
/// Symbolic variables of a type, in order of first occurrence.
std::vector<Var> shapeVars(const Type& type);
/// The type with every unknown dimension of tensors with known rank replaced by a fresh variable; the
/// variables are added to `fresh`.
Type instantiateUnknown(const Type& type, std::vector<Var>& fresh, const std::string& hint = "d");
/// Parameter and result types of a graph function, from its declaration.
FuncType functionType(const Function& function);

} // namespace bevel
