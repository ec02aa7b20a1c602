// The schedule: a tensor program (or a module of them) and the steps taken on it so far.
//
//     BEVEL_TRY(Schedule sch, Schedule::create(matmul));
//     BEVEL_TRY(BlockRV block, sch.run(GetSblock{"C"}));
//     BEVEL_TRY(auto loops, sch.run(GetLoops{block}));
//     BEVEL_TRY(auto tiles, sch.run(Split{loops[1], {std::nullopt, 32}}));
//     BEVEL_CHECK(sch.run(Vectorize{tiles[1]}));
//     sch.func();            the program now
//     sch.trace().str();     what was done, as text
//
// The program is immutable and every step replaces it by path copy; so copying a schedule is cheap, and a
// step that fails leaves it unchanged. Handles stay valid while the loop or block they name survives. Not
// thread safe; copies are independent.
#pragma once

#include "sched/step_of.h"
#include "sched/trace.h"

namespace bevel {

struct Path;

class Schedule {
public:
  /// A schedule of one tensor program; its name is its global_symbol, or "main". Fails (kInvalid) when it is
  /// not in block form: the body must be the realization of one root block, block names and loop variables
  /// unique, declared accesses right.
  static Result<Schedule> create(PrimFunc f, uint64_t seed = 0);
  /// All tensor programs of a module; works on "main", or the only one.
  static Result<Schedule> create(Module m, uint64_t seed = 0);

  /// The program being worked on; for a module, the function that work_on chose.
  const PrimFunc& func() const { return functions_[size_t(current_)].func; }
  /// The whole module with the scheduled functions.
  Module mod() const;
  const Trace& trace() const { return trace_; }
  /// Program and trace as text.
  std::string show() const;

  /// Takes a step, given as its struct (sched/steps/*.h), and gives its result.
  template <class S> auto run(S step) {
    auto node = make<StepOf<S>>(std::move(step));
    if constexpr (requires { node->value.results; })
      return execute(node).map([&] { return node->value.results; });
    else if constexpr (requires { node->value.result; })
      return execute(node).map([&] { return node->value.result; });
    else
      return execute(node);
  }
  /// By name: positional and named arguments, as other languages call it; null is None. The result is a handle, a
  /// List of handles, or null.
  Result<NodeRef> call(std::string_view step, const std::vector<NodeRef>& args,
                       const std::vector<std::pair<std::string, NodeRef>>& named = {});
  /// Takes the step of a trace again. `handles`: those of the trace that were replayed before, and what they are
  /// here; this step's are added.
  Status replay(const StepNode& step, VarMap& handles);
  /// Runs a fresh step and records it. Its handles are named, as far as names are given.
  Status execute(const Ref<StepNode>& step, std::vector<std::string> names = {});

  /// What a handle stands for now; fails (kIllegal) when it is gone.
  Result<BlockRealize> get(BlockRV block) const;
  Result<For> get(LoopRV loop) const;
  Result<int64_t> get(ExprRV value) const;
  Result<int64_t> get(const IntArg& value) const; // None is an error, a number itself
  /// The block's name and the loop's variable, without looking whether they are still there. Fails for those of
  /// a function other than the one worked on.
  Result<std::string> nameOf(BlockRV block) const;
  Result<Var> varOf(LoopRV loop) const;
  /// Where the loop or block of a handle stands in the program worked on; fails when it is not there.
  Result<Path> locate(const RV& blockOrLoop) const;

  void seed(uint64_t value) { random_ = value; }

  // For steps (sched/steps/).
  /// Next number of the schedule's own generator (SplitMix64).
  uint64_t nextRandom();
  const std::string& funcName() const { return functions_[size_t(current_)].name; }
  Status workOnFunction(std::string_view name);

private:
  struct Entry { // what a handle stands for
    RV handle;
    int32_t func;
    NodeRef node;            // StringImm of the block's name, the loop's Var, or an IntImm
    bool gone = false;       // the block was taken out: a new one of its name is another
    std::string str() const; // "block C", "loop i"
  };
  struct Function {
    std::string name;
    PrimFunc func;
  };
  Result<const Entry*> entry(const RV& handle) const;
  Result<const Entry*> entryHere(const RV& handle) const; // fails for those of another function
  Result<Path> pathOf(const Entry& entry) const;
  Status focus(const StepNode& step);
  Status checkResult(const PrimFunc& before) const;
  void carryOut(const Plan& plan, StepNode& step, const std::vector<std::string>& names);

  Module module_; // null for a schedule of one function
  std::vector<Function> functions_;
  int32_t current_ = 0;
  std::vector<Entry> entries_;
  Trace trace_;
  uint64_t random_ = 0;
};

} // namespace bevel
