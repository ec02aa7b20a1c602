// The verifier finds each kind of fault, and nothing in well-formed IR.
#include "ir/verify.h"

#include "ir/build.h"
#include "ir/structural.h"
#include "tests/ir/text_support.h"

#include <gtest/gtest.h>

namespace bevel {
namespace {

std::string faultOf(const NodeRef& node) {
  auto ok = verify(node);
  return ok ? "" : ok.error().message;
}
std::string faultOfText(const std::string& text) {
  auto m = parseModule(text);
  return m ? faultOf(*m) : "not parsed: " + m.error().str();
}
PrimFunc program(const Stmt& body, std::vector<Buffer> buffers) {
  Array<Var> params;
  Array<Buffer> list;
  for (const Buffer& b : buffers) params.push_back(b->data), list.push_back(b);
  return make<const PrimFuncNode>(params, list, body);
}

struct VerifyProgram : testing::Test {
  Buffer a = buffer("A", kFloat32, {intImm(8), intImm(4)});
  Var i = var("i"), j = var("j");
  Expr one = constantFloat(kFloat32, 1);
  std::string of(const Stmt& s) { return faultOf(program(s, {a})); }
  Stmt put(const Expr& x, const Expr& y) { return store(a, one, {x, y}); }
};

TEST_F(VerifyProgram, AcceptsWellFormed) {
  EXPECT_EQ(of(forLoop(i, intImm(8), put(i, intImm(3)))), "");
  EXPECT_EQ(of(make<const EvaluateNode>(intImm(0, kInt32))), "");
}

TEST_F(VerifyProgram, Scopes) {
  EXPECT_EQ(of(put(i, intImm(0))), "variable 'i' is used outside the scope that binds it");
  EXPECT_EQ(of(seq({forLoop(i, intImm(8), put(i, intImm(0))), put(i, intImm(0))})),
            "variable 'i' is used outside the scope that binds it");
  Buffer b = buffer("B", kFloat32, {intImm(8)});
  EXPECT_EQ(of(store(b, one, {intImm(0)})), "buffer 'B' is used outside the scope that declares it");
  EXPECT_EQ(of(seq({make<const AllocNode>(b, store(b, one, {intImm(0)})), store(b, one, {intImm(1)})})),
            "buffer 'B' is used outside the scope that declares it");
}

TEST_F(VerifyProgram, Uniqueness) {
  EXPECT_EQ(of(forLoop(i, intImm(8), forLoop(i, intImm(8), put(i, i)))),
            "loop variable 'i' is bound twice in this function");
  EXPECT_EQ(of(seq({forLoop(i, intImm(8), put(i, intImm(0))), forLoop(i, intImm(8), put(i, intImm(1)))})),
            "loop variable 'i' is bound twice in this function");
  auto realize = [&](const char* name) {
    auto b = make<BlockNode>(name);
    b->body = put(intImm(0), intImm(0));
    return Stmt(make<const BlockRealizeNode>(Array<Expr>{}, boolImm(true), Block(b)));
  };
  EXPECT_EQ(of(seq({realize("x"), realize("x")})), "two blocks are named 'x'");
  EXPECT_EQ(of(seq({realize("x"), realize("y")})), "");
}

TEST_F(VerifyProgram, Types) {
  EXPECT_EQ(of(store(a, intImm(1), {intImm(0), intImm(0)})),
            "a value of type int64 is stored where float32 is expected");
  EXPECT_EQ(of(store(a, make<const BinaryNode>(BinaryOp::kAdd, one, intImm(1)), {intImm(0), intImm(0)})),
            "operands of 'add' have different types: float32 and int64");
  EXPECT_EQ(of(make<const IfNode>(intImm(1), put(intImm(0), intImm(0)))),
            "the condition of an 'if' is a bool, not int64");
  EXPECT_EQ(of(make<const ForNode>(i, intImm(0, kInt32), intImm(4), ForKind::kSerial, put(i, i))),
            "loop 'i' is int64, its range int32 and int64");
  EXPECT_EQ(of(make<const EvaluateNode>(make<const IntImmNode>(DType::Int(8), 300))),
            "the constant 300 does not fit int8");
  EXPECT_EQ(of(make<const ForNode>(i, intImm(0), intImm(4), ForKind::kThreadBinding, put(i, i))),
            "a loop has a thread exactly when it is bound to one");
}

TEST_F(VerifyProgram, Indices) {
  EXPECT_EQ(of(store(a, one, {intImm(0)})), "buffer 'A' has 2 dimensions, but 1 indices are given");
  EXPECT_EQ(of(put(intImm(8), intImm(0))),
            "index 8 lies outside dimension 0 of buffer 'A', which has 8 elements");
  EXPECT_EQ(of(put(intImm(-1), intImm(0))),
            "index -1 lies outside dimension 0 of buffer 'A', which has 8 elements");
  EXPECT_EQ(of(forLoop(i, intImm(4), put(i * 2 + 8, intImm(0)))),
            "index 8 to 14 lies outside dimension 0 of buffer 'A', which has 8 elements");
  EXPECT_EQ(of(forLoop(i, intImm(8), make<const IfNode>(i < intImm(0), put(i + 8, intImm(0))))), "")
      << "under a condition";
  EXPECT_EQ(of(forLoop(i, intImm(0), put(i + 8, intImm(0)))), "") << "an empty loop";
}

TEST_F(VerifyProgram, IndicesThatSomeIterationTakesOutside) {
  auto in = [&](const Expr& x) {
    return of(forLoop(i, intImm(8), forLoop(j, intImm(4), put(x, intImm(0)))));
  };
  const char* end = " lies outside dimension 0 of buffer 'A', which has 8 elements";
  auto reaches = [&](const char* n) { return std::string("index reaches ") + n + ", which" + end; };
  EXPECT_EQ(in(i + 1), reaches("8"));
  EXPECT_EQ(in(i - 1), reaches("-1"));
  EXPECT_EQ(in(intImm(7) - i - j), reaches("-3"));
  EXPECT_EQ(in(floordiv(i * 4 + j, intImm(2))), reaches("15"));
  EXPECT_EQ(in(i + j - i * 2 + i + 5), reaches("8")) << "i cancels";
  EXPECT_EQ(in(castTo(kInt64, i) + j * 0), "");
  EXPECT_EQ(in(floordiv(i * 4 + j, intImm(4))), "");
  EXPECT_EQ(in(floormod(i * 3, intImm(9))), "") << "0 to 8 lies around the values 0, 3, 6";
  EXPECT_EQ(in(i - i), "");
  EXPECT_EQ(of(forLoop(i, intImm(8),
                       make<const ForNode>(j, Expr(i), intImm(3), ForKind::kSerial, put(j, intImm(0))))),
            reaches("9"));
}

TEST_F(VerifyProgram, IndicesThatMayNeverBeTaken) {
  auto loops = [&](const Expr& extent, const Stmt& body) {
    return of(forLoop(i, intImm(8), forLoop(j, extent, body)));
  };
  EXPECT_EQ(loops(i, put(i + j, intImm(0))), "") << "a loop that may be empty";
  EXPECT_EQ(of(seq({make<const AssertNode>(eq(load(a, {intImm(0), intImm(0)}), one), ""),
                    put(intImm(9), intImm(0))})),
            "")
      << "after an assertion";
  Expr beyond = load(a, {i + 1, intImm(0)});
  EXPECT_EQ(of(forLoop(i, intImm(8), store(a, ifThenElse(Expr(i) < intImm(7), beyond, one), {i, intImm(0)}))),
            "");
  EXPECT_EQ(of(forLoop(i, intImm(8), store(a, select(Expr(i) < intImm(7), beyond, one), {i, intImm(0)}))),
            "");
}

TEST_F(VerifyProgram, MaskedLanes) {
  Expr ones = make<const BroadcastNode>(one, 4), mask = make<const BroadcastNode>(boolImm(true), 4);
  Expr lanes = make<const RampNode>(intImm(1), intImm(1), 4);
  auto put = [&](const Expr& on) {
    return of(make<const StoreNode>(a, ones, Array<Expr>{intImm(0), lanes}, on));
  };
  const char* fault = "index reaches 4, which lies outside dimension 1 of buffer 'A', which has 4 elements";
  EXPECT_EQ(put(nullptr), fault);
  EXPECT_EQ(put(mask), fault);
  EXPECT_EQ(put(make<const BinaryNode>(BinaryOp::kLt, lanes, make<const BroadcastNode>(intImm(4), 4))), "");
}

TEST(Verify, RegionsOfViews) {
  auto of = [](const std::string& region, const std::string& condition = "True") {
    return faultOfText(R"(@T.prim_func
def main(B: T.Buffer((100,), "float32")):
    for i in range(10):
        with T.sblock("V"):
            vi = T.axis.spatial(10, i)
            T.where()" +
                       condition +
                       R"()
            T.reads()
            T.writes(B[0:100])
            V = T.match_buffer(B[)" +
                       region + R"(], (10,), "float32", offset_factor=1)
            V[0] = T.float32(1)
)");
  };
  const char* end = " outside dimension 0 of buffer 'B', which has 100 elements";
  EXPECT_EQ(of("90:100"), "");
  EXPECT_EQ(of("95:105"), std::string("index 104 lies") + end);
  EXPECT_EQ(of("vi * 10:vi * 10 + 10"), "");
  EXPECT_EQ(of("vi * 10 + 1:vi * 10 + 11"), std::string("index reaches 100, which lies") + end);
  EXPECT_EQ(of("vi * 10 - 1:vi * 10 + 9"), std::string("index reaches -1, which lies") + end);
  EXPECT_EQ(of("vi * 12:vi * 12 + 10", "i < 8"), "") << "under a condition";
}

TEST(Verify, PointersIntoBuffers) {
  auto of = [](const std::string& arguments) {
    return faultOfText(R"(@T.prim_func
def main(A: T.Buffer((2, 8), "float32")):
    for i in range(4):
        T.evaluate(T.call_extern("int32", "f", A.access_ptr("r", )" +
                       arguments + ")))\n");
  };
  EXPECT_EQ(of("offset=0"), "");
  EXPECT_EQ(of("offset=16"), "") << "the end";
  EXPECT_EQ(of("offset=i * 4, extent=4"), "");
  EXPECT_EQ(of("offset=i * 4"), "") << "from there to the end";
  const char* end = " leaves buffer 'A', which has 16 elements";
  EXPECT_EQ(of("offset=100"), std::string("a pointer to -84 elements from 100 on") + end);
  EXPECT_EQ(of("offset=3, extent=40"), std::string("a pointer to 40 elements from 3 on") + end);
  EXPECT_EQ(of("offset=-1, extent=4"), std::string("a pointer to 4 elements from -1 on") + end);
  EXPECT_EQ(of("offset=i * 4, extent=5"), std::string("a pointer to 5 elements from 12 on") + end);
}

TEST_F(VerifyProgram, Blocks) {
  IterVar v = iter("v", intImm(8), IterType::kSpatial);
  auto block = make<BlockNode>("b");
  block->iters = {v}, block->body = put(v->var, intImm(0));
  auto realize = [&](Array<Expr> values) {
    return forLoop(
        i, intImm(8),
        make<const BlockRealizeNode>(std::move(values), boolImm(true), Block(mutableCopy(Block(block)))));
  };
  EXPECT_EQ(of(realize({i})), "");
  EXPECT_EQ(of(realize({i, i})), "block 'b' has 1 axes, but 2 values are given");
  block->body = put(i, intImm(0));
  EXPECT_EQ(of(realize({i})), "loop variable 'i' is used inside a block that has axes");
  block->body = put(v->var, intImm(0));
  block->reads = {make<const BufferRegionNode>(a, Array<Range>{range(v->var, intImm(1))})};
  EXPECT_EQ(of(realize({i})), "buffer 'A' has 2 dimensions, but its region has 1");
}

TEST(Verify, GraphFunctions) {
  auto graph = [](const std::string& body) {
    return "@I.ir_module\nclass M:\n  @T.prim_func\n  def k(A: T.Buffer((4,), \"float32\"), B: "
           "T.Buffer((4,), \"float32\")):\n    B[0] = A[0]\n"
           "  @R.function\n  def f(x: R.Tensor((4,), \"float32\"), t: R.Tuple(R.Object, R.Object)) -> "
           "R.Tensor((4,), \"float32\"):\n" +
           body;
  };
  std::string t = "R.Tensor((4,), \"float32\")";
  EXPECT_EQ(faultOfText(graph("    y: " + t + " = R.add(x, x)\n    return y\n")), "");
  EXPECT_EQ(faultOfText(graph("    y = R.add(x, x)\n    return y\n")), "variable 'y' has no type");
  EXPECT_EQ(faultOfText(graph("    with R.dataflow():\n      y: " + t +
                              " = R.add(x, x)\n      R.output()\n    return y\n")),
            "variable 'y' is used outside the scope that binds it");
  EXPECT_EQ(faultOfText(graph("    y = R.call_tir(cls.k, (x, x), out_sinfo=" + t + ")\n    return y\n")),
            "'k' has 2 buffers, but 2 tensors and 1 results are given");
  EXPECT_EQ(faultOfText(graph("    y = R.call_tir(cls.f, (x,), out_sinfo=" + t + ")\n    return y\n")),
            "'f' is no tensor program");
  EXPECT_EQ(faultOfText(graph("    y: " + t + " = cls.f(x)\n    return y\n")),
            "'f' takes 2 arguments, but 1 are given");
  EXPECT_EQ(faultOfText(graph("    y: " + t + " = cls.k(x)\n    return y\n")), "'k' is a tensor program");
}

TEST(Verify, GraphAssignments) {
  Type t = tensorType(kFloat32, {4});
  GraphVar x = make<const GraphVarNode>("x", t), y = make<const GraphVarNode>("y", t);
  GraphExpr add = make<const GraphCallNode>(make<const OpRefNode>("add"), Array<GraphExpr>{x, x});
  NodeRef bind = make<const VarBindingNode>(y, add);
  auto f = [&](Array<NodeRef> bindings, const GraphExpr& result) {
    auto block = make<const BindingBlockNode>(bindings, false);
    return make<const FunctionNode>(Array<GraphVar>{x},
                                    make<const SeqExprNode>(Array<BindingBlock>{block}, result), t);
  };
  EXPECT_EQ(faultOf(f({bind}, y)), "");
  EXPECT_EQ(faultOf(f({bind, bind}, y)), "variable 'y' is bound twice in this function");
  EXPECT_EQ(faultOf(f({}, y)), "variable 'y' is used outside the scope that binds it");
  GraphExpr nested = make<const GraphCallNode>(make<const OpRefNode>("add"), Array<GraphExpr>{add, x});
  EXPECT_EQ(faultOf(f({make<const VarBindingNode>(y, nested)}, y)),
            "a call or branch is nested in another expression");
  EXPECT_EQ(faultOf(nullptr), "there is no module or function to verify");
  Array<GraphVar> typeless = {make<const GraphVarNode>("z", nullptr)};
  auto noType = make<const FunctionNode>(
      typeless, make<const SeqExprNode>(Array<BindingBlock>{}, typeless[0]), nullptr);
  EXPECT_EQ(faultOf(noType), "variable 'z' has no type");
}

TEST(Verify, BranchesAreScopes) {
  Type t = tensorType(kFloat32, {4});
  GraphVar x = make<const GraphVarNode>("x", t), c = make<const GraphVarNode>("c", tensorType(kBool, {}));
  GraphVar y = make<const GraphVarNode>("y", t), z = make<const GraphVarNode>("z", t);
  NodeRef bind = make<const VarBindingNode>(
      y, make<const GraphCallNode>(make<const OpRefNode>("add"), Array<GraphExpr>{x, x}));
  auto sequence = [&](Array<NodeRef> bindings, const GraphExpr& result) {
    Array<BindingBlock> blocks = {make<const BindingBlockNode>(bindings, false)};
    return SeqExpr(make<const SeqExprNode>(blocks, result));
  };
  auto f = [&](const SeqExpr& thenBranch, const SeqExpr& elseBranch, const GraphExpr& result) {
    NodeRef branch = make<const VarBindingNode>(z, make<const GraphIfNode>(c, thenBranch, elseBranch, t));
    return make<const FunctionNode>(Array<GraphVar>{x, c}, sequence({branch}, result), t);
  };
  const char* outside = "variable 'y' is used outside the scope that binds it";
  EXPECT_EQ(faultOf(f(sequence({bind}, y), sequence({}, x), z)), "");
  EXPECT_EQ(faultOf(f(sequence({bind}, y), sequence({}, y), z)), outside);
  EXPECT_EQ(faultOf(f(sequence({}, y), sequence({bind}, y), z)), outside);
  EXPECT_EQ(faultOf(f(sequence({bind}, y), sequence({}, x), y)), outside);
}

TEST(Verify, ListsAllFaultsAndNamesTheFunction) {
  Buffer a = buffer("A", kFloat32, {intImm(8)});
  Stmt bad = store(a, intImm(1), {intImm(9)});
  auto errors = verifyAll(
      withFunction(make<const ModuleNode>(), "main", program(seq({bad, bad, bad, bad, bad}), {a})), 4);
  ASSERT_EQ(errors.size(), 4u);
  EXPECT_EQ(errors[0].notes.back(), "in function 'main'");
  EXPECT_FALSE(errors[0].nodes.empty());
  Stmt outside = store(a, constantFloat(kFloat32, 1), {intImm(9)}); // judged where all else is well formed
  EXPECT_EQ(verifyAll(program(seq({outside, outside, outside}), {a}), 2).size(), 2u);
  EXPECT_EQ(verifyAll(program(seq({outside, outside, outside}), {a})).size(), 3u);
  EXPECT_EQ(verifyAll(program(seq({outside, bad}), {a})).size(), 1u);
}

} // namespace
} // namespace bevel
