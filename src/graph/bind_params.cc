// Parameters become constants:
//
//   def main(x, w): … R.matmul(x, w)    →    def main(x): … R.matmul(x, metadata constant)
#include "graph/block_builder.h"

#include "arith/analyzer.h"
#include "graph/shape_util.h"

#include <fmt/format.h>

namespace bevel {

namespace {

Result<size_t> findParam(const Function& f, const std::string& name) {
  for (size_t i = 0; i < f->params.size(); ++i)
    if (f->params[i]->name == name) return i;
  bool number = !name.empty() && name.find_first_not_of("0123456789") == std::string::npos && name.size() < 9;
  if (number && size_t(std::stol(name)) < f->params.size()) return size_t(std::stol(name));
  return fail(ErrorCode::kUsage, fmt::format("the function has no parameter '{}'", name));
}

// Parameters become values and their dimensions numbers. One for the whole function: a parameter that stays
// gets another type where a dimension of it became known, and all its uses are that new variable.
class Binder : public Rewriter {
public:
  std::unordered_map<NodeRef, NodeRef, RefHash> values;

protected:
  NodeRef visit(const NodeRef& node) override {
    auto it = values.find(node);
    return it == values.end() ? visitChildren(node) : it->second;
  }
};

} // namespace

Result<Function> bindParams(const Function& function,
                            const std::vector<std::pair<std::string, Tensor>>& values) {
  Analyzer analyzer;
  std::vector<GraphExpr> bound(function->params.size());
  VarMap dims;
  for (const auto& [name, value] : values) {
    BEVEL_TRY(size_t i, findParam(function, name));
    GraphExpr c = make<const ConstantNode>(value, function->params[i]->name);
    if (auto ok = unify(function->params[i]->type, c->type, dims, analyzer); !ok)
      return fail(std::move(ok.error()).note(fmt::format("value of parameter '{}'", name)));
    bound[i] = c;
  }
  Binder replace;
  for (const auto& [v, e] : dims) replace.values[v] = e;
  Array<GraphVar> params;
  for (size_t i = 0; i < bound.size(); ++i)
    if (bound[i]) replace.values[function->params[i]] = bound[i];
  for (size_t i = 0; i < bound.size(); ++i)
    if (!bound[i]) params.push_back(replace(function->params[i]));
  auto body = replace(function->body);
  Type result = replace(function->result);
  auto made = make<FunctionNode>(params, body, result, function->attrs, function->pure);
  made->origin = function->origin;
  return Function(made);
}

Result<Module> bindParams(const Module& module, const std::string& function,
                          const std::vector<std::pair<std::string, Tensor>>& values) {
  GraphExpr f = module->find(function);
  if (!f.is<FunctionNode>())
    return fail(ErrorCode::kUsage, fmt::format("there is no graph function '{}'", function));
  BEVEL_TRY(Function bound, bindParams(cast<FunctionNode>(f), values));
  return withFunction(module, function, bound);
}

} // namespace bevel
