// See docs.h.
#include "ops/docs.h"

#include "graph/op.h"
#include "ir/printer.h"
#include "ops/ops.h"

#include <fmt/format.h>

namespace bevel {
namespace {

const char* kindName(AttrKind kind) {
  static const char* const names[] = {"integer", "float", "text", "integers", "floats", "dtype", "IR"};
  return names[size_t(kind)];
}

// Defaults as a call would write them; "" when the attribute is absent unless given.
std::string defaultText(const OpAttr& a) {
  if (!a.otherwise) return "";
  if (const auto* i = a.otherwise.as<IntImmNode>()) return std::to_string(i->value);
  if (const auto* f = a.otherwise.as<FloatImmNode>()) return floatText(f->value, f->dtype);
  return print(a.otherwise);
}

std::string inputText(const OpInput& in) {
  if (in.kind == InputKind::kOptional) return "[" + in.name + "]";
  if (in.kind == InputKind::kVariadic) return "*" + in.name;
  return in.name;
}

std::string onnxText(const Op& op) {
  std::string out;
  for (const OnnxName& n : op.onnx) {
    std::string domain = n.domain.empty() ? "" : n.domain + ".";
    std::string range = n.until >= (1 << 20) ? n.since > 1 ? fmt::format(" since {}", n.since) : ""
                                             : fmt::format(" {}–{}", n.since, n.until);
    out += (out.empty() ? "" : ", ") + domain + n.name + range;
  }
  return out;
}

void describe(std::string& out, const Op& op) {
  out += fmt::format("### {}\n\n`{}`\n\n{}\n\n", op.name, opSignature(op), op.doc);
  if (!op.attrs.empty()) {
    out += "| attribute | kind | default | meaning |\n|---|---|---|---|\n";
    for (const OpAttr& a : op.attrs) {
      std::string otherwise = a.required    ? "must be given"
                              : a.otherwise ? "`" + defaultText(a) + "`"
                                            : "absent";
      out += fmt::format("| `{}` | {} | {} | {} |\n", a.name, kindName(a.kind), otherwise, a.doc);
    }
    out += "\n";
  }
  std::string facts = fmt::format("Becomes: {}", opKind(op));
  if (!op.packed.empty()) facts += " `" + op.packed + "`";
  if (op.view) facts += "; the result is a view of the first input";
  if (op.dataDependent) facts += "; the result's shape depends on values";
  if (!op.pure) facts += "; has effects";
  if (!op.onnx.empty()) facts += ". ONNX without conversion: " + onnxText(op);
  out += facts + ".\n\n";
}

} // namespace

const char* opKind(const Op& op) {
  if (!op.packed.empty()) return "run-time function";
  if (op.compute) return "tensor expression";
  return op.decompose ? "composite" : "virtual machine";
}

std::string opSignature(const Op& op) {
  std::string out;
  auto add = [&](const std::string& text) { out += (out.empty() ? "" : ", ") + text; };
  for (const OpInput& in : op.inputs) add(inputText(in));
  for (const OpAttr& a : op.attrs)
    add(a.required ? a.name + "=…" : a.name + "=" + (a.otherwise ? defaultText(a) : "None"));
  return op.name + "(" + out + ")";
}

std::string opsMarkdown() {
  registerOps();
  std::string out = "# Operators\n\nGenerated from the entries in `src/ops/` by `./dev golden --update`. In "
                    "text an operator is "
                    "`R.` and its name. Inputs in brackets are optional, `*x` takes any number of tensors; "
                    "attributes are given by "
                    "name and may be left out where they have a default. A *tensor expression* becomes a "
                    "tensor program that fuses "
                    "with its neighbours, a *composite* is replaced by other operators first, a *run-time "
                    "function* is called.\n\n";
  std::vector<const Op*> all = OpRegistry::global().all();
  for (const OpFamily& family : opFamilies()) {
    out += fmt::format("## {}\n\n", family.name);
    for (size_t i = family.begin; i < family.end; ++i) describe(out, *all[i]);
  }
  return out;
}

} // namespace bevel
