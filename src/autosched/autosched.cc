// Which rule schedules a program.
//
// 1. Inline what can be.
// 2. One reduction whose results lie side by side: a register tile.
// 3. Reductions along rows: one pass.
// 4. Every block that is left without reduction: contiguous loops, vectors, threads. A rule that fails half
//    way leaves no trace: it works on a copy.
#include "autosched/autosched.h"

#include "autosched/rules/rules.h"
#include "loop/view.h"

#include <algorithm>

namespace bevel {

std::vector<BlockInfo> blocksOf(const Schedule& sch, const std::string& scope) {
  std::vector<BlockInfo> blocks = analyseBlocks(sch.func());
  std::erase_if(blocks, [&](const BlockInfo& b) { return b.scope != scope; });
  return blocks;
}

Status shareAmongThreads(Schedule& sch, const std::vector<LoopRV>& loops) {
  LoopRV all = loops[0];
  if (loops.size() > 1) {
    BEVEL_TRY(all, sch.fuse(loops));
  }
  return sch.parallel(all);
}

namespace {

// Runs a rule on a copy and keeps the copy when it applied.
template <class Rule> bool attempt(Schedule& sch, DefaultSchedule& out, const char* name, Rule rule) {
  Schedule copy = sch;
  Result<RuleResult> result = rule(copy);
  if (!result) {
    out.why.push_back(std::string(name) + " rule refused: " + result.error().message);
    return false;
  }
  if (!result->applied) return false;
  sch = copy;
  out.why.push_back(result->why);
  return true;
}

bool isPlain(
    const PrimFunc& f) { // programs that users scheduled or wrote with loops of their own stay as they are
  return !attrInt(f->attrs, "tir.is_scheduled") && !isView(f);
}

} // namespace

Result<DefaultSchedule> scheduleDefault(const PrimFunc& f, const Target& target) {
  DefaultSchedule out;
  out.function = f;
  if (!isPlain(f)) return out;
  auto created = Schedule::create(f);
  if (!created) {
    out.why.push_back("not in block form: " + created.error().message);
    return out;
  }
  Schedule sch = std::move(*created);
  attempt(sch, out, "inline", [&](Schedule& s) { return inlineRule(s); });
  std::vector<std::string> scopes, tiled;
  for (const BlockInfo& b : analyseBlocks(sch.func()))
    if (std::find(scopes.begin(), scopes.end(), b.scope) == scopes.end()) scopes.push_back(b.scope);
  for (const std::string& scope : scopes)
    if (attempt(sch, out, "tile", [&](Schedule& s) { return tileRule(s, scope, target); }) ||
        attempt(sch, out, "rows", [&](Schedule& s) { return rowsRule(s, scope, target); }))
      tiled.push_back(scope);
  for (const BlockInfo& b : analyseBlocks(sch.func())) {
    bool done = !b.simpleLoops && std::find(tiled.begin(), tiled.end(), b.scope) != tiled.end();
    if (done || b.reduces()) continue;
    if (attempt(sch, out, "transpose", [&](Schedule& s) { return transposeRule(s, b.block->name, target); }))
      continue;
    attempt(sch, out, "elementwise", [&](Schedule& s) { return elementwiseRule(s, b.block->name, target); });
  }
  auto named = mutableCopy(sch.func());
  named->attrs = withAttr(named->attrs, "tir.is_scheduled", intImm(1));
  named->origin = f->origin;
  out.function = PrimFunc(named);
  out.trace = sch.trace();
  return out;
}

} // namespace bevel
