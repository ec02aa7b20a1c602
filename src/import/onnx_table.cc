// The converters of all families, by domain, name and version.
#include "import/onnx_helpers.h"
#include "ops/ops.h"

#include <algorithm>
#include <climits>
#include <mutex>
#include <set>

namespace bevel::onnx {

namespace {

using Key = std::pair<std::string, std::string>; // domain, operator

struct Table {
  std::mutex mutex;
  std::map<Key, std::map<int, Conversion>> rows; // by version; rows stay where they are
  bool add(Conversion c) {
    auto& versions = rows[{c.domain, c.op}];
    int since = c.since;
    return versions.emplace(since, std::move(c)).second;
  }
};

Table& table() {
  static Table* t = [] {
    registerOps();
    auto* made = new Table;
    for (auto family : {shapeConversions, moveConversions, mathConversions, reduceConversions, nnConversions,
                        normConversions, recurrentConversions, resizeConversions, attentionConversions,
                        selectionConversions, randomConversions, sequenceConversions, controlConversions})
      for (Conversion& c : family())
        BEVEL_ASSERT(made->add(std::move(c)), "a conversion stands in the table twice");
    return made;
  }();
  return *t;
}

} // namespace

const Conversion* findConversion(const std::string& domain, const std::string& op, int64_t opset) {
  Table& t = table();
  std::lock_guard lock(t.mutex);
  auto it = t.rows.find({domain, op});
  if (it == t.rows.end()) return nullptr;
  auto after = it->second.upper_bound(int(std::min<int64_t>(opset, INT_MAX)));
  return after == it->second.begin() ? nullptr : &std::prev(after)->second;
}

Status addConversion(Conversion c) {
  Table& t = table();
  std::lock_guard lock(t.mutex);
  std::string name = fmt::format("{}{}{} of opset {}", c.domain, c.domain.empty() ? "" : ".", c.op, c.since);
  if (t.add(std::move(c))) return {};
  return fail(ErrorCode::kUsage, fmt::format("{} has a converter already", name));
}

const Op* findDirect(const std::string& domain, const std::string& op, int64_t opset) {
  for (const Op* entry : OpRegistry::global().all()) // no index: users may register more at any time
    for (const OnnxName& name : entry->onnx)
      if (name.name == op && name.domain == domain && name.since <= opset && opset < name.until) return entry;
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

Status checkElements(Node& n, const Term& e, const Expr& low, const Expr& high, const char* what) {
  Term wide = e.cast(kInt64);
  for (const char* op : {"max", "min"}) {
    BEVEL_TRY(Array<Expr> value, n.ints(wide.reduce(op)));
    BEVEL_CHECK(n.check(op[1] == 'a' ? value[0] <= high : value[0] >= low, what));
  }
  return {};
}

Status checkAxes(Node& n, const Array<Expr>& axes, int64_t rank) {
  for (const Expr& a : axes)
    BEVEL_CHECK(n.check(logicalAnd(a >= intImm(-rank), a < intImm(rank)), "an axis is out of range"));
  return {};
}

Array<Expr> named(Node& n, const Array<Expr>& values) {
  Array<Expr> names;
  for (size_t i = 0; i < values.size(); ++i) names.push_back(var(n.builder().freshVarName("n"), kInt64));
  if (!values.empty())
    n.builder().matchCast(make<const ShapeExprNode>(values), make<const ShapeTypeNode>(names));
  return names;
}

Expr isAmong(const Array<Expr>& axes, int64_t d, int64_t rank) {
  Expr among = boolImm(false);
  for (const Expr& a : axes) among = logicalOr(among, logicalOr(eq(a, intImm(d)), eq(a, intImm(d - rank))));
  return among;
}

Result<Array<Expr>> namedAxes(Node& n, const Array<Expr>& axes, int64_t rank) {
  BEVEL_CHECK(checkAxes(n, axes, rank));
  Array<Expr> flags;
  Expr count = intImm(0);
  for (int64_t d = 0; d < rank; ++d) flags.push_back(castTo(kInt64, isAmong(axes, d, rank)));
  flags = named(n, flags);
  for (const Expr& f : flags) count = count + f;
  BEVEL_CHECK(n.check(eq(count, intImm(int64_t(axes.size()))), "an axis is given twice"));
  return flags;
}

// before[d]: kept axes in front of axis d.
Result<Array<Expr>> keptDims(Node& n, const Array<Expr>& axes, const Array<Expr>& shape) {
  if (axes.size() > shape.size()) return n.invalid("more axes than dimensions");
  BEVEL_TRY(Array<Expr> flags, namedAxes(n, axes, int64_t(shape.size())));
  Array<Expr> before, extents;
  Expr count = intImm(0);
  for (const Expr& f : flags) {
    before.push_back(count);
    count = count + (intImm(1) - f);
  }
  before = named(n, before);
  for (size_t j = 0; j < shape.size() - axes.size(); ++j) {
    Expr extent = intImm(0);
    for (size_t d = 0; d < shape.size(); ++d)
      extent =
          select(logicalAnd(eq(flags[d], intImm(0)), eq(before[d], intImm(int64_t(j)))), shape[d], extent);
    extents.push_back(extent);
  }
  return named(n, extents);
}

} // namespace bevel::onnx

namespace bevel {

std::vector<std::pair<std::string, std::vector<int>>> onnxOperators() {
  std::map<std::string, std::set<int>> all;
  auto add = [&](const std::string& domain, const std::string& op, int since) {
    all[(domain.empty() ? "" : domain + ".") + op].insert(since);
  };
  for (const auto& [key, rows] : onnx::table().rows)
    for (const auto& [since, c] : rows)
      if (c.convert) add(key.first, key.second, since);
  for (const Op* op : OpRegistry::global().all())
    for (const OnnxName& name : op->onnx) add(name.domain, name.name, name.since);
  std::vector<std::pair<std::string, std::vector<int>>> out;
  for (const auto& [name, versions] : all)
    out.emplace_back(name, std::vector<int>(versions.begin(), versions.end()));
  return out;
}

} // namespace bevel
