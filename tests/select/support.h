// Graph functions built for tests, and evaluated by the operators' oracles.
#pragma once

#include "arith/analyzer.h"
#include "graph/block_builder.h"
#include "graph/shape_util.h"
#include "graph/visitor.h"
#include "ir/structural.h"
#include "ir/verify.h"
#include "ops/ops.h"
#include "ops/oracle.h"
#include "select/passes.h"

#include <cmath>
#include <fmt/format.h>
#include <gtest/gtest.h>

namespace bevel::test {

/// Reproducible values in [-1, 1).
class Values {
public:
  Tensor tensor(const Ints& shape, double low = -1, double high = 1) {
    auto t = TensorObject::zeros(kFloat32, shape);
    for (int64_t i = 0; i < t->size(); ++i) {
      state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
      t->setDouble(i, low + (high - low) * double(state_ >> 40) / double(1 << 24));
    }
    return t;
  }
  GraphExpr constant(const Ints& shape, double low = -1, double high = 1) {
    return make<const ConstantNode>(tensor(shape, low, high));
  }

private:
  uint64_t state_ = 1;
};

inline GraphExpr scalarConstant(double v) {
  return make<const ConstantNode>(TensorObject::of(kFloat32, {}, std::vector<double>{v}));
}
inline GraphExpr shapeOf(Array<Expr> values) {
  return make<const ShapeExprNode>(std::move(values));
}
inline NodeRef ints(const Ints& v) {
  return intList(v);
}

/// A function "main" of one dataflow block.
class Graph {
public:
  Graph() { registerOnce(); }
  GraphVar input(const std::string& name, Array<Expr> shape) {
    GraphVar v = make<const GraphVarNode>(name, Type(make<const TensorTypeNode>(kFloat32, std::move(shape))));
    params_.push_back(v);
    return v;
  }
  void begin() {
    builder_.beginFunction("main", params_);
    builder_.beginDataflow();
  }
  GraphExpr op(const char* name, Array<GraphExpr> args,
               std::vector<std::pair<std::string, NodeRef>> attrs = {}) {
    auto v = builder_.emit(opCall(name, std::move(args), attrs.empty() ? Dict() : dict(std::move(attrs))));
    EXPECT_TRUE(v) << v.error().str();
    return *v;
  }
  Module end(Array<GraphExpr> results) {
    Array<GraphExpr> outputs;
    for (const GraphExpr& r : results) {
      auto v = builder_.emitOutput(r);
      EXPECT_TRUE(v);
      outputs.push_back(*v);
    }
    builder_.endDataflow();
    auto name =
        builder_.emitFuncOutput(outputs.size() == 1 ? outputs[0] : GraphExpr(make<const TupleNode>(outputs)));
    EXPECT_TRUE(name) << name.error().str();
    return builder_.module();
  }

private:
  static void registerOnce() { registerOps(); }
  BlockBuilder builder_;
  Array<GraphVar> params_;
};

/// Runs "main" of the module.
class Evaluator {
public:
  std::vector<Tensor> run(const Module& m, const std::vector<Tensor>& inputs) {
    auto f = cast<FunctionNode>(m->find("main"));
    values_.clear();
    dims_.clear();
    for (size_t i = 0; i < f->params.size(); ++i) {
      Array<Expr> actual = dims(inputs[i]->shape);
      auto ok = unifyShape(f->params[i]->type.as<TensorTypeNode>()->shape, actual, dims_, analyzer_);
      EXPECT_TRUE(ok);
      values_[f->params[i]] = {inputs[i]};
    }
    for (const BindingBlock& block : f->body->blocks)
      for (const NodeRef& b : block->bindings) {
        if (const auto* v = b.as<VarBindingNode>())
          values_[v->var] = valueOf(v->value);
        else {
          const auto* m2 = b.as<MatchCastNode>();
          if (m2->value.is<GraphVarNode>()) values_[m2->var] = valueOf(m2->value);
        }
      }
    return valueOf(f->body->body);
  }

private:
  std::vector<Tensor> valueOf(const GraphExpr& e) {
    if (const auto* v = e.as<GraphVarNode>()) return values_.at(GraphVar(v));
    if (const auto* c = e.as<ConstantNode>()) return {c->value};
    std::vector<Tensor> out;
    if (const auto* t = e.as<TupleNode>()) {
      for (const GraphExpr& item : t->items) out.push_back(valueOf(item)[0]);
      return out;
    }
    if (const auto* g = e.as<TupleGetNode>()) return {valueOf(g->tuple)[size_t(g->index)]};
    return callOf(*e.as<GraphCallNode>());
  }

  std::vector<Tensor> callOf(const GraphCallNode& c) {
    Array<GraphExpr> args;
    HostTensors inputs;
    for (const GraphExpr& a : c.args) {
      Tensor value;
      if (const auto* s = a.as<ShapeExprNode>()) {
        Array<Expr> known;
        for (const Expr& d : s->values) known.push_back(analyzer_.simplify(substitute(d, dims_)));
        args.push_back(make<const ShapeExprNode>(known));
      } else if (isAbsent(a))
        args.push_back(a);
      else {
        value = valueOf(a)[0];
        args.push_back(make<const ConstantNode>(value));
      }
      inputs.push_back(value);
    }
    auto out = evaluate(make<const GraphCallNode>(c.op, args, c.attrs), inputs);
    EXPECT_TRUE(out) << out.error().str();
    return out ? *out : std::vector<Tensor>{};
  }

  std::unordered_map<GraphVar, std::vector<Tensor>, RefHash> values_;
  VarMap dims_;
  Analyzer analyzer_;
};

inline int countCalls(const Module& m, std::string_view op) {
  int n = 0;
  forEachCall(cast<FunctionNode>(m->find("main")),
              [&](const GraphCall& c, const GraphVar&) { n += c->opName() == op; });
  return n;
}

/// "" where the values agree, relative to 1 or to their size where that is larger; NaN agrees with NaN alone.
inline std::string difference(const TensorObject& want, const TensorObject& got, double tolerance) {
  if (want.dtype != got.dtype || want.shape != got.shape) return "another dtype or shape";
  for (int64_t i = 0; i < want.size(); ++i) {
    double a = want.asDouble(i), b = got.asDouble(i);
    bool agree =
        a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= tolerance * (1 + std::abs(a));
    if (!agree) return fmt::format("element {}: {} instead of {}", i, b, a);
  }
  return "";
}

/// The pass keeps the results for these inputs; gives the module it made.
inline Module checkPass(Result<Module> (*pass)(const Module&), const Module& before,
                        const std::vector<Tensor>& inputs, double tolerance = 2e-5) {
  auto after = pass(before);
  EXPECT_TRUE(after) << (after ? "" : after.error().str());
  if (!after) return before;
  auto ok = verify(*after);
  EXPECT_TRUE(ok) << (ok ? "" : ok.error().str());
  auto want = Evaluator().run(before, inputs), got = Evaluator().run(*after, inputs);
  EXPECT_EQ(want.size(), got.size());
  for (size_t k = 0; k < want.size() && k < got.size(); ++k)
    EXPECT_EQ(difference(*want[k], *got[k], tolerance), "") << "result " << k;
  return *after;
}

/// What the models choose, nobody being asked.
inline Result<Module> modelAlgorithm(const Module& m) {
  return chooseAlgorithm(m);
}
inline Result<Module> modelLayout(const Module& m) {
  return chooseLayout(m);
}

} // namespace bevel::test
