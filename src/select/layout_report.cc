// See layout_report.h.
#include "select/layout_report.h"

#include "graph/visitor.h"
#include "select/layout_impl.h"

namespace bevel {
namespace {

std::string nodesOf(const GraphCallNode& c) {
  std::string out;
  if (c.origin)
    for (const std::string& name : c.origin->nodes) out += (out.empty() ? "" : ", ") + name;
  return out;
}

// The last dimension of the result: the channels of a call that is channels last.
std::optional<int64_t> lastDim(const GraphCallNode& c) {
  const auto* t = knownTensor(GraphCall(&c));
  return t && !t->shape.empty() ? asConst(t->shape.back()) : std::nullopt;
}

LayoutChoice choiceOf(const GraphCallNode& c, bool isConv) {
  LayoutChoice out{c.opName(), nodesOf(c), attrStr(c.attrs, "data_layout", "NCHW") == "NHWC", ""};
  if (!isConv) {
    out.why = out.channelsLast ? "follows its input" : "its input is channels first";
  } else if (out.channelsLast) {
    auto outputs = lastDim(c);
    bool fills = outputs && *outputs >= layout::kFewestOutputs;
    out.why =
        fills ? "its output channels fill vectors" : "few output channels, but its input is channels last";
  } else {
    auto outputs = layout::convOutputs(c);
    if (!outputs)
      out.why = "the number of its channels is unknown";
    else if (*outputs < layout::kFewestOutputs)
      out.why = "its few output channels do not fill vectors";
    else
      out.why = "its result could not be moved";
  }
  return out;
}

} // namespace

LayoutReport describeLayouts(const Module& module) {
  LayoutReport out;
  for (const GraphExpr& f : module->functions) {
    if (!f.is<FunctionNode>()) continue;
    forEachCall(cast<FunctionNode>(f), [&](const GraphCall& call, const GraphVar&) {
      const std::string& op = call->opName();
      bool conv = op.starts_with("nn.conv"), pool = op == "nn.max_pool" || op == "nn.avg_pool";
      if (conv || pool) out.choices.push_back(choiceOf(*call, conv));
      out.moves += op == "permute_dims";
    });
  }
  return out;
}

} // namespace bevel
