// The converters of all families, by domain, name and version.
#include "import/onnx_helpers.h"
#include "ops/ops.h"

#include <algorithm>
#include <set>

namespace bevel::onnx {

namespace {

using Key = std::pair<std::string, std::string>; // domain, operator
struct Table {
  std::map<Key, std::vector<Conversion>> rows; // by rising version
  std::map<Key, std::vector<std::pair<OnnxName, const Op*>>> direct;
};

const Table& table() {
  static const Table t = [] {
    registerOps();
    Table made;
    for (auto family : {shapeConversions, moveConversions, mathConversions, reduceConversions, nnConversions,
                        normConversions, recurrentConversions, resizeConversions, attentionConversions,
                        selectionConversions, randomConversions, sequenceConversions, controlConversions})
      for (const Conversion& c : family()) made.rows[{c.domain, c.op}].push_back(c);
    for (auto& [key, rows] : made.rows)
      std::stable_sort(rows.begin(), rows.end(),
                       [](const Conversion& a, const Conversion& b) { return a.since < b.since; });
    for (const Op* op : OpRegistry::global().all())
      for (const OnnxName& name : op->onnx) made.direct[{name.domain, name.name}].emplace_back(name, op);
    return made;
  }();
  return t;
}

} // namespace

const Conversion* findConversion(const std::string& domain, const std::string& op, int64_t opset) {
  auto it = table().rows.find({domain, op});
  if (it == table().rows.end()) return nullptr;
  const Conversion* best = nullptr;
  for (const Conversion& c : it->second)
    if (c.since <= opset) best = &c;
  return best;
}

const Op* findDirect(const std::string& domain, const std::string& op, int64_t opset) {
  auto it = table().direct.find({domain, op});
  if (it == table().direct.end()) return nullptr;
  for (const auto& [name, entry] : it->second)
    if (name.since <= opset && opset < name.until) return entry;
  return nullptr;
}

Result<std::optional<Ints>> axesOf(Node& n, size_t input) {
  if (n.hasAttr("axes")) return std::optional<Ints>(n.attrInts("axes"));
  if (!n.has(input)) return std::optional<Ints>{};
  auto axes = n.constInts(input);
  if (!axes) return n.unsupported("axes that only the run knows");
  return std::optional<Ints>(*axes);
}

Result<Array<Expr>> broadcastOf(Node& n, const Array<Expr>& a, const Array<Expr>& b) {
  Analyzer& an = n.analyzer();
  Array<Expr> out = a.size() >= b.size() ? a : b;
  const Array<Expr>& other = a.size() >= b.size() ? b : a;
  for (size_t i = 0, o = out.size() - other.size(); i < other.size(); ++i) {
    const Expr x = out[o + i], &y = other[i];
    if (isConst(y, 1) || provedEqual(an, x, y)) continue;
    if (isConst(x, 1))
      out.set(o + i, y);
    else if (asConst(x) && asConst(y))
      return n.invalid(fmt::format("dimensions {} and {} cannot be broadcast", *asConst(x), *asConst(y)));
    else if (asConst(y))
      out.set(o + i, y);
    else if (!asConst(x))
      out.set(o + i, select(eq(x, intImm(1)), y, x));
  }
  return out;
}

Result<GraphExpr> reduceOver(Node& n, const char* op, const GraphExpr& e, const std::optional<Ints>& axes,
                             bool keep) {
  std::vector<std::pair<std::string, NodeRef>> attrs = {{"keepdims", intImm(keep)}};
  if (axes) attrs.emplace_back("axis", intList(*axes));
  return n.emit(op, {e}, dict(std::move(attrs)));
}

} // namespace bevel::onnx

namespace bevel {

std::vector<std::pair<std::string, std::vector<int>>> onnxOperators() {
  std::map<std::string, std::set<int>> all;
  auto add = [&](const std::string& domain, const std::string& op, int since) {
    all[(domain.empty() ? "" : domain + ".") + op].insert(since);
  };
  for (const auto& [key, rows] : onnx::table().rows)
    for (const onnx::Conversion& c : rows)
      if (c.convert) add(key.first, key.second, c.since);
  for (const auto& [key, rows] : onnx::table().direct)
    for (const auto& [name, op] : rows) add(key.first, key.second, name.since);
  std::vector<std::pair<std::string, std::vector<int>>> out;
  for (const auto& [name, versions] : all)
    out.emplace_back(name, std::vector<int>(versions.begin(), versions.end()));
  return out;
}

} // namespace bevel
