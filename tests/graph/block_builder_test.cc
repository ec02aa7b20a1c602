// Building, inferring and rewriting graph functions, with operators of the test's own (this layer knows no
// others).
#include "arith/analyzer.h"
#include "graph/mutator.h"
#include "graph/passes/passes.h"
#include "graph/shape_util.h"
#include "graph/visitor.h"
#include "ir/structural.h"

#include <gtest/gtest.h>

namespace bevel {
namespace {

Result<Type> likeFirst(const OpCall& call, InferContext&) {
  return call.type(0);
}
Result<Type> broadcast2(const OpCall& call, InferContext& context) {
  BEVEL_TRY(Array<Expr> shape, broadcastShapes(call, context, call.shape(0), call.shape(1)));
  return Type(make<const TensorTypeNode>(call.dtype(0), shape));
}
Result<Type> unknownLength(const OpCall& call, InferContext& context) {
  return Type(make<const TensorTypeNode>(call.dtype(0), Array<Expr>{context.unknownDim("k")}));
}
Result<TeTensors> twiceCompute(const OpCall&, const TeTensors& in) {
  return TeTensors{
      te::compute(in[0].shape(), "twice", [&](const Array<Var>& i) { return in[0](Array<Expr>(i)) * 2; })};
}

void registerTestOps() {
  auto& r = OpRegistry::global();
  if (r.find("t.add")) return;
  r.add({.name = "t.add", .doc = "a + b", .inputs = {"a", "b"}, .infer = broadcast2});
  r.add({.name = "t.mul", .doc = "a * b", .inputs = {"a", "b"}, .infer = broadcast2});
  r.add({.name = "t.fma", .doc = "a * b + c", .inputs = {"a", "b", "c"}, .infer = likeFirst});
  r.add({.name = "t.twice", .doc = "2 x", .inputs = {"x"}, .infer = likeFirst, .compute = twiceCompute});
  r.add({.name = "t.some", .doc = "data-dependent", .inputs = {"x"}, .infer = unknownLength});
}

GraphVar input(const char* name, Array<Expr> shape, DType t = kFloat32) {
  return make<const GraphVarNode>(name, make<const TensorTypeNode>(t, std::move(shape)));
}
const Array<Expr>& shapeOf(const GraphExpr& e) {
  return e->type.as<TensorTypeNode>()->shape;
}

struct Building : testing::Test {
  Building() { registerTestOps(); }
};

TEST_F(Building, NestedCallsAreBoundOneByOne) {
  Var n = var("n");
  GraphVar x = input("x", {n, intImm(4)}), y = input("y", {intImm(4)});
  BlockBuilder bb;
  bb.beginFunction("main", {x, y});
  bb.beginDataflow();
  auto out = bb.emitOutput(opCall("t.add", {opCall("t.mul", {x, y}), x}));
  ASSERT_TRUE(out) << out.error().str();
  bb.endDataflow();
  ASSERT_TRUE(bb.emitFuncOutput(*out));
  auto f = cast<FunctionNode>(bb.module()->find("main"));
  ASSERT_EQ(f->body->blocks.size(), 1u);
  EXPECT_TRUE(f->body->blocks[0]->dataflow);
  EXPECT_EQ(f->body->blocks[0]->bindings.size(), 2u);
  EXPECT_FALSE((*out)->dataflow);
  EXPECT_EQ(shapeOf(*out)[0], Expr(n));
  EXPECT_TRUE(same(f->result, (*out)->type));
}

TEST_F(Building, UnknownDimensionsAreNamedByAMatchCast) {
  BlockBuilder bb;
  GraphVar x = input("x", {intImm(7)});
  bb.beginFunction("main", {x});
  auto v = bb.emit(opCall("t.some", {x}));
  ASSERT_TRUE(v) << v.error().str();
  EXPECT_TRUE(shapeOf(*v)[0].is<VarNode>());
  auto sum = bb.emit(opCall("t.add", {*v, *v}));
  ASSERT_TRUE(sum) << sum.error().str();
  ASSERT_TRUE(bb.emitFuncOutput(*sum));
  auto f = cast<FunctionNode>(bb.module()->find("main"));
  int casts = 0;
  for (const NodeRef& b : f->body->blocks[0]->bindings) casts += b.is<MatchCastNode>();
  EXPECT_EQ(casts, 1);
  // The caller knows the rank alone: the variable is bound inside.
  EXPECT_FALSE(f->result.as<TensorTypeNode>()->known);
}

TEST_F(Building, MismatchesAreErrors) {
  BlockBuilder bb;
  GraphVar x = input("x", {intImm(3)}), y = input("y", {intImm(4)});
  bb.beginFunction("main", {x, y});
  auto bad = bb.emit(opCall("t.add", {x, y}));
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().code, ErrorCode::kInvalid);
  EXPECT_FALSE(bb.emit(opCall("t.add", {x})));
  EXPECT_FALSE(bb.emit(opCall("t.nothing", {x})));
  EXPECT_FALSE(bb.emit(opCall("t.twice", {x}, dict({{"colour", intImm(1)}}))));
  bb.abandonFunction();
}

TEST_F(Building, SymbolicBroadcastIsCheckedAtRunTime) {
  BlockBuilder bb;
  Var n = var("n"), m = var("m");
  GraphVar x = input("x", {n}), y = input("y", {m});
  bb.beginFunction("main", {x, y});
  auto v = bb.emit(opCall("t.add", {x, y}));
  ASSERT_TRUE(v) << v.error().str();
  ASSERT_TRUE(bb.emitFuncOutput(*v));
  auto f = cast<FunctionNode>(bb.module()->find("main"));
  EXPECT_TRUE(f->body->blocks[0]->bindings[0].is<MatchCastNode>()); // n == m, or one of them is 1
}

TEST_F(Building, EqualProgramsAreShared) {
  BlockBuilder bb;
  GraphVar x = input("x", {intImm(5)});
  bb.beginFunction("main", {x});
  auto twice = [](const TeTensors& in) -> Result<TeTensors> {
    return TeTensors{
        te::compute(in[0].shape(), "twice", [&](const Array<Var>& i) { return in[0](Array<Expr>(i)) * 2; })};
  };
  auto a = bb.emitTe(twice, {x}, "twice");
  ASSERT_TRUE(a) << a.error().str();
  auto b = bb.emitTe(twice, {*a}, "twice");
  ASSERT_TRUE(b) << b.error().str();
  auto c = bb.callTir(opCall("t.twice", {*b}));
  ASSERT_TRUE(c) << c.error().str();
  auto d = bb.emit(*c);
  ASSERT_TRUE(d);
  ASSERT_TRUE(bb.emitFuncOutput(*d));
  EXPECT_EQ(bb.module()->names.size(), 2u);
}

TEST_F(Building, ProgramsTakeSymbolicScalars) {
  BlockBuilder bb;
  Var n = var("n");
  GraphVar x = input("x", {n + 1});
  bb.beginFunction("main", {x});
  auto call = bb.callTir(opCall("t.twice", {x}));
  ASSERT_TRUE(call) << call.error().str();
  ASSERT_EQ((*call)->args.size(), 3u); // n stands alone in no shape
  EXPECT_EQ((*call)->args[2].as<ShapeExprNode>()->values[0], Expr(n));
  bb.abandonFunction();
}

TEST_F(Building, BranchesLoseWhatDiffers) {
  BlockBuilder bb;
  GraphVar c = input("c", {}, kBool), x = input("x", {intImm(2)}), y = input("y", {intImm(3)});
  bb.beginFunction("main", {c, x, y});
  bb.beginBranch();
  auto t = bb.endBranch(opCall("t.twice", {x}));
  ASSERT_TRUE(t) << t.error().str();
  bb.beginBranch();
  auto e = bb.endBranch(y);
  ASSERT_TRUE(e) << e.error().str();
  auto v = bb.emitIf(c, *t, *e);
  ASSERT_TRUE(v) << v.error().str();
  EXPECT_TRUE(shapeOf(*v)[0].is<VarNode>());
  ASSERT_TRUE(bb.emitFuncOutput(*v));
}

// multiply + add becomes one user-declared operator.
struct ToFma : ExprMutator {
  using ExprMutator::ExprMutator;
  GraphExpr visitExpr(const GraphExpr& e) override {
    GraphExpr value = ExprMutator::visitExpr(e);
    const auto* call = value.as<GraphCallNode>();
    if (!call || !call->isOp("t.add")) return value;
    GraphExpr bound = lookup(call->args[0]);
    const auto* mul = bound.as<GraphCallNode>();
    if (!mul || !mul->isOp("t.mul")) return value;
    return opCall("t.fma", {mul->args[0], mul->args[1], call->args[1]});
  }
};

Module mulAdd() {
  BlockBuilder bb;
  GraphVar x = input("x", {intImm(4)}), y = input("y", {intImm(4)}), z = input("z", {intImm(4)});
  bb.beginFunction("main", {x, y, z});
  auto out = bb.emit(opCall("t.add", {opCall("t.mul", {x, y}), z}));
  EXPECT_TRUE(bb.emitFuncOutput(*out));
  return bb.module();
}

std::vector<std::string> callsOf(const Module& m) {
  std::vector<std::string> names;
  forEachCall(cast<FunctionNode>(m->find("main")),
              [&](const GraphCall& c, const GraphVar&) { names.push_back(c->opName()); });
  return names;
}

TEST_F(Building, MutatorsSeeBindings) {
  auto after = ToFma(mulAdd()).mutateModule();
  ASSERT_TRUE(after) << after.error().str();
  EXPECT_EQ(callsOf(*after), (std::vector<std::string>{"t.mul", "t.fma"}));
}

TEST_F(Building, AMutatorThatChangesNothingKeepsTheFunction) {
  Module before = mulAdd();
  auto after = ExprMutator(before).mutateModule();
  ASSERT_TRUE(after) << after.error().str();
  EXPECT_TRUE(structuralEqual(before, *after)) << firstDifference(before, *after);
}

TEST_F(Building, BoundParametersAreRemoved) {
  Tensor ones = TensorObject::of(kFloat32, {4}, std::vector<double>{1, 1, 1, 1});
  auto bound = bindParams(mulAdd(), "main", {{"y", ones}});
  ASSERT_TRUE(bound) << bound.error().str();
  auto f = cast<FunctionNode>((*bound)->find("main"));
  EXPECT_EQ(f->params.size(), 2u);
  Tensor wrong = TensorObject::of(kFloat32, {5}, std::vector<double>{1, 1, 1, 1, 1});
  EXPECT_FALSE(bindParams(mulAdd(), "main", {{"y", wrong}}));
  EXPECT_FALSE(bindParams(mulAdd(), "main", {{"nobody", ones}}));
}

TEST_F(Building, PureRunsBecomeDataflowBlocks) {
  Module m = convertToDataflow(mulAdd());
  auto f = cast<FunctionNode>(m->find("main"));
  ASSERT_EQ(f->body->blocks.size(), 1u);
  EXPECT_TRUE(f->body->blocks[0]->dataflow);
  EXPECT_TRUE(f->body->blocks[0]->bindings[0].as<VarBindingNode>()->var->dataflow);
  EXPECT_FALSE(f->body->blocks[0]->bindings[1].as<VarBindingNode>()->var->dataflow); // the result
}

} // namespace
} // namespace bevel
