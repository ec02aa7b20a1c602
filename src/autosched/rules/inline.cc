// Inlining.
//
//   B[i] = A[i] + 1      →     C[i] = exp(A[i] + 1)
//   C[i] = exp(B[i])
//
// A block is inlined when it only has spatial axes, its result stays inside the program, and
// - exactly one block reads it, or computing it again is cheaper than a load and store;
// - the reader is no register-tiled reduction that would meet branches or repeated work in its innermost
// loop;
// - no work beyond an addition or two is repeated by a broadcast;
// - a reader that takes it at several places stays small: each place gets the whole expression.
#include "autosched/rules/rules.h"

#include "ir/structural.h"
#include "loop/reduction.h"
#include "sched/scope.h"
#include "sched/steps/get.h"
#include "sched/steps/place.h"

#include <algorithm>
#include <set>

namespace bevel {

using namespace steps;
namespace {

bool reads(const BlockInfo& b, const Buffer& buffer) {
  return std::any_of(b.accesses.begin(), b.accesses.end(),
                     [&](const AccessPattern& a) { return !a.write && a.buffer->data == buffer->data; });
}

bool branches(const Block& b) {
  return anyNode(b->body, [&](const NodeRef& n) {
    const auto* c = n.as<CallNode>();
    return n.is<SelectNode>() || n.is<IfNode>() || (c && c->op == Intrin::kIfThenElse);
  });
}

// A reduction whose vectors run across results: a contraction (one operand moves along the last result axis
// and another does not), or a window whose operands all run along it.
bool tiled(const BlockInfo& b) {
  Operands operands = operandsOf(b);
  return b.reduces() && (operands.isContraction() || operands.contiguous);
}

// Whether the reader needs the same element in several iterations.
bool repeats(const BlockInfo& reader, const Buffer& buffer) {
  for (const AccessPattern& a : reader.accesses) {
    if (a.write || a.buffer->data != buffer->data) continue;
    if (!a.linear) return true;
    for (size_t k = 0; k < a.strides.size(); ++k)
      if (a.strides[k] == 0 && reader.extent(k) != 1) return true;
  }
  return false;
}

constexpr size_t kLargestCopied = 400; // nodes of a body after an expression went to several places of it

// Nodes of an expression tree, counted as often as they stand in it; stops beyond the limit.
size_t treeSize(const NodeRef& n, size_t limit = kLargestCopied) {
  if (n.is<BufferNode>() || n.is<VarNode>()) return 1;
  size_t size = 1;
  forEachChild(n, [&](const NodeRef& c, Role) {
    if (size <= limit) size += treeSize(c, limit - size);
  });
  return size;
}

// Whether copies of the block's expression would blow up the reader: chains of such blocks grow with every
// step.
bool copiesMuch(const BlockInfo& b, const BlockInfo& reader, const Buffer& buffer) {
  size_t places = 0;
  walk(reader.block->body, [&](const NodeRef& n) {
    const auto* l = n.as<LoadNode>();
    places += l && l->buffer->data == buffer->data;
    return true;
  });
  return places > 1 && places * treeSize(b.block->body) + treeSize(reader.block->body) > kLargestCopied;
}

bool inlinable(const BlockInfo& b, const PrimFunc& f, const std::vector<BlockInfo>& all) {
  if (b.block->iters.size() != b.numSpatial() || !b.block->body.is<StoreNode>()) return false;
  const Buffer& result = b.block->body.as<StoreNode>()->buffer;
  if (isParameter(f, result)) return false;
  size_t readers = 0;
  for (const BlockInfo& other : all) {
    if (other.block->name == b.block->name || !reads(other, result)) continue;
    ++readers;
    bool heavy = workOf(b.block->body).cost > 2;
    if ((heavy || branches(b.block)) && tiled(other)) return false;
    if (heavy && repeats(other, result)) return false;
    if (copiesMuch(b, other, result)) return false;
  }
  return readers == 1 || (readers > 1 && workOf(b.block->body).cost <= 2);
}

} // namespace

Result<RuleResult> inlineRule(Schedule& sch, const RuleContext& context) {
  RuleResult result;
  std::vector<BlockInfo> blocks = analyseBlocks(sch.func());
  std::set<std::string> kept; // asked for and not inlined
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = 0; i < blocks.size();) {
      const std::string name = blocks[i].block->name;
      auto apply = [&](Schedule& s, const Decision& d) -> Status {
        if (d.index == 1) return {};
        BEVEL_TRY(BlockRV rv, s.run(GetSblock{name}));
        return s.run(ComputeInline{rv});
      };
      std::optional<size_t> answer;
      if (!kept.contains(name) && inlinable(blocks[i], sch.func(), blocks)) {
        BEVEL_TRY(answer, decideWhereLegal(sch, context, yesNo("inline " + name), apply));
        if (answer == 1u) kept.insert(name);
      }
      if (answer != 0u) {
        ++i;
        continue;
      }
      result.applied = changed = true;
      result.why += (result.why.empty() ? "inlined " : ", ") + name;
      blocks = analyseBlocks(sch.func(), blocks);
    }
  }
  return result;
}

} // namespace bevel
