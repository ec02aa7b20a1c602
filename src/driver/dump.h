// Every stage of a compile as text, in a folder.
#pragma once

#include "ir/graph.h"

#include "base/result.h"

#include <string>

namespace bevel {

/// Writes 00_input.txt, 01_fold_constants.txt, …; constants larger than a few elements lie beside the last
/// one only.
class Dumper {
public:
  explicit Dumper(std::string folder) : folder_(std::move(folder)) {} // "": writes nothing
  Status stage(const std::string& name, const Module& module);

private:
  std::string folder_;
  int count_ = 0;
};

} // namespace bevel
