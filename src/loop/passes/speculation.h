// Which predicates may leave which stores: the analysis of speculate_predicates.
#pragma once

#include "base/function_ref.h"
#include "loop/passes/context.h"

#include <unordered_map>
#include <utility>

namespace bevel {

/// For a store to a private buffer: the conjuncts of the conditions around it that it does not need. Keyed by
/// identity (lookup only).
using VarRange = std::pair<Var, Range>;
using DroppedPredicates = std::unordered_map<const Node*, std::vector<Expr>>;

/// `speculable` tells whether a value may be computed on garbage, given what holds where the buffer is allocated.
DroppedPredicates findDroppable(const PrimFunc& f, FunctionRef<bool(const Expr&, Analyzer&)> speculable);

} // namespace bevel
