#include "sched/tree.h"

#include "ir/effects.h"
#include "ir/structural.h"

#include <algorithm>
#include <unordered_set>

namespace bevel {

int numChildren(const Stmt& s) {
  if (const auto* list = s.as<SeqNode>()) return int(list->stmts.size());
  if (s.is<IfNode>()) return 2;
  return bodyOf(s) || s.is<BlockRealizeNode>() ? 1 : 0;
}

Stmt childAt(const Stmt& s, int slot) {
  if (const auto* list = s.as<SeqNode>()) return list->stmts[size_t(slot)];
  if (const auto* branch = s.as<IfNode>()) return slot == 0 ? branch->thenBody : branch->elseBody;
  if (const auto* realize = s.as<BlockRealizeNode>()) return realize->block->body;
  const Stmt* body = bodyOf(s);
  return body ? *body : nullptr;
}

namespace {

Stmt withSeqChild(const Stmt& s, int slot, Stmt child) {
  std::vector<Stmt> items;
  const auto& stmts = cast<SeqNode>(s)->stmts;
  for (size_t i = 0; i < stmts.size(); ++i) {
    if (int(i) != slot)
      items.push_back(stmts[i]);
    else if (child)
      items.push_back(child);
  }
  return items.empty() ? nullptr : seq(items);
}

} // namespace

Stmt withChild(const Stmt& s, int slot, Stmt child) {
  if (s.is<SeqNode>()) return withSeqChild(s, slot, std::move(child));
  if (const auto* branch = s.as<IfNode>())
    return withBranches(If(branch), branch->condition, slot == 0 ? child : branch->thenBody,
                        slot == 0 ? branch->elseBody : child);
  if (s.is<BlockRealizeNode>()) {
    BEVEL_ASSERT(child, "a block lost its body");
    return withBlock(cast<BlockRealizeNode>(s), &BlockNode::body, std::move(child));
  }
  BEVEL_ASSERT(bodyOf(s), "a statement without children on a path");
  return child ? withBody(s, std::move(child)) : nullptr;
}

namespace {

bool findInto(const Stmt& s, FunctionRef<bool(const Stmt&)> found, Path& path) {
  if (found(s)) {
    path.target = s;
    return true;
  }
  int n = numChildren(s);
  for (int i = 0; i < n; ++i) {
    Stmt child = childAt(s, i);
    if (!child) continue;
    path.ancestors.push_back({s, i});
    if (findInto(child, found, path)) return true;
    path.ancestors.pop_back();
  }
  return false;
}

} // namespace

/// The path to the first statement of that kind that is wanted.
template <class T> Path findFirst(const Stmt& root, FunctionRef<bool(const T&)> wanted) {
  Path path;
  findInto(
      root, [&](const Stmt& s) { return s->kind == T::kKind && wanted(static_cast<const T&>(*s)); }, path);
  return path;
}

Path findLoop(const Stmt& root, const Var& var) {
  return findFirst<ForNode>(root, [&](const ForNode& l) { return l.var == var; });
}

Path findBlock(const Stmt& root, std::string_view name) {
  return findFirst<BlockRealizeNode>(root, [&](const BlockRealizeNode& r) { return r.block->name == name; });
}

Path findAllocator(const Stmt& root, const Var& data) {
  return findFirst<BlockRealizeNode>(
      root, [&](const BlockRealizeNode& r) { return holdsData(r.block->allocs, data); });
}

bool holdsData(const Array<Buffer>& buffers, const Var& data) {
  return std::ranges::any_of(buffers.raw(),
                             [&](const NodeRef& b) { return b && b.as<BufferNode>()->data == data; });
}

int Path::scope() const {
  for (int i = int(ancestors.size()) - 1; i >= 0; --i)
    if (ancestors[size_t(i)].node->kind == Kind::kBlockRealize) return i;
  return -1;
}

std::vector<For> Path::loops() const {
  std::vector<For> out;
  for (size_t i = size_t(scope() + 1); i < ancestors.size(); ++i)
    if (ancestors[i].node->kind == Kind::kFor) out.push_back(cast<ForNode>(ancestors[i].node));
  return out;
}

Path Path::upTo(size_t i) const {
  Path out;
  out.ancestors.assign(ancestors.begin(), ancestors.begin() + ptrdiff_t(i));
  out.target = ancestors[i].node;
  return out;
}

Stmt replaceFrom(const Path& path, size_t i, Stmt replacement) {
  for (size_t k = i; k-- > 0;)
    replacement = withChild(path.ancestors[k].node, path.ancestors[k].slot, std::move(replacement));
  return replacement;
}

Stmt replaceAt(const Path& path, Stmt replacement) {
  return replaceFrom(path, path.ancestors.size(), std::move(replacement));
}

void forEachStmt(const Stmt& root, FunctionRef<bool(const Stmt&)> f) {
  if ((root->kind == Kind::kFor || root->kind == Kind::kBlockRealize) && !f(root)) return;
  int n = numChildren(root);
  for (int i = 0; i < n; ++i)
    if (Stmt child = childAt(root, i)) forEachStmt(child, f);
}

std::vector<For> loopChain(const Stmt& s) {
  std::vector<For> out;
  for (Stmt at = s; at->kind == Kind::kFor; at = out.back()->body) out.push_back(cast<ForNode>(at));
  return out;
}

Stmt mapLeaves(const Stmt& s, FunctionRef<Stmt(const Stmt&)> f) {
  int n = s->kind == Kind::kBlockRealize ? 0 : numChildren(s);
  if (n == 0) return f(s);
  if (s->kind == Kind::kSeq) {
    std::vector<Stmt> items;
    for (const Stmt& x : cast<SeqNode>(s)->stmts) items.push_back(mapLeaves(x, f));
    return seq(items);
  }
  Stmt out = s;
  for (int i = 0; i < n; ++i) {
    Stmt child = childAt(s, i);
    if (!child) continue;
    Stmt mapped = mapLeaves(child, f);
    if (mapped != child) out = withChild(out, i, mapped);
  }
  return out;
}

/// What reads memory is evaluated only where the condition holds: it may have no value elsewhere.
static Expr lazily(const Expr& condition, const Expr& e, const Expr& otherwise) {
  return readsMemory(e) ? ifThenElse(condition, e, otherwise) : e;
}

Stmt guarded(const Stmt& s, const Expr& condition) {
  if (isConst(condition, 1)) return s;
  if (auto* realize = s.as<BlockRealizeNode>()) {
    auto copy = mutableCopy(BlockRealize(realize));
    for (size_t i = 0; i < copy->values.size(); ++i)
      copy->values.set(i, lazily(condition, copy->values[i], copy->block->iters[i]->domain->min));
    copy->predicate = logicalAnd(lazily(condition, copy->predicate, boolImm(false)), condition);
    return Stmt(copy);
  }
  if (auto* loop = s.as<ForNode>()) {
    Expr zero = constant(loop->var->dtype, 0);
    return with(For(loop), &ForNode::min, lazily(condition, loop->min, zero), &ForNode::extent,
                lazily(condition, loop->extent, zero), &ForNode::body, guarded(loop->body, condition));
  }
  bool reads = false;
  forEachChild(s, [&](const NodeRef& child, Role) { reads |= child.is<ExprNode>() && readsMemory(child); });
  int n = numChildren(s);
  if (n == 0 || reads) return make<const IfNode>(condition, s);
  Stmt out = s;
  for (int i = 0; i < n; ++i)
    if (Stmt child = childAt(s, i)) out = withChild(out, i, guarded(child, condition));
  return out;
}

Stmt withAnnotation(const Stmt& s, const std::string& key, NodeRef value) {
  auto change = [&](const Dict& d) {
    Dict out = withAttr(d, key, std::move(value));
    return out && out->keys.empty() ? Dict() : out;
  };
  if (auto* loop = s.as<ForNode>()) return with(For(loop), &ForNode::annotations, change(loop->annotations));
  BlockRealize realize = cast<BlockRealizeNode>(s);
  return withBlock(realize, &BlockNode::annotations, change(realize->block->annotations));
}

std::string freshBlockName(const Stmt& root, const std::string& base) {
  std::unordered_set<std::string> used;
  forEachStmt(root, [&](const Stmt& s) {
    if (s->kind == Kind::kBlockRealize) used.insert(cast<BlockRealizeNode>(s)->block->name);
    return true;
  });
  if (!used.contains(base)) return base;
  for (int i = 1;; ++i)
    if (std::string name = base + "_" + std::to_string(i); !used.contains(name)) return name;
}

} // namespace bevel
