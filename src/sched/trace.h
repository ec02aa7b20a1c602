// A trace: the steps of a schedule in order. Its text is the schedule script and the tuning record at once:
//
//     b0 = sch.get_sblock(name="C", func_name="main")
//     l1, l2, l3 = sch.get_loops(block=b0)
//     v4, v5 = sch.sample_perfect_tile(loop=l1, n=2, max_innermost_factor=64, decision=[4, 32])
//     l6, l7 = sch.split(loop=l1, factors=[v4, v5])
//
// Arguments may be given by position or by name. See ir/script.h for what else a file may hold.
#pragma once

#include "ir/step.h"

#include <optional>
#include <string_view>

namespace bevel {

class Schedule;

class Trace {
public:
  Array<Step> steps;

  /// As one node of the IR: it prints, compares (up to the names of handles) and hashes as all IR does.
  NodeRef node() const;
  /// One line a step. Reading it back gives an equal trace.
  std::string str() const;
  /// Fails (kInvalid) with the file, line and column of the fault.
  static Result<Trace> parse(std::string_view text, std::string file = "");

  /// Runs the steps on a schedule. Handles are new ones, of the same names. Decisions are taken as recorded (a
  /// sampling step without one samples). On failure the schedule is as before; the error names the step.
  Status applyTo(Schedule& schedule) const;

  /// The decision of step i as a list of integers; nothing when it has none.
  std::optional<std::vector<int64_t>> decision(size_t i) const;
  /// The same trace with another decision for step i (empty: sample again). Replay checks that it is valid.
  Trace withDecision(size_t i, const std::vector<int64_t>& decision) const;
  /// Indices of the sampling steps.
  std::vector<size_t> samplingSteps() const;
  /// Without steps whose results nothing uses and which change nothing (get_loops, get_sblock, sampling).
  Trace simplified() const;

  uint64_t hash() const;
  friend bool operator==(const Trace& a, const Trace& b);
};

/// Runs a script on a schedule line by line. Beyond what a trace's text allows, a list of results may be
/// bound to one name and indexed
/// (`loops = sch.get_loops(b)`, `loops[-1]`, `*loops`), and calls may be nested. On failure the schedule is
/// as before; the error points at the line and column.
Status runScript(Schedule& schedule, std::string_view text, std::string file = "");

} // namespace bevel
