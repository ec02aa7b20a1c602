// Type inference of graph expressions whose leaves are typed.
#pragma once

#include "graph/op.h"

namespace bevel {

/// The type of `value`. Vars for dimensions that only the run knows are in context.fresh; conditions to be
/// checked at run time in context.required. Calls of functions look their types up in `module` (may be null).
Result<Type> inferType(const GraphExpr& value, const ModuleNode* module, InferContext& context);

} // namespace bevel
