// Tensor expressions to a tensor program.
//
// 1. Order the operations, producers first.
// 2. Each compute becomes a loop nest around one block; a reduction gets reduce axes and an init.
// 3. An extern statement becomes an opaque block; a scan, a loop over time around its updates.
// 4. Tensors that are not arguments become allocations of the root block.
//
//   B = compute((n,), A[i] * 2)      →     for i in range(n):
//                                            with T.sblock("B"):
//                                              v_i = T.axis.spatial(n, i)
//                                              B[v_i] = A[v_i] * 2
#include "ir/structural.h"
#include "loop/regions.h"
#include "loop/te.h"

#include <algorithm>
#include <set>

namespace bevel::te {
namespace {

// A block and the loops around it, one an axis.
struct Nest {
  Ref<BlockNode> block;
  std::vector<VarRange> loops;
  Array<Expr> values;
  explicit Nest(std::string name, Dict annotations = nullptr) : block(make<BlockNode>(std::move(name))) {
    block->annotations = std::move(annotations);
  }
  Var axis(const IterVar& a) {
    Var v = var("v_" + a->var->name, a->var->dtype), loop = var(a->var->name, a->var->dtype);
    block->iters.push_back(with(a, &IterVarNode::var, v));
    loops.emplace_back(loop, a->domain);
    values.push_back(loop);
    return v;
  }
  Stmt stmt(Stmt body) {
    block->body = std::move(body);
    Stmt out = make<const BlockRealizeNode>(values, boolImm(true), Block(block));
    for (size_t i = loops.size(); i-- > 0;)
      out = make<const ForNode>(loops[i].first, loops[i].second->min, loops[i].second->extent,
                                ForKind::kSerial, out);
    return out;
  }
};

// The root block says nothing of accesses, as in text, where it is not written.
PrimFunc withPlainRoot(const PrimFunc& f) {
  auto realize = cast<BlockRealizeNode>(f->body);
  Array<BufferRegion> none;
  Block root = with(realize->block, &BlockNode::reads, none, &BlockNode::writes, none);
  return with(f, &PrimFuncNode::body, with(realize, &BlockRealizeNode::block, root));
}

class Translator {
public:
  PrimFunc run(const std::vector<Tensor>& args, Dict attrs, Array<Var>* scalars) {
    for (const Tensor& t : args) visit(t.op);
    std::vector<Stmt> body;
    for (const Operation& op : order_)
      if (!inScan_.count(op.get())) body.push_back(statement(op));
    Nest root("root");
    Array<Var> params;
    Array<Buffer> buffers;
    std::unordered_set<const Node*> isParam;
    for (const Tensor& t : args) {
      params.push_back(t.buffer()->data);
      buffers.push_back(t.buffer());
      isParam.insert(t.buffer()->data.get());
    }
    for (const Operation& op : order_)
      for (const Buffer& b : op->outputs)
        if (!isParam.count(b->data.get()) && !stateOf_.count(b->data)) root.block->allocs.push_back(b);
    Stmt realize = replaceBuffers(root.stmt(seq(body)), stateOf_);
    Array<Var> added = addScalarParams(params, buffers, realize);
    if (scalars) *scalars = added;
    PrimFunc f = make<const PrimFuncNode>(params, buffers, realize, attrs);
    return withPlainRoot(withDetectedAccess(freshen(f)));
  }

private:
  void visit(const Operation& op) {
    if (!seen_.insert(op.get()).second) return;
    for (const Tensor& t : op->inputs) visit(t.op);
    if (op->kind == OpKind::kScan) claimUpdates(op);
    if (op->kind != OpKind::kPlaceholder) order_.push_back(op);
  }

  // Operations that a scan's update computes from its states run inside its loop; states stand for the scan's
  // results.
  void claimUpdates(const Operation& scan) {
    std::unordered_set<const Object*> fromStates;
    for (size_t i = 0; i < scan->states.size(); ++i) {
      stateOf_.emplace(scan->states[i].buffer()->data, scan->outputs[i]);
      fromStates.insert(scan->states[i].op.get());
    }
    auto isFromStates = [&](const Tensor& t) { return fromStates.contains(t.op.get()); };
    for (const Operation& op : order_) { // producers come first
      if (!std::ranges::any_of(op->inputs, isFromStates)) continue;
      fromStates.insert(op.get());
      inScan_.insert(op.get());
      scanBody_[scan.get()].push_back(op);
    }
    for (size_t i = 0; i < scan->update.size(); ++i) {
      const Tensor& u = scan->update[i];
      if (inScan_.insert(u.op.get()).second) scanBody_[scan.get()].push_back(u.op); // does not read a state
      stateOf_.emplace(u.buffer()->data, scan->outputs[i]); // an update writes the scan's result in place
    }
  }

  Stmt statement(const Operation& op) {
    switch (op->kind) {
    case OpKind::kCompute:
      return computeNest(op, nullptr);
    case OpKind::kExtern:
      return externBlock(op);
    case OpKind::kScan:
      return scanLoops(op);
    case OpKind::kPlaceholder:
      break;
    }
    return seq({});
  }

  std::string uniqueName(const std::string& base) {
    std::string name = base.empty() ? "block" : base;
    for (int i = 1; !names_.insert(name).second; ++i) name = base + "_" + std::to_string(i);
    return name;
  }

  // Loops, axes and bindings of one block. `time`: stands for axis 0 (inside a scan).
  Stmt computeNest(const Operation& op, const Var& time) {
    Nest nest(uniqueName(op->name), op->attrs);
    VarMap axisOf;
    const auto* reduction = op->body[0].as<ReduceNode>();
    Array<IterVar> axes = op->axes;
    if (reduction) axes.append(reduction->axes);
    for (const IterVar& a : axes) axisOf.emplace(a->var, time && axisOf.empty() ? time : nest.axis(a));
    Array<Expr> indices;
    for (const IterVar& a : op->axes) indices.push_back(axisOf.at(a->var));
    auto isEmpty = [](const IterVar& a) { return isConst(a->domain->extent, 0); };
    if (reduction && std::ranges::any_of(reduction->axes, isEmpty)) return fillNest(op, *reduction);
    if (reduction) return nest.stmt(reduceBody(nest.block->init, op, *reduction, axisOf, indices));
    std::vector<Stmt> stores;
    for (size_t i = 0; i < op->body.size(); ++i)
      stores.push_back(store(op->outputs[i], substitute(op->body[i], axisOf), indices));
    return nest.stmt(seq(stores));
  }

  // A reduction over no elements gives the identity (its loops would never run).
  Stmt fillNest(const Operation& op, const ReduceNode& r) {
    auto fill = make<OperationObject>(*op);
    fill->body = r.init.empty() ? r.combiner->identity : r.init;
    return computeNest(fill, nullptr);
  }

  Stmt reduceBody(Stmt& init, const Operation& op, const ReduceNode& r, const VarMap& axisOf,
                  const Array<Expr>& indices) {
    const CombinerNode& c = *r.combiner;
    std::vector<Stmt> first, stores;
    VarMap operands;
    for (size_t i = 0; i < c.result.size(); ++i) {
      first.push_back(
          store(op->outputs[i], r.init.empty() ? c.identity[i] : substitute(r.init[i], axisOf), indices));
      operands.emplace(c.lhs[i], load(op->outputs[i], indices));
      operands.emplace(c.rhs[i], substitute(r.source[i], axisOf));
    }
    std::vector<Expr> results;
    for (const Expr& e : c.result) results.push_back(substitute(e, operands));
    Stmt update;
    if (results.size() == 1)
      update = store(op->outputs[0], results[0], indices);
    else { // all results are computed before any is stored
      std::vector<Var> temps;
      for (size_t i = 0; i < results.size(); ++i) {
        temps.push_back(var("t" + std::to_string(i), results[i]->dtype));
        stores.push_back(store(op->outputs[i], temps[i], indices));
      }
      update = seq(stores);
      for (size_t i = results.size(); i-- > 0;)
        update = make<const LetStmtNode>(temps[i], results[i], update);
    }
    init = seq(first);
    return r.condition ? make<const IfNode>(substitute(r.condition, axisOf), update) : update;
  }

  Stmt externBlock(const Operation& op) {
    Nest nest(uniqueName(op->name), op->attrs);
    for (const Tensor& t : op->inputs) nest.block->reads.push_back(fullRegion(t.buffer()));
    for (const Buffer& b : op->outputs) nest.block->writes.push_back(fullRegion(b));
    return nest.stmt(op->statement);
  }

  // The loop over time has one block for a step, which is the scope of what the step computes: it is scheduled as a program is.
  Stmt scanLoops(const Operation& scan) {
    std::vector<Stmt> parts;
    Expr start = scan->init[0].shape()[0];
    for (size_t i = 0; i < scan->init.size(); ++i) parts.push_back(copyInit(scan, i));
    Expr length = scan->states[0].shape()[0];
    Nest nest(uniqueName(scan->name + "_step"));
    Range time = range(start, length - start);
    Var v = nest.axis(make<const IterVarNode>(time, var("t", start->dtype), IterType::kOpaque));
    std::vector<Stmt> steps;
    for (const Operation& op : scanBody_[scan.get()])
      steps.push_back(op->kind == OpKind::kCompute ? computeNest(op, v) : statement(op));
    parts.push_back(nest.stmt(seq(steps)));
    return seq(parts);
  }

  Stmt copyInit(const Operation& scan, size_t i) {
    const Tensor& init = scan->init[i];
    Nest nest(uniqueName(scan->name + "_init"));
    Array<Expr> indices;
    for (size_t d = 0; d < init.rank(); ++d)
      indices.push_back(nest.axis(iter("i" + std::to_string(d), init.shape()[d], IterType::kSpatial)));
    return nest.stmt(store(scan->outputs[i], load(init.buffer(), indices), indices));
  }

  std::vector<Operation> order_;
  std::unordered_set<const Object*> seen_, inScan_;
  std::unordered_map<const Object*, std::vector<Operation>> scanBody_;
  BufferMap stateOf_;
  std::set<std::string> names_;
};

} // namespace

Array<Var> addScalarParams(Array<Var>& params, Array<Buffer>& buffers, const Stmt& body) {
  Array<Var> added;
  std::unordered_set<const Node*> bound;
  std::vector<NodeRef> free = freeVars(body);
  for (const Buffer& b : buffers) {
    bound.insert(b->data.get());
    for (const Expr& d : b->shape)
      if (d.is<VarNode>()) bound.insert(d.get());
    for (const NodeRef& v : freeVars(b)) free.push_back(v);
  }
  for (const NodeRef& v : free) {
    if (!v.is<VarNode>() || !bound.insert(v.get()).second) continue;
    added.push_back(cast<VarNode>(v));
    buffers.push_back(nullptr);
  }
  params.append(added);
  return added;
}

PrimFunc createPrimFunc(const std::vector<Tensor>& args, Dict attrs, Array<Var>* scalars) {
  return Translator().run(args, std::move(attrs), scalars);
}

} // namespace bevel::te
