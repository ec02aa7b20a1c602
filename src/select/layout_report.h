// Which layout every convolution and pooling got from chooseLayout, and why: for `bevel explain`.
#pragma once

#include "ir/graph.h"

#include <string>
#include <vector>

namespace bevel {

struct LayoutChoice {
  std::string op, nodes; // the operator, and the nodes of the model that it comes from
  bool channelsLast = false;
  std::string why;
};

struct LayoutReport {
  std::vector<LayoutChoice> choices; // in the order of the module
  int64_t moves = 0;                 // transposes in the module, those of the model among them
};

/// Of a module after chooseLayout (select/layout.cc).
LayoutReport describeLayouts(const Module& module);

} // namespace bevel
