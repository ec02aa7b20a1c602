// Visiting, mapping, substitution and free variables over the field table. Equality and hash: compare.cc.
#include "ir/structural.h"

#include "ir/build.h"

#include <algorithm>
#include <array>

namespace bevel {
namespace {

const NodeRef& nodeField(const Node& n, const Field& f) {
  return *reinterpret_cast<const NodeRef*>(reinterpret_cast<const char*>(&n) + f.offset);
}
const std::vector<NodeRef>& listField(const Node& n, const Field& f) {
  return reinterpret_cast<const Array<NodeRef>*>(reinterpret_cast<const char*>(&n) + f.offset)->raw();
}
NodeRef& nodeField(Node& n, const Field& f) {
  return const_cast<NodeRef&>(nodeField(std::as_const(n), f));
}
std::vector<NodeRef>& listField(Node& n, const Field& f) {
  return const_cast<std::vector<NodeRef>&>(listField(std::as_const(n), f));
}

// After children changed: the dtype of an expression whose type is its operands'.
void updateDType(Node& n) {
  switch (n.kind) {
  case Kind::kUnary: {
    auto& e = static_cast<UnaryNode&>(n);
    e.dtype = e.a->dtype;
    return;
  }
  case Kind::kBinary: {
    auto& e = static_cast<BinaryNode&>(n);
    e.dtype = isComparison(e.op) ? DType::Bool(e.a->dtype.lanes) : e.a->dtype;
    return;
  }
  case Kind::kSelect: {
    auto& e = static_cast<SelectNode&>(n);
    e.dtype = e.a->dtype;
    return;
  }
  case Kind::kLet: {
    auto& e = static_cast<LetNode&>(n);
    e.dtype = e.body->dtype;
    return;
  }
  case Kind::kLoad: {
    auto& e = static_cast<LoadNode&>(n);
    e.dtype = e.buffer->dtype.withLanes(e.buffer->dtype.lanes *
                                        (e.indices.empty() ? 1 : e.indices.back()->dtype.lanes));
    return;
  }
  case Kind::kCast: {
    auto& e = static_cast<CastNode&>(n);
    e.dtype = e.dtype.withLanes(e.value->dtype.lanes);
    return;
  }
  case Kind::kRamp: {
    auto& e = static_cast<RampNode&>(n);
    e.dtype = e.base->dtype.withLanes(e.dtype.lanes);
    return;
  }
  case Kind::kBroadcast: {
    auto& e = static_cast<BroadcastNode&>(n);
    e.dtype = e.value->dtype.withLanes(e.dtype.lanes);
    return;
  }
  case Kind::kTuple: {
    auto& e = static_cast<TupleNode&>(n);
    e.type = TupleNode(e.items).type;
    return;
  }
  case Kind::kSeqExpr: {
    auto& e = static_cast<SeqExprNode&>(n);
    e.type = e.body->type;
    return;
  }
  default:
    return;
  }
}

bool isStmtOrBinding(const NodeRef& n) {
  return n.is<StmtNode>() || n->kind == Kind::kVarBinding || n->kind == Kind::kMatchCast ||
         n->kind == Kind::kBindingBlock;
}

// A definition may become another definition, never a value.
void checkDefinition(const NodeRef& before, const NodeRef& after, Role role, const Node& parent) {
  const auto* buffer = NodeRef(&parent).as<BufferNode>();
  bool binds = role == Role::kDef || (buffer && before == buffer->data); // not the variables of its shape
  if (binds && before->kind == Kind::kVar)
    BEVEL_ASSERT(after && after->kind == Kind::kVar, "a bound variable was replaced by a value");
}

} // namespace

void forEachChild(const NodeRef& node, FunctionRef<void(const NodeRef&, Role)> f) {
  for (const Field& field : kindInfo(node->kind).fields) {
    if (field.type == FieldType::kNode) {
      if (const NodeRef& child = nodeField(*node, field)) f(child, field.role);
    } else if (field.type == FieldType::kList) {
      for (const NodeRef& child : listField(*node, field))
        if (child) f(child, field.role);
    }
  }
}

namespace {

// The nodes met so far. A node with one reference is met once; few are shared in a small walk.
class Seen {
public:
  bool insert(const NodeRef& n) {
    if (n->unique()) return true;
    if (!many_.empty()) return many_.insert(n.get()).second;
    if (std::find(few_.begin(), few_.begin() + count_, n.get()) != few_.begin() + count_) return false;
    if (count_ == few_.size()) {
      many_.insert(few_.begin(), few_.end());
      return many_.insert(n.get()).second;
    }
    few_[count_++] = n.get();
    return true;
  }

private:
  std::array<const Node*, 24> few_;
  size_t count_ = 0;
  std::unordered_set<const Node*> many_;
};

struct Walker {
  FunctionRef<bool(const NodeRef&)> pre;
  FunctionRef<void(const NodeRef&)> post;
  Seen seen = {};
  void visit(const NodeRef& n) {
    if (!seen.insert(n)) return;
    if (!pre(n)) return;
    forEachChild(n, [&](const NodeRef& child, Role) { visit(child); });
    post(n);
  }
};

} // namespace

void walk(const NodeRef& root, FunctionRef<bool(const NodeRef&)> f) {
  if (root) Walker{f, [](const NodeRef&) {}}.visit(root);
}

void postWalk(const NodeRef& root, FunctionRef<void(const NodeRef&)> f) {
  if (root) Walker{[](const NodeRef&) { return true; }, f}.visit(root);
}

NodeRef mapChildren(const NodeRef& node, FunctionRef<NodeRef(const NodeRef&)> f) {
  Ref<Node> copy;
  auto writable = [&]() -> Node& {
    if (!copy) copy = Ref<Node>(kindInfo(node->kind).clone(*node));
    return *copy;
  };
  for (const Field& field : kindInfo(node->kind).fields) {
    if (field.type == FieldType::kNode) {
      const NodeRef& child = nodeField(*node, field);
      if (!child) continue;
      NodeRef mapped = f(child);
      if (mapped == child) continue;
      checkDefinition(child, mapped, field.role, *node);
      nodeField(writable(), field) = std::move(mapped);
    } else if (field.type == FieldType::kList) {
      const std::vector<NodeRef>& items = listField(*node, field);
      std::vector<NodeRef> out;
      bool changed = false;
      for (size_t i = 0; i < items.size(); ++i) {
        const NodeRef& child = items[i];
        NodeRef mapped = child ? f(child) : child;
        if (child && mapped) checkDefinition(child, mapped, field.role, *node);
        if (!changed && mapped == child) continue;
        if (!changed) { // the first that differs
          changed = true;
          out.reserve(items.size());
          out.assign(items.begin(), items.begin() + ptrdiff_t(i));
        }
        if (mapped || !child || !isStmtOrBinding(child)) out.push_back(std::move(mapped));
      }
      if (changed) listField(writable(), field) = std::move(out);
    }
  }
  if (!copy) return node;
  if (auto* s = node.as<SeqNode>(); s) {
    auto& stmts = static_cast<SeqNode&>(*copy).stmts;
    return seq(std::vector<Stmt>(stmts.begin(), stmts.end()));
  }
  updateDType(*copy);
  return copy;
}

NodeRef Rewriter::operator()(const NodeRef& node) {
  if (!node) return node;
  if (!memoise || node->unique()) return visit(node); // met once
  if (auto it = memo_.find(node); it != memo_.end()) return it->second;
  NodeRef out = visit(node);
  memo_.emplace(node, out);
  return out;
}

NodeRef Rewriter::visit(const NodeRef& node) {
  return visitChildren(node);
}

NodeRef Rewriter::visitChildren(const NodeRef& node) {
  return mapChildren(node, [this](const NodeRef& child) { return (*this)(child); });
}

NodeRef rewrite(const NodeRef& root, FunctionRef<NodeRef(const NodeRef&)> f) {
  struct Post : Rewriter {
    FunctionRef<NodeRef(const NodeRef&)> f;
    explicit Post(FunctionRef<NodeRef(const NodeRef&)> g) : f(g) {}
    NodeRef visit(const NodeRef& n) override {
      NodeRef mapped = visitChildren(n);
      return mapped ? f(mapped) : mapped;
    }
  };
  return Post(f)(root);
}

NodeRef substitute(const NodeRef& node, const VarMap& map) {
  struct Substitute {
    const VarMap& map;
    std::unordered_map<const Node*, NodeRef> memo; // of shared nodes
    NodeRef operator()(const NodeRef& n) {
      if (n->kind == Kind::kIntImm || n->kind == Kind::kFloatImm) return n;
      if (n->kind == Kind::kVar) {
        auto it = map.find(cast<VarNode>(n));
        return it == map.end() ? n : NodeRef(it->second);
      }
      if (n->unique()) return children(n);
      if (auto it = memo.find(n.get()); it != memo.end()) return it->second;
      NodeRef out = children(n);
      memo.emplace(n.get(), out);
      return out;
    }
    NodeRef children(const NodeRef& n) {
      return mapChildren(n, [this](const NodeRef& child) { return (*this)(child); });
    }
  };
  return map.empty() || !node ? node : Substitute{map, {}}(node);
}

NodeRef replaceBuffers(const NodeRef& node, const BufferMap& map) {
  struct Replace : Rewriter {
    const BufferMap& map;
    explicit Replace(const BufferMap& m) : map(m) {}
    NodeRef visit(const NodeRef& n) override {
      if (n->kind != Kind::kBuffer) return visitChildren(n);
      auto it = map.find(cast<BufferNode>(n)->data);
      return it == map.end() ? visitChildren(n) : NodeRef(it->second);
    }
  };
  return map.empty() || !node ? node : Replace(map)(node);
}

namespace {

// All variables that definitions under a node bind.
struct Definitions {
  std::unordered_set<const Node*> vars, seen;
  void bindAll(const NodeRef& n) { // every variable in a pattern
    if (isVariable(*n)) vars.insert(n.get());
    forEachChild(n, [&](const NodeRef& c, Role) { bindAll(c); });
  }
  void define(const NodeRef& n, Kind parent) {
    if (bindsPattern(parent))
      bindAll(n);
    else if (isVariable(*n))
      vars.insert(n.get());
    else if (const auto* b = n.as<BufferNode>())
      vars.insert(b->data.get());
  }
  void visit(const NodeRef& n) {
    if (!n->unique() && !seen.insert(n.get()).second) return; // one with a single reference is met once
    forEachChild(n, [&](const NodeRef& c, Role role) {
      if (role == Role::kDef) define(c, n->kind);
      visit(c);
    });
  }
};

} // namespace

NodeRef freshen(const NodeRef& node) {
  struct Fresh : Rewriter {
    Definitions defs;
    NodeRef visit(const NodeRef& n) override {
      NodeRef mapped = visitChildren(n);
      if (!isVariable(*n) || !defs.vars.count(n.get()) || !(mapped == n)) return mapped;
      return NodeRef(kindInfo(n->kind).clone(*n));
    }
  } fresh;
  fresh.defs.visit(node);
  return fresh.defs.vars.empty() ? node : fresh(node);
}

std::vector<NodeRef> freeVars(const NodeRef& node) {
  std::vector<NodeRef> out;
  if (!node) return out;
  Definitions defs;
  defs.visit(node);
  walk(node, [&](const NodeRef& n) {
    if (isVariable(*n) && !defs.vars.count(n.get())) out.push_back(n);
    return true;
  });
  return out;
}

bool usesVar(const NodeRef& node, const NodeRef& var) {
  bool found = false;
  walk(node, [&](const NodeRef& n) {
    found |= n == var;
    return !found;
  });
  return found;
}

bool usesAnyVar(const NodeRef& node, FunctionRef<bool(const VarNode*)> pred) {
  bool found = false;
  walk(node, [&](const NodeRef& n) {
    if (const auto* v = n.as<VarNode>()) found |= pred(v);
    return !found;
  });
  return found;
}

Origin mergeOrigins(const Origin& a, const Origin& b) {
  if (!a || a == b) return b;
  if (!b) return a;
  auto merged = make<OriginObject>(*a);
  merged->nodes.insert(merged->nodes.end(), b->nodes.begin(), b->nodes.end());
  std::sort(merged->nodes.begin(), merged->nodes.end());
  merged->nodes.erase(std::unique(merged->nodes.begin(), merged->nodes.end()), merged->nodes.end());
  return merged;
}

} // namespace bevel
