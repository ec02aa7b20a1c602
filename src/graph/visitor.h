// Visiting graph functions, and mapping the values below one, by the field table.
#pragma once

#include "base/function_ref.h"
#include "base/result.h"
#include "ir/graph.h"

namespace bevel {

/// Calls f(node, parent) for every value and binding below the node, in program order, parents first. Variables are
/// visited where they are used; types and attributes hold no values.
void forEachValue(const NodeRef& root, FunctionRef<void(const NodeRef& node, const NodeRef& parent)> f);

/// Calls f(call, binding's variable or null) for every call bound in the function, branches included, in
/// order.
void forEachCall(const Function& function, FunctionRef<void(const GraphCall&, const GraphVar&)> f);

/// A binding as people know it: what it calls, and the nodes of the model that it comes from, or its variable.
std::string subjectOf(const VarBinding& binding);

/// The value with f applied to what it computes with: the operands of a call, the items of a tuple. A call that
/// changes loses its type. Branches and functions are scopes of their own and stay.
Result<GraphExpr> mapOperands(const GraphExpr& value, FunctionRef<Result<GraphExpr>(const GraphExpr&)> f);

/// The binding with f applied to the branches of its If; itself where it binds no If.
Result<NodeRef> mapBranches(const NodeRef& binding, FunctionRef<Result<SeqExpr>(const SeqExpr&)> f);

} // namespace bevel
