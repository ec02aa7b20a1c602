// Shared inference, expression and host helpers of the operator families.
#include "ops/common.h"

#include "arith/dims.h"

#include <cstring>

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

Status requireFloat(const OpCall& call, size_t input) {
  if (call.dtype(input).isFloat()) return {};
  return call.invalid(fmt::format("a float tensor is expected, {} given", call.dtype(input).str()));
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

int64_t count(const Ints& shape) {
  int64_t n = 1;
  for (int64_t d : shape) n *= d;
  return n;
}

Ints stridesOf(const Ints& shape) {
  Ints out(shape.size());
  int64_t n = 1;
  for (size_t i = shape.size(); i-- > 0; n *= shape[i]) out[i] = n;
  return out;
}

void forEachIndex(const Ints& shape, FunctionRef<void(const Ints&)> f) {
  Ints index(shape.size(), 0);
  for (int64_t n = count(shape); n > 0; --n) {
    f(index);
    for (size_t d = shape.size(); d-- > 0;) {
      if (++index[d] < shape[d]) break;
      index[d] = 0;
    }
  }
}

int64_t offsetOf(const Ints& index, const Ints& strides) {
  int64_t o = 0;
  for (size_t d = 0; d < strides.size(); ++d) o += index[d] * strides[d];
  return o;
}

Ints broadcastDims(const Ints& a, const Ints& b) {
  const Ints &longer = a.size() >= b.size() ? a : b, &shorter = a.size() >= b.size() ? b : a;
  Ints out = longer;
  for (size_t i = 0, o = longer.size() - shorter.size(); i < shorter.size(); ++i)
    if (out[o + i] == 1) out[o + i] = shorter[i];
  return out;
}

int64_t broadcastOffset(const Ints& from, const Ints& index) {
  int64_t o = 0, stride = 1;
  for (size_t d = from.size(), k = index.size(); d-- > 0;) {
    --k;
    if (from[d] != 1) o += index[k] * stride;
    stride *= from[d];
  }
  return o;
}

Ints hostDims(const Array<Expr>& shape) {
  auto dims = constDims(shape);
  if (dims) return *dims;
  Analyzer analyzer;
  Ints out;
  for (const Expr& e : shape) {
    auto c = asConst(analyzer.simplify(e));
    BEVEL_ASSERT(c.has_value(), "a host evaluation has static shapes");
    out.push_back(*c);
  }
  return out;
}

Ints hostShape(const OpCall& call, size_t result) {
  return hostDims(resultShape(call, result));
}

Ref<TensorObject> mapHost(const Tensor& x, DType out, FunctionRef<double(double)> f,
                          FunctionRef<int64_t(int64_t)> g) {
  auto y = TensorObject::zeros(out, x->shape);
  bool real = x->dtype.isFloat();
  for (int64_t i = 0; i < x->size(); ++i)
    if (real)
      y->setDouble(i, f(x->asDouble(i)));
    else
      y->setInt(i, g(x->asInt(i)));
  return y;
}

void copyElement(TensorObject& dst, int64_t i, const TensorObject& src, int64_t j) {
  if (dst.dtype.isString())
    dst.strings[size_t(i)] = src.strings[size_t(j)];
  else if (dst.dtype.bits >= 8) {
    int64_t bytes = dst.dtype.bytesFor(1);
    std::memcpy(dst.mutableBytes() + i * bytes, src.bytes() + j * bytes, size_t(bytes));
  } else if (dst.dtype.isFloat())
    dst.setDouble(i, src.asDouble(j));
  else
    dst.setInt(i, src.asInt(j));
}

Ref<TensorObject> gatherHost(const Tensor& src, const Ints& shape, FunctionRef<int64_t(const Ints&)> source,
                             const Tensor& fill) {
  auto out = TensorObject::zeros(src->dtype, shape);
  int64_t i = 0;
  forEachIndex(shape, [&](const Ints& index) {
    int64_t j = source(index);
    if (j >= 0)
      copyElement(*out, i, *src, j);
    else if (fill)
      copyElement(*out, i, *fill, 0);
    ++i;
  });
  return out;
}

NodeRef ints(const Ints& v) {
  return intList(v);
}

} // namespace bevel::ops
