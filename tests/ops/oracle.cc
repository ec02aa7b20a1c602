// See oracle.h.
#include "ops/oracle.h"

#include <cstring>

namespace bevel::test {

void add_activation(Oracles&);
void add_binary(Oracles&);
void add_conv(Oracles&);
void add_convert(Oracles&);
void add_index(Oracles&);
void add_matmul(Oracles&);
void add_move(Oracles&);
void add_norm(Oracles&);
void add_pool(Oracles&);
void add_random(Oracles&);
void add_recurrent(Oracles&);
void add_reduce(Oracles&);
void add_resize(Oracles&);
void add_sample(Oracles&);
void add_selection(Oracles&);
void add_shape(Oracles&);
void add_unary(Oracles&);

Oracle findOracle(const std::string& op) {
  static const Oracles all = [] {
    Oracles oracles;
    for (auto* add : {add_activation, add_binary, add_conv, add_convert, add_index, add_matmul, add_move,
                      add_norm, add_pool, add_random, add_recurrent, add_reduce, add_resize, add_sample,
                      add_selection, add_shape, add_unary})
      add(oracles);
    return oracles;
  }();
  auto it = all.find(op);
  return it == all.end() ? nullptr : it->second;
}

std::optional<Ints> constValues(const OpCall& call, size_t i) {
  return constDims(call.values(i));
}

Result<HostTensors> evaluate(const GraphCall& call, const HostTensors& inputs) {
  const Op* op = findOp(call->opName());
  Oracle oracle = findOracle(call->opName());
  if (!op || !oracle)
    return fail(ErrorCode::kUnsupported, fmt::format("operator '{}' has no oracle", call->opName()));
  BEVEL_TRY(OpCall checked, checkCall(*op, call->args, call->attrs));
  for (size_t i = 0; i < checked.size(); ++i) {
    if (!checked.has(i)) continue;
    if (const auto* t = checked.type(i).as<TensorTypeNode>()) {
      if (i >= inputs.size() || !inputs[i] || constDims(t->shape) != inputs[i]->shape ||
          t->dtype != inputs[i]->dtype)
        return fail(
            checked.error(ErrorCode::kInvalid, fmt::format("value of input {} differs from its type", i)));
    } else if (op->inputs[std::min(i, op->inputs.size() - 1)].kind == InputKind::kShape &&
               !constValues(checked, i)) {
      return checked.unsupported("a shape value is symbolic");
    }
  }
  return oracle(checked, inputs);
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

} // namespace bevel::test
