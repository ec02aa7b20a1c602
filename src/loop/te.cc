// Building tensor expressions.
#include "loop/te.h"

#include "ir/structural.h"

#include <cmath>

namespace bevel::te {
namespace {

// Data variable of a tensor's buffer: knows its operation, so that a body's loads tell what it reads. The
// pointer is weak (the operation owns the buffer) and followed only while the reader is being built, when the
// tensor is alive.
class TensorVarNode : public VarNode {
public:
  const OperationObject* op = nullptr;
  size_t index = 0;
  using VarNode::VarNode;
};

Buffer tensorBuffer(const std::string& name, DType dtype, Array<Expr> shape, const OperationObject* op,
                    size_t index) {
  auto data = make<TensorVarNode>(name, DType::Handle());
  data->pointee = dtype;
  data->op = op;
  data->index = index;
  return make<const BufferNode>(Var(data), dtype, std::move(shape), name);
}

// Tensors that the expressions read, in order of first use.
std::vector<Tensor> tensorsRead(const Array<Expr>& body) {
  std::vector<Tensor> found;
  std::unordered_set<const Node*> seen;
  for (const Expr& e : body)
    walk(e, [&](const NodeRef& n) {
      const auto* loaded = n.as<LoadNode>();
      const auto* v = loaded ? dynamic_cast<const TensorVarNode*>(loaded->buffer->data.get()) : nullptr;
      if (v && seen.insert(v).second) found.push_back({Operation(v->op), v->index});
      return true;
    });
  return found;
}

std::vector<Tensor> resultsOf(const Operation& op) {
  std::vector<Tensor> results;
  for (size_t i = 0; i < op->outputs.size(); ++i) results.push_back({op, i});
  return results;
}

Array<IterVar> spatialAxes(const Array<Expr>& shape) {
  Array<IterVar> axes;
  for (size_t i = 0; i < shape.size(); ++i)
    axes.push_back(iter("i" + std::to_string(i), shape[i], IterType::kSpatial));
  return axes;
}

Combiner makeCombiner(DType dtype, Expr (*f)(const Expr&, const Expr&), Expr identity) {
  Var x = var("x", dtype), y = var("y", dtype);
  return make<const CombinerNode>(Array<Var>{x}, Array<Var>{y}, Array<Expr>{f(x, y)}, Array<Expr>{identity});
}

} // namespace

const Buffer& Tensor::buffer() const {
  return op->outputs[index];
}

Expr Tensor::operator()(Array<Expr> indices) const {
  BEVEL_ASSERT(indices.size() == rank(), "tensor '" + op->name + "' read with a wrong number of indices");
  for (size_t i = 0; i < indices.size(); ++i) {
    DType t = shape()[i]->dtype, u = indices[i]->dtype;
    if (u.bits < t.bits && u.isInteger()) indices.set(i, castTo(t.withLanes(u.lanes), indices[i]));
  }
  return load(buffer(), std::move(indices));
}

Tensor placeholder(Array<Expr> shape, DType dtype, std::string name) {
  auto op = make<OperationObject>();
  op->outputs = {tensorBuffer(name, dtype, std::move(shape), op.get(), 0)};
  op->name = std::move(name);
  return {op, 0};
}

Tensor compute(Array<Expr> shape, std::string name, FunctionRef<Expr(const Array<Var>&)> f, Dict attrs) {
  return computeMany(
      std::move(shape), std::move(name), [&](const Array<Var>& i) { return Array<Expr>{f(i)}; },
      std::move(attrs))[0];
}

std::vector<Tensor> computeMany(Array<Expr> shape, std::string name,
                                FunctionRef<Array<Expr>(const Array<Var>&)> f, Dict attrs) {
  auto op = make<OperationObject>();
  op->kind = OpKind::kCompute;
  op->attrs = std::move(attrs);
  op->axes = spatialAxes(shape);
  Array<Var> vars;
  for (const IterVar& a : op->axes) vars.push_back(a->var);
  op->body = f(vars);
  op->inputs = tensorsRead(op->body);
  for (size_t i = 0; i < op->body.size(); ++i) {
    std::string label = op->body.size() == 1 ? name : name + "_v" + std::to_string(i);
    op->outputs.push_back(tensorBuffer(label, op->body[i]->dtype, shape, op.get(), i));
  }
  op->name = std::move(name);
  return resultsOf(op);
}

std::vector<Tensor> externOp(std::vector<Buffer> outputs, std::vector<Tensor> inputs, std::string name,
                             Stmt statement, Dict attrs) {
  auto op = make<OperationObject>();
  op->kind = OpKind::kExtern;
  op->name = std::move(name);
  op->attrs = std::move(attrs);
  op->inputs = std::move(inputs);
  BufferMap owned; // the outputs again, with data variables that know this operation
  for (size_t i = 0; i < outputs.size(); ++i) {
    const BufferNode& b = *outputs[i];
    op->outputs.push_back(tensorBuffer(b.name, b.dtype, b.shape, op.get(), i));
    owned.emplace(b.data, op->outputs[i]);
  }
  op->statement = replaceBuffers(statement, owned);
  return resultsOf(op);
}

std::vector<Tensor> scan(std::vector<Tensor> init, std::vector<Tensor> update, std::vector<Tensor> states,
                         std::string name) {
  BEVEL_ASSERT(init.size() == states.size() && update.size() == states.size(),
               "scan: one initial value and update a state");
  auto op = make<OperationObject>();
  op->kind = OpKind::kScan;
  op->name = name;
  for (size_t i = 0; i < states.size(); ++i)
    op->outputs.push_back(
        tensorBuffer(name + "_" + states[i].op->name, states[i].dtype(), states[i].shape(), op.get(), i));
  op->inputs = init;
  op->inputs.insert(op->inputs.end(), update.begin(), update.end());
  op->init = std::move(init);
  op->update = std::move(update);
  op->states = std::move(states);
  return resultsOf(op);
}

IterVar reduceAxis(Expr extent, std::string name) {
  return iter(std::move(name), std::move(extent), IterType::kReduce);
}
IterVar reduceAxis(Range domain, std::string name) {
  Var v = var(std::move(name), domain->extent->dtype);
  return make<const IterVarNode>(std::move(domain), v, IterType::kReduce);
}

Expr lowest(DType dtype) {
  return dtype.isFloat() ? constantFloat(dtype, -INFINITY) : constant(dtype, minValue(dtype.scalar()));
}
Expr highest(DType dtype) {
  if (dtype.isUInt() && dtype.bits == 64) return constant(dtype, -1); // all bits set
  return dtype.isFloat() ? constantFloat(dtype, INFINITY) : constant(dtype, maxValue(dtype.scalar()));
}

Expr reduce(Combiner combiner, Array<Expr> source, Array<IterVar> axes, int64_t component, Expr condition) {
  return make<const ReduceNode>(std::move(combiner), std::move(axes), std::move(source), Array<Expr>{},
                                std::move(condition), component);
}

static Expr reduceBy(Expr (*f)(const Expr&, const Expr&), const Expr& identity, const Expr& v,
                     Array<IterVar> axes, Expr condition) {
  return reduce(makeCombiner(v->dtype, f, identity), {v}, std::move(axes), 0, std::move(condition));
}

Expr sum(Expr v, Array<IterVar> axes, Expr condition) {
  return reduceBy(operator+, constant(v->dtype, 0), v, std::move(axes), std::move(condition));
}
Expr max(Expr v, Array<IterVar> axes, Expr condition) {
  return reduceBy(bevel::max, lowest(v->dtype), v, std::move(axes), std::move(condition));
}
Expr min(Expr v, Array<IterVar> axes, Expr condition) {
  return reduceBy(bevel::min, highest(v->dtype), v, std::move(axes), std::move(condition));
}
Expr prod(Expr v, Array<IterVar> axes, Expr condition) {
  return reduceBy(operator*, constant(v->dtype, 1), v, std::move(axes), std::move(condition));
}
Expr all(Expr v, Array<IterVar> axes) {
  return reduceBy(logicalAnd, boolImm(true), v, std::move(axes), nullptr);
}
Expr any(Expr v, Array<IterVar> axes) {
  return reduceBy(logicalOr, boolImm(false), v, std::move(axes), nullptr);
}

} // namespace bevel::te
