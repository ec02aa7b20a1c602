// Joining tensor programs.
//
// 1. Every program is copied with fresh variables.
// 2. Its buffers are identified with those of the callers' values: one per graph variable, in the caller's
//    symbolic dimensions.
// 3. The bodies follow each other in one root block, which allocates what lies between.
// 4. Dimensions that no parameter's shape states alone become scalar parameters.
#include "graph/passes/fuse_programs.h"

#include "arith/analyzer.h"
#include "graph/shape_util.h"
#include "ir/build.h"
#include "ir/structural.h"
#include "loop/te.h"

#include <set>

namespace bevel {
namespace {

class Joiner {
public:
  Result<FusedProgram> run(const std::vector<FusedCall>& calls) {
    for (const FusedCall& c : calls) {
      BEVEL_CHECK(append(c, &c == &calls.back()));
      origin_ = mergeOrigins(origin_, c.origin);
    }
    return finish(calls);
  }

private:
  // The buffer that stands for a value of the caller.
  Buffer bufferOf(const GraphExpr& value, const Buffer& like) {
    auto it = buffers_.find(value);
    if (it != buffers_.end()) return it->second;
    const auto* t = value->type.as<TensorTypeNode>();
    Array<Expr> shape = t && t->known ? t->shape : like->shape;
    const auto* v = value.as<GraphVarNode>();
    Buffer b = buffer(v ? like->name : "c" + std::to_string(buffers_.size()), like->dtype, shape);
    buffers_.emplace(value, b);
    return b;
  }

  static bool isScalarConstant(const GraphExpr& e) {
    const auto* c = e.as<ConstantNode>();
    return c && c->value->size() == 1 && c->value->dtype.bits >= 8 && !c->value->dtype.isString() &&
           c->value->dtype.code != TypeCode::kComplex;
  }

  Status append(const FusedCall& c, bool last) {
    PrimFunc f = freshen(c.program);
    BufferMap map;
    VarMap scalars;
    size_t tensor = 0, scalar = 0;
    std::unordered_map<Var, Expr, RefHash> immediates; // data variable to constant
    Analyzer analyzer;
    for (size_t i = 0; i < f->params.size(); ++i) {
      const Buffer& b = f->buffers[i];
      if (!b) {
        scalars.emplace(f->params[i], castTo(f->params[i]->dtype, c.scalars[scalar++]));
        continue;
      }
      bool isInput = tensor < c.inputs.size();
      GraphExpr value = isInput ? c.inputs[tensor] : GraphExpr(c.result);
      ++tensor;
      const auto* type = value->type.as<TensorTypeNode>();
      if (!type || !type->known)
        return fail(Error(ErrorCode::kInternal, "fused value of unknown shape").at(value));
      BEVEL_CHECK(unifyShape(b->shape, type->shape, scalars, analyzer));
      if (isInput && isScalarConstant(value)) {
        const TensorObject& t = *value.as<ConstantNode>()->value;
        immediates.emplace(b->data, t.dtype.isFloat() ? constantFloat(t.dtype, t.asDouble(0))
                                                      : constant(t.dtype, t.asInt(0)));
        continue;
      }
      if (isInput && !produced_.count(value) && !known_.count(value))
        inputs_.push_back(value), known_.insert(value);
      map.emplace(b->data, bufferOf(value, b));
    }
    produced_.insert(GraphExpr(c.result));
    Stmt body = substitute(replaceBuffers(f->body, map), scalars);
    if (!immediates.empty()) body = inlineImmediates(body, immediates);
    addBody(renameBlocks(body, c.origin));
    if (!last) allocs_.push_back(buffers_.at(GraphExpr(c.result)));
    return {};
  }

  static Stmt inlineImmediates(const Stmt& body, const std::unordered_map<Var, Expr, RefHash>& immediates) {
    NodeRef replaced = rewrite(body, [&](const NodeRef& n) -> NodeRef {
      if (const auto* l = n.as<LoadNode>())
        if (auto it = immediates.find(l->buffer->data); it != immediates.end()) return it->second;
      if (const auto* b = n.as<BlockNode>()) return withoutReadsOf(Block(b), immediates);
      return n;
    });
    return cast<StmtNode>(replaced);
  }
  static NodeRef withoutReadsOf(const Block& block, const std::unordered_map<Var, Expr, RefHash>& gone) {
    Array<BufferRegion> reads;
    for (const BufferRegion& r : block->reads)
      if (!gone.count(r->buffer->data)) reads.push_back(r);
    if (reads.size() == block->reads.size()) return block;
    return with(block, &BlockNode::reads, reads);
  }

  // Unique names, and the model's nodes that the blocks come from.
  Stmt renameBlocks(const Stmt& body, const Origin& origin) {
    NodeRef renamed = rewrite(body, [&](const NodeRef& n) -> NodeRef {
      const auto* b = n.as<BlockNode>();
      if (!b || b->name == "root") return n;
      auto copy = make<BlockNode>(*b);
      for (int k = 1; !names_.insert(copy->name).second; ++k) copy->name = b->name + "_" + std::to_string(k);
      if (!copy->origin) copy->origin = origin;
      return copy;
    });
    return cast<StmtNode>(renamed);
  }

  void addBody(const Stmt& body) {
    const auto* root = body.as<BlockRealizeNode>();
    if (!root || !root->block->iters.empty()) return body_.push_back(body);
    allocs_.append(root->block->allocs);
    body_.push_back(root->block->body);
  }

  Result<FusedProgram> finish(const std::vector<FusedCall>& calls) {
    FusedProgram out;
    out.inputs = Array<GraphExpr>(inputs_);
    Array<Var> params;
    Array<Buffer> buffers;
    auto add = [&](const GraphExpr& value) {
      buffers.push_back(buffers_.at(value));
      params.push_back(buffers.back()->data);
    };
    for (const GraphExpr& v : inputs_) add(v);
    add(GraphExpr(calls.back().result));
    auto root = make<BlockNode>("root");
    root->allocs = allocs_;
    root->body = seq(body_);
    Stmt realize = make<const BlockRealizeNode>(Array<Expr>{}, boolImm(true), Block(root));
    for (const Var& v : te::addScalarParams(params, buffers, realize)) out.extra.push_back(v);
    auto f = make<PrimFuncNode>(params, buffers, realize, dict({{"num_outputs", intImm(1)}}));
    f->origin = origin_;
    out.function = freshen(PrimFunc(f));
    return out;
  }

  std::unordered_map<GraphExpr, Buffer, RefHash> buffers_;
  std::unordered_set<GraphExpr, RefHash> known_, produced_;
  std::vector<GraphExpr> inputs_;
  Array<Buffer> allocs_;
  std::vector<Stmt> body_;
  std::set<std::string> names_;
  Origin origin_;
};

} // namespace

Result<FusedProgram> fusePrograms(const std::vector<FusedCall>& calls) {
  return Joiner().run(calls);
}

} // namespace bevel
