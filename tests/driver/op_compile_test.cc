// Every operator's test cases through machine code, all cases of one operator in one program, against the oracles.
#include "driver/compile.h"
#include "driver/session.h"

#include "graph/block_builder.h"
#include "ops/op_spec_support.h"
#include "ops/ops.h"
#include "ops/oracle.h"

#include <gtest/gtest.h>

namespace bevel {
namespace {

std::vector<std::string> compiledOperators() {
  registerOps();
  std::vector<std::string> names;
  for (const Op* op : OpRegistry::global().all())
    if (op->compute && test::findOracle(op->name) && !op->tests.empty()) names.push_back(op->name);
  return names;
}

struct Program {
  Array<GraphVar> params;
  std::vector<GraphCall> calls; // with those parameters
  HostTensors inputs;
  std::vector<HostTensors> expected;
};

Result<Program> programOfCases(const Op& op) {
  Program p;
  for (const std::string& spec : op.tests) {
    BEVEL_TRY(test::OpCase c, test::parseOpCase(op.name, spec));
    BEVEL_TRY(HostTensors expected, test::evaluate(c.call, c.inputs));
    Array<GraphExpr> args = c.call->args;
    for (size_t i = 0; i < args.size(); ++i) {
      if (!c.inputs[i]) continue;
      p.params.push_back(make<const GraphVarNode>("x" + std::to_string(p.params.size()), args[i]->type));
      args.set(i, p.params.back());
      p.inputs.push_back(c.inputs[i]);
    }
    p.calls.push_back(opCall(op.name, args, c.call->attrs));
    p.expected.push_back(std::move(expected));
  }
  return p;
}

Result<Module> moduleOf(const Program& p) {
  BlockBuilder b;
  b.beginFunction("main", p.params, dict({{"num_input", intImm(int64_t(p.params.size()))}}));
  Array<GraphExpr> results;
  for (const GraphCall& call : p.calls) {
    BEVEL_TRY(GraphVar v, b.emit(call));
    const auto* tuple = v->type.as<TupleTypeNode>();
    if (!tuple) results.push_back(v);
    for (size_t i = 0; tuple && i < tuple->fields_.size(); ++i) {
      BEVEL_TRY(GraphVar field, b.emit(make<const TupleGetNode>(v, int64_t(i))));
      results.push_back(field);
    }
  }
  BEVEL_CHECK(b.emitFuncOutput(make<const TupleNode>(results)));
  return b.module();
}

Result<HostTensors> runCompiled(const Program& p) {
  BEVEL_TRY(Module module, moduleOf(p));
  BuildOptions options;
  options.useCache = false;
  options.debugInfo = false;
  BEVEL_TRY(Compiled compiled, compileModule(module, options));
  BEVEL_TRY(auto program, load(compiled));
  BEVEL_TRY(auto session, Session::create(program, 2));
  for (size_t i = 0; i < p.inputs.size(); ++i) BEVEL_CHECK(session->setInput(i, {p.inputs[i], false, {}}));
  BEVEL_CHECK(session->run());
  HostTensors out;
  for (size_t i = 0; i < session->outputs().size(); ++i) {
    BEVEL_TRY(HostValue value, session->output(i));
    out.push_back(value.tensor);
  }
  return out;
}

class CompiledOp : public testing::TestWithParam<std::string> {};

TEST_P(CompiledOp, AgreesWithOracle) {
  const Op& op = *findOp(GetParam());
  auto program = programOfCases(op);
  ASSERT_TRUE(program) << program.error().str();
  auto actual = runCompiled(*program);
  ASSERT_TRUE(actual) << actual.error().str();
  size_t at = 0;
  for (size_t c = 0; c < program->expected.size(); ++c)
    for (const Tensor& expected : program->expected[c]) {
      ASSERT_LT(at, actual->size());
      ASSERT_TRUE((*actual)[at]);
      EXPECT_EQ(test::difference(*expected, *(*actual)[at]), "") << op.tests[c];
      ++at;
    }
}

INSTANTIATE_TEST_SUITE_P(All, CompiledOp, testing::ValuesIn(compiledOperators()), [](const auto& info) {
  std::string name;
  for (char c : info.param) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
});

} // namespace
} // namespace bevel
