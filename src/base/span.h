// Where something came from: a place in a text, and the names of the model nodes it computes.
#pragma once

#include "base/object.h"

#include <string>
#include <vector>

namespace bevel {

/// A place in a text; line and column count from 1, 0 means unknown.
struct Span {
  int line = 0;
  int column = 0;
  int endColumn = 0;
};

/// Origin of a node. Ignored by equality and hash; carried to kernels, profiles and error messages.
class OriginObject : public Object {
public:
  std::vector<std::string> nodes; // ONNX node names, outermost first; sorted and unique when merged
  std::string file;               // text file of `span`, empty when there is none
  Span span;
};
using Origin = Ref<const OriginObject>;

} // namespace bevel
