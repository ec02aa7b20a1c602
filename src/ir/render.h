// Shows an Error to a person: the text around the fault, or the IR around it underlined, and the model's node
// named.
#pragma once

#include "base/result.h"
#include "ir/graph.h"

#include <string>
#include <string_view>

namespace bevel {

struct RenderOptions {
  /// The module or function that the error's nodes belong to; null: each node is printed by itself.
  NodeRef within;
  bool color = false; // ANSI colours
};

/// "file:3:7: error: message", the line with a caret where the error has its source, the IR with `^^^` under
/// each node at fault, the names of its ONNX nodes, notes and the hint.
std::string render(const Error& error, const RenderOptions& options = {});

/// Text that a terminal takes as text: control characters other than line ends and tabs appear as "\\x1b".
std::string visible(std::string_view text);

} // namespace bevel
