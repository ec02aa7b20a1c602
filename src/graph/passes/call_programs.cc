// Graph functions for the tensor programs of a module that has no others.
//
//   @T.prim_func                                    →    the program, with results behind inputs, and
//   def add(C: …, A: …, n: T.int64): C[i] = A[i] + n     @R.function
//                                                        def add_1(A: R.Tensor(…), scalars: R.Shape([n])):
//                                                            C = R.call_tir(cls.add, (A,), …, tir_vars=R.shape([n]))
//                                                            return C
//
// 1. A buffer that the program writes is a result. It is an input as well where it is read, where some element may keep
//    the value it came with, or where its sizes follow from no input: then the program first copies that input.
// 2. Scalar parameters come together, as one tensor of integers.
//
// A caller in place (callInPlace) takes all buffers and hands them on: `_ = cls.add(C, A, R.shape([n]))`.
#include "arith/analyzer.h"
#include "graph/block_builder.h"
#include "graph/passes/passes.h"
#include "graph/shape_util.h"
#include "ir/build.h"
#include "ir/structural.h"
#include "loop/dependence.h"
#include "loop/kernel_signature.h"
#include "loop/regions.h"

namespace bevel {
namespace {

/// Whether a block at the program's start of every run writes each element once, at its own spatial axes.
bool writesAll(const PrimFunc& f, const Buffer& b) {
  bool all = false;
  std::vector<For> loops;
  Analyzer analyzer;
  auto storesAtAxes = [&](const Stmt& s, const BlockNode& block) {
    const auto* store = s.as<StoreNode>();
    if (!store || store->buffer->data != b->data || store->predicate) return false;
    std::unordered_set<NodeRef, RefHash> seen;
    for (size_t d = 0; d < store->indices.size(); ++d) {
      auto axis = std::find_if(block.iters.begin(), block.iters.end(),
                               [&](const IterVar& v) { return v->var == store->indices[d]; });
      bool whole = axis != block.iters.end() && seen.insert(store->indices[d]).second &&
                   isConst((*axis)->domain->min, 0) &&
                   analyzer.proveEqual((*axis)->domain->extent, b->shape[d]);
      if (!whole) return false;
    }
    return true;
  };
  auto visit = [&](auto& self, const Stmt& s) -> void {
    if (const auto* loop = s.as<ForNode>()) {
      loops.push_back(For(loop));
      self(self, loop->body);
      loops.pop_back();
    } else if (const auto* q = s.as<SeqNode>()) {
      for (const Stmt& x : q->stmts) self(self, x);
    } else if (const auto* r = s.as<BlockRealizeNode>()) {
      if (r->block->iters.empty()) return self(self, r->block->body);
      bool stores = storesAtAxes(r->block->init ? r->block->init : r->block->body, *r->block);
      all |= stores && covers(BlockRealize(r), loops, analyzer);
    }
  };
  visit(visit, f->body);
  return all;
}

/// `to` = `from`, element by element: a block where the program has blocks.
Stmt copyNest(const Buffer& from, const Buffer& to, bool asBlock, const std::string& name) {
  std::vector<Var> loops;
  Array<IterVar> axes;
  Array<Expr> values, at;
  for (size_t d = 0; d < to->rank(); ++d) {
    loops.push_back(var("c" + std::to_string(d), to->shape[d]->dtype));
    axes.push_back(iter("v" + std::to_string(d), to->shape[d], IterType::kSpatial));
    values.push_back(loops.back());
    at.push_back(asBlock ? Expr(axes.back()->var) : Expr(loops.back()));
  }
  Stmt body = store(to, load(from, at), at);
  if (asBlock) {
    auto block = make<BlockNode>(name);
    block->iters = axes;
    Array<Range> point;
    for (const Expr& i : at) point.push_back(range(i, constant(i->dtype, 1)));
    block->reads = {make<const BufferRegionNode>(from, point)};
    block->writes = {make<const BufferRegionNode>(to, point)};
    block->body = body;
    body = make<const BlockRealizeNode>(values, boolImm(true), Block(block));
  }
  for (size_t d = loops.size(); d-- > 0;) body = forLoop(loops[d], to->shape[d], body);
  return body;
}

std::string freshBlockName(const PrimFunc& f, const std::string& base) {
  std::unordered_set<std::string> taken;
  walk(f->body, [&](const NodeRef& n) {
    if (const auto* b = n.as<BlockNode>()) taken.insert(b->name);
    return true;
  });
  std::string name = base;
  for (int i = 1; taken.contains(name); ++i) name = base + "_" + std::to_string(i);
  return name;
}

/// What a program's parameters are to its callers.
struct Roles {
  std::vector<Buffer> inputs; // in the order of the parameters
  std::vector<Buffer> results;
  std::vector<Var> scalars;
  std::unordered_set<Var, RefHash> copied; // data of the results that are inputs as well

  /// All buffers as inputs.
  static Result<Roles> inPlace(const PrimFunc& f) {
    Roles r;
    for (size_t i = 0; i < f->params.size(); ++i) {
      const Var& p = f->params[i];
      if (!f->buffers[i] && !p->dtype.isInteger() && !p->dtype.isBool())
        return fail(Error(ErrorCode::kUnsupported, "parameter '" + p->name + "' is " + p->dtype.str() +
                                                       ", which cannot come from outside of a library")
                        .at(f)
                        .help("parameters are buffers, integers and booleans; or make the program private "
                              "and call it"));
      if (f->buffers[i])
        r.inputs.push_back(f->buffers[i]);
      else
        r.scalars.push_back(p);
    }
    return r;
  }

  static Result<Roles> of(const PrimFunc& f) {
    BEVEL_TRY(Roles r, inPlace(f));
    std::unordered_set<size_t> written;
    for (size_t i : kernelOutputs(f)) written.insert(i);
    std::unordered_set<Var, RefHash> read, bound(r.scalars.begin(), r.scalars.end());
    for (const BufferAccess& a : collectAccesses(f->body))
      if (a.buffer && (!a.write || a.opaque)) read.insert(a.buffer->data);
    auto addInput = [&](const Buffer& b) {
      for (const Expr& d : b->shape)
        if (d.is<VarNode>()) bound.insert(cast<VarNode>(d));
    };
    for (size_t i = 0; i < f->params.size(); ++i) {
      const Buffer& b = f->buffers[i];
      if (!b) continue;
      bool result = written.contains(i), copied = result && (read.contains(b->data) || !writesAll(f, b));
      if (copied) r.copied.insert(b->data);
      if (result) r.results.push_back(b);
      if (!result || copied) addInput(b);
    }
    if (r.results.empty())
      return fail(
          Error(ErrorCode::kInvalid, "the program writes none of its parameters")
              .at(f)
              .help("a function of a library gives results: store into a buffer, or declare T.writes"));
    for (const Buffer& b : r.results) {
      auto unbound = [&](const Expr& d) {
        return usesAnyVar(d, [&](const VarNode* v) { return !bound.contains(Var(v)); });
      };
      if (std::any_of(b->shape.begin(), b->shape.end(), unbound) && r.copied.insert(b->data).second)
        addInput(b);
    }
    std::erase_if(r.inputs, [&](const Buffer& b) {
      return std::find(r.results.begin(), r.results.end(), b) != r.results.end() &&
             !r.copied.contains(b->data);
    });
    return r;
  }
};

/// The program with its parameters in the order of a call: inputs, results, scalars.
PrimFunc inCallOrder(const PrimFunc& f, const Roles& roles) {
  auto out = mutableCopy(f);
  out->params = {}, out->buffers = {};
  auto add = [&](const Var& v, const Buffer& b) { out->params.push_back(v), out->buffers.push_back(b); };
  const auto* root = f->body.as<BlockRealizeNode>();
  std::vector<Stmt> copies;
  for (const Buffer& b : roles.inputs) {
    if (!roles.copied.contains(b->data)) {
      add(b->data, b);
      continue;
    }
    Buffer from = buffer(b->name + "_in", b->dtype, b->shape);
    add(from->data, from);
    copies.push_back(copyNest(from, b, root, freshBlockName(f, from->name)));
  }
  for (const Buffer& b : roles.results) add(b->data, b);
  for (const Var& v : roles.scalars) add(v, nullptr);
  if (!copies.empty()) {
    copies.push_back(root ? root->block->body : f->body);
    out->body = seq(copies);
    if (root) {
      Block block = with(root->block, &BlockNode::body, out->body);
      out->body = make<const BlockRealizeNode>(root->values, root->predicate, block);
    }
  }
  return withAttr(PrimFunc(out), "num_outputs", intImm(int64_t(roles.results.size())));
}

NodeRef names(const std::vector<Buffer>& buffers) {
  Array<NodeRef> out;
  for (const Buffer& b : buffers) out.push_back(make<const StringImmNode>(b->name));
  return list(out);
}

Status addCaller(BlockBuilder& builder, const std::string& name, const PrimFunc& f, bool inPlace) {
  BEVEL_TRY(Roles roles, inPlace ? Roles::inPlace(f) : Roles::of(f));
  GlobalVar program = make<const GlobalVarNode>(name);
  if (!inPlace) builder.updateFunction(program, inCallOrder(f, roles));
  VarMap own, narrow; // sizes and scalars have variables in the caller, and must fit those of the program
  auto add = [&](const Var& v) {
    auto [it, isNew] = own.emplace(v, var(v->name, kInt64));
    if (isNew) narrow[v] = castTo(v->dtype, it->second);
    return it->second;
  };
  Array<Expr> given;
  for (const Var& v : roles.scalars) given.push_back(add(v));
  for (const Var& v : kernelDims(f)) add(v);
  auto typeOf = [&](const Buffer& b) -> Type {
    Array<Expr> shape;
    for (const Expr& d : b->shape)
      shape.push_back(d.is<VarNode>() ? own.at(cast<VarNode>(d)) : castTo(kInt64, substitute(d, narrow)));
    return make<const TensorTypeNode>(b->dtype, shape);
  };
  Array<GraphVar> params;
  Array<Type> types;
  for (const Buffer& b : roles.inputs) params.push_back(make<const GraphVarNode>(b->name, typeOf(b)));
  Array<GraphExpr> tensors(params.begin(), params.end());
  for (const Buffer& b : roles.results) types.push_back(typeOf(b));
  Array<GraphExpr> operands = inPlace ? tensors : Array<GraphExpr>{program, make<const TupleNode>(tensors)};
  if (!given.empty()) {
    params.push_back(make<const GraphVarNode>("scalars", make<const ShapeTypeNode>(given)));
    operands.push_back(make<const ShapeExprNode>(given));
  }
  Dict attrs = dict({{"global_symbol", make<const StringImmNode>(name)},
                     {"input_names", names(roles.inputs)},
                     {"output_names", names(roles.results)}});
  builder.beginFunction(name, params, attrs, !inPlace);
  if (!inPlace) builder.beginDataflow();
  GraphExpr callee = inPlace ? GraphExpr(program) : make<const OpRefNode>("call_tir");
  BEVEL_TRY(GraphVar result, builder.emitOutput(make<const GraphCallNode>(callee, operands, nullptr, types)));
  BEVEL_CHECK(
      builder.emitFuncOutput(inPlace ? make<const TupleNode>(Array<GraphExpr>{}) : GraphExpr(result)));
  return {};
}

} // namespace

static Result<Module> callEach(const Module& module, bool inPlace) {
  for (const GraphExpr& f : module->functions)
    if (!f.is<PrimFuncNode>()) return module;
  BlockBuilder builder(module);
  for (size_t i = 0; i < module->names.size(); ++i) {
    PrimFunc f = cast<PrimFuncNode>(module->functions[i]);
    if (attrInt(f->attrs, "private") && !inPlace) continue;
    const std::string& name = module->names[i]->name;
    if (Status ok = addCaller(builder, name, f, inPlace); !ok)
      return fail(
          std::move(ok.error()).note("tensor program '" + name + "' becomes a function of the library"));
  }
  return builder.module();
}

Result<Module> callPrograms(const Module& module) {
  return callEach(module, false);
}

Result<Module> callInPlace(const Module& module) {
  return callEach(module, true);
}

} // namespace bevel
