// Which rule schedules a program.
//
// 1. Inline what can be.
// 2. One reduction whose results lie side by side: a register tile.
// 3. Reductions along rows: one pass.
// 4. Every block that is left without reduction: contiguous loops, vectors, threads. A rule that fails half
//    way leaves no trace: it works on a copy.
// 5. What cannot be lowered is made again without register tiles, then without any rule for reductions, then
//    with plain loops.
#include "autosched/autosched.h"

#include "autosched/rules/rules.h"
#include "loop/lower.h"
#include "loop/view.h"
#include "sched/steps/fuse.h"
#include "sched/steps/parallel.h"

#include <algorithm>
#include <cstdlib>

namespace bevel {

using namespace steps;

std::vector<BlockInfo> blocksOf(const Schedule& sch, const std::string& scope) {
  std::vector<BlockInfo> blocks = analyseBlocks(sch.func());
  std::erase_if(blocks, [&](const BlockInfo& b) { return b.scope != scope; });
  return blocks;
}

Status shareAmongThreads(Schedule& sch, const std::vector<LoopRV>& loops) {
  LoopRV all = loops[0];
  if (loops.size() > 1) {
    BEVEL_TRY(all, sch.run(Fuse{loops}));
  }
  return sch.run(Parallel{all});
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

/// Rules for reductions that a schedule may use.
struct ReductionRules {
  bool tile = true, rows = true;
};

DefaultSchedule scheduleBy(const PrimFunc& f, const Target& target, ReductionRules rules) {
  DefaultSchedule out;
  out.function = f;
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
    if ((rules.tile && attempt(sch, out, "tile", [&](Schedule& s) { return tileRule(s, scope, target); })) ||
        (rules.rows && attempt(sch, out, "rows", [&](Schedule& s) { return rowsRule(s, scope, target); })))
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

bool isStrict() {
  const char* strict = std::getenv("BEVEL_STRICT_SCHEDULE");
  return strict && std::string_view(strict) == "1";
}

} // namespace

Result<DefaultSchedule> firstLowerable(const PrimFunc& f, const Target& target,
                                       const std::vector<ScheduleWay>& ways) {
  std::vector<std::string> failures;
  DefaultSchedule out;
  for (const ScheduleWay& way : ways) {
    out = way.make(f, target);
    auto lowered = lower(out.function, target);
    if (lowered || (failures.empty() && !lower(f, target))) break; // not the schedule's fault
    if (isStrict())
      return fail(
          std::move(lowered.error()).note(std::string("a schedule with ") + way.name + " cannot be lowered"));
    failures.push_back(std::string("a schedule with ") + way.name +
                       " cannot be lowered: " + lowered.error().message);
  }
  out.simpler = !failures.empty();
  out.why.insert(out.why.begin(), failures.begin(), failures.end());
  return out;
}

Result<DefaultSchedule> scheduleDefault(const PrimFunc& f, const Target& target) {
  if (!isPlain(f)) return DefaultSchedule{f, {}, {}};
  auto by = [](ReductionRules rules) {
    return [rules](const PrimFunc& g, const Target& t) { return scheduleBy(g, t, rules); };
  };
  auto all = by({}), untiled = by({.tile = false}), unreduced = by({.tile = false, .rows = false});
  auto plain = [](const PrimFunc& g, const Target&) { return DefaultSchedule{g, {}, {}}; };
  return firstLowerable(f, target,
                        {{"all rules", all},
                         {"no register tile", untiled},
                         {"no rule for reductions", unreduced},
                         {"plain loops", plain}});
}

} // namespace bevel
