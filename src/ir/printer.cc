// Names, text and dispatch of the printer.
#include "ir/printer_impl.h"

#include "base/stack.h"

#include <charconv>
#include <cmath>

namespace bevel {
namespace {

constexpr std::string_view kReserved[] = {
    "and",    "as",   "assert", "async",    "await",    "break", "class", "continue", "def",
    "del",    "elif", "else",   "except",   "finally",  "for",   "from",  "global",   "if",
    "import", "in",   "is",     "lambda",   "nonlocal", "not",   "or",    "pass",     "raise",
    "return", "try",  "while",  "with",     "yield",    "True",  "False", "None",     "T",
    "R",      "I",    "cls",    "metadata", "range",    "float", "tvm",   "tir",      "relax"};

bool isNameByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

template <class F> std::string shortest(F value) {
  char buffer[64];
  auto [end, ec] = std::to_chars(buffer, buffer + sizeof buffer, value);
  std::string text(buffer, end);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

} // namespace

bool isIdentifier(std::string_view text) {
  if (text.empty() || (text[0] >= '0' && text[0] <= '9')) return false;
  for (char c : text)
    if (!isNameByte(c)) return false;
  for (std::string_view word : kReserved)
    if (text == word) return false;
  return true;
}

std::string toIdentifier(std::string_view text, std::string_view otherwise) {
  std::string name;
  for (char c : text) name += isNameByte(c) ? c : '_';
  if (name.empty()) return std::string(otherwise);
  if (name[0] >= '0' && name[0] <= '9') name = std::string(otherwise) + "_" + name;
  return isIdentifier(name) ? name : name + "_";
}

std::string floatText(double value, DType dtype) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  if (dtype.bits <= 32 && double(float(value)) == value) return shortest(float(value));
  return shortest(value);
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  const char* hex = "0123456789abcdef";
  for (unsigned char c : text) {
    if (c == '"' || c == '\\')
      out += '\\', out += char(c);
    else if (c == '\n')
      out += "\\n";
    else if (c == '\t')
      out += "\\t";
    else if (c == '\r')
      out += "\\r";
    else if (c < 0x20 || c == 0x7f)
      out += "\\x", out += hex[c >> 4], out += hex[c & 15];
    else
      out += char(c); // UTF-8 passes unchanged
  }
  return out + "\"";
}

std::string print(const NodeRef& node, const PrintOptions& options) {
  return onLargeStack([&] { return detail::Printer(options).run(node); });
}

namespace detail {

void NameScopes::pop() {
  for (const Object* object : frames_.back()) {
    auto it = names_.find(object);
    if (it == names_.end()) continue;
    used_.erase(it->second);
    names_.erase(it);
  }
  frames_.pop_back();
}

const std::string* NameScopes::find(const Object* object) const {
  auto it = names_.find(object);
  return it == names_.end() ? nullptr : &it->second;
}

const std::string& NameScopes::define(const Object* object, std::string_view hint, bool global) {
  if (auto it = names_.find(object); it != names_.end())
    return it->second; // bound twice: the verifier's matter
  std::string base = toIdentifier(hint, "v"), name = base;
  for (int i = 1; used_.contains(name); ++i) name = base + "_" + std::to_string(i);
  used_.insert(name);
  (global ? frames_.front() : frames_.back()).push_back(object);
  return names_[object] = name;
}

std::string Printer::run(const NodeRef& node) {
  if (!node) return "None";
  top(node);
  out_ += '\n';
  if (node.is<ExprNode>() || node.is<TypeNode>() || node->kind == Kind::kBuffer ||
      node->kind == Kind::kRange || node->kind == Kind::kLambda)
    out_.pop_back();
  return std::move(out_);
}

void Printer::top(const NodeRef& node) {
  if (auto* m = node.as<ModuleNode>()) return moduleText(*m);
  if (node.is<PrimFuncNode>()) return primFunc(cast<PrimFuncNode>(node), "");
  if (node.is<FunctionNode>()) return function(cast<FunctionNode>(node), "");
  if (node.is<StmtNode>()) return stmt(cast<StmtNode>(node), true);
  if (node.is<VarBindingNode>() || node.is<MatchCastNode>()) return binding(node);
  if (auto* b = node.as<BindingBlockNode>()) return block(*b, !b->dataflow);
  if (node.is<SeqExprNode>()) return seqExpr(cast<SeqExprNode>(node));
  any(node);
}

void Printer::any(const NodeRef& node) {
  if (!node) return put("None");
  if (node.is<ExprNode>()) return expr(cast<ExprNode>(node));
  if (node.is<TypeNode>()) return type(cast<TypeNode>(node));
  if (node.is<FunctionNode>() || node.is<PrimFuncNode>()) return put("<function>");
  if (node.is<GraphExprNode>()) return graph(node);
  other(node);
}

void Printer::other(const NodeRef& node) {
  Mark mark(*this, node);
  if (auto* n = node.as<RangeNode>())
    return put("T.Range(", n->min, ", "), stop(n->min, n->extent, DType::Void()), put(")");
  if (auto* n = node.as<IterVarNode>()) return iterVar(*n);
  if (auto* n = node.as<BufferNode>()) {
    if (views_.contains(n->data.get())) return put(bufferName(Buffer(n)));
    return put(n->name, ": T.Buffer("), bufferArgs(Buffer(n)), put(")");
  }
  if (auto* n = node.as<BufferRegionNode>()) return region(*n);
  if (auto* n = node.as<MatchBufferNode>())
    return put("T.match_buffer("), region(*n->source), put(", "), bufferArgs(n->buffer), put(")");
  if (auto* n = node.as<PlacementNode>()) return placement(*n);
  if (node.is<ListNode>() || node.is<DictNode>()) return attrValue(node);
  if (auto* n = node.as<LambdaNode>()) return lambda(*n);
  if (auto* n = node.as<StepNode>()) return step(*n);
  if (auto* n = node.as<StepListNode>()) return trace(*n);
  put("<", node->kindName(), ">");
}

} // namespace detail
} // namespace bevel
