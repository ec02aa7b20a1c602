// Alpha-equality, the place of the first difference, and structural hash, over the field table.
//
// 1. Walk both nodes in step.
// 2. A definition binds the pair of variables (in PrimFunc, MatchBuffer, Function and MatchCast also the
//    variables of shapes and types not bound yet).
// 3. A use must be the bound partner, or the same free variable. Bindings only grow, so a pair of nodes found
//    equal stays equal and is remembered: shared subtrees cost once.
#include "base/hash.h"
#include "ir/structural.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <bit>

namespace bevel {
namespace {

uint64_t bits(double v) { // NaN equals itself, -0 differs from 0
  return std::bit_cast<uint64_t>(v);
}

// Text of a plain (not node) field, for comparison messages.
struct PlainText {
  const Field& field;
  std::string operator()(int64_t v) const { return std::to_string(v); }
  std::string operator()(double v) const { return std::to_string(v); }
  std::string operator()(bool v) const { return v ? "True" : "False"; }
  std::string operator()(const std::string& v) const { return "'" + v + "'"; }
  std::string operator()(DType v) const { return v.str(); }
  std::string operator()(uint8_t v) const { return field.enumNames ? field.enumNames[v] : std::to_string(v); }
  std::string operator()(const std::vector<std::string>& v) const {
    return fmt::format("[{}]", fmt::join(v, ", "));
  }
  template <class T> std::string operator()(const T&) const { return "…"; }
};

struct PlainEqual {
  template <class T> bool operator()(const T& a, const T& b) const { return a == b; }
  bool operator()(double a, double b) const { return bits(a) == bits(b); }
  bool operator()(const std::vector<double>& a, const std::vector<double>& b) const {
    return std::ranges::equal(a, b, {}, bits, bits);
  }
  bool operator()(const Tensor& a, const Tensor& b) const { return identical(*a, *b); }
};

bool plainEqual(const Node& a, const Node& b, const Field& f) {
  return withField(a, f, [&]<class T>(const T& x) { return PlainEqual()(x, fieldAs<T>(b, f)); });
}

struct PlainHash {
  uint64_t operator()(int64_t v) const { return uint64_t(v); }
  uint64_t operator()(uint8_t v) const { return v; }
  uint64_t operator()(bool v) const { return v; }
  uint64_t operator()(double v) const { return bits(v); }
  uint64_t operator()(const std::string& v) const { return hashText(v); }
  uint64_t operator()(DType t) const { return uint64_t(t.code) << 32 | uint64_t(t.bits) << 16 | t.lanes; }
  template <class T> uint64_t operator()(const std::vector<T>& items) const {
    uint64_t h = 0;
    for (const T& v : items) h = hashCombine(h, (*this)(v));
    return h;
  }
  uint64_t operator()(const Tensor& t) const {
    uint64_t h = hashCombine(hashCombine(hashText(t->dtype.str()), (*this)(t->shape)), (*this)(t->strings));
    return t->dtype.isString() ? h : hashBytes(t->bytes(), size_t(t->byteSize()), h);
  }
  template <class T> uint64_t operator()(const T&) const { return 0; } // nodes are hashed by their fields
};

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
        return differs(f.name, withField(*a, f, PlainText{f}) + " against " + withField(*b, f, PlainText{f}));
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
        h = hashCombine(h, withField(*n, f, PlainHash()));
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
