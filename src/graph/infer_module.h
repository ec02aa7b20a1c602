// Types of a whole module, as its text leaves them open or states them.
#pragma once

#include "ir/graph.h"

namespace bevel {

/// The module with a type on every variable of its graph functions. Bindings without a type get the inferred one,
/// functions without a result type the type of their value: a function is inferred before those that call it.
/// Types that are stated are kept where they may hold, the less precise ones too; one that contradicts what is
/// inferred, a parameter without a type and a function that needs its own unstated result are errors (kInvalid) with
/// the place of the binding. Calls of operators that are not known keep the type that they state.
Result<Module> inferTypes(const Module& module);

} // namespace bevel
