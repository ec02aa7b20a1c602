// Gives global allocations their place in the kernel's workspace; those whose lives do not overlap share bytes.
//
// before:  T.allocate(A, (1024,), float32): T.allocate(B, …): T.allocate(C, (1024,), …):
//            A = …; B = f(A); C = g(B)
// after:   A: {"workspace_offset": 0}, B: {"workspace_offset": 4096}, C: {"workspace_offset": 0};
//          function attribute "workspace_bytes" = 8192
//
// 1. Statements are numbered in program order. A buffer lives from its first to its last access; a loop inside
//    its allocation counts as one step, for what it holds may pass from one iteration to the next.
// 2. Buffers of constant size are placed largest first at the lowest offset where no buffer of overlapping life
//    lies.
// 3. Buffers of symbolic size follow, each behind the one before; a later one takes the place of an earlier one
//    of the same size whose life is over.
//
// Allocations inside parallel loops are placed in a second area, of which every thread owns a copy.
#include "loop/passes/context.h"
#include "loop/passes/passes.h"

#include <algorithm>

namespace bevel {
namespace {

constexpr int64_t kAlign = 64;

struct Life {
  Alloc alloc;
  int order = 0; // of allocation
  int first = INT32_MAX, last = -1;
  bool perThread = false;
  Expr size; // bytes, rounded up to kAlign
  Expr offset;
  bool overlaps(const Life& o) const { return first <= o.last && o.first <= last; }
};

class Lifetimes {
public:
  explicit Lifetimes(std::string_view kind) : kind_(kind) {}
  std::vector<Life> run(const Stmt& s) {
    visit(s, false);
    return std::move(all_);
  }

private:
  struct Open {
    size_t index;  // into all_
    int loopDepth; // loops around the allocation
  };

  void visit(const NodeRef& n, bool parallel) {
    if (const auto* a = n.as<AllocNode>(); a && inWorkspace(*a->buffer))
      return visitAlloc(Alloc(a), parallel);
    if (const auto* f = n.as<ForNode>()) {
      touchAll(f->extent);
      touchAll(f->min);
      return visitLoop(f->body, parallel || f->forKind == ForKind::kParallel);
    }
    if (const auto* w = n.as<WhileNode>()) {
      ++clock_;
      touchAll(w->condition);
      return visitLoop(w->body, parallel);
    }
    if (n.is<StoreNode>() || n.is<EvaluateNode>() || n.is<AssertNode>()) {
      ++clock_;
      return touchAll(n);
    }
    if (n.is<ExprNode>()) return touchAll(n);
    forEachChild(n, [&](const NodeRef& c, Role) {
      if (!c.is<BufferNode>()) visit(c, parallel);
    });
  }

  bool inWorkspace(const BufferNode& b) const {
    const StorageScope* scope = findScope(b.scope, kind_);
    return scope && scope->place == StorageScope::kWorkspace;
  }

  void visitAlloc(const Alloc& a, bool parallel) {
    Life p;
    p.alloc = a;
    p.order = int(all_.size());
    p.perThread = parallel;
    open_[a->buffer->data] = {all_.size(), int(loopStarts_.size())};
    all_.push_back(p);
    visit(a->body, parallel);
    open_.erase(a->buffer->data);
  }

  /// Buffers from outside that the loop touches live through all of it.
  void visitLoop(const Stmt& body, bool parallel) {
    loopStarts_.push_back(++clock_);
    visit(body, parallel);
    int start = loopStarts_.back(), end = ++clock_;
    loopStarts_.pop_back();
    for (auto& [data, o] : open_) {
      Life& p = all_[o.index];
      bool outside = o.loopDepth <= int(loopStarts_.size());
      if (outside && p.last >= start) {
        p.first = std::min(p.first, start);
        p.last = end;
      }
    }
  }

  void touchAll(const NodeRef& n) {
    walk(n, [&](const NodeRef& x) {
      auto it = x.is<VarNode>() ? open_.find(cast<VarNode>(x)) : open_.end();
      if (it == open_.end()) return true;
      Life& p = all_[it->second.index];
      p.first = std::min(p.first, clock_);
      p.last = std::max(p.last, clock_);
      return true;
    });
  }

  std::string_view kind_; // of the target
  std::vector<Life> all_;
  std::unordered_map<Var, Open, RefHash> open_;
  std::vector<int> loopStarts_;
  int clock_ = 0;
};

/// Bytes of the buffer, rounded up to the alignment. A size below zero is none: nothing can be stored there.
Expr byteSize(const Buffer& b, Analyzer& analyzer) {
  if (auto n = asConst(b->shape[0]))
    return intImm((b->dtype.bytesFor(std::max<int64_t>(*n, 0)) + kAlign - 1) / kAlign * kAlign);
  // Small types are bytes by now.
  Expr bytes = castTo(kInt64, b->shape[0]) * (int64_t(b->dtype.bits + 7) / 8 * b->dtype.lanes);
  return analyzer.simplify(max(floordiv(bytes + (kAlign - 1), kAlign) * kAlign, intImm(0)));
}

/// Places one area; gives its size.
Expr placeArea(std::vector<Life*> area, Analyzer& analyzer) {
  std::vector<Life*> fixed, symbolic;
  for (Life* p : area) (asConst(p->size) ? fixed : symbolic).push_back(p);
  std::stable_sort(fixed.begin(), fixed.end(),
                   [](auto* a, auto* b) { return *asConst(a->size) > *asConst(b->size); });
  int64_t total = 0;
  std::vector<Life*> placed;
  for (Life* p : fixed) {
    std::vector<std::pair<int64_t, int64_t>> taken;
    for (Life* q : placed)
      if (q->overlaps(*p)) taken.emplace_back(*asConst(q->offset), *asConst(q->offset) + *asConst(q->size));
    std::sort(taken.begin(), taken.end());
    int64_t at = 0;
    for (auto [lo, hi] : taken) {
      if (at + *asConst(p->size) <= lo) break;
      at = std::max(at, hi);
    }
    p->offset = intImm(at);
    total = std::max(total, at + *asConst(p->size));
    placed.push_back(p);
  }
  Expr end = intImm(total);
  std::vector<std::vector<Life*>> slots; // the buffers that share a place
  for (Life* p : symbolic) {
    auto slot = std::ranges::find_if(slots, [&](const auto& s) {
      return analyzer.proveEqual(s[0]->size, p->size) &&
             std::ranges::none_of(s, [&](auto* q) { return q->overlaps(*p); });
    });
    bool fresh = slot == slots.end();
    p->offset = fresh ? end : slot->front()->offset;
    if (fresh) end = analyzer.simplify(end + p->size);
    (fresh ? slots.emplace_back() : *slot).push_back(p);
  }
  return end;
}

} // namespace

Result<PrimFunc> planWorkspace(const PrimFunc& f, const Target& target) {
  Analyzer analyzer;
  bindDims(f, analyzer);
  std::vector<Life> all = Lifetimes(target.kind()).run(f->body);
  std::unordered_set<Var, RefHash> known;
  for (const NodeRef& v : freeVars(f->body))
    if (v.is<VarNode>()) known.insert(cast<VarNode>(v));
  std::vector<Life*> shared, perThread;
  for (Life& p : all) {
    p.size = byteSize(p.alloc->buffer, analyzer);
    bool overInner = usesAnyVar(p.size, [&](const VarNode* v) { return !known.contains(Var(v)); });
    if (overInner)
      return fail(Error(ErrorCode::kUnsupported,
                        "the size of buffer \"" + p.alloc->buffer->name + "\" depends on a loop")
                      .at(p.alloc->buffer));
    (p.perThread ? perThread : shared).push_back(&p);
  }
  Expr sharedBytes = placeArea(shared, analyzer), threadBytes = placeArea(perThread, analyzer);
  const auto* guard = f->body.as<IfNode>();
  for (Expr* bytes : {&sharedBytes, &threadBytes})
    if (guard && !guard->elseBody && !readsMemory(guard->condition) && !asConst(*bytes))
      *bytes = select(guard->condition, *bytes, intImm(0)); // what does not run needs none
  std::unordered_map<Var, const Life*, RefHash> byData;
  for (const Life& p : all) byData[p.alloc->buffer->data] = &p;
  NodeRef body = rewrite(f->body, [&](const NodeRef& n) -> NodeRef {
    const auto* a = n.as<AllocNode>();
    auto it = a ? byData.find(a->buffer->data) : byData.end();
    if (it == byData.end()) return n;
    Dict place = withAttr(a->annotations, "workspace_offset", it->second->offset);
    if (it->second->perThread) place = withAttr(place, "per_thread", intImm(1));
    return with(Alloc(a), &AllocNode::annotations, place);
  });
  PrimFunc out = withBody(f, cast<StmtNode>(body));
  if (!isConst(sharedBytes, 0)) out = withAttr(out, "workspace_bytes", sharedBytes);
  if (!isConst(threadBytes, 0)) out = withAttr(out, "workspace_per_thread_bytes", threadBytes);
  return out;
}

} // namespace bevel
