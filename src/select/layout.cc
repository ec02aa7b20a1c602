// Layout: regions around convolutions compute channels last.
//
//   lv = R.nn.conv2d(x, W)                 lv = R.permute_dims(x, axes=[0, 2, 3, 1])
//   lv1 = R.add(lv, b)               →     lv1 = R.nn.conv2d(lv, W, data_layout="NHWC")
//   gv = R.nn.max_pool(lv1, …)             lv2 = R.add(lv1, b')
//                                          lv3 = R.nn.max_pool(lv2, …, data_layout="NHWC")
//                                          gv = R.permute_dims(lv3, axes=[0, 3, 1, 2])
//
// Bindings are visited in order.
//
// 1. A variable may be available in several forms: logical, or with its axes in another order; a form is made by a
//    permute_dims when something first asks for it.
// 2. A convolution of enough outputs (or as the answer to its question says) asks for its input channels last, and
//    gives its result so.
// 3. Operators that bear another order of axes (layout_ops.cc) follow their inputs.
// 4. A permute_dims of the model only notes a form: it is emitted where something asks for the logical order, so
//    transposes that cancel vanish.
// 5. Everything else, and what leaves a dataflow block or a branch, asks for logical values.
#include "select/layout_impl.h"

#include "graph/passes/passes.h"
#include "graph/visitor.h"
#include "ops/common.h"
#include "select/passes.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace bevel {
namespace layout {

Order identityOrder(size_t rank) {
  Order o(rank);
  std::iota(o.begin(), o.end(), 0);
  return o;
}

Order lastOrder(size_t rank) {
  Order o = identityOrder(rank);
  if (rank < 3) return o;
  o.erase(o.begin() + 1);
  o.push_back(1);
  return o;
}

bool isIdentity(const Order& order) {
  return order == identityOrder(order.size());
}

int64_t positionOf(const Order& order, int64_t axis) {
  auto at = std::find(order.begin(), order.end(), axis);
  return at == order.end() ? -1 : at - order.begin();
}

Order permutation(const Order& from, const Order& to) {
  Order axes;
  for (int64_t a : to) axes.push_back(positionOf(from, a));
  return axes;
}

bool movesOnlyOnes(const Array<Expr>& shape, const Order& axes) {
  int64_t last = -1;
  for (int64_t a : axes) {
    if (isConst(shape[size_t(a)], 1)) continue;
    if (a < last) return false;
    last = a;
  }
  return true;
}

Tensor reshapeHost(const Tensor& t, const std::vector<int64_t>& shape) {
  return TensorObject::wrap(t->dtype, shape, t->bytes(), std::make_shared<Tensor>(t));
}

namespace {

// Constants whose elements are whole bytes are moved here; strings and packed elements take a permute_dims.
Tensor movableConstant(const GraphExpr& e) {
  Tensor t = tensorOfConstant(e);
  return t && !t->dtype.isString() && t->dtype.bits >= 8 ? t : nullptr;
}

Tensor permuteHost(const Tensor& t, const Order& order) {
  size_t rank = order.size();
  std::vector<int64_t> strides(rank), shape(rank), step(rank), index(rank, 0);
  int64_t bytes = t->dtype.bytesFor(1);
  for (size_t d = rank, stride = size_t(bytes); d-- > 0; stride *= size_t(t->shape[d]))
    strides[d] = int64_t(stride);
  for (size_t k = 0; k < rank; ++k) {
    shape[k] = t->shape[size_t(order[k])];
    step[k] = strides[size_t(order[k])];
  }
  auto out = TensorObject::zeros(t->dtype, shape);
  for (int64_t i = 0, from = 0; i < t->size(); ++i) {
    std::memcpy(out->mutableBytes() + i * bytes, t->bytes() + from, size_t(bytes));
    for (size_t d = rank; d-- > 0; index[d] = 0) {
      from += step[d];
      if (++index[d] < shape[d]) break;
      from -= step[d] * shape[d];
    }
  }
  return out;
}

GraphExpr constantLike(const GraphExpr& old, Tensor value) {
  return make<const ConstantNode>(std::move(value), old.as<ConstantNode>()->name);
}

Array<Expr> inOrder(const Array<Expr>& shape, const Order& order) {
  Array<Expr> out;
  for (int64_t a : order) out.push_back(shape[size_t(a)]);
  return out;
}

} // namespace

// Binds a call to a variable of the current block, without the checks of dimensions that the original call
// had already.
GraphExpr Chooser::bind(const GraphExpr& value, const std::string& hint) {
  auto type = builder.infer(value);
  if (!type) return fault(std::move(type.error()));
  GraphVar v = make<const GraphVarNode>(builder.freshVarName(hint), *type, builder.inDataflow());
  if (auto ok = builder.emitBinding(v, value); !ok) return fault(std::move(ok.error()));
  return v;
}

GraphExpr Chooser::rearrange(const Form& from, const Order& to, const std::string& hint) {
  Order axes = permutation(from.order, to);
  if (isIdentity(axes)) return from.value;
  if (Tensor value = movableConstant(from.value)) return constantLike(from.value, permuteHost(value, axes));
  const auto* t = knownTensor(from.value);
  if (t && movesOnlyOnes(t->shape, axes))
    return bind(opCall("reshape", {from.value, make<const ShapeExprNode>(inOrder(t->shape, axes))}), hint);
  return bind(opCall("permute_dims", {from.value}, dict({{"axes", intList(axes)}})), hint);
}

GraphExpr Chooser::visitExpr(const GraphExpr& e) {
  const auto* v = e.as<GraphVarNode>();
  auto it = v ? states_.find(GraphVar(v)) : states_.end();
  if (it == states_.end()) return ExprMutator::visitExpr(e);
  State& s = it->second;
  if (!s.logical)
    s.logical = rearrange(s.forms[0], identityOrder(s.forms[0].order.size()), v->name + "_first");
  return s.logical;
}

// The value with its axes in that order; emitted when it does not exist yet.
GraphExpr Chooser::formOf(const GraphExpr& e, const Order& order) {
  if (isIdentity(order)) return visitExpr(e);
  const auto* v = e.as<GraphVarNode>();
  if (!v) return rearrange({visitExpr(e), identityOrder(order.size())}, order, "lv");
  State& s = states_[GraphVar(v)];
  for (const Form& f : s.forms)
    if (f.order == order) return f.value;
  if (s.forms.empty()) s.logical = replacement(GraphVar(v));
  Form from = s.forms.empty() || s.logical ? Form{s.logical, identityOrder(order.size())} : s.forms[0];
  GraphExpr made = rearrange(from, order, v->name + "_last");
  if (made) s.forms.push_back({made, order});
  return made;
}

// An operand of an elementwise call whose result has that order: operands of lower rank get leading axes
// first.
GraphExpr Chooser::broadcastForm(const GraphExpr& e, const Order& order) {
  const auto* t = knownTensor(e);
  if (!t || allOnes(*t)) return visitExpr(e);
  if (t->shape.size() == order.size()) return formOf(e, order);
  size_t missing = order.size() - t->shape.size();
  if (Tensor value = movableConstant(e)) {
    std::vector<int64_t> shape = value->shape;
    shape.insert(shape.begin(), missing, 1);
    Tensor moved = permuteHost(reshapeHost(value, shape), order);
    size_t leading = 0;
    while (leading + 1 < moved->shape.size() && moved->shape[leading] == 1) ++leading;
    return constantLike(e,
                        reshapeHost(moved, {moved->shape.begin() + ptrdiff_t(leading), moved->shape.end()}));
  }
  GraphExpr value = visitExpr(e);
  if (!value) return nullptr;
  Array<Expr> shape;
  for (size_t i = 0; i < missing; ++i) shape.push_back(intImm(1));
  shape.append(t->shape);
  GraphExpr wide = bind(opCall("reshape", {value, make<const ShapeExprNode>(shape)}), "lv");
  return wide ? rearrange({wide, identityOrder(order.size())}, order, "lv") : nullptr;
}

const std::vector<Form>* Chooser::formsOf(const GraphExpr& e) const {
  const auto* v = e.as<GraphVarNode>();
  auto it = v ? states_.find(GraphVar(v)) : states_.end();
  return it == states_.end() || it->second.forms.empty() ? nullptr : &it->second.forms;
}

bool Chooser::hasLast(const GraphExpr& e) const {
  const std::vector<Form>* forms = formsOf(e);
  return forms && std::any_of(forms->begin(), forms->end(),
                              [](const Form& f) { return f.order == lastOrder(f.order.size()); });
}

// The type of the converted result is that of the variable with its axes moved.
bool Chooser::agrees(const Form& made, const Type& type, const Type& logical) {
  const auto *a = type.as<TensorTypeNode>(), *b = logical.as<TensorTypeNode>();
  return a && b && a->known && b->known && a->dtype == b->dtype && made.order.size() == b->shape.size() &&
         sameDims(a->shape, inOrder(b->shape, made.order), builder.analyzer());
}

Status Chooser::bindResult(const GraphVar& v, Form made) {
  bool logical = isIdentity(made.order), call = made.value.is<GraphCallNode>();
  if (logical) return bindOrReplace(v, made.value);
  if (call) {
    BEVEL_TRY(Type type, builder.infer(made.value));
    GraphVar moved = make<const GraphVarNode>(v->dataflow ? v->name : builder.freshVarName(v->name + "_last"),
                                              type, v->dataflow);
    BEVEL_CHECK(builder.emitBinding(moved, made.value));
    made.value = moved;
  }
  State s{nullptr, {made}};
  if (!v->dataflow) { // seen outside this block: logical, by its own name
    Order axes = permutation(made.order, identityOrder(made.order.size()));
    BEVEL_CHECK(
        builder.emitBinding(v, opCall("permute_dims", {made.value}, dict({{"axes", intList(axes)}}))));
    s.logical = v;
  }
  states_[v] = std::move(s);
  return {};
}

Status Chooser::visitBinding(const VarBinding& b) {
  const auto* call = b->value.as<GraphCallNode>();
  if (!call || !call->op.is<OpRefNode>() || !knownTensor(b->var)) return ExprMutator::visitBinding(b);
  Origin outer = builder.origin();
  if (b->value->origin) builder.setOrigin(b->value->origin);
  std::optional<Form> made = convert(*call, b);
  bool good = made.has_value();
  if (good && made->value.is<GraphCallNode>()) {
    auto type = builder.infer(made->value);
    good = type && agrees(*made, *type, b->var->type);
  }
  Status status = good ? bindResult(b->var, std::move(*made)) : ExprMutator::visitBinding(b);
  builder.setOrigin(std::move(outer));
  return status;
}

Status Chooser::visitBlock(const BindingBlock& block) {
  Status status = ExprMutator::visitBlock(block);
  if (block->dataflow) states_.clear(); // forms are seen in their block only; what leaves it is logical
  return status;
}

// What a branch makes of values from outside is not seen after it.
Status Chooser::visitSeqBody(const SeqExpr& seq, GraphExpr& result) {
  auto outside = states_;
  Status status = ExprMutator::visitSeqBody(seq, result);
  states_ = std::move(outside);
  return status;
}

} // namespace layout

Result<Module> chooseLayout(const Module& module, const Ask& ask) {
  BEVEL_TRY(Module out, mapFunctions(module, [&](const Module& soFar, const Function& f) -> Result<Function> {
              bool any = false;
              forEachCall(f, [&](const GraphCall& c, const GraphVar&) { any |= layout::isConvolution(*c); });
              if (!any) return f;
              layout::Chooser chooser(soFar, ask);
              BEVEL_TRY(Function after, chooser.mutateFunction(f));
              return chooser.converted ? withAttr(after, "channels_last", intImm(chooser.converted)) : f;
            }));
  return removeDead(out);
}

} // namespace bevel
