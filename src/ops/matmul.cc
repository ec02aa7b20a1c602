// Matrix products: numpy matmul with batch broadcasting, and the integer products of quantised models.
//
// Half and bfloat16 accumulate in fp32; 8-bit integers in int32. K = 0 gives zeros.
#include "ops/common.h"

namespace bevel::ops {

namespace {

// Shapes of a product: batch dims and M, N, K, with vectors promoted as numpy does.
struct Product {
  Array<Expr> batch, result;
  bool vectorA, vectorB;
  Expr k;
};

Array<Expr> batchDims(const Array<Expr>& shape) {
  return shape.size() < 2 ? Array<Expr>{} : shape.slice(0, shape.size() - 2);
}

Result<Product> productOf(const OpCall& call, InferContext& context) {
  const Array<Expr>&a = call.shape(0), &b = call.shape(1);
  Product p;
  p.vectorA = a.size() == 1;
  p.vectorB = b.size() == 1;
  p.k = a.back();
  Expr kb = p.vectorB ? b[0] : b[b.size() - 2];
  auto ca = asConst(p.k), cb = asConst(kb);
  if (ca && cb && *ca != *cb) return call.invalid(fmt::format("inner dimensions are {} and {}", *ca, *cb));
  BEVEL_CHECK(context.require(eq(p.k, kb), call, "inner dimensions differ"));
  if (cb && !ca) p.k = kb;
  BEVEL_TRY(p.batch, broadcastShapes(call, context, batchDims(a), batchDims(b)));
  p.result = p.batch;
  if (!p.vectorA) p.result.push_back(a[a.size() - 2]);
  if (!p.vectorB) p.result.push_back(b.back());
  return p;
}

Result<Type> matmulInfer(const OpCall& call, InferContext& context) {
  BEVEL_TRY(Product p, productOf(call, context));
  DType out = call.dtypeAttr("out_dtype");
  if (out.isVoid()) {
    BEVEL_CHECK(requireSameDType(call, 0, 2));
    out = call.dtype(0);
  }
  if (out.isBool() || out.isString()) return call.unsupported("is not defined on " + out.str());
  return tensorOf(out, p.result);
}

// Indices of an operand: its batch dims (broadcast), then row and column as its rank has them.
Expr readOperand(const te::Tensor& t, const Array<Expr>& batch, const Array<Var>& i, const Expr& row,
                 const Expr& column) {
  Array<Expr> index;
  if (t.rank() > 2) {
    Array<Var> outer;
    for (size_t d = 0; d < batch.size(); ++d) outer.push_back(i[d]);
    index = broadcastIndex(t.shape().slice(0, t.rank() - 2), batch, outer);
  }
  if (row) index.push_back(row);
  if (column) index.push_back(column);
  return t(index);
}

Result<TeTensors> matmulCompute(const OpCall& call, const TeTensors& in) {
  Analyzer analyzer;
  InferContext context(analyzer);
  BEVEL_TRY(Product p, productOf(call, context));
  DType out = resultDType(call), acc = accumulatorOf(call.dtype(0), out);
  te::Tensor sum = te::compute(p.result, "matmul", [&](const Array<Var>& i) {
    IterVar k = te::reduceAxis(p.k, "k");
    size_t b = p.batch.size();
    Expr row = p.vectorA ? Expr() : Expr(i[b]),
         column = p.vectorB ? Expr() : Expr(i[b + (p.vectorA ? 0 : 1)]);
    Expr x = castTo(acc, readOperand(in[0], p.batch, i, row, k->var));
    Expr y = castTo(acc, readOperand(in[1], p.batch, i, k->var, column));
    return te::sum(x * y, {k});
  });
  if (acc == out) return TeTensors{sum};
  return TeTensors{mapTensor(sum, "matmul_cast", [](Expr x) { return x; }, out)};
}

} // namespace

void register_matmul(OpRegistry& r) {
  r.add({.name = "matmul",
         .doc = "Matrix product with numpy's rules for vectors and batches. out_dtype: of the result (int32 "
                "for 8-bit inputs).\n"
                "ONNX MatMul, numpy matmul.",
         .inputs = {OpInput("a").of(Elements::kNumbers).rank(1, 64),
                    OpInput("b").of(Elements::kNumbers).rank(1, 64)},
         .attrs = {dtypeAttr("out_dtype")},
         .infer = matmulInfer,
         .compute = matmulCompute,
         .layout = LayoutKind::kContraction,
         .onnx = {{"MatMul"}},
         .tests = {"float32[3,4] float32[4,5]", "float32[7] float32[7]", "float32[7] float32[2,7,3]",
                   "float32[2,1,3,4] float32[5,4,2]", "float32[3,0] float32[0,2]",
                   "int8[3,4]:int9 int8[4,5]:int9 out_dtype=int32", "float16[3,4] float16[4,2]"}});
}

} // namespace bevel::ops
