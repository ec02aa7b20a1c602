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
#include "sched/steps/loops.h"

#include <algorithm>
#include <cstdlib>

namespace bevel {

using namespace steps;

std::vector<BlockInfo> blocksOf(const Schedule& sch, const std::string& scope) {
  std::vector<BlockInfo> blocks = analyseBlocks(sch.func());
  std::erase_if(blocks, [&](const BlockInfo& b) { return b.scope != scope; });
  return blocks;
}

std::optional<BlockInfo> spatialBlock(const Schedule& sch, const std::string& name) {
  for (BlockInfo& b : analyseBlocks(sch.func()))
    if (b.block->name == name && !b.reduces() && b.simpleLoops && !b.extents.empty()) return std::move(b);
  return std::nullopt;
}

Result<LoopRV> asOneLoop(Schedule& sch, const std::vector<LoopRV>& loops) {
  return loops.size() == 1 ? loops[0] : sch.run(Fuse{loops});
}

Status shareAmongThreads(Schedule& sch, const std::vector<LoopRV>& loops) {
  BEVEL_TRY(LoopRV all, asOneLoop(sch, loops));
  return sch.run(Parallel{all});
}

std::vector<int64_t> laneCandidates(int64_t lanes, int64_t length) {
  std::vector<int64_t> out = {1};
  for (int64_t n : {lanes / 4, lanes / 2, lanes, 2 * lanes, 4 * lanes})
    if (n > 1 && (n == lanes || length < 0 || n <= length)) out.push_back(n);
  return out;
}

Question oneOf(std::string name, const std::vector<int64_t>& candidates, int64_t choice) {
  Question q{std::move(name), {}};
  for (int64_t c : candidates) q.candidates.push_back(intImm(c));
  q.choice = size_t(std::find(candidates.begin(), candidates.end(), choice) - candidates.begin());
  return q;
}

namespace {

const Answers kModel; // none: the model's choices

struct Rule {
  const char* name;
  std::function<Result<RuleResult>(Schedule&, const RuleContext&)> run;
  bool allowed = true; // the model may take it
};

// Asks which rule schedules a part of the program, and runs it. The model takes the first allowed one that applies,
// found on copies; where none of all does, nothing is asked. The last candidate is no rule. Gives whether one ran.
Result<bool> runOneOf(Schedule& sch, DefaultSchedule& out, const RuleContext& context,
                      const std::string& part, const std::vector<Rule>& rules) {
  Question q{"rule of " + part, {}};
  for (const Rule& rule : rules) q.candidates.push_back(str(rule.name));
  q.candidates.push_back(str("none"));
  bool passedOver = false;
  for (; q.choice < rules.size(); ++q.choice) {
    if (!rules[q.choice].allowed) {
      passedOver = true;
      continue;
    }
    Schedule copy = sch;
    BEVEL_CHECK(record(copy, q, q.choice));
    auto result = rules[q.choice].run(copy, {context.target, kModel});
    if (!result)
      out.why.push_back(std::string(rules[q.choice].name) + " rule refused: " + result.error().message);
    if (!result || !result->applied) continue;
    if (context.answers) break;
    sch = std::move(copy);
    out.why.push_back(result->why);
    return true;
  }
  if (q.choice == rules.size() && !passedOver) return false;
  size_t answer = context.answers ? context.answers(q) : q.choice;
  BEVEL_CHECK(record(sch, q, answer));
  if (answer == rules.size()) return false;
  auto result = rules[answer].run(sch, context);
  if (result && !result->applied) result = fail(ErrorCode::kIllegal, "the rule does not fit");
  if (!result) return fail(refusedAnswer(q, answer, result.error()));
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

Result<DefaultSchedule> scheduleBy(const PrimFunc& f, const Target& target, ReductionRules allowed,
                                   const Answers& answers) {
  DefaultSchedule out;
  out.function = f;
  auto created = Schedule::create(f);
  if (!created) {
    out.why.push_back("not in block form: " + created.error().message);
    return out;
  }
  Schedule sch = std::move(*created);
  RuleContext context{target, answers};
  BEVEL_TRY(RuleResult inlined, inlineRule(sch, context));
  if (inlined.applied) out.why.push_back(inlined.why);
  std::vector<std::string> scopes, tiled;
  for (const BlockInfo& b : analyseBlocks(sch.func()))
    if (std::find(scopes.begin(), scopes.end(), b.scope) == scopes.end()) scopes.push_back(b.scope);
  auto on = [](auto rule, const std::string& part) {
    return [rule, part](Schedule& s, const RuleContext& c) { return rule(s, part, c); };
  };
  for (const std::string& scope : scopes) {
    std::vector<Rule> rules = {{"tile", on(tileRule, scope), allowed.tile},
                               {"rows", on(rowsRule, scope), allowed.rows}};
    BEVEL_TRY(bool done, runOneOf(sch, out, context, "reductions in " + scope, rules));
    if (done) tiled.push_back(scope);
  }
  for (const BlockInfo& b : analyseBlocks(sch.func())) {
    bool done = !b.simpleLoops && std::find(tiled.begin(), tiled.end(), b.scope) != tiled.end();
    if (done || b.reduces()) continue;
    const std::string& name = b.block->name;
    std::vector<Rule> rules = {{"transpose", on(transposeRule, name)},
                               {"elementwise", on(elementwiseRule, name)}};
    BEVEL_CHECK(runOneOf(sch, out, context, name, rules));
  }
  out.function = withOrigin(withAttr(sch.func(), "tir.is_scheduled", intImm(1)), f->origin);
  out.trace = sch.trace();
  return out;
}

} // namespace

bool strictSchedules() {
  const char* strict = std::getenv("BEVEL_STRICT_SCHEDULE");
  return strict && std::string_view(strict) == "1";
}

Result<DefaultSchedule> firstLowerable(const PrimFunc& f, const Target& target,
                                       const std::vector<ScheduleWay>& ways) {
  std::vector<std::string> failures;
  DefaultSchedule out;
  for (const ScheduleWay& way : ways) {
    BEVEL_TRY(out, way.make(f, target));
    auto lowered = lower(out.function, target);
    if (lowered || (failures.empty() && !lower(f, target))) break; // not the schedule's fault
    if (strictSchedules())
      return fail(
          std::move(lowered.error()).note(std::string("a schedule with ") + way.name + " cannot be lowered"));
    failures.push_back(std::string("a schedule with ") + way.name +
                       " cannot be lowered: " + lowered.error().message);
  }
  out.simpler = !failures.empty();
  out.why.insert(out.why.begin(), failures.begin(), failures.end());
  return out;
}

Result<DefaultSchedule> scheduleByRules(const PrimFunc& f, const Target& target) {
  return isPlain(f) ? scheduleBy(f, target, {}, kModel) : DefaultSchedule{f, {}, {}};
}

Result<DefaultSchedule> scheduleDefault(const PrimFunc& f, const Target& target, const Answers& answers) {
  if (!isPlain(f)) return DefaultSchedule{f, {}, {}};
  if (answers) {
    BEVEL_TRY(DefaultSchedule made, scheduleBy(f, target, {}, answers));
    if (auto lowered = lower(made.function, target); !lowered && lower(f, target))
      return fail(std::move(lowered.error()).note("the schedule of these answers cannot be lowered"));
    return made;
  }
  auto by = [](ReductionRules rules) {
    return [rules](const PrimFunc& g, const Target& t) { return scheduleBy(g, t, rules, kModel); };
  };
  auto all = by({}), untiled = by({.tile = false}), unreduced = by({.tile = false, .rows = false});
  auto plain = [](const PrimFunc& g, const Target&) -> Result<DefaultSchedule> {
    return DefaultSchedule{g, {}, {}};
  };
  return firstLowerable(f, target,
                        {{"all rules", all},
                         {"no register tile", untiled},
                         {"no rule for reductions", unreduced},
                         {"plain loops", plain}});
}

} // namespace bevel
