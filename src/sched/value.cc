#include "sched/value.h"

#include "base/hash.h"
#include "ir/structural.h"

#include <bit>

namespace bevel {

StepValue StepValue::ofInt(int64_t v) {
  StepValue x;
  x.kind = Kind::kInt;
  x.integer = v;
  return x;
}

StepValue StepValue::ofFloat(double v) {
  StepValue x;
  x.kind = Kind::kFloat;
  x.number = v;
  return x;
}

StepValue StepValue::ofBool(bool v) {
  StepValue x;
  x.kind = Kind::kBool;
  x.integer = v;
  return x;
}

StepValue StepValue::ofString(std::string v) {
  StepValue x;
  x.kind = Kind::kString;
  x.text = std::move(v);
  return x;
}

StepValue StepValue::ofList(std::vector<StepValue> v) {
  StepValue x;
  x.kind = Kind::kList;
  x.items = std::move(v);
  return x;
}

StepValue StepValue::ofRV(RV v) {
  StepValue x;
  x.kind = Kind::kRV;
  x.rv = v;
  return x;
}

StepValue StepValue::ofMap(IndexMap v) {
  StepValue x;
  x.kind = Kind::kIndexMap;
  x.map = std::move(v);
  return x;
}

const char* StepValue::describe() const {
  switch (kind) {
  case Kind::kNone:
    return "None";
  case Kind::kInt:
    return "an integer";
  case Kind::kFloat:
    return "a float";
  case Kind::kBool:
    return "a bool";
  case Kind::kString:
    return "a string";
  case Kind::kList:
    return "a list";
  case Kind::kDict:
    return "a dictionary";
  case Kind::kIndexMap:
    return "an index map";
  case Kind::kRV:
    return rv.kind == RVKind::kBlock ? "a block" : rv.kind == RVKind::kLoop ? "a loop" : "a sampled integer";
  }
  return "a value";
}

bool operator==(const StepValue& a, const StepValue& b) {
  if (a.kind != b.kind) return false;
  switch (a.kind) {
  case StepValue::Kind::kNone:
    return true;
  case StepValue::Kind::kInt:
  case StepValue::Kind::kBool:
    return a.integer == b.integer;
  case StepValue::Kind::kFloat:
    return std::bit_cast<uint64_t>(a.number) == std::bit_cast<uint64_t>(b.number);
  case StepValue::Kind::kString:
    return a.text == b.text;
  case StepValue::Kind::kList:
  case StepValue::Kind::kDict:
    return a.items == b.items && a.keys == b.keys;
  case StepValue::Kind::kRV:
    return a.rv == b.rv;
  case StepValue::Kind::kIndexMap:
    return a.map.equals(b.map);
  }
  return false;
}

uint64_t hashValue(const StepValue& v, uint64_t seed) {
  uint64_t h = hashCombine(seed, uint64_t(v.kind));
  h = hashCombine(h, uint64_t(v.integer));
  h = hashCombine(h, std::bit_cast<uint64_t>(v.number));
  h = hashText(v.text, h);
  for (const StepValue& item : v.items) h = hashValue(item, h);
  for (const std::string& key : v.keys) h = hashText(key, h);
  if (v.kind == StepValue::Kind::kRV) h = hashCombine(h, uint64_t(v.rv.kind) << 32 | uint32_t(v.rv.id));
  if (v.kind == StepValue::Kind::kIndexMap) {
    VarMap canonical; // hash with positions in place of the names
    for (size_t i = 0; i < v.map.initial.size(); ++i)
      canonical[v.map.initial[i]] = constant(v.map.initial[i]->dtype, 1'000'003 + int64_t(i));
    for (const Expr& e : v.map.final) h = hashCombine(h, structuralHash(substitute(e, canonical)));
  }
  return h;
}

void forEachRV(const StepValue& v, FunctionRef<void(RV)> f) {
  if (v.kind == StepValue::Kind::kRV) f(v.rv);
  for (const StepValue& item : v.items) forEachRV(item, f);
}

Error expectedValue(const char* what, const StepValue& got) {
  return Error(ErrorCode::kInvalid, std::string("expected ") + what + ", got " + got.describe());
}

namespace {

template <RVKind K> Status rvFrom(const StepValue& v, TypedRV<K>& out, const char* what) {
  if (v.kind != StepValue::Kind::kRV || v.rv.kind != K) return fail(expectedValue(what, v));
  out.id = v.rv.id;
  return {};
}

} // namespace

StepValue toValue(const BlockRV& x) {
  return StepValue::ofRV(x);
}
StepValue toValue(const LoopRV& x) {
  return StepValue::ofRV(x);
}
StepValue toValue(const ExprRV& x) {
  return StepValue::ofRV(x);
}
StepValue toValue(const RV& x) {
  return StepValue::ofRV(x);
}
Status fromValue(const StepValue& v, BlockRV& out) {
  return rvFrom(v, out, "a block");
}
Status fromValue(const StepValue& v, LoopRV& out) {
  return rvFrom(v, out, "a loop");
}
Status fromValue(const StepValue& v, ExprRV& out) {
  return rvFrom(v, out, "a sampled integer");
}
Status fromValue(const StepValue& v, RV& out) {
  if (v.kind != StepValue::Kind::kRV || v.rv.kind == RVKind::kExpr)
    return fail(expectedValue("a block or a loop", v));
  out = v.rv;
  return {};
}

StepValue toValue(const IntArg& x) {
  if (x.kind == IntArg::Kind::kNone) return StepValue::none();
  if (x.kind == IntArg::Kind::kInt) return StepValue::ofInt(x.value);
  return StepValue::ofRV(ExprRV(int32_t(x.value)));
}
Status fromValue(const StepValue& v, IntArg& out) {
  out = IntArg();
  if (v.kind == StepValue::Kind::kNone) return {};
  if (v.kind == StepValue::Kind::kInt)
    out = IntArg(v.integer);
  else if (v.kind == StepValue::Kind::kRV && v.rv.kind == RVKind::kExpr)
    out = IntArg(ExprRV(v.rv.id));
  else
    return fail(expectedValue("an integer or None", v));
  return {};
}

StepValue toValue(const BufferArg& x) {
  if (!x.name.empty()) return StepValue::ofString(x.name);
  StepValue list =
      StepValue::ofList({StepValue::ofString(x.write ? "write" : "read"), StepValue::ofInt(x.index)});
  list.text = "tuple"; // printed with parentheses
  return list;
}
Status fromValue(const StepValue& v, BufferArg& out) {
  out = {};
  if (v.kind == StepValue::Kind::kString) {
    out.name = v.text;
    return {};
  }
  if (v.kind == StepValue::Kind::kInt) { // an index alone: of the writes
    out = writeBuffer(v.integer);
    return {};
  }
  bool pair = v.kind == StepValue::Kind::kList && v.items.size() == 2 &&
              v.items[0].kind == StepValue::Kind::kString && v.items[1].kind == StepValue::Kind::kInt &&
              (v.items[0].text == "read" || v.items[0].text == "write");
  if (!pair) return fail(expectedValue("a buffer: (\"read\", i), (\"write\", i) or its name", v));
  out.write = v.items[0].text == "write";
  out.index = v.items[1].integer;
  return {};
}

namespace {

StepValue nodeValue(const NodeRef& node) {
  if (auto* i = node.as<IntImmNode>())
    return i->dtype.isBool() ? StepValue::ofBool(i->value) : StepValue::ofInt(i->value);
  if (auto* f = node.as<FloatImmNode>()) return StepValue::ofFloat(f->value);
  if (auto* s = node.as<StringImmNode>()) return StepValue::ofString(s->value);
  StepValue out;
  if (auto* l = node.as<ListNode>()) {
    out.kind = StepValue::Kind::kList;
    for (const NodeRef& item : l->items) out.items.push_back(nodeValue(item));
  } else if (auto* d = node.as<DictNode>()) {
    out.kind = StepValue::Kind::kDict;
    out.keys = d->keys;
    for (const NodeRef& item : d->values) out.items.push_back(nodeValue(item));
  }
  return out;
}

Result<NodeRef> valueNode(const StepValue& v) {
  switch (v.kind) {
  case StepValue::Kind::kInt:
    return NodeRef(intImm(v.integer));
  case StepValue::Kind::kBool:
    return NodeRef(boolImm(v.integer != 0));
  case StepValue::Kind::kFloat:
    return NodeRef(constantFloat(DType::Float(64), v.number));
  case StepValue::Kind::kString:
    return str(v.text);
  case StepValue::Kind::kList: {
    Array<NodeRef> items;
    for (const StepValue& item : v.items) {
      BEVEL_TRY(NodeRef node, valueNode(item));
      items.push_back(node);
    }
    return list(items);
  }
  case StepValue::Kind::kDict: {
    std::vector<std::pair<std::string, NodeRef>> entries;
    for (size_t i = 0; i < v.keys.size(); ++i) {
      BEVEL_TRY(NodeRef node, valueNode(v.items[i]));
      entries.emplace_back(v.keys[i], node);
    }
    return NodeRef(dict(std::move(entries)));
  }
  default:
    return fail(expectedValue("a constant", v));
  }
}

} // namespace

StepValue toValue(const AnyArg& x) {
  if (x.rv) return StepValue::ofRV(x.rv);
  return x.node ? nodeValue(x.node) : StepValue::none();
}
Status fromValue(const StepValue& v, AnyArg& out) {
  out = {};
  if (v.kind == StepValue::Kind::kNone) return {};
  if (v.kind == StepValue::Kind::kRV) return fromValue(v, out.rv);
  BEVEL_TRY(out.node, valueNode(v));
  return {};
}

StepValue toValue(const IndexMap& x) {
  return StepValue::ofMap(x);
}
Status fromValue(const StepValue& v, IndexMap& out) {
  if (v.kind != StepValue::Kind::kIndexMap) return fail(expectedValue("an index map (lambda i, j: (…))", v));
  out = v.map;
  return {};
}

StepValue toValue(const int64_t& x) {
  return StepValue::ofInt(x);
}
Status fromValue(const StepValue& v, int64_t& out) {
  if (v.kind != StepValue::Kind::kInt) return fail(expectedValue("an integer", v));
  out = v.integer;
  return {};
}
StepValue toValue(const double& x) {
  return StepValue::ofFloat(x);
}
Status fromValue(const StepValue& v, double& out) {
  if (v.kind == StepValue::Kind::kFloat)
    out = v.number;
  else if (v.kind == StepValue::Kind::kInt)
    out = double(v.integer);
  else
    return fail(expectedValue("a number", v));
  return {};
}
StepValue toValue(const bool& x) {
  return StepValue::ofBool(x);
}
Status fromValue(const StepValue& v, bool& out) {
  if (v.kind != StepValue::Kind::kBool && v.kind != StepValue::Kind::kInt)
    return fail(expectedValue("a bool", v));
  out = v.integer != 0;
  return {};
}
StepValue toValue(const std::string& x) {
  return StepValue::ofString(x);
}
Status fromValue(const StepValue& v, std::string& out) {
  if (v.kind != StepValue::Kind::kString) return fail(expectedValue("a string", v));
  out = v.text;
  return {};
}

} // namespace bevel
