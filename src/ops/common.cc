// Shared inference, expression and host helpers of the operator families.
#include "ops/common.h"

#include "arith/dims.h"

#include <algorithm>

namespace bevel::ops {

Result<Type> sameAsInput(const OpCall& call, InferContext&) {
  return call.type(0);
}

Status requireSameDType(const OpCall& call, size_t first, size_t last) {
  for (size_t i = first + 1; i < last; ++i)
    if (call.has(i) && call.dtype(i) != call.dtype(first))
      return call.invalid(
          fmt::format("inputs are of {} and {}", call.dtype(first).str(), call.dtype(i).str()));
  return {};
}

Result<size_t> checkedAxis(const OpCall& call, size_t more) {
  BEVEL_TRY(int64_t axis, normalizeAxis(call, call.i("axis"), call.rank(0) + more));
  return size_t(axis);
}

size_t axisOf(const OpCall& call, size_t more) {
  auto axis = checkedAxis(call, more);
  BEVEL_ASSERT(axis.has_value(), "a call that was inferred before");
  return *axis;
}

Result<Type> axisInfer(const OpCall& call, InferContext&) {
  BEVEL_CHECK(checkedAxis(call));
  return call.type(0);
}

Status requireOneOf(const OpCall& call, const char* attr, std::initializer_list<std::string_view> known) {
  std::string value = call.s(attr);
  if (std::ranges::count(known, value)) return {};
  return call.invalid(fmt::format("unknown {} {}", attr, value));
}

Type tupleOf(Array<Type> fields) {
  return make<const TupleTypeNode>(std::move(fields));
}

static Result<Array<Expr>> broadcastAll(const OpCall& call, InferContext& context) {
  Array<Expr> shape = call.shape(0);
  for (size_t i = 1; i < call.size(); ++i) {
    if (!call.has(i)) continue;
    BEVEL_TRY(shape, broadcastShapes(call, context, shape, call.shape(i)));
  }
  return shape;
}

Result<Type> broadcastInfer(const OpCall& call, InferContext& context) {
  BEVEL_CHECK(requireSameDType(call, 0, call.size()));
  BEVEL_TRY(Array<Expr> shape, broadcastAll(call, context));
  return tensorOf(call.dtype(0), shape);
}

Result<Type> compareInfer(const OpCall& call, InferContext& context) {
  BEVEL_CHECK(requireSameDType(call, 0, call.size()));
  BEVEL_TRY(Array<Expr> shape, broadcastAll(call, context));
  return tensorOf(kBool, shape);
}

Array<Expr> broadcastIndex(const Array<Expr>& from, const Array<Expr>& to, const Array<Var>& index) {
  Array<Expr> out;
  size_t offset = to.size() - from.size();
  for (size_t d = 0; d < from.size(); ++d) {
    const Expr& i = index[offset + d];
    if (isConst(from[d], 1))
      out.push_back(isConst(to[offset + d], 1) ? i : constant(i->dtype, 0));
    else if (same(from[d], to[offset + d]) || asConst(from[d]))
      out.push_back(i);
    else
      out.push_back(select(eq(from[d], constant(from[d]->dtype, 1)), constant(i->dtype, 0), i));
  }
  return out;
}

Expr readBroadcast(const te::Tensor& t, const Array<Expr>& to, const Array<Var>& index) {
  return t(broadcastIndex(t.shape(), to, index));
}

te::Tensor mapTensor(const te::Tensor& x, const std::string& name, FunctionRef<Expr(Expr)> f, DType out) {
  DType t = out.isVoid() ? x.dtype() : out;
  return te::compute(x.shape(), name, [&](const Array<Var>& i) { return castTo(t, f(widen(x(exprs(i))))); });
}

te::Tensor zipTensors(const std::vector<te::Tensor>& in, const Array<Expr>& shape, const std::string& name,
                      FunctionRef<Expr(const std::vector<Expr>&)> f, DType out) {
  DType t = out.isVoid() ? in[0].dtype() : out;
  return te::compute(shape, name, [&](const Array<Var>& i) {
    std::vector<Expr> values;
    for (const te::Tensor& x : in) values.push_back(widen(readBroadcast(x, shape, i)));
    return castTo(t, f(values));
  });
}

static Type inferredResult(const OpCall& call, size_t result) {
  Analyzer analyzer;
  for (size_t i = 0; i < call.size(); ++i)
    if (call.type(i).is<TensorTypeNode>()) bindDims(call.shape(i), analyzer);
  InferContext context(analyzer);
  auto type = call.op.infer(call, context);
  BEVEL_ASSERT(type.has_value(), "a call that was inferred before");
  if (const auto* tuple = (*type).as<TupleTypeNode>()) return tuple->fields_[result];
  return *type;
}

Array<Expr> resultShape(const OpCall& call, size_t result) {
  return inferredResult(call, result).as<TensorTypeNode>()->shape;
}
DType resultDType(const OpCall& call, size_t result) {
  return inferredResult(call, result).as<TensorTypeNode>()->dtype;
}

Array<Expr> exprs(const Array<Var>& index) {
  return Array<Expr>(index);
}

ComputeFn elements(std::string name, Expr (*element)(const OpCall&, const TeTensors&, const Array<Var>&)) {
  return [name, element](const OpCall& call, const TeTensors& in) -> Result<TeTensors> {
    return TeTensors{
        te::compute(resultShape(call), name, [&](const Array<Var>& i) { return element(call, in, i); })};
  };
}

Array<Expr> without(const Array<Expr>& all, const Ints& axes) {
  Array<Expr> out;
  for (size_t d = 0; d < all.size(); ++d)
    if (!std::ranges::count(axes, int64_t(d))) out.push_back(all[d]);
  return out;
}

Array<Expr> inserted(const Array<Expr>& some, const Ints& axes, const Array<Expr>& values) {
  Array<Expr> out;
  for (size_t d = 0, a = 0; d < some.size() + axes.size(); ++d)
    if (a < axes.size() && axes[a] == int64_t(d))
      out.push_back(values[a++]);
    else
      out.push_back(some[d - a]);
  return out;
}

Stmt loopNest(const Array<Expr>& shape, FunctionRef<Stmt(const std::vector<Var>&)> body, const char* prefix,
              std::optional<size_t> own) {
  std::vector<Var> loops;
  for (size_t d = 0; d < shape.size(); ++d) loops.push_back(var(fmt::format("{}{}", prefix, d), kInt64));
  Stmt out = body(loops);
  for (size_t d = shape.size(); d-- > 0;)
    if (d != own) out = forLoop(loops[d], shape[d], out);
  return out;
}

Expr comesBefore(bool largest, bool nanFirst, const Expr& v, const Expr& i, const Expr& w, const Expr& k) {
  Expr better = largest ? v > w : v < w, same = eq(v, w);
  if (v->dtype.isFloat()) {
    Expr nv = callIntrin(Intrin::kIsNan, v), nw = callIntrin(Intrin::kIsNan, w);
    better = logicalOr(better, nanFirst ? logicalAnd(nv, logicalNot(nw)) : logicalAnd(nw, logicalNot(nv)));
    same = logicalOr(same, logicalAnd(nv, nw));
  }
  return logicalOr(better, logicalAnd(same, i < k));
}

Combiner argCombiner(DType t, bool largest, bool last) {
  Var i = var("i", kInt64), x = var("x", t), j = var("j", kInt64), y = var("y", t);
  Expr first = last ? Expr(j) : Expr(i), second = last ? Expr(i) : Expr(j);
  Expr left = comesBefore(largest, true, x, first, y, second);
  // The identity's index loses against every other.
  return make<const CombinerNode>(
      Array<Var>{i, x}, Array<Var>{j, y}, Array<Expr>{select(left, i, j), select(left, x, y)},
      Array<Expr>{last ? intImm(-1) : intImm(INT64_MAX), largest ? te::lowest(t) : te::highest(t)});
}

DType accumulatorOf(DType in, DType out) {
  bool small = in.isInteger() && in.bits < 32 && !out.isFloat() && out.bits <= 32;
  return small ? kInt32 : computeType(out);
}

Ints perDimension(const OpCall& call, const char* name, size_t n, int64_t otherwise) {
  Ints v = call.ints(name);
  return v.empty() ? Ints(n, otherwise) : v.size() == 1 ? Ints(n, v[0]) : v;
}

bool Window::isPadded() const {
  auto any = [](int64_t pad) { return pad != 0; };
  return std::ranges::any_of(before, any) || std::ranges::any_of(after, any);
}

Result<Window> windowOf(const OpCall& call, const Ints& kernel) {
  size_t n = kernel.size();
  Ints pads = perDimension(call, "padding", n, 0);
  if (pads.size() == n) pads.insert(pads.end(), pads.begin(), pads.begin() + ptrdiff_t(n));
  Window w{kernel, perDimension(call, "strides", n, 1), perDimension(call, "dilation", n, 1), {}, {}};
  if (w.strides.size() != n || w.dilation.size() != n || pads.size() != 2 * n)
    return call.invalid(fmt::format("strides, dilation and padding must fit {} spatial dimensions", n));
  w.before.assign(pads.begin(), pads.begin() + ptrdiff_t(n));
  w.after.assign(pads.begin() + ptrdiff_t(n), pads.end());
  for (const Ints* list : {&w.kernel, &w.strides, &w.dilation, &pads})
    for (int64_t v : *list) {
      if (v < 1 && list != &pads) return call.invalid("kernel, strides and dilation must be positive");
      if (v > int64_t(1) << 31 || v < -(int64_t(1) << 31))
        return call.invalid("a window attribute is too large");
    }
  if (!call.hasAttr("data_layout")) return w;
  BEVEL_CHECK(requireOneOf(call, "data_layout", {"NCHW", "NHWC"}));
  if (call.s("data_layout") == "NHWC") w.channel = n + 1, w.spatial = 1;
  return w;
}

} // namespace bevel::ops
