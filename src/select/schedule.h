// Schedules for every tensor program of a module, and what goes with them.
#pragma once

#include "autosched/autosched.h"

#include <vector>

namespace bevel {

/// Notes for every tensor program which of its buffers are constants at every call: attribute
/// "layout_free_buffers", a list of parameter indices. A schedule may pack those ahead of time.
///
///   lv = R.call_tir(cls.matmul, (x, W), …)      →      matmul: T.func_attr({"layout_free_buffers": [1]})
Result<Module> markConstantBuffers(const Module& module);

/// The work of a program where its shapes are constants: float operations (a multiply-add counts two), and
/// bytes of its parameters. Attributes "flops" and "bytes", for profiles; "flops_text" and
/// "bytes_text", over the names of the dimensions, where shapes are symbolic.
Result<Module> countWork(const Module& module);

/// What scheduling did to one program.
struct ScheduleReport {
  std::string name;
  Trace trace;
  std::vector<std::string> why;
  bool simpler = false; // a better schedule could not be lowered; `why` tells
};

/// The default schedule of every tensor program (autosched/autosched.h), on several threads. `checked`: each is one that
/// can be lowered. `report` (may be null) gets one entry a program, in the order of the module.
Result<Module> scheduleAll(const Module& module, const Target& target, bool checked, int threads = 0,
                           std::vector<ScheduleReport>* report = nullptr);

/// Splits blocks annotated "preproc" off into programs of their own, called where the program is called:
///
///   lv = call_tir(matmul, (x, W))      →     lv = call_tir(matmul_pack, (W,))
///                                            lv1 = call_tir(matmul, (x, lv))
///
/// When the arguments are constants, a later pass runs the packing at compile time. Blocks that read anything
/// but parameters stay where they are.
Result<Module> splitPreproc(const Module& module);

} // namespace bevel
