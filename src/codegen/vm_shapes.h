// Slots of a function's shape heap: which dimension or expression lies where, and what is computed at which
// point.
#pragma once

#include "codegen/vm_image.h"
#include "ir/graph.h"
#include "ir/structural.h"

#include <map>
#include <unordered_map>
#include <vector>

namespace bevel {

/// Points are the places behind which dimensions are newly bound: the function's entry and each match_cast,
/// in program order. A function is emitted twice: the first time to learn which expressions are needed (they
/// are noted at the earliest point where all their dimensions are bound), the second time to compute them
/// there.
class ShapeSlots {
public:
  struct Computed {
    Expr value; // over dimensions bound at or before the point
    uint32_t slot;
  };

  /// Starts emitting once more, now with what was learnt.
  void replay();
  uint32_t numSlots() const { return next_; }

  /// `count` slots in a row for this place of the program.
  uint32_t reserve(uint32_t count);
  /// The dimension lies in the slot, from the point to come on.
  void bind(const Var& dim, uint32_t slot);
  bool isBound(const Var& dim) const { return slots_.count(dim) > 0; }
  /// Dimensions bound so far; unbind() forgets those after the first `count`, where the branch ends that binds them.
  size_t numBound() const { return order_.size(); }
  void unbind(size_t count);
  /// Ends the bindings of a point; what is to be computed there (known on replay only).
  const std::vector<Computed>& point();
  /// The value as an argument of an instruction: a number or a slot. Fails when a dimension is not bound.
  Result<ImageArg> value(const Expr& e);

  /// The kernel that fills the slots: kernel(heap).
  PrimFunc kernel(const std::vector<Computed>& values) const;

private:
  Expr fromHeap(const Expr& e, const Buffer& heap) const;

  bool replaying_ = false;
  uint32_t next_ = 0;
  std::vector<uint32_t> reserved_; // in program order
  size_t nextReserved_ = 0, now_ = 0;
  std::unordered_map<Var, uint32_t, RefHash> slots_;
  std::unordered_map<Var, size_t, RefHash> boundAt_;
  std::vector<Var> order_; // what is bound, in this order
  /// Slot of an expression by the point that computes it: two branches may bind the same dimension.
  std::unordered_map<NodeRef, std::map<size_t, uint32_t>, StructuralHasher, StructuralEq> computed_;
  std::vector<std::vector<Computed>> points_;
};

} // namespace bevel
