// How each operator bears another order of axes (see layout.cc).
#include "select/layout_impl.h"

#include "graph/visitor.h"

#include <algorithm>

namespace bevel::layout {
namespace {

bool isConv(std::string_view op) {
  return op.starts_with("nn.conv");
}
bool isTransposed(std::string_view op) {
  return op.starts_with("nn.conv_transpose");
}

struct ConvShape {
  int64_t outputs = 0, groups = 1, perGroup = 0; // perGroup: inputs of one group
};

std::optional<ConvShape> convShape(const GraphCallNode& c) {
  if (!isConv(c.opName()) || c.args.size() != 2) return std::nullopt;
  const auto *x = knownTensor(c.args[0]), *w = knownTensor(c.args[1]);
  if (!x || !w || x->shape.size() < 3 || w->shape.size() != x->shape.size()) return std::nullopt;
  if (attrStr(c.attrs, "data_layout", "NCHW") != "NCHW" ||
      attrStr(c.attrs, "kernel_layout", "OIHW") != "OIHW")
    return std::nullopt;
  auto first = asConst(w->shape[0]), second = asConst(w->shape[1]);
  int64_t groups = attrInt(c.attrs, "groups", 1);
  if (!first || !second || groups < 1 || *first < 1 || *second < 1) return std::nullopt;
  if (isTransposed(c.opName())) return ConvShape{*second * groups, groups, *first / groups};
  return ConvShape{*first, groups, *second};
}

// The axes named by an attribute, non-negative; nothing when they are out of range.
std::optional<Order> axesOf(const GraphCallNode& c, const char* name, size_t rank) {
  Order axes = attrInts(c.attrs, name);
  for (int64_t& a : axes) {
    if (a < 0) a += int64_t(rank);
    if (a < 0 || a >= int64_t(rank)) return std::nullopt;
  }
  return axes;
}

// The axis that the attribute names, non-negative; nothing when it is out of range.
std::optional<int64_t> axisOf(const GraphCallNode& c, size_t rank, int64_t otherwise = 0) {
  int64_t axis = attrInt(c.attrs, "axis", otherwise);
  if (axis < 0) axis += int64_t(rank);
  return axis < 0 || axis >= int64_t(rank) ? std::nullopt : std::optional(axis);
}

Dict withAxis(const GraphCallNode& c, const Order& order, int64_t axis) {
  return withAttr(c.attrs, "axis", intImm(positionOf(order, axis)));
}

Dict channelsLast(const Dict& attrs) {
  return withAttr(attrs, "data_layout", str("NHWC"));
}

} // namespace

bool allOnes(const TensorTypeNode& t) {
  return std::all_of(t.shape.begin(), t.shape.end(), [](const Expr& d) { return isConst(d, 1); });
}

std::optional<Order> permutationOf(const GraphCallNode& c) {
  const auto* t = knownTensor(c.args[0]);
  if (!t) return std::nullopt;
  Order all = identityOrder(t->shape.size());
  if (!attr(c.attrs, "axes")) return Order(all.rbegin(), all.rend());
  auto axes = axesOf(c, "axes", all.size());
  bool each = axes && std::is_permutation(axes->begin(), axes->end(), all.begin(), all.end());
  return each ? axes : std::nullopt;
}

bool isConvolution(const GraphCallNode& c) {
  return convShape(c).has_value();
}

std::optional<Form> Chooser::withArg(const GraphCallNode& c, const Form& x, Dict attrs, Order order) {
  if (!x.value) return std::nullopt;
  Array<GraphExpr> args = {x.value};
  for (size_t i = 1; i < c.args.size(); ++i) {
    GraphExpr a = visitExpr(c.args[i]);
    if (!a) return std::nullopt;
    args.push_back(a);
  }
  return Form{opCall(c.opName(), args, std::move(attrs)), std::move(order)};
}

std::optional<Form> Chooser::convert(const GraphCallNode& c, const VarBinding& b) {
  const std::string& op = c.opName();
  const TensorTypeNode& result = *knownTensor(b->var);
  if (isConv(op)) return convertConv(c, b);
  if (op == "permute_dims") return convertPermute(c);
  bool any = false;
  for (const GraphExpr& a : c.args) any |= formsOf(a) != nullptr;
  if (!any) return std::nullopt;
  if (op == "nn.max_pool" || op == "nn.avg_pool") return convertPool(c);
  if (op == "concat") return convertConcat(c);
  const Op* entry = findOp(op);
  if ((entry && entry->layout == LayoutKind::kAny) || op == "nn.prelu")
    return convertElementwise(c, result.shape.size());
  const std::vector<Form>* forms = formsOf(c.args[0]);
  if (!forms) return std::nullopt;
  Form x = (*forms)[0];
  if (op == "nn.softmax" || op == "nn.log_softmax" || op == "flip" || op == "image.resize_axis")
    return convertAxis(c, x);
  if (op == "strided_slice") return convertSlice(c, x);
  if (op == "nn.pad") return convertPerAxis(c, x, 2);
  if (op == "tile") return convertPerAxis(c, x, 1);
  if (op == "take") return convertTake(c, x);
  if (op == "reshape" || op == "expand_dims" || op == "squeeze") return convertReshape(c, x, result);
  for (const char* reduce : {"sum", "mean", "max", "min", "prod", "all", "any", "argmax", "argmin"})
    if (op == reduce) return convertReduce(c, x);
  return std::nullopt;
}

// The layout that the answer wants for a convolution; the model wants channels last where they fill vectors.
Result<bool> Chooser::wantsLast(const GraphCallNode& c, const VarBinding& b) {
  constexpr int64_t kFewestOutputs = 8;
  bool fills = convShape(c)->outputs >= kFewestOutputs, last = fills || hasLast(c.args[0]);
  if (!ask_) return last;
  const char* why = fills  ? "its output channels fill vectors"
                    : last ? "few output channels, but its input is channels last"
                           : "its few output channels do not fill vectors";
  Question q{
      "layout of " + subjectOf(b), {str("channels last"), str("channels first")}, {}, last ? 0u : 1u, why};
  BEVEL_TRY(size_t answer, ask_(q));
  return answer == 0;
}

std::optional<Form> Chooser::convertConv(const GraphCallNode& c, const VarBinding& b) {
  auto shape = convShape(c);
  auto last = shape ? wantsLast(c, b) : Result<bool>(false);
  if (!last) fault(std::move(last.error()));
  if (!last || !*last) return std::nullopt;
  size_t rank = knownTensor(c.args[0])->shape.size();
  Form x{formOf(c.args[0], lastOrder(rank)), lastOrder(rank)};
  GraphExpr w = c.args[1];
  Dict attrs = channelsLast(c.attrs);
  if (!isTransposed(c.opName()) && shape->groups > 1 && shape->perGroup == 1 && tensorOfConstant(w)) {
    // One input a group: channels of the weight become its last axis, so that they are contiguous.
    Order order;
    for (size_t d = 2; d < rank; ++d) order.push_back(int64_t(d));
    order.insert(order.end(), {1, 0});
    GraphExpr moved = rearrange({w, identityOrder(rank)}, order, "lv");
    Tensor t = tensorOfConstant(moved);
    std::vector<int64_t> dims = t->shape;
    dims.erase(dims.end() - 2);
    w = make<const ConstantNode>(reshapeHost(t, dims), w.as<ConstantNode>()->name);
    attrs = withAttr(attrs, "kernel_layout", str("HWO"));
  } else
    w = visitExpr(w);
  if (!x.value || !w) return std::nullopt;
  ++converted;
  return Form{opCall(c.opName(), {x.value, w}, attrs), x.order};
}

std::optional<Form> Chooser::convertPool(const GraphCallNode& c) {
  if (!hasLast(c.args[0]) || attrStr(c.attrs, "data_layout", "NCHW") != "NCHW") return std::nullopt;
  Order order = lastOrder(knownTensor(c.args[0])->shape.size());
  ++converted;
  return withArg(c, {formOf(c.args[0], order), order}, channelsLast(c.attrs), order);
}

// The order for a call of several tensors that broadcast to `rank`: channels last when one of them has it;
// another one only when nothing else would have to move.
std::optional<Order> Chooser::commonOrder(const GraphCallNode& c, size_t rank) {
  std::optional<Order> other;
  for (const GraphExpr& a : c.args) {
    const auto* t = knownTensor(a);
    if (!t && !isAbsent(a) && a->type.is<TensorTypeNode>()) return std::nullopt;
    const std::vector<Form>* forms = t && t->shape.size() == rank ? formsOf(a) : nullptr;
    if (!forms) continue;
    if (rank > 2 && hasLast(a)) return lastOrder(rank);
    if (!other) other = (*forms)[0].order;
  }
  if (!other) return std::nullopt;
  for (const GraphExpr& a : c.args) {
    const auto* t = knownTensor(a);
    if (!t || tensorOfConstant(a) || allOnes(*t)) continue;
    const std::vector<Form>* forms = t->shape.size() == rank ? formsOf(a) : nullptr;
    if (!forms ||
        std::none_of(forms->begin(), forms->end(), [&](const Form& f) { return f.order == *other; }))
      return std::nullopt;
  }
  return other;
}

std::optional<Form> Chooser::convertElementwise(const GraphCallNode& c, size_t rank) {
  auto order = commonOrder(c, rank);
  return order ? ofForms(c, *order, c.attrs) : std::nullopt;
}

// The call of its tensors in that order.
std::optional<Form> Chooser::ofForms(const GraphCallNode& c, const Order& order, Dict attrs) {
  Array<GraphExpr> args;
  for (const GraphExpr& a : c.args) {
    GraphExpr moved = broadcastForm(a, order);
    if (!moved) return std::nullopt;
    args.push_back(moved);
  }
  return Form{opCall(c.opName(), args, std::move(attrs)), order};
}

std::optional<Form> Chooser::convertConcat(const GraphCallNode& c) {
  const auto* t = knownTensor(c.args[0]);
  if (!t) return std::nullopt;
  size_t rank = t->shape.size();
  for (const GraphExpr& a : c.args)
    if (!knownTensor(a) || knownTensor(a)->shape.size() != rank) return std::nullopt;
  auto order = commonOrder(c, rank);
  auto axis = axisOf(c, rank);
  if (!order || !axis) return std::nullopt;
  return ofForms(c, *order, withAxis(c, *order, *axis));
}

// One axis in attribute "axis"; all others pass through.
std::optional<Form> Chooser::convertAxis(const GraphCallNode& c, const Form& x) {
  auto axis = axisOf(c, x.order.size(), c.opName() == "flip" ? 0 : -1);
  return axis ? withArg(c, x, withAxis(c, x.order, *axis), x.order) : std::nullopt;
}

std::optional<Form> Chooser::convertSlice(const GraphCallNode& c, const Form& x) {
  if (!knownTensor(c.args[0])) return std::nullopt;
  Order axes;
  if (attr(c.attrs, "axes")) {
    auto given = axesOf(c, "axes", x.order.size());
    if (!given) return std::nullopt;
    axes = *given;
  } else {
    const auto* begin = c.args.size() > 1 ? c.args[1]->type.as<ShapeTypeNode>() : nullptr;
    if (!begin || begin->ndim < 0 || begin->ndim > int64_t(x.order.size())) return std::nullopt;
    axes = identityOrder(size_t(begin->ndim));
  }
  for (int64_t& a : axes) a = positionOf(x.order, a);
  return withArg(c, x, withAttr(c.attrs, "axes", intList(axes)), x.order);
}

// Argument 1 holds `lists` lists of one value an axis, one after the other.
std::optional<Form> Chooser::convertPerAxis(const GraphCallNode& c, const Form& x, size_t lists) {
  size_t rank = x.order.size();
  const auto* values = c.args.size() > 1 ? c.args[1].as<ShapeExprNode>() : nullptr;
  if (!values || values->values.size() != lists * rank) return std::nullopt;
  Array<Expr> moved;
  for (size_t l = 0; l < lists; ++l)
    for (int64_t a : x.order) moved.push_back(values->values[l * rank + size_t(a)]);
  auto out = withArg(c, x, c.attrs, x.order);
  if (!out) return std::nullopt;
  auto call = mutableCopy(cast<GraphCallNode>(out->value));
  call->args.set(1, make<const ShapeExprNode>(moved));
  return Form{GraphExpr(call), out->order};
}

std::optional<Form> Chooser::convertReduce(const GraphCallNode& c, const Form& x) {
  if (c.args.size() != 1) return std::nullopt;
  size_t rank = x.order.size();
  bool arg = c.opName().starts_with("arg"), keep = attrInt(c.attrs, "keepdims", arg) != 0;
  Order axes = identityOrder(rank);
  if (arg) {
    auto axis = axisOf(c, rank);
    if (!axis) return std::nullopt;
    axes = {*axis};
  } else if (attr(c.attrs, "axis")) {
    auto given = axesOf(c, "axis", rank);
    if (!given || given->empty()) return std::nullopt; // an empty list: as the operator defines it
    axes = *given;
  }
  Order moved, result;
  for (size_t k = 0; k < rank; ++k) {
    bool folded = std::find(axes.begin(), axes.end(), x.order[k]) != axes.end();
    if (folded) moved.push_back(int64_t(k));
    if (folded && !keep) continue;
    int64_t axis = x.order[k];
    if (!keep) axis -= std::count_if(axes.begin(), axes.end(), [&](int64_t a) { return a < x.order[k]; });
    result.push_back(axis);
  }
  return withArg(c, x, withAttr(c.attrs, "axis", arg ? NodeRef(intImm(moved[0])) : intList(moved)), result);
}

// Indices of rank 0 or 1: the axis goes or stays.
std::optional<Form> Chooser::convertTake(const GraphCallNode& c, const Form& x) {
  const auto* indices = c.args.size() == 2 ? knownTensor(c.args[1]) : nullptr;
  auto axis = axisOf(c, x.order.size());
  if (!indices || indices->shape.size() > 1 || !axis) return std::nullopt;
  Order result;
  for (int64_t a : x.order) {
    if (indices->shape.empty() && a == *axis) continue;
    result.push_back(indices->shape.empty() && a > *axis ? a - 1 : a);
  }
  return withArg(c, x, withAxis(c, x.order, *axis), result);
}

// Notes the form only. Of several forms of the input, one whose axes come out in logical order is best.
std::optional<Form> Chooser::convertPermute(const GraphCallNode& c) {
  auto axes = permutationOf(c);
  if (!axes || !c.args[0].is<GraphVarNode>()) return std::nullopt;
  size_t rank = axes->size();
  auto it = states_.find(GraphVar(c.args[0].as<GraphVarNode>()));
  std::vector<Form> from;
  if (it != states_.end()) from = it->second.forms;
  if (it == states_.end() || from.empty())
    from.push_back({visitExpr(c.args[0]), identityOrder(rank)});
  else if (it->second.logical)
    from.push_back({it->second.logical, identityOrder(rank)});
  std::optional<Form> best;
  for (const Form& f : from) {
    if (!f.value) return std::nullopt;
    Form made{f.value, permutation(*axes, f.order)};
    if (isIdentity(made.order)) return made;
    if (!best || made.order == lastOrder(rank)) best = made;
  }
  return best;
}

namespace {

// Dimensions [first, last) of the input that become dimensions [toFirst, toLast) of the result.
struct Group {
  size_t first, last, toFirst, toLast;
};

// Groups of equal products, as fine as can be proved.
std::vector<Group> groupsOf(Analyzer& an, const Array<Expr>& from, const Array<Expr>& to) {
  std::vector<Group> out;
  size_t i = 0, j = 0;
  while (i < from.size() || j < to.size()) {
    Group g{i, i, j, j};
    Expr p = i < from.size() ? from[i++] : intImm(1), q = j < to.size() ? to[j++] : intImm(1);
    while (!provedEqual(an, p, q) && (i < from.size() || j < to.size())) {
      auto cp = asConst(p), cq = asConst(q);
      bool left = i < from.size() &&
                  (j >= to.size() ||
                   (cp && cq ? *cp < *cq : cp.has_value() || (!cq && from.size() - i >= to.size() - j)));
      if (left)
        p = an.simplify(p * from[i++]);
      else
        q = an.simplify(q * to[j++]);
    }
    g.last = i;
    g.toLast = j;
    out.push_back(g);
  }
  return out;
}

} // namespace

// Groups keep the order in which their innermost axes lie; each becomes contiguous before the reshape.
std::optional<Form> Chooser::convertReshape(const GraphCallNode& c, const Form& x,
                                            const TensorTypeNode& result) {
  const auto* t = knownTensor(c.args[0]);
  if (!t) return std::nullopt;
  std::vector<Group> groups = groupsOf(builder.analyzer(), t->shape, result.shape);
  auto place = [&](const Group& g) {
    int64_t real = -1, any = -1;
    for (size_t d = g.first; d < g.last; ++d) {
      int64_t p = positionOf(x.order, int64_t(d));
      any = std::max(any, p);
      if (!isConst(t->shape[d], 1)) real = std::max(real, p);
    }
    return real >= 0 ? real : any;
  };
  // Groups without elements of their own (dimensions of one) stay behind the group before them.
  std::vector<std::pair<int64_t, size_t>> places;
  for (size_t k = 0; k < groups.size(); ++k) {
    bool ones = true;
    for (size_t d = groups[k].first; d < groups[k].last; ++d) ones &= isConst(t->shape[d], 1);
    places.push_back({ones && k > 0 ? places[k - 1].first : place(groups[k]), k});
  }
  std::stable_sort(places.begin(), places.end());
  Order wanted, order;
  Array<Expr> shape;
  for (const auto& [p, k] : places) {
    for (size_t d = groups[k].first; d < groups[k].last; ++d) wanted.push_back(int64_t(d));
    for (size_t d = groups[k].toFirst; d < groups[k].toLast; ++d) {
      order.push_back(int64_t(d));
      shape.push_back(result.shape[d]);
    }
  }
  if (isIdentity(wanted)) return std::nullopt; // a reshape of the logical value
  GraphExpr moved = rearrange(x, wanted, "lv");
  if (!moved) return std::nullopt;
  return Form{opCall("reshape", {moved, make<const ShapeExprNode>(shape)}), order};
}

} // namespace bevel::layout
