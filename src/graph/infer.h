// Type inference of graph expressions whose leaves are typed.
#pragma once

#include "graph/op.h"

namespace bevel {

/// The type of `value`. Vars for dimensions that only the run knows are in context.fresh; conditions to be
/// checked at run time in context.required. Calls of functions look their types up in `module` (may be null).
Result<Type> inferType(const GraphExpr& value, const ModuleNode* module, InferContext& context);

/// What an input asks of a tensor's type: that it is known, its elements and rank. checkCall asks it of every input;
/// importers ask it before they read a dimension.
Status checkInputType(const std::string& op, const OpInput& input, const Type& type);

} // namespace bevel
