// Visiting, mapping, substitution and free variables over the field table. Equality and hash: compare.cc.
#include "ir/structural.h"

#include "ir/build.h"

#include <algorithm>
#include <array>

namespace bevel {
namespace {

const std::vector<NodeRef>& listField(const Node& n, const Field& f) {
  return fieldAs<Array<NodeRef>>(n, f).raw();
}

// The dtype of a call whose arguments changed: by the rule of the intrinsic where the call followed it, else the
// lanes of the arguments where it had those.
DType dtypeOfCall(const CallNode& before, const CallNode& n) {
  if (before.dtype == impliedDType(before.op, before.args)) return impliedDType(n.op, n.args);
  auto lanes = [](const CallNode& c) {
    const auto* e = c.args.empty() ? nullptr : c.args[0].as<ExprNode>();
    return e ? int(e->dtype.lanes) : 0;
  };
  return lanes(before) == before.dtype.lanes && lanes(n) > 0 ? n.dtype.withLanes(lanes(n)) : n.dtype;
}

// The dtype of an expression whose operands changed.
DType dtypeOf(const ExprNode& before, const Expr& after) {
  if (auto* n = after.as<BinaryNode>()) return BinaryNode(n->op, n->a, n->b).dtype;
  if (auto* n = after.as<LoadNode>()) return LoadNode(n->buffer, n->indices).dtype;
  if (auto* n = after.as<CallNode>()) return dtypeOfCall(static_cast<const CallNode&>(before), *n);
  if (auto* n = after.as<CastNode>()) return n->dtype.withLanes(n->value->dtype.lanes);
  if (auto* n = after.as<SelectNode>()) return n->a->dtype;
  if (auto* n = after.as<UnaryNode>()) return n->a->dtype;
  if (auto* n = after.as<LetNode>()) return n->body->dtype;
  if (auto* n = after.as<RampNode>()) return n->base->dtype.withLanes(n->dtype.lanes);
  if (auto* n = after.as<BroadcastNode>()) return n->value->dtype.withLanes(n->dtype.lanes);
  if (auto* n = after.as<ShuffleNode>()) return ShuffleNode(n->vectors, n->indices).dtype;
  if (auto* n = after.as<ReduceNode>()) return n->source[size_t(n->index)]->dtype;
  return after->dtype;
}

// The type of a graph expression whose type follows from its parts; what only inference knows stays.
Type typeOf(const GraphExpr& e) {
  if (auto* n = e.as<TupleNode>()) return TupleNode(n->items).type;
  if (auto* n = e.as<TupleGetNode>())
    if (Type t = TupleGetNode(n->tuple, n->index).type) return t;
  if (auto* n = e.as<SeqExprNode>()) return n->body->type;
  if (auto* n = e.as<ShapeExprNode>()) return ShapeExprNode(n->values).type;
  if (auto* n = e.as<PrimValueNode>()) return PrimValueNode(n->value).type;
  if (auto* n = e.as<FunctionNode>())
    return FunctionNode(n->params, n->body, n->result, n->attrs, n->pure).type;
  return e->type;
}

// After children changed: the type of an expression whose type is its operands'.
void updateType(const Node& before, Node& n) {
  NodeRef node(&n);
  if (node.is<ExprNode>())
    static_cast<ExprNode&>(n).dtype = dtypeOf(static_cast<const ExprNode&>(before), cast<ExprNode>(node));
  else if (node.is<GraphExprNode>())
    static_cast<GraphExprNode&>(n).type = typeOf(cast<GraphExprNode>(node));
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
  for (const Field& field : kindInfo(*node).fields) {
    if (field.type == FieldType::kNode) {
      if (const auto& child = fieldAs<NodeRef>(*node, field)) f(child, field.role);
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

bool anyNode(const NodeRef& root, FunctionRef<bool(const NodeRef&)> pred) {
  bool found = false;
  walk(root, [&](const NodeRef& n) { return found = found || pred(n), !found; });
  return found;
}

void postWalk(const NodeRef& root, FunctionRef<void(const NodeRef&)> f) {
  if (root) Walker{[](const NodeRef&) { return true; }, f}.visit(root);
}

NodeRef mapChildren(const NodeRef& node, FunctionRef<NodeRef(const NodeRef&)> f) {
  Ref<Node> copy;
  auto writable = [&]() -> Node& {
    if (!copy) copy = Ref<Node>(kindInfo(*node).clone(*node));
    return *copy;
  };
  for (const Field& field : kindInfo(*node).fields) {
    if (field.type == FieldType::kNode) {
      const auto& child = fieldAs<NodeRef>(*node, field);
      if (!child) continue;
      NodeRef mapped = f(child);
      if (mapped == child) continue;
      checkDefinition(child, mapped, field.role, *node);
      fieldAs<NodeRef>(writable(), field) = std::move(mapped);
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
      if (changed) fieldAs<Array<NodeRef>>(writable(), field).raw() = std::move(out);
    }
  }
  if (!copy) return node;
  if (auto* s = node.as<SeqNode>(); s) {
    auto& stmts = static_cast<SeqNode&>(*copy).stmts;
    return seq(std::vector<Stmt>(stmts.begin(), stmts.end()));
  }
  updateType(*node, *copy);
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
      return NodeRef(kindInfo(*n).clone(*n));
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
  return anyNode(node, [&](const NodeRef& n) { return n == var; });
}

bool usesAnyVar(const NodeRef& node, FunctionRef<bool(const VarNode*)> pred) {
  return anyNode<VarNode>(node, [&](const VarNode& v) { return pred(&v); });
}

std::optional<ElementAccess> elementAccess(const NodeRef& node) {
  if (const auto* l = node.as<LoadNode>()) return ElementAccess{l->buffer, l->indices, l->predicate};
  if (const auto* s = node.as<StoreNode>()) return ElementAccess{s->buffer, s->indices, s->predicate};
  return std::nullopt;
}

NodeRef withAccess(const NodeRef& access, const Buffer& buffer, const Array<Expr>& indices) {
  auto at = [&]<class T>(const Ref<const T>& node) -> NodeRef {
    return with(node, &T::buffer, buffer, &T::indices, indices);
  };
  return access.is<LoadNode>() ? at(cast<LoadNode>(access)) : at(cast<StoreNode>(access));
}

namespace {

const Field* bodyField(const Node& s) {
  static const auto table = [] {
    std::array<const Field*, size_t(kNumKinds)> fields = {};
    for (size_t k = 0; k < fields.size(); ++k)
      for (const Field& f : kindInfo(Kind(k)).fields)
        if (std::string_view(f.name) == "body") fields[k] = &f;
    return fields;
  }();
  return s.kind >= Kind::kStore && s.kind <= Kind::kBlockRealize ? table[size_t(s.kind)] : nullptr;
}

} // namespace

const Stmt* bodyOf(const NodeRef& s) {
  const Field* body = s ? bodyField(*s) : nullptr;
  return body ? &fieldAs<Stmt>(*s, *body) : nullptr;
}

Stmt withBody(const Stmt& s, Stmt body) {
  Ref<Node> copy(kindInfo(*s).clone(*s));
  fieldAs<Stmt>(*copy, *bodyField(*s)) = std::move(body);
  return cast<StmtNode>(NodeRef(copy));
}

Stmt withBranches(const If& s, const Expr& condition, const Stmt& thenBody, const Stmt& elseBody) {
  if (!thenBody && !elseBody) return nullptr;
  return with(s, &IfNode::condition, thenBody ? condition : logicalNot(condition), &IfNode::thenBody,
              thenBody ? thenBody : elseBody, &IfNode::elseBody, thenBody ? elseBody : nullptr);
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
