// Tensor expressions: computations described element by element, and their translation to a tensor program.
//
//   Tensor a = te::placeholder({n, k}, kFloat32, "A"), b = te::placeholder({k, m}, kFloat32, "B");
//   IterVar r = te::reduceAxis(k, "k");
//   Tensor c = te::compute({n, m}, "C", [&](const Array<Var>& i) {
//     return te::sum(a({i[0], r->var}) * b({r->var, i[1]}), {r});
//   });
//   PrimFunc f = te::createPrimFunc({a, b, c});
#pragma once

#include "base/function_ref.h"
#include "base/result.h"
#include "ir/build.h"

namespace bevel::te {

class OperationObject;
using Operation = Ref<const OperationObject>;

/// One result of an operation. Reading it is a load of its buffer.
struct Tensor {
  Operation op;
  size_t index = 0;

  const Buffer& buffer() const;
  const Array<Expr>& shape() const { return buffer()->shape; }
  size_t rank() const { return shape().size(); }
  DType dtype() const { return buffer()->dtype; }
  /// The element at the indices (one per dimension; index dtypes are widened to the buffer's).
  Expr operator()(Array<Expr> indices) const;
  bool same(const Tensor& other) const { return op == other.op && index == other.index; }
};

enum class OpKind : uint8_t { kPlaceholder, kCompute, kExtern, kScan };

/// A placeholder, a computation per element, a hand-written statement, or a scan.
class OperationObject : public Object {
public:
  OpKind kind = OpKind::kPlaceholder;
  std::string name;
  std::vector<Buffer> outputs;
  std::vector<Tensor> inputs; // what it reads, in order of first use
  Array<IterVar> axes;        // kCompute: one spatial axis a dimension
  Array<Expr> body;           // kCompute: one value an output; all are Reduce of one combiner, or none is
  Stmt statement;             // kExtern: over the inputs' and outputs' buffers
  Dict attrs;                 // block annotations; may be null
  // kScan: state k starts with init[k] along axis 0 and goes on with update[k] (a compute over the whole
  // shape whose body reads state placeholders at earlier steps).
  std::vector<Tensor> init, update, states;
};

Tensor placeholder(Array<Expr> shape, DType dtype = kFloat32, std::string name = "A");

/// shape-sized tensor whose element at `indices` is f(indices).
Tensor compute(Array<Expr> shape, std::string name, FunctionRef<Expr(const Array<Var>&)> f,
               Dict attrs = nullptr);
/// Several results of one shape from one pass (reductions with several results).
std::vector<Tensor> computeMany(Array<Expr> shape, std::string name,
                                FunctionRef<Array<Expr>(const Array<Var>&)> f, Dict attrs = nullptr);
/// A statement written by hand. f gets the output buffers; inputs are read by their own buffers.
std::vector<Tensor> externOp(std::vector<Buffer> outputs, std::vector<Tensor> inputs, std::string name,
                             Stmt statement, Dict attrs = nullptr);
/// Scan along axis 0: results have the states' shapes. See OperationObject.
std::vector<Tensor> scan(std::vector<Tensor> init, std::vector<Tensor> update, std::vector<Tensor> states,
                         std::string name = "scan");

IterVar reduceAxis(Expr extent, std::string name = "k");
IterVar reduceAxis(Range domain, std::string name = "k");

/// Reductions over axes; `condition` (may be null) leaves elements out. Empty domains give the identity.
Expr sum(Expr value, Array<IterVar> axes, Expr condition = nullptr);
Expr prod(Expr value, Array<IterVar> axes, Expr condition = nullptr);
Expr max(Expr value, Array<IterVar> axes,
         Expr condition = nullptr); // NaN propagates; identity: -inf or the smallest value
Expr min(Expr value, Array<IterVar> axes, Expr condition = nullptr);
Expr all(Expr value, Array<IterVar> axes); // of bools
Expr any(Expr value, Array<IterVar> axes);
/// Any combiner; component i of its results.
Expr reduce(Combiner combiner, Array<Expr> source, Array<IterVar> axes, int64_t component = 0,
            Expr condition = nullptr);
/// Smallest and largest value of a dtype as an expression; infinities for floats.
Expr lowest(DType dtype);
Expr highest(DType dtype);

/// The tensor program that computes the arguments which are not placeholders from those that are. Parameters
/// in the order of `args`; tensors between become allocations of the root block. Variables of shapes that no
/// parameter's shape binds alone become scalar parameters after the buffers; `scalars` (may be null) gets
/// those variables as the caller knows them (the function's own are fresh). Block names are made unique.
PrimFunc createPrimFunc(const std::vector<Tensor>& args, Dict attrs = nullptr, Array<Var>* scalars = nullptr);
/// Adds those scalar parameters to parameters that are all buffers; gives the variables.
Array<Var> addScalarParams(Array<Var>& params, Array<Buffer>& buffers, const Stmt& body);

} // namespace bevel::te
