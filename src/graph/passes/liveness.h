// How long the values of a graph function live, with aliases followed.
#pragma once

#include "ir/graph.h"

#include <unordered_map>
#include <vector>

namespace bevel {

/// Positions count bindings in program order, those of branches where the branch stands.
class Liveness {
public:
  explicit Liveness(const Function& f, const Module& module);
  /// Position of the last use of the variable or of anything that may share its memory.
  int lastUse(const GraphVar& v) const;
  /// Its memory may be part of the function's result (or is held by an object that outlives the call).
  bool escapes(const GraphVar& v) const;
  int position(const NodeRef& binding) const { return positions_.at(binding); }

private:
  size_t classOf(const GraphVar& v);
  size_t find(size_t i) const;
  void join(const GraphVar& a, const GraphExpr& b);
  void use(const NodeRef& value);
  void visit(const SeqExpr& seq);
  void bind(const NodeRef& binding);
  void joinCall(const GraphVar& var, const GraphExpr& value);

  const Module& module_;
  mutable std::vector<size_t> parent_;
  std::vector<int> last_;
  std::vector<bool> escapes_;
  std::unordered_map<NodeRef, size_t, RefHash> index_;
  std::unordered_map<NodeRef, int, RefHash> positions_;
  int now_ = 0;
};

} // namespace bevel
