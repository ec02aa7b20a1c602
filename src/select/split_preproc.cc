// Splitting off preproc blocks.
//
// 1. Among the statements of the root block, those that hold nothing but one preproc block that reads one
//    parameter and writes one allocated buffer go to pack functions.
// 2. The allocated buffer becomes a parameter; where the read parameter has no other use, it goes.
// 3. Every call packs first.
#include "graph/mutator.h"
#include "graph/visitor.h"
#include "ir/structural.h"
#include "select/schedule.h"

#include <algorithm>
#include <map>

namespace bevel {
namespace {

struct Packing {
  size_t source; // parameter that is read
  Buffer packed;
  Stmt nest;
};

// How calls of a split program change.
struct Split {
  struct Pack {
    GlobalVar program;
    size_t source; // argument of the original call
    Type type;
  };
  std::vector<Pack> packs;
  std::vector<size_t> kept; // arguments that stay, in order; packed ones follow
};

// The packing that a statement is, if it is one.
std::optional<Packing> packingOf(const Stmt& s, const PrimFunc& f, const Array<Buffer>& allocs) {
  const BlockNode* block = nullptr;
  bool only = true;
  walk(s, [&](const NodeRef& n) {
    const auto* b = n.as<BlockNode>();
    if (!b) return true;
    only &= block == nullptr;
    block = b;
    return false;
  });
  if (!block || !only || !attrInt(block->annotations, "preproc")) return std::nullopt;
  std::optional<size_t> source;
  Buffer packed;
  bool simple = true;
  walk(block->body, [&](const NodeRef& n) {
    if (const auto* l = n.as<LoadNode>()) {
      size_t at = 0;
      while (at < f->buffers.size() && !(f->buffers[at] && f->buffers[at]->data == l->buffer->data)) ++at;
      simple &= at < f->buffers.size() && (!source || *source == at);
      source = at;
    }
    if (const auto* st = n.as<StoreNode>()) {
      for (const Buffer& a : allocs)
        if (a->data == st->buffer->data) packed = a;
      simple &= packed && packed->data == st->buffer->data;
    }
    return true;
  });
  if (!simple || !source || !packed) return std::nullopt;
  for (const Expr& d : packed->shape)
    if (!asConst(d)) return std::nullopt;
  return Packing{*source, packed, s};
}

PrimFunc packProgram(const PrimFunc& f, const Packing& p) {
  const Buffer& source = f->buffers[p.source];
  auto root = make<BlockNode>("root");
  root->body = p.nest;
  Stmt body = make<const BlockRealizeNode>(Array<Expr>{}, boolImm(true), Block(root));
  auto out = make<PrimFuncNode>(
      Array<Var>{source->data, p.packed->data}, Array<Buffer>{source, p.packed}, body,
      dict({{"num_outputs", intImm(1)}, {"tir.is_scheduled", intImm(1)}, {"auto_vectorize", intImm(1)}}));
  out->origin = f->origin;
  return freshen(PrimFunc(out));
}

Array<Stmt> statementsOf(const BlockNode& block) {
  const auto* all = block.body.as<SeqNode>();
  return all ? all->stmts : Array<Stmt>{block.body};
}

// The program without its packings, which have become parameters behind the inputs.
PrimFunc mainProgram(const PrimFunc& f, const BlockRealize& root, const std::vector<Packing>& packings,
                     std::vector<size_t>& kept, size_t numInputs) {
  auto anyPacking = [&](auto holds) { return std::any_of(packings.begin(), packings.end(), holds); };
  std::vector<Stmt> rest;
  for (const Stmt& s : statementsOf(*root->block))
    if (!anyPacking([&](const Packing& p) { return p.nest == s; })) rest.push_back(s);
  auto block = mutableCopy(root->block);
  block->body = seq(rest);
  block->allocs = {};
  for (const Buffer& a : root->block->allocs)
    if (!anyPacking([&](const Packing& p) { return p.packed->data == a->data; })) block->allocs.push_back(a);
  auto out = mutableCopy(f);
  out->params = {};
  out->buffers = {};
  auto add = [&](const Var& v, const Buffer& b) { out->params.push_back(v), out->buffers.push_back(b); };
  for (size_t i = 0; i <= f->params.size(); ++i) {
    if (i == numInputs)
      for (const Packing& p : packings) add(p.packed->data, p.packed);
    if (i == f->params.size()) break;
    bool packed = anyPacking([&](const Packing& p) { return p.source == i; });
    if (packed && !usesVar(block->body, f->buffers[i]->data)) continue;
    if (i < numInputs) kept.push_back(i);
    add(f->params[i], f->buffers[i]);
  }
  out->body = with(root, &BlockRealizeNode::block, Block(block));
  out->attrs = withAttr(out->attrs, "layout_free_buffers", nullptr);
  return out;
}

/// How many tensors the calls of each program pass: the first parameters are its inputs. Nothing of a program whose
/// calls pass different numbers.
std::map<std::string, std::optional<size_t>> inputsOfPrograms(const Module& module) {
  std::map<std::string, std::optional<size_t>> out;
  for (const GraphExpr& f : module->functions) {
    if (!f.is<FunctionNode>()) continue;
    forEachCall(cast<FunctionNode>(f), [&](const GraphCall& call, const GraphVar&) {
      const auto* g = call->isOp("call_tir") ? call->args[0].as<GlobalVarNode>() : nullptr;
      if (!g) return;
      size_t count = call->args[1].as<TupleNode>()->items.size();
      auto [it, fresh] = out.emplace(g->name, count);
      if (!fresh && it->second != count) it->second.reset();
    });
  }
  return out;
}

// The call of a split program, which packs first.
Result<GraphExpr> packedCall(const GraphCall& call, const Split& split, BlockBuilder& builder) {
  const Array<GraphExpr>& given = call->args[1].as<TupleNode>()->items;
  Array<GraphExpr> tensors;
  for (size_t i : split.kept) tensors.push_back(given[i]);
  for (const Split::Pack& p : split.packs) {
    Array<GraphExpr> source = {given[p.source]};
    auto pack = make<GraphCallNode>(make<const OpRefNode>("call_tir"),
                                    Array<GraphExpr>{p.program, make<const TupleNode>(source)}, nullptr,
                                    Array<Type>{p.type}, p.type);
    pack->origin = call->origin;
    BEVEL_TRY(GraphVar packed, builder.emit(GraphExpr(pack), p.program->name));
    tensors.push_back(packed);
  }
  auto out = mutableCopy(call);
  out->args.set(1, make<const TupleNode>(tensors));
  return GraphExpr(out);
}

} // namespace

Result<Module> splitPreproc(const Module& module) {
  Module out = module;
  std::map<std::string, Split> splits;
  const auto calls = inputsOfPrograms(module);
  for (size_t k = 0; k < module->functions.size(); ++k) {
    const auto* f = module->functions[k].as<PrimFuncNode>();
    const auto* root = f ? f->body.as<BlockRealizeNode>() : nullptr;
    if (!root || !root->block->iters.empty()) continue;
    auto inputs = calls.find(module->names[k]->name);
    if (inputs == calls.end() || !inputs->second || *inputs->second > f->params.size()) continue;
    size_t numInputs = *inputs->second;
    std::vector<Packing> packings;
    for (const Stmt& s : statementsOf(*root->block))
      if (auto p = packingOf(s, PrimFunc(f), root->block->allocs); p && p->source < numInputs)
        packings.push_back(*p);
    if (packings.empty()) continue;
    const std::string& name = module->names[k]->name;
    Split split;
    for (const Packing& p : packings) {
      std::string packName = freshName(out, name + "_pack");
      out = withFunction(out, packName, packProgram(PrimFunc(f), p));
      split.packs.push_back(
          {out->names.back(), p.source, make<const TensorTypeNode>(p.packed->dtype, p.packed->shape)});
    }
    PrimFunc main = mainProgram(PrimFunc(f), BlockRealize(root), packings, split.kept, numInputs);
    out = withFunction(out, name, main);
    splits.emplace(name, std::move(split));
  }
  if (splits.empty()) return module;
  return mapCalls(out, [&](const GraphCall& call, const Op*, BlockBuilder& builder) -> Result<GraphExpr> {
    const auto* g = call->isOp("call_tir") ? call->args[0].as<GlobalVarNode>() : nullptr;
    auto split = g ? splits.find(g->name) : splits.end();
    return split == splits.end() ? GraphExpr(call) : packedCall(call, split->second, builder);
  });
}

} // namespace bevel
