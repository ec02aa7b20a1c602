// The documentation page of the operators, from their entries.
#pragma once

#include <string>

namespace bevel {

struct Op;

/// How an operator becomes code: "tensor expression", "composite", "run-time function" or "virtual machine".
const char* opKind(const Op& op);
/// `nn.softmax(data, axis=-1)`: inputs, then attributes with their defaults; optional inputs in brackets.
std::string opSignature(const Op& op);
/// Markdown: each family with its operators, their attributes and the ONNX operators that map to them.
std::string opsMarkdown();

} // namespace bevel
