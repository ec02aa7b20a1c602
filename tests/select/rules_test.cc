// Rules of graph functions: what the driver promises, and lists that a program extends.
#include "graph/rewrite.h"
#include "tests/select/support.h"

namespace bevel::test {
namespace {

// relu(relu(x)) and so on, `depth` times.
Module nested(const char* op, int depth) {
  Graph g;
  GraphExpr x = g.input("x", dims({3}));
  g.begin();
  for (int i = 0; i < depth; ++i) x = g.op(op, {x});
  return g.end({x});
}

Module rewritten(const Module& m, const Rules& rules) {
  auto after = rewriteGraph(m, rules);
  EXPECT_TRUE(after) << (after ? "" : after.error().str());
  EXPECT_TRUE(after && verify(*after));
  return after ? *after : m;
}

TEST(Rules, ProgramsAddTheirOwn) {
  Pattern x = anything();
  Module before = nested("nn.relu", 4);
  EXPECT_EQ(countCalls(checkPass(simplifyGraph, before, {Values().tensor({3})}), "nn.relu"), 4);
  addGraphRule("simplify",
               {"test.relu", call("nn.relu", {call("nn.relu", {x}).shared()}), call("nn.relu", {x})});
  EXPECT_EQ(countCalls(checkPass(simplifyGraph, before, {Values().tensor({3})}), "nn.relu"), 1);
  addGraphRule("simplify", {"test.relu", call("test.none", {x}), x}); // in place of the rule of that name
  EXPECT_EQ(countCalls(checkPass(simplifyGraph, before, {Values().tensor({3})}), "nn.relu"), 4);
}

TEST(Rules, WithoutEndAreAnError) {
  Pattern x = anything();
  Rules swap = {{"there", call("nn.relu", {x}), call("abs", {x})},
                {"back", call("abs", {x}), call("nn.relu", {x})}};
  auto after = rewriteGraph(nested("nn.relu", 1), swap);
  ASSERT_FALSE(after);
  EXPECT_NE(after.error().str().find("is applied to its own results without end"), std::string::npos);
  Rules grow = {{"grow", call("abs", {x}), call("abs", {call("abs", {x})})}};
  EXPECT_FALSE(rewriteGraph(nested("abs", 1), grow));
}

TEST(Rules, AnotherTypeIsNotTaken) {
  Pattern x = anything();
  Rules rules = {{"wrong", call("nn.relu", {x}), call("mean", {x})}, // of another shape
                 {"refused", call("nn.relu", {x}), call("matmul", {x, x})},
                 {"right", call("nn.relu", {x}), call("abs", {x})}};
  Graph g;
  GraphVar a = g.input("a", dims({2, 3}));
  g.begin();
  Module after = rewritten(g.end({g.op("nn.relu", {a})}), rules);
  EXPECT_EQ(countCalls(after, "abs"), 1);
  EXPECT_EQ(countCalls(after, "mean") + countCalls(after, "matmul"), 0);
}

// A part that is used twice is bound once; what is made is looked at again; nothing dead stays.
TEST(Rules, PartsOfReplacementsAreRewrittenAndShared) {
  Pattern x = anything(), part = call("exp", {x});
  Rules rules = {{"square", call("nn.relu", {x}), call("multiply", {part, part})},
                 {"inner", call("exp", {x}), call("abs", {x})}};
  Module after = rewritten(nested("nn.relu", 2), rules);
  EXPECT_EQ(countCalls(after, "multiply"), 2);
  EXPECT_EQ(countCalls(after, "abs"), 2);
  EXPECT_EQ(countCalls(after, "exp") + countCalls(after, "nn.relu"), 0);
}

// y has a second user, which another rule removes: then nothing else uses it.
TEST(Rules, WaitForUsersToGo) {
  Pattern x = anything(), y = call("exp", {x});
  Rules rules = {{"needs the only user", call("log", {y}), x},
                 {"drops a user", call("where", {anything(), x, anything()}), x}};
  Graph g;
  GraphVar a = g.input("a", dims({3}));
  g.begin();
  GraphExpr e = g.op("exp", {a}), l = g.op("log", {e});
  GraphExpr other = g.op("where", {g.op("equal", {a, a}), l, e});
  Module after = rewritten(g.end({other}), rules);
  for (const char* gone : {"exp", "log", "where", "equal"}) EXPECT_EQ(countCalls(after, gone), 0) << gone;
}

TEST(Rules, PredicatesOnAttributesTypesAndUses) {
  Pattern x = anything(), wide = x.where([](const GraphExpr& e, const MatchContext&) {
    return knownTensor(e) && knownTensor(e)->shape.size() == 2;
  });
  Pattern alone = x.where([](const GraphExpr& e, const MatchContext& values) {
    return e.is<GraphVarNode>() && values.uses(cast<GraphVarNode>(e)) == 1;
  });
  Rules rules = {{"attribute", call("sum", {x}).with("keepdims", intImm(1)),
                  call("mean", {x}).with("keepdims", intImm(1))},
                 {"type", call("nn.relu", {wide}), call("abs", {wide})},
                 {"uses", call("exp", {alone}), alone}};
  Graph g;
  GraphVar a = g.input("a", dims({2, 3})), b = g.input("b", dims({3})), c = g.input("c", dims({3}));
  g.begin();
  auto sum = [&](int64_t keep) { return g.op("sum", {a}, {{"keepdims", intImm(keep)}}); };
  Module after = rewritten(
      g.end({sum(0), sum(1), g.op("nn.relu", {a}), g.op("nn.relu", {b}), g.op("exp", {c}), g.op("exp", {b})}),
      rules);
  EXPECT_EQ(countCalls(after, "sum"), 1);
  EXPECT_EQ(countCalls(after, "mean"), 1);
  EXPECT_EQ(countCalls(after, "abs"), 1);
  EXPECT_EQ(countCalls(after, "nn.relu"), 1);
  EXPECT_EQ(countCalls(after, "exp"), 1); // b has two users
}

} // namespace
} // namespace bevel::test
