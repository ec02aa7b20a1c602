// Joins the tensor programs of several calls into one.
#pragma once

#include "base/result.h"
#include "ir/graph.h"

namespace bevel {

/// One call of a group: its program and what it is called with.
struct FusedCall {
  PrimFunc program;
  Array<GraphExpr> inputs; // variables of the caller, constants
  Array<Expr> scalars;     // values of the program's scalar parameters
  GraphVar result;         // the variable that holds its (only) result
  Origin origin;
};

struct FusedProgram {
  PrimFunc function;
  Array<GraphExpr> inputs; // arguments in order
  Array<Expr> extra;       // values of scalar parameters, behind the results
};

/// The calls in order as one program whose result is that of the last call; results of the others become
/// allocations. Constants of one element become immediates.
Result<FusedProgram> fusePrograms(const std::vector<FusedCall>& calls);

} // namespace bevel
