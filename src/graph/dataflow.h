// Grouping of pure bindings into dataflow blocks.
#pragma once

#include "ir/graph.h"

namespace bevel {

/// Every maximal run of pure bindings outside dataflow blocks becomes one; variables used only inside it
/// become dataflow variables. Branches of an If are treated alike.
Function convertToDataflow(const Function& function);
Module convertToDataflow(const Module& module);

} // namespace bevel
