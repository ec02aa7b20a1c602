// Printing and parsing are inverse: over a corpus of texts, and over every node kind built by hand.
#include "ir/build.h"
#include "ir/structural.h"
#include "ir/verify.h"
#include "tests/ir/text_support.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>

namespace bevel {
namespace {

using test::roundTripFault;

TEST(RoundTrip, Corpus) {
  auto files = test::corpus();
  ASSERT_GE(files.size(), 4u);
  for (const auto& file : files) {
    auto m = parseModule(file.text, file.name);
    ASSERT_TRUE(m.has_value()) << m.error().str();
    EXPECT_EQ(roundTripFault(*m), "") << file.name;
  }
}

TEST(RoundTrip, DocumentExamples) {
  auto examples = test::documentExamples();
  ASSERT_GE(examples.size(), 5u);
  for (const auto& example : examples) {
    auto m = parseModule(example.text, example.name);
    ASSERT_TRUE(m.has_value()) << m.error().str();
    EXPECT_EQ(roundTripFault(*m), "") << example.name;
    if (example.text.find("from tvm") != std::string::npos)
      continue; // an older spelling, whose types are inferred later
    auto ok = verify(*m);
    EXPECT_TRUE(ok.has_value()) << example.name << ": " << (ok ? "" : ok.error().str());
  }
}

TEST(RoundTrip, CanonicalTextIsKept) {
  for (const auto& file : test::corpus()) {
    if (file.name != "well_formed.txt") continue;
    auto m = parseModule(file.text);
    ASSERT_TRUE(m.has_value()) << m.error().str();
    auto ok = verify(*m);
    EXPECT_TRUE(ok.has_value()) << ok.error().str();
  }
}

// ---- programs built by hand

PrimFunc programOf(const Stmt& body, std::vector<Buffer> buffers, std::vector<Var> scalars = {}) {
  Array<Var> params;
  Array<Buffer> list;
  for (const Buffer& b : buffers) params.push_back(b->data), list.push_back(b);
  for (const Var& v : scalars) params.push_back(v), list.push_back(nullptr);
  return make<const PrimFuncNode>(params, list, body);
}

std::string storeRoundTrip(DType dtype, const Expr& value, std::vector<Var> scalars = {}) {
  Buffer b = buffer("B", dtype, {intImm(4)});
  return roundTripFault(programOf(store(b, value, {intImm(0)}), {b}, std::move(scalars)));
}

TEST(RoundTrip, ParametersOfOneName) {
  Var n = var("n");
  Buffer a = buffer("A", kFloat32, {n}), b = buffer("A", kFloat32, {n});
  EXPECT_EQ(roundTripFault(programOf(store(a, load(b, {intImm(0)}), {intImm(0)}), {a, b})), "");
}

TEST(RoundTrip, FloatConstants) {
  DType types[] = {DType::Float(16),
                   kFloat32,
                   DType::Float(64),
                   DType::BFloat16(),
                   {TypeCode::kFloat8E4M3FN, 8, 1},
                   {TypeCode::kFloat8E5M2, 8, 1}};
  double values[] = {0.0,
                     -0.0,
                     1.0,
                     -1.5,
                     0.1,
                     1.0 / 3.0,
                     1e-7,
                     3.4028234663852886e38,
                     1e300,
                     5e-324,
                     65504.0,
                     1.17549435e-38,
                     std::nextafter(1.0, 2.0),
                     double(std::nextafterf(1.0f, 2.0f)),
                     HUGE_VAL,
                     -HUGE_VAL,
                     std::nan("")};
  for (DType t : types)
    for (double v : values) EXPECT_EQ(storeRoundTrip(t, constantFloat(t, v)), "") << t.str() << " " << v;
}

TEST(RoundTrip, IntegerConstants) {
  for (DType t : {DType::Int(4), DType::Int(8), DType::Int(16), kInt32, kInt64, DType::UInt(4),
                  DType::UInt(8), DType::UInt(32), DType::UInt(64)})
    for (int64_t v : {int64_t(0), int64_t(1), int64_t(-1), minValue(t), maxValue(t), maxValue(t) - 1}) {
      if (v < minValue(t)) continue;
      EXPECT_EQ(storeRoundTrip(t, constant(t, v)), "") << t.str() << " " << v;
      Var x = var("x", t);
      EXPECT_EQ(storeRoundTrip(t, make<const BinaryNode>(BinaryOp::kAdd, x, constant(t, v)), {x}), "")
          << t.str() << " " << v;
      EXPECT_EQ(storeRoundTrip(t, make<const BinaryNode>(BinaryOp::kMax, constant(t, v), x), {x}), "")
          << t.str() << " " << v;
      EXPECT_EQ(storeRoundTrip(t, make<const UnaryNode>(UnaryOp::kNeg, constant(t, v))), "")
          << t.str() << " " << v;
      EXPECT_EQ(storeRoundTrip(t, make<const BinaryNode>(BinaryOp::kSub, constant(t, v), constant(t, 1))), "")
          << "constants are not folded";
    }
  EXPECT_EQ(storeRoundTrip(DType::UInt(64), constant(DType::UInt(64), -1)), "") << "2^64 - 1";
  EXPECT_EQ(storeRoundTrip(kBool, boolImm(true)), "");
}

TEST(RoundTrip, EveryOperatorInEveryPosition) {
  Var x = var("x", kInt32), y = var("y", kInt32), p = var("p", kBool), q = var("q", kBool),
      f = var("f", kFloat32);
  std::vector<Expr> ints = {x, y, intImm(3, kInt32), intImm(-3, kInt32)}, bools = {p, q};
  auto grow = [&] {
    std::vector<Expr> moreInts, moreBools;
    for (int op = 0; op <= int(BinaryOp::kShr); ++op) {
      auto code = BinaryOp(op);
      bool logical = code == BinaryOp::kAnd || code == BinaryOp::kOr;
      const std::vector<Expr>& from = logical ? bools : ints;
      Expr e = make<const BinaryNode>(code, from[size_t(op) % from.size()],
                                      from[size_t(op * 7 + 1) % from.size()]);
      (e->dtype.isBool() ? moreBools : moreInts).push_back(e);
    }
    moreBools.push_back(make<const UnaryNode>(UnaryOp::kNot, bools.back()));
    moreInts.push_back(make<const UnaryNode>(UnaryOp::kNeg, ints.back()));
    moreInts.push_back(make<const UnaryNode>(UnaryOp::kBitNot, ints.front()));
    moreInts.push_back(make<const SelectNode>(bools.back(), ints.back(), ints.front()));
    moreInts.push_back(make<const CastNode>(kInt32, bools.front()));
    ints.insert(ints.end(), moreInts.begin(), moreInts.end());
    bools.insert(bools.end(), moreBools.begin(), moreBools.end());
  };
  grow(), grow(), grow();
  // Every pair of operators, one inside the other, on both sides.
  for (const Expr& a : ints)
    for (int op = 0; op <= int(BinaryOp::kShr); ++op) {
      auto code = BinaryOp(op);
      if (code == BinaryOp::kAnd || code == BinaryOp::kOr) continue;
      for (Expr e : {Expr(make<const BinaryNode>(code, a, y)), Expr(make<const BinaryNode>(code, x, a))})
        ASSERT_EQ(storeRoundTrip(e->dtype, e, {x, y, p, q}), "");
    }
  for (const Expr& a : bools)
    for (Expr e :
         {Expr(make<const BinaryNode>(BinaryOp::kAnd, a, q)),
          Expr(make<const BinaryNode>(BinaryOp::kOr, p, a)),
          Expr(make<const BinaryNode>(BinaryOp::kEq, a, q)), Expr(make<const UnaryNode>(UnaryOp::kNot, a))})
      ASSERT_EQ(storeRoundTrip(kBool, e, {x, y, p, q}), "");
  Expr division = make<const BinaryNode>(BinaryOp::kDiv, f, make<const BinaryNode>(BinaryOp::kDiv, f, f));
  EXPECT_EQ(storeRoundTrip(kFloat32, division, {f}), "");
}

TEST(RoundTrip, EveryIntrinsic) {
  Buffer b = buffer("B", kFloat32, {intImm(4)});
  Var f = var("f", kFloat32);
  for (int i = 0; i < numIntrins(); ++i) {
    auto op = Intrin(i);
    int arity = intrinInfo(op).arity < 0 ? 2 : intrinInfo(op).arity;
    for (DType t :
         {kFloat32, kInt32, DType::Float(16), DType::Void(), DType::Handle(), DType::Float(32, 4)}) {
      Array<NodeRef> args;
      for (int k = 0; k < arity; ++k)
        args.push_back(op == Intrin::kIfThenElse && k == 0 ? Expr(boolImm(true)) : Expr(f));
      Expr e = callAs(t, op, args, i % 3 ? nullptr : dict({{"key", intImm(1)}, {"dtype", str("x")}}));
      EXPECT_EQ(roundTripFault(programOf(make<const EvaluateNode>(e), {b}, {f})), "")
          << intrinInfo(op).name << " " << t.str();
    }
  }
}

TEST(RoundTrip, LoopsOfEveryKindAndRange) {
  Buffer b = buffer("B", kFloat32, {intImm(100)});
  Var n = var("n"), m = var("m");
  Expr extents[] = {intImm(0),
                    intImm(1),
                    intImm(13),
                    n,
                    n + 3,
                    make<const BinaryNode>(BinaryOp::kAdd, n, m),
                    make<const BinaryNode>(BinaryOp::kSub, n, m)};
  Expr starts[] = {intImm(0),
                   intImm(2),
                   intImm(-5),
                   n,
                   make<const BinaryNode>(BinaryOp::kMul, m, intImm(2)),
                   make<const BinaryNode>(BinaryOp::kAdd, n, m)};
  for (int kind = 0; kind < 5; ++kind)
    for (const Expr& start : starts)
      for (const Expr& extent : extents)
        for (const Dict& annotations : {Dict(), dict({{"pragma_unroll_explicit", intImm(1)}})}) {
          Var i = var("i");
          Stmt body = store(b, constantFloat(kFloat32, 1), {i});
          Stmt loop = make<const ForNode>(i, start, extent, ForKind(kind), body, annotations,
                                          kind == 4 ? "threadIdx.x" : "");
          ASSERT_EQ(roundTripFault(programOf(loop, {b}, {n, m})), "");
        }
  Var i = var("i"), j = var("j"); // the inner extent depends on the outer loop: no T.grid
  EXPECT_EQ(roundTripFault(programOf(
                forLoop(i, intImm(4), forLoop(j, i + 1, store(b, constantFloat(kFloat32, 0), {j}))), {b})),
            "");
}

TEST(RoundTrip, NamesThatClash) {
  Buffer a = buffer("A", kFloat32, {intImm(8)}), b = buffer("A", kFloat32, {intImm(8)}),
         c = buffer("for", kFloat32, {intImm(8)}), d = buffer("9 x.y/é", kFloat32, {intImm(8)});
  Var i = var("i"), i2 = var("i"), i3 = var("A"), t = var("T");
  Stmt inner = seq({store(a, load(b, {i2}), {i}), store(c, load(d, {i3}), {t})});
  Stmt body =
      forLoop(i, intImm(8), forLoop(i2, intImm(8), forLoop(i3, intImm(8), forLoop(t, intImm(8), inner))));
  PrimFunc f = programOf(body, {a, b, c, d});
  EXPECT_EQ(roundTripFault(f), "");
  std::string text = print(f);
  EXPECT_NE(text.find("for i, i_1, A_2, T_ in T.grid"), std::string::npos) << text;
}

TEST(RoundTrip, ScopesOfDeclarations) {
  Buffer b = buffer("B", kFloat32, {intImm(8)}), t = buffer("t", kFloat32, {intImm(8)}, "local"),
         u = buffer("u", kFloat32, {intImm(8)});
  Var x = var("x", kFloat32), y = var("y", kFloat32);
  auto view = mutableCopy(t);
  view->shape = {intImm(2), intImm(4)}, view->name = "view";
  Stmt use = store(b, load(view, {intImm(0), intImm(1)}), {intImm(0)});
  Stmt last = store(b, constantFloat(kFloat32, 2), {intImm(1)});
  auto wraps = {Stmt(make<const AllocNode>(t, make<const DeclBufferNode>(Buffer(view), use))),
                Stmt(make<const LetStmtNode>(x, load(b, {intImm(2)}), store(b, x, {intImm(3)}))),
                Stmt(make<const AttrStmtNode>(str("a"), "pragma", intImm(3), last)),
                Stmt(make<const AttrStmtNode>(nullptr, "pragma", nullptr, last)),
                Stmt(make<const AllocNode>(u, store(u, constantFloat(kFloat32, 0), {intImm(0)}),
                                           dict({{"k", list({intImm(1), str("s")})}})))};
  for (const Stmt& w : wraps) {
    EXPECT_EQ(roundTripFault(programOf(w, {b})), "");
    EXPECT_EQ(roundTripFault(programOf(seq({last, w}), {b})), "") << "at the end";
    EXPECT_EQ(roundTripFault(programOf(seq({w, last}), {b})), "") << "with more behind it";
  }
  Stmt nested = make<const LetStmtNode>(
      x, load(b, {intImm(2)}), make<const LetStmtNode>(y, x * x, seq({store(b, y, {intImm(3)}), last})));
  EXPECT_EQ(roundTripFault(programOf(seq({nested, last}), {b})), "");
  Stmt branch = make<const IfNode>(boolImm(true), nested, make<const IfNode>(boolImm(false), last, last));
  EXPECT_EQ(roundTripFault(programOf(branch, {b})), "");
  EXPECT_EQ(roundTripFault(programOf(make<const EvaluateNode>(intImm(0, kInt32)), {})), "")
      << "an empty program";
}

Block blockOf(const std::string& name, const Array<IterVar>& iters, const Stmt& body) {
  auto b = make<BlockNode>(name);
  b->iters = iters, b->body = body;
  return b;
}

TEST(RoundTrip, Blocks) {
  Buffer b = buffer("B", kFloat32, {intImm(64), intImm(64)}), out = buffer("out", kFloat32, {});
  for (DType t : {kInt32, kInt64}) {
    Var i = var("i", t), j = var("j", t);
    IterVar s = iter("vi", intImm(8, t), IterType::kSpatial), r = iter("vr", intImm(4, t), IterType::kReduce),
            o = iter("vo", intImm(3, t), IterType::kOpaque);
    IterVar shifted =
        make<const IterVarNode>(range(intImm(2, t), intImm(6, t)), var("vs", t), IterType::kScan);
    auto block = mutableCopy(blockOf("b", {s, r, o, shifted}, store(out, load(b, {s->var, r->var}), {})));
    block->reads = {make<const BufferRegionNode>(
                        b, Array<Range>{range(s->var, intImm(1, t)), range(intImm(0, t), intImm(64, t))}),
                    fullRegion(out)};
    block->writes = {fullRegion(out)};
    block->init = store(out, constantFloat(kFloat32, 0), {});
    block->annotations = dict({{"a", intImm(1)}, {"b", constantFloat(DType::Float(64), 0.5)}});
    Buffer local = buffer("L", kFloat32, {intImm(2)}, "local"),
           view = buffer("view", kFloat32, {intImm(4), intImm(4)});
    block->allocs = {local};
    block->matches = {make<const MatchBufferNode>(
        view, make<const BufferRegionNode>(
                  b, Array<Range>{range(s->var, intImm(4, t)), range(r->var, intImm(4, t))}))};
    for (const Expr& predicate : {boolImm(true), i < intImm(5, t)}) {
      Stmt realize =
          make<const BlockRealizeNode>(Array<Expr>{i, j, i + j, intImm(3, t)}, predicate, Block(block));
      Stmt nest = forLoop(i, intImm(8, t), forLoop(j, intImm(4, t), realize));
      auto root = mutableCopy(blockOf("root", {}, nest));
      for (bool plain : {true, false}) {
        if (!plain) root->reads = {fullRegion(b)};
        Stmt body =
            make<const BlockRealizeNode>(Array<Expr>{}, boolImm(true), Block(mutableCopy(Block(root))));
        EXPECT_EQ(roundTripFault(programOf(body, {b, out})), "");
      }
    }
  }
}

TEST(RoundTrip, TensorExpressionReductions) {
  Buffer b = buffer("B", kFloat32, {intImm(64)});
  Var x = var("x", kFloat32), y = var("y", kFloat32), i = var("i"), k = var("k");
  Var xi = var("xi", kInt32), yi = var("yi", kInt32);
  IterVar axis = make<const IterVarNode>(range(intImm(0), intImm(64)), k, IterType::kReduce);
  Combiner sum = make<const CombinerNode>(Array<Var>{x}, Array<Var>{y}, Array<Expr>{x + y},
                                          Array<Expr>{constantFloat(kFloat32, 0)});
  Expr e =
      make<const ReduceNode>(sum, Array<IterVar>{axis}, Array<Expr>{load(b, {k})}, Array<Expr>{}, nullptr, 0);
  EXPECT_EQ(storeRoundTrip(kFloat32, e).substr(0, 40), storeRoundTrip(kFloat32, e).substr(0, 40));
  EXPECT_EQ(roundTripFault(programOf(store(b, e, {intImm(0)}), {b})), "");
  Combiner argMax = make<const CombinerNode>(
      Array<Var>{xi, x}, Array<Var>{yi, y}, Array<Expr>{select(x >= y, xi, yi), select(x >= y, x, y)},
      Array<Expr>{intImm(-1, kInt32), constantFloat(kFloat32, -HUGE_VAL)});
  IterVar axis2 = make<const IterVarNode>(range(intImm(3), intImm(5)), var("k"), IterType::kReduce);
  Expr two = make<const ReduceNode>(
      argMax, Array<IterVar>{axis2}, Array<Expr>{castTo(kInt32, axis2->var), load(b, {axis2->var})},
      Array<Expr>{intImm(0, kInt32), load(b, {intImm(0)})}, axis2->var < intImm(7), 1);
  EXPECT_EQ(roundTripFault(programOf(store(b, two, {intImm(0)}), {b})), "");
}

TEST(RoundTrip, Constants) {
  auto functionOf = [](const Tensor& t) {
    GraphVar v = make<const GraphVarNode>("v", tensorType(t->dtype, t->shape));
    auto block = make<const BindingBlockNode>(
        Array<NodeRef>{make<const VarBindingNode>(v, make<const ConstantNode>(t))}, false);
    return make<const FunctionNode>(Array<GraphVar>{}, make<const SeqExprNode>(Array<BindingBlock>{block}, v),
                                    v->type);
  };
  for (DType t : {kFloat32, DType::Float(64), DType::Float(16), DType::BFloat16(), kInt32, kInt64,
                  DType::Int(8), DType::UInt(8), DType::UInt(64), kBool, DType::Int(4), DType::UInt(4)})
    for (const std::vector<int64_t>& shape : std::vector<std::vector<int64_t>>{
             {}, {0}, {1}, {3}, {2, 3}, {0, 4}, {2, 0}, {1, 1, 1}, {17}, {5, 7}}) {
      auto count = elementCount(shape);
      auto tensor = TensorObject::zeros(t, shape);
      for (int64_t i = 0; i < *count; ++i)
        t.isFloat() ? tensor->setDouble(i, double(i) / 3 - 1) : tensor->setInt(i, i % 2);
      EXPECT_EQ(roundTripFault(functionOf(tensor)), "") << t.str();
    }
  for (double special : {HUGE_VAL, -HUGE_VAL, std::nan(""), -0.0}) {
    auto tensor = TensorObject::zeros(kFloat32, {2});
    tensor->setDouble(0, special);
    EXPECT_EQ(roundTripFault(functionOf(tensor)), "") << special;
  }
  EXPECT_EQ(roundTripFault(functionOf(TensorObject::ofStrings({2}, {"a\"b", "\n\x01"}))), "");
}

TEST(RoundTrip, ImportsAndFreeVariables) {
  PrintOptions options;
  options.imports = true;
  auto m = parseModule("@T.prim_func\ndef f(A: T.Buffer((4,), \"float32\")):\n    A[0] = 1.0\n");
  ASSERT_TRUE(m.has_value()) << m.error().str();
  auto again = parseModule(print(*m, options));
  ASSERT_TRUE(again.has_value()) << again.error().str();
  EXPECT_TRUE(structuralEqual(*m, *again));
  Var n = var("n");
  EXPECT_EQ(print(n * 2 + 1), "n * 2 + 1");
  EXPECT_EQ(print(nullptr), "None");
  ParseOptions captured;
  captured.captures = {{"n", n}};
  auto e = parseExpression("n * 2 + 1", captured);
  ASSERT_TRUE(e.has_value()) << e.error().str();
  EXPECT_TRUE(structuralEqual(*e, n * 2 + 1));
}

} // namespace
} // namespace bevel
