// Every operator with inputs that it does not expect: another rank, no elements, symbolic extents, another dtype, fewer
// or more inputs. Inference refuses them with an error of the call, or accepts them and the tensor program exists.
#include "ops/op_spec_support.h"
#include "ops/ops.h"

#include "arith/analyzer.h"
#include "graph/infer.h"
#include "ir/printer.h"
#include "ir/verify.h"

#include <gtest/gtest.h>

namespace bevel {
namespace {

std::vector<Type> unexpectedTypes(const Type& type) {
  const auto* t = type.as<TensorTypeNode>();
  std::vector<Type> out;
  for (size_t rank = 0; rank <= 7; ++rank)
    for (int64_t extent : {0, 1, 2}) out.push_back(tensorType(t->dtype, std::vector<int64_t>(rank, extent)));
  for (size_t rank = 1; rank <= 7; ++rank) {
    Array<Expr> shape;
    for (size_t d = 0; d < rank; ++d) shape.push_back(var("n" + std::to_string(d), kInt64));
    out.push_back(make<const TensorTypeNode>(t->dtype, shape));
  }
  auto shape = constDims(t->shape);
  for (size_t d = 0; d < shape->size(); ++d)
    for (int64_t extent : {0, 1, 7}) {
      auto changed = *shape;
      changed[d] = extent;
      out.push_back(tensorType(t->dtype, changed));
    }
  for (const char* name : {"bool", "int8", "uint8", "int16", "int32", "int64", "uint64", "float16",
                           "bfloat16", "float32", "float64", "string"})
    if (auto dtype = DType::parse(name)) out.push_back(tensorType(*dtype, *shape));
  return out;
}

/// "" when the call is refused cleanly or has a well-formed program.
std::string outcome(const GraphCall& call) {
  Analyzer analyzer;
  InferContext context(analyzer);
  auto type = inferType(call, nullptr, context);
  if (!type) {
    bool clean = type.error().code == ErrorCode::kInvalid || type.error().code == ErrorCode::kUnsupported;
    return clean ? "" : "inference fails with " + type.error().str();
  }
  if (!findOp(call->opName())->compute) return "";
  auto program = programOf(call);
  if (!program) {
    bool clean =
        program.error().code == ErrorCode::kInvalid || program.error().code == ErrorCode::kUnsupported;
    return clean ? "" : "no program: " + program.error().str();
  }
  auto ok = verify(program->function);
  return ok ? "" : "a wrong program: " + ok.error().str();
}

GraphCall withArg(const GraphCall& call, size_t i, const GraphExpr& arg) {
  auto copy = mutableCopy(call);
  copy->args.set(i, arg);
  return GraphCall(copy);
}

void sweep(const GraphCall& call) {
  auto check = [](const GraphCall& changed) {
    SCOPED_TRACE(print(changed));
    std::string fault = outcome(changed);
    std::string types;
    for (const GraphExpr& a : changed->args)
      if (a->type) types += print(a->type) + " ";
    EXPECT_EQ(fault, "") << types;
  };
  for (size_t i = 0; i < call->args.size(); ++i) {
    const GraphExpr& arg = call->args[i];
    check(withArg(call, i, absent()));
    check(withArg(call, i, make<const ShapeExprNode>(Array<Expr>{})));
    if (arg.is<ShapeExprNode>()) {
      for (size_t length : {1, 2, 5, 8})
        for (int64_t value : {-1, 0, 3})
          check(withArg(call, i, make<const ShapeExprNode>(dims(std::vector<int64_t>(length, value)))));
      continue;
    }
    if (!arg->type.is<TensorTypeNode>()) continue;
    for (const Type& t : unexpectedTypes(arg->type))
      check(withArg(call, i, make<const GraphVarNode>("x", t)));
  }
  auto fewer = mutableCopy(call), more = mutableCopy(call);
  fewer->args = {};
  check(GraphCall(fewer));
  for (int k = 0; k < 12; ++k) more->args.push_back(make<const GraphVarNode>("y", tensorType(kFloat32, {2})));
  check(GraphCall(more));
}

class OpSweep : public testing::TestWithParam<std::string> {};

TEST_P(OpSweep, UnexpectedInputsAreRefused) {
  const Op* op = findOp(GetParam());
  std::vector<std::string> specs = op->tests; // three forms of a call differ enough
  if (specs.size() > 3) specs.resize(3);
  if (specs.empty()) // no cases: any number of plain tensors
    for (const char* spec : {"float32[2,3]", "float32[2,3] float32[2,3]", "float32[2,3] int64[2] int64[2]"})
      specs.push_back(spec);
  for (const std::string& spec : specs) {
    auto c = test::parseOpCase(op->name, spec, 1);
    ASSERT_TRUE(c) << c.error().str();
    sweep(c->call);
  }
}

std::vector<std::string> allOperators() {
  registerOps();
  std::vector<std::string> names;
  for (const Op* op : OpRegistry::global().all())
    if (op->infer) names.push_back(op->name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, OpSweep, testing::ValuesIn(allOperators()), [](const auto& info) {
  std::string name;
  for (char c : info.param) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
});

} // namespace
} // namespace bevel
