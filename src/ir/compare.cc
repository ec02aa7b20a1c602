// Alpha-equality, the place of the first difference, and structural hash, over the field table.
//
// 1. Walk both nodes in step.
// 2. A definition binds the pair of variables (in PrimFunc, MatchBuffer, Function and MatchCast also the
//    variables of shapes and types not bound yet).
// 3. A use must be the bound partner, or the same free variable. Bindings only grow, so a pair of nodes found
//    equal stays equal and is remembered: shared subtrees cost once.
#include "base/hash.h"
#include "ir/structural.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace bevel {
namespace {

template <class T> const T& fieldAs(const Node& n, const Field& f) {
  return *reinterpret_cast<const T*>(reinterpret_cast<const char*>(&n) + f.offset);
}

// Text of a plain (not node) field, for comparison messages.
std::string plainText(const Node& n, const Field& f) {
  switch (f.type) {
  case FieldType::kInt:
    return std::to_string(fieldAs<int64_t>(n, f));
  case FieldType::kBool:
    return fieldAs<bool>(n, f) ? "True" : "False";
  case FieldType::kDouble:
    return std::to_string(fieldAs<double>(n, f));
  case FieldType::kString:
    return "'" + fieldAs<std::string>(n, f) + "'";
  case FieldType::kDType:
    return fieldAs<DType>(n, f).str();
  case FieldType::kEnum:
    return f.enumNames ? f.enumNames[fieldAs<uint8_t>(n, f)] : std::to_string(fieldAs<uint8_t>(n, f));
  case FieldType::kStrings: {
    std::string out;
    for (const std::string& s : fieldAs<std::vector<std::string>>(n, f))
      out += (out.empty() ? "[" : ", ") + s;
    return out.empty() ? "[]" : out + "]";
  }
  default:
    return "…";
  }
}

uint64_t bits(double v) { // NaN equals itself, -0 differs from 0
  return std::bit_cast<uint64_t>(v);
}

bool plainEqual(const Node& a, const Node& b, const Field& f) {
  switch (f.type) {
  case FieldType::kInt:
    return fieldAs<int64_t>(a, f) == fieldAs<int64_t>(b, f);
  case FieldType::kBool:
    return fieldAs<bool>(a, f) == fieldAs<bool>(b, f);
  case FieldType::kDouble:
    return bits(fieldAs<double>(a, f)) == bits(fieldAs<double>(b, f));
  case FieldType::kString:
    return fieldAs<std::string>(a, f) == fieldAs<std::string>(b, f);
  case FieldType::kStrings:
    return fieldAs<std::vector<std::string>>(a, f) == fieldAs<std::vector<std::string>>(b, f);
  case FieldType::kInts:
    return fieldAs<std::vector<int64_t>>(a, f) == fieldAs<std::vector<int64_t>>(b, f);
  case FieldType::kDoubles:
    return std::ranges::equal(fieldAs<std::vector<double>>(a, f), fieldAs<std::vector<double>>(b, f), {},
                              bits, bits);
  case FieldType::kDType:
    return fieldAs<DType>(a, f) == fieldAs<DType>(b, f);
  case FieldType::kEnum:
    return fieldAs<uint8_t>(a, f) == fieldAs<uint8_t>(b, f);
  case FieldType::kTensor:
    return identical(*fieldAs<Tensor>(a, f), *fieldAs<Tensor>(b, f));
  default:
    return true;
  }
}

class Comparer {
public:
  explicit Comparer(bool mapFree) : mapFree_(mapFree) {}
  std::string difference; // path of the first difference, innermost field last

  bool equal(const NodeRef& a, const NodeRef& b) {
    if (!a || !b) return (!a && !b) || differs("", "one side is missing");
    if (a == b && renamed_ == 0 && !mapFree_) return true;
    if (&kindInfo(*a) != &kindInfo(*b))
      return differs("", std::string(a->kindName()) + " against " + b->kindName());
    if (isVariable(*a)) return useVariable(*a, *b);
    auto key = std::make_pair(a.get(), b.get());
    if (equalPairs_.count(key)) return true;
    bool same =
        a->kind == Kind::kModule ? equalModules(*a.as<ModuleNode>(), *b.as<ModuleNode>()) : equalFields(a, b);
    if (same) {
      equalPairs_.insert(key);
      kept_.push_back(a);
      kept_.push_back(b);
    }
    return same;
  }

private:
  bool differs(const std::string& where, const std::string& what) {
    if (!what.empty()) difference = what;
    if (!where.empty())
      difference = where + (difference.find(": ") == std::string::npos ? ": " : ".") + difference;
    return false;
  }

  bool equalModules(const ModuleNode& a, const ModuleNode& b) {
    if (a.names.size() != b.names.size())
      return differs("functions",
                     std::to_string(a.names.size()) + " against " + std::to_string(b.names.size()));
    for (size_t i = 0; i < a.names.size(); ++i) {
      GraphExpr other = b.find(a.names[i]->name);
      if (!other) return differs("functions", "'" + a.names[i]->name + "' is missing on the right");
      if (!equal(a.functions[i], other)) return differs(a.names[i]->name, "");
    }
    return (!a.attrs && !b.attrs) || equal(a.attrs, b.attrs) || differs("attrs", "");
  }

  bool equalFields(const NodeRef& a, const NodeRef& b) {
    for (const Field& f : kindInfo(*a).fields) {
      if (f.role == Role::kName) continue;
      if (f.type == FieldType::kNode) {
        if (!child(fieldAs<NodeRef>(*a, f), fieldAs<NodeRef>(*b, f), f.role, a->kind))
          return differs(f.name, "");
      } else if (f.type == FieldType::kList) {
        const auto& x = fieldAs<Array<NodeRef>>(*a, f).raw();
        const auto& y = fieldAs<Array<NodeRef>>(*b, f).raw();
        if (x.size() != y.size())
          return differs(f.name, std::to_string(x.size()) + " items against " + std::to_string(y.size()));
        for (size_t i = 0; i < x.size(); ++i)
          if (!child(x[i], y[i], f.role, a->kind))
            return differs(std::string(f.name) + "[" + std::to_string(i) + "]", "");
      } else if (!plainEqual(*a, *b, f)) {
        return differs(f.name, plainText(*a, f) + " against " + plainText(*b, f));
      }
    }
    return true;
  }

  bool child(const NodeRef& a, const NodeRef& b, Role role, Kind parent) {
    if (role != Role::kDef || !a || !b) return equal(a, b);
    bool outer = pattern_;
    pattern_ = pattern_ || bindsPattern(parent);
    if (isVariable(*a) && a->kind == b->kind) {
      if (!bind(*a, *b)) return pattern_ = outer, differs("", "bound twice in different ways");
    } else if (a->kind == Kind::kBuffer && b->kind == Kind::kBuffer) {
      if (!bind(*a.as<BufferNode>()->data, *b.as<BufferNode>()->data))
        return pattern_ = outer, differs("data", "bound twice in different ways");
    }
    bool same = isVariable(*a) && a->kind == b->kind ? equalFields(a, b) : equal(a, b);
    pattern_ = outer;
    return same;
  }

  bool useVariable(const Node& a, const Node& b) {
    auto it = forward_.find(&a);
    if (it != forward_.end()) return it->second == &b || differs("", "different variables");
    if (backward_.count(&b)) return differs("", "different variables");
    if (&a == &b) return true;
    if (pattern_ || mapFree_) {
      const auto* x = a.kind == Kind::kVar ? static_cast<const VarNode*>(&a) : nullptr;
      const auto* y = b.kind == Kind::kVar ? static_cast<const VarNode*>(&b) : nullptr;
      if (x && y && !(x->dtype == y->dtype))
        return differs("dtype", x->dtype.str() + " against " + y->dtype.str());
      return bind(a, b);
    }
    return differs("", "different free variables");
  }

  bool bind(const Node& a, const Node& b) {
    auto [it, fresh] = forward_.emplace(&a, &b);
    auto [jt, freshBack] = backward_.emplace(&b, &a);
    if (fresh && &a != &b) ++renamed_;
    return it->second == &b && jt->second == &a;
  }

  struct PairHash {
    size_t operator()(const std::pair<const Node*, const Node*>& p) const {
      return hashCombine(reinterpret_cast<uintptr_t>(p.first), reinterpret_cast<uintptr_t>(p.second));
    }
  };
  bool mapFree_, pattern_ = false;
  size_t renamed_ = 0;
  std::unordered_map<const Node*, const Node*> forward_, backward_;
  std::unordered_set<std::pair<const Node*, const Node*>, PairHash> equalPairs_;
  std::vector<NodeRef> kept_; // keeps remembered nodes alive
};

class Hasher {
public:
  explicit Hasher(bool mapFree) : mapFree_(mapFree) {}

  uint64_t hash(const NodeRef& n) {
    if (!n) return 0x9e37;
    if (isVariable(*n)) return variable(*n);
    if (auto it = memo_.find(n.get()); it != memo_.end()) return it->second;
    uint64_t h = hashCombine(0, uint64_t(n->kind));
    if (n->kind == Kind::kStep) h = hashText(n->kindName(), h);
    if (const auto* m = n.as<ModuleNode>())
      h = module(*m, h);
    else
      h = fields(n, h);
    memo_.emplace(n.get(), h);
    return h;
  }

private:
  uint64_t module(const ModuleNode& m, uint64_t h) {
    uint64_t sum = 0; // order of functions does not matter
    for (size_t i = 0; i < m.names.size(); ++i)
      sum += hashText(m.names[i]->name, Hasher(mapFree_).hash(m.functions[i]));
    return hashCombine(hashCombine(h, sum), m.attrs ? hash(m.attrs) : 0);
  }

  uint64_t fields(const NodeRef& n, uint64_t h) {
    for (const Field& f : kindInfo(*n).fields) {
      if (f.role == Role::kName) continue;
      if (f.type == FieldType::kNode)
        h = hashCombine(h, child(fieldAs<NodeRef>(*n, f), f.role, n->kind));
      else if (f.type == FieldType::kList) {
        const auto& items = fieldAs<Array<NodeRef>>(*n, f).raw();
        h = hashCombine(h, items.size());
        for (const NodeRef& item : items) h = hashCombine(h, child(item, f.role, n->kind));
      } else
        h = hashCombine(h, plain(*n, f));
    }
    return h;
  }

  uint64_t child(const NodeRef& n, Role role, Kind parent) {
    if (role != Role::kDef || !n) return hash(n);
    bool outer = pattern_;
    pattern_ = pattern_ || bindsPattern(parent);
    if (const auto* b = n.as<BufferNode>()) define(*b->data);
    uint64_t h = isVariable(*n) ? fields(n, define(*n)) : hash(n);
    pattern_ = outer;
    return h;
  }

  uint64_t define(const Node& v) { return numbers_.emplace(&v, numbers_.size()).first->second; }

  uint64_t variable(const Node& v) {
    auto it = numbers_.find(&v);
    if (it != numbers_.end()) return hashCombine(17, it->second);
    if (pattern_ || mapFree_) return hashCombine(17, define(v));
    const auto* x = v.kind == Kind::kVar ? static_cast<const VarNode*>(&v) : nullptr;
    return x ? hashText(x->name, 23) : hashText(static_cast<const GraphVarNode&>(v).name, 29);
  }

  static uint64_t plain(const Node& n, const Field& f) {
    switch (f.type) {
    case FieldType::kInt:
      return uint64_t(fieldAs<int64_t>(n, f));
    case FieldType::kBool:
      return fieldAs<bool>(n, f);
    case FieldType::kDouble:
      return bits(fieldAs<double>(n, f));
    case FieldType::kString:
      return hashText(fieldAs<std::string>(n, f));
    case FieldType::kStrings: {
      uint64_t h = 0;
      for (const std::string& s : fieldAs<std::vector<std::string>>(n, f)) h = hashText(s, h);
      return h;
    }
    case FieldType::kInts: {
      uint64_t h = 0;
      for (int64_t v : fieldAs<std::vector<int64_t>>(n, f)) h = hashCombine(h, uint64_t(v));
      return h;
    }
    case FieldType::kDoubles: {
      uint64_t h = 0;
      for (double v : fieldAs<std::vector<double>>(n, f)) h = hashCombine(h, bits(v));
      return h;
    }
    case FieldType::kDType: {
      DType t = fieldAs<DType>(n, f);
      return uint64_t(t.code) << 32 | uint64_t(t.bits) << 16 | t.lanes;
    }
    case FieldType::kEnum:
      return fieldAs<uint8_t>(n, f);
    case FieldType::kTensor:
      return tensor(*fieldAs<Tensor>(n, f));
    default:
      return 0;
    }
  }

  static uint64_t tensor(const TensorObject& t) {
    uint64_t h = hashText(t.dtype.str());
    for (int64_t d : t.shape) h = hashCombine(h, uint64_t(d));
    for (const std::string& s : t.strings) h = hashText(s, h);
    return t.dtype.isString() ? h : hashBytes(t.bytes(), size_t(t.byteSize()), h);
  }

  bool mapFree_, pattern_ = false;
  std::unordered_map<const Node*, uint64_t> numbers_, memo_;
};

} // namespace

bool structuralEqual(const NodeRef& a, const NodeRef& b, bool mapFree) {
  return Comparer(mapFree).equal(a, b);
}

std::string firstDifference(const NodeRef& a, const NodeRef& b, bool mapFree) {
  Comparer c(mapFree);
  return c.equal(a, b) ? "" : c.difference;
}

uint64_t structuralHash(const NodeRef& node, bool mapFree) {
  return Hasher(mapFree).hash(node);
}

} // namespace bevel
