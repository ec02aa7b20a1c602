// Fusion of tensor programs (the contract: docs/fusion.md).
//
//   lv = call_tir(matmul, (x, w))          →     gv = call_tir(fused_matmul_add_relu, (x, w, b))
//   lv1 = call_tir(add, (lv, b))
//   gv = call_tir(relu, (lv1,))
//
// Within one block of bindings, last call first:
// 1. A call that is in no group starts one as its result.
// 2. A producer joins when everything that uses it is in the group (so no path leaves the group and comes
//    back), and
//    - it is injective, and nothing non-trivial would be computed more often than before; or
//    - it is a reduction or contraction, the group's only one, and every call between it and the result works
//      element by element on its shape.
//    This is what the model chooses; each such choice is a question.
// 3. A group that is full takes no more: steps of a schedule look at the whole program, so the time of a
//    compile grows with the square of the largest one.
// 4. Views join only between two others; at the rim of a group they stay views, which cost nothing.
// 5. Groups are emitted where their result was.
#include "arith/analyzer.h"
#include "graph/block_builder.h"
#include "graph/passes/fuse_programs.h"
#include "graph/passes/passes.h"
#include "graph/shape_util.h"
#include "graph/visitor.h"
#include "ir/build.h"
#include "ir/structural.h"
#include "loop/reduction.h"

#include <algorithm>
#include <map>
#include <set>

namespace bevel {
namespace {

constexpr size_t kLargestGroup = 128; // calls

struct CallInfo {
  VarBinding binding;
  PrimFunc program;
  FusionKind kind = FusionKind::kOpaque;
  bool trivial = false;       // cheap to compute again
  std::vector<int> producers; // calls of this block whose result it reads
  std::vector<int> consumers;
  bool escapes = false; // its result is used outside the calls of this block
  int group = -1;       // index of the group's last call
};

bool anchors(FusionKind k) {
  return k == FusionKind::kReduction || k == FusionKind::kContraction;
}

// Only moves, compares, adds or multiplies: repeating it costs no more than reading its result.
bool isTrivial(const PrimFunc& f) {
  return workOf(f->body).cost <= 2;
}

class BlockFuser {
public:
  BlockFuser(BlockBuilder& programs, const std::unordered_set<const Node*>& usedOutside, const Ask& ask)
      : programs_(programs), usedOutside_(usedOutside), ask_(ask) {}

  Result<BindingBlock> run(const BindingBlock& block) {
    collect(block);
    for (int i = int(calls_.size()); i-- > 0;)
      if (calls_[size_t(i)].group < 0) BEVEL_CHECK(grow(i));
    Array<NodeRef> out;
    for (const NodeRef& b : block->bindings) {
      auto it = indexOf_.find(b);
      if (it == indexOf_.end()) {
        out.push_back(b);
        continue;
      }
      if (calls_[size_t(it->second)].group != it->second) continue; // emitted with its group's result
      BEVEL_TRY(NodeRef fused, emitGroup(it->second));
      out.push_back(fused);
    }
    return BindingBlock(make<const BindingBlockNode>(out, block->dataflow));
  }

private:
  void collect(const BindingBlock& block) {
    std::unordered_map<NodeRef, int, RefHash> byVar;
    for (const NodeRef& b : block->bindings) {
      const auto* v = b.as<VarBindingNode>();
      const auto* call = v ? v->value.as<GraphCallNode>() : nullptr;
      const auto* g = call && call->isOp("call_tir") ? call->args[0].as<GlobalVarNode>() : nullptr;
      GraphExpr f = g ? programs_.module()->find(g->name) : nullptr;
      const auto* type = v ? v->var->type.as<TensorTypeNode>() : nullptr; // may be stated without a shape
      if (f.is<PrimFuncNode>() && call->typeArgs.size() == 1 && type && type->known) {
        CallInfo info;
        info.binding = VarBinding(v);
        info.program = cast<PrimFuncNode>(f);
        info.kind = fusionKindOf(info.program);
        info.trivial = isTrivial(info.program);
        info.escapes = usedOutside_.count(v->var.get()) > 0;
        int index = int(calls_.size());
        for (const GraphExpr& a : call->args[1].as<TupleNode>()->items)
          if (auto it = byVar.find(a); it != byVar.end()) link(it->second, index, info);
        byVar.emplace(v->var, index);
        indexOf_.emplace(b, index);
        calls_.push_back(std::move(info));
        continue;
      }
      walk(b, [&](const NodeRef& n) { // any other use
        if (auto it = byVar.find(n); it != byVar.end()) calls_[size_t(it->second)].escapes = true;
        return true;
      });
    }
  }

  void link(int producer, int consumer, CallInfo& info) {
    if (std::find(info.producers.begin(), info.producers.end(), producer) != info.producers.end()) return;
    info.producers.push_back(producer);
    calls_[size_t(producer)].consumers.push_back(consumer);
  }

  Status grow(int last) {
    calls_[size_t(last)].group = last;
    FusionKind kind = calls_[size_t(last)].kind;
    if (kind == FusionKind::kOpaque || kind == FusionKind::kView) return {};
    bool anchored = anchors(kind);
    std::set<int, std::greater<int>> members = {last};
    for (bool changed = true; changed;) {
      changed = false;
      for (int m : std::vector<int>(members.begin(), members.end()))
        for (int p : calls_[size_t(m)].producers) {
          if (members.size() == kLargestGroup) break;
          if (calls_[size_t(p)].group >= 0 || !mayJoin(p, last)) continue;
          BEVEL_TRY(bool joins, wantsJoin(p, last, anchored));
          if (!joins) continue;
          calls_[size_t(p)].group = last;
          anchored |= anchors(calls_[size_t(p)].kind);
          members.insert(p);
          changed = true;
        }
    }
    dropRimViews(last, members);
    members_[last] = {members.rbegin(), members.rend()};
    return {};
  }

  bool mayJoin(int p, int last) {
    const CallInfo& c = calls_[size_t(p)];
    return !c.escapes && c.kind != FusionKind::kOpaque &&
           std::all_of(c.consumers.begin(), c.consumers.end(),
                       [&](int user) { return calls_[size_t(user)].group == last; });
  }

  // Views follow what the model thinks: alone they cost nothing.
  Result<bool> wantsJoin(int p, int last, bool anchored) {
    const char* against = reasonAgainst(p, last, anchored);
    if (!ask_ || calls_[size_t(p)].kind == FusionKind::kView) return !against;
    auto [it, isNew] = answers_.emplace(std::pair(p, last), !against);
    if (isNew) {
      std::string name = "fusion of " + subjectOf(calls_[size_t(p)].binding) + " into " +
                         subjectOf(calls_[size_t(last)].binding);
      BEVEL_TRY(size_t answer, ask_(yesNo(name, !against, against ? against : "")));
      it->second = answer == 0;
    }
    return it->second;
  }

  // Null where joining costs nothing.
  const char* reasonAgainst(int p, int last, bool anchored) {
    const CallInfo& c = calls_[size_t(p)];
    for (int user : c.consumers)
      if (const char* why = reasonAgainstReading(c, calls_[size_t(user)])) return why;
    if (!anchors(c.kind)) return nullptr;
    if (anchored) return "the group has a reduction or contraction";
    return elementwisePath(p, last) ? nullptr : "what follows is not element by element on its shape";
  }

  // Whether reading the producer from inside the consumer repeats something worth keeping.
  const char* reasonAgainstReading(const CallInfo& producer, const CallInfo& consumer) {
    if (consumer.kind == FusionKind::kContraction) return "a contraction reads its operands many times";
    if (consumer.kind == FusionKind::kView || producer.trivial || producer.kind == FusionKind::kView)
      return nullptr;
    if (anchors(producer.kind)) return nullptr; // elementwisePath decides
    return readsEachOnce(producer, consumer) ? nullptr : "it would be computed more often";
  }

  // The consumer's iteration space is no larger than what it reads from the producer.
  bool readsEachOnce(const CallInfo& producer, const CallInfo& consumer) {
    const Array<Expr>& read = shapeOf(producer);
    int64_t widest = 1;
    Array<Expr> space;
    walk(consumer.program->body, [&](const NodeRef& n) {
      if (const auto* b = n.as<BlockNode>(); b && b->name != "root" && b->iters.size() >= space.size()) {
        space = {};
        for (const IterVar& a : b->iters) space.push_back(a->domain->extent);
      }
      return true;
    });
    auto from = constDims(read), to = constDims(space);
    if (from && to) {
      int64_t have = 1;
      for (int64_t d : *from) have *= d;
      for (int64_t d : *to) widest *= d;
      return widest <= have;
    }
    return space.size() == read.size() && consumer.kind <= FusionKind::kReduction &&
           sameElements(producer, consumer);
  }

  const Array<Expr>& shapeOf(const CallInfo& c) { return c.binding->var->type.as<TensorTypeNode>()->shape; }

  bool sameElements(const CallInfo& a, const CallInfo& b) {
    return sameDims(shapeOf(a), shapeOf(b), analyzer_);
  }

  // Every call on the way from p to the group's result keeps p's shape and reads it at its own position.
  bool elementwisePath(int p, int last) {
    std::vector<int> work = {p};
    std::set<int> seen;
    while (!work.empty()) {
      int at = work.back();
      work.pop_back();
      for (int user : calls_[size_t(at)].consumers) {
        const CallInfo& u = calls_[size_t(user)];
        if (u.kind > FusionKind::kBroadcast || u.kind == FusionKind::kView ||
            !sameElements(calls_[size_t(p)], u))
          return false;
        if (!readsAtOwnPosition(u, calls_[size_t(at)])) return false;
        if (user != last && seen.insert(user).second) work.push_back(user);
      }
    }
    return true;
  }

  // The consumer reads the producer's whole shape at its axes in order (no broadcast, no swap).
  bool readsAtOwnPosition(const CallInfo& consumer, const CallInfo& producer) {
    const auto& args = consumer.binding->value.as<GraphCallNode>()->args[1].as<TupleNode>()->items;
    for (size_t i = 0; i < args.size(); ++i)
      if (args[i] == GraphExpr(producer.binding->var) &&
          !(consumer.kind == FusionKind::kElementwise || sameElements(producer, consumer)))
        return false;
    return true;
  }

  void dropRimViews(int last, std::set<int, std::greater<int>>& members) {
    for (bool changed = true; changed;) {
      changed = false;
      for (int m : std::vector<int>(members.begin(), members.end())) {
        CallInfo& c = calls_[size_t(m)];
        bool inner =
            std::any_of(c.producers.begin(), c.producers.end(), [&](int p) { return members.count(p) > 0; });
        if (m == last || c.kind != FusionKind::kView || inner) continue;
        c.group = m;
        members.erase(m);
        members_[m] = {m};
        changed = true;
      }
    }
  }

  Result<NodeRef> emitGroup(int last) {
    std::vector<int> members = members_.count(last) ? members_[last] : std::vector<int>{last};
    std::vector<FusedCall> parts;
    std::string name = members.size() > 1 ? "fused" : "";
    for (int m : members) {
      const CallInfo& c = calls_[size_t(m)];
      const auto* call = c.binding->value.as<GraphCallNode>();
      FusedCall part{c.program, call->args[1].as<TupleNode>()->items, {}, c.binding->var, call->origin};
      if (call->args.size() > 2) part.scalars = call->args[2].as<ShapeExprNode>()->values;
      parts.push_back(std::move(part));
      if (name.size() < 60) name += (name.empty() ? "" : "_") + call->args[0].as<GlobalVarNode>()->name;
    }
    const CallInfo& end = calls_[size_t(last)];
    bool plain = members.size() == 1 && (end.kind == FusionKind::kOpaque || end.kind == FusionKind::kView);
    if (plain) return NodeRef(end.binding);
    BEVEL_TRY(FusedProgram fused, fusePrograms(parts));
    PrimFunc f = withAttr(fused.function, "fusion_kind", str(fusionKindName(groupKind(members))));
    Array<GraphExpr> args = {programs_.addFunction(f, name), make<const TupleNode>(fused.inputs)};
    if (!fused.extra.empty()) args.push_back(make<const ShapeExprNode>(fused.extra));
    const Type& type = end.binding->value.as<GraphCallNode>()->typeArgs[0];
    auto call = make<GraphCallNode>(make<const OpRefNode>("call_tir"), args, nullptr, Array<Type>{type},
                                    end.binding->value->type);
    call->origin = f->origin;
    return NodeRef(make<const VarBindingNode>(end.binding->var, GraphExpr(call)));
  }

  FusionKind groupKind(const std::vector<int>& members) {
    FusionKind kind = FusionKind::kView;
    for (int m : members) kind = std::max(kind, calls_[size_t(m)].kind);
    return kind;
  }

  BlockBuilder& programs_;
  const std::unordered_set<const Node*>& usedOutside_;
  const Ask& ask_;
  std::map<std::pair<int, int>, bool> answers_;
  std::vector<CallInfo> calls_;
  std::unordered_map<NodeRef, int, RefHash> indexOf_;
  std::unordered_map<int, std::vector<int>> members_;
  Analyzer analyzer_;
};

// Finds the variables that something outside of the block that binds them uses, in one walk.
class OutsideUses {
public:
  std::unordered_set<const Node*> found;
  void visit(const NodeRef& root) {
    walk(root, [&](const NodeRef& n) {
      if (auto it = home_.find(n.get()); it != home_.end() && !open_.count(it->second)) found.insert(n.get());
      const auto* block = n.as<BindingBlockNode>();
      if (block) visitBlock(*block);
      return !block;
    });
  }

private:
  void visitBlock(const BindingBlockNode& block) {
    open_.insert(&block);
    for (const NodeRef& b : block.bindings) {
      if (const auto* v = b.as<VarBindingNode>()) home_.emplace(v->var.get(), &block);
      visit(b);
    }
    open_.erase(&block);
  }

  std::unordered_map<const Node*, const Node*> home_; // variable: block
  std::unordered_set<const Node*> open_;              // blocks around the place of the walk
};

Result<SeqExpr> fuseSequence(BlockBuilder& programs, const std::unordered_set<const Node*>& usedOutside,
                             const Ask& ask, const SeqExpr& seq) {
  auto copy = mutableCopy(seq);
  for (size_t i = 0; i < seq->blocks.size(); ++i) {
    Array<NodeRef> bindings;
    for (const NodeRef& b : seq->blocks[i]->bindings) {
      BEVEL_TRY(NodeRef mapped, mapBranches(b, [&](const SeqExpr& branch) {
                  return fuseSequence(programs, usedOutside, ask, branch);
                }));
      bindings.push_back(mapped);
    }
    BindingBlock inner = with(seq->blocks[i], &BindingBlockNode::bindings, bindings);
    BEVEL_TRY(BindingBlock fused, BlockFuser(programs, usedOutside, ask).run(inner));
    copy->blocks.set(i, fused);
  }
  return SeqExpr(copy);
}

} // namespace

Result<Module> fuse(const Module& module, const Ask& ask) {
  BlockBuilder programs(module); // finds equal programs by their hash
  for (size_t i = 0; i < module->names.size(); ++i) {
    if (!module->functions[i].is<FunctionNode>()) continue;
    Function f = cast<FunctionNode>(module->functions[i]);
    OutsideUses uses;
    uses.visit(f->body);
    BEVEL_TRY(SeqExpr body, fuseSequence(programs, uses.found, ask, f->body));
    programs.updateFunction(module->names[i], with(f, &FunctionNode::body, body));
  }
  return removeDead(programs.module());
}

} // namespace bevel
