// See evaluate.h.
#include "graph/evaluate.h"

#include "arith/analyzer.h"
#include "ir/structural.h"
#include "loop/interpreter.h"
#include "loop/kernel_signature.h"
#include "loop/view.h"

#include <algorithm>

namespace bevel {
namespace {

// IR nodes that one run of a small program visits, about: a few milliseconds of the interpreter.
constexpr double kSmallRun = 1 << 17;

double nodesVisited(const NodeRef& root) {
  double total = 0;
  walk(root, [&](const NodeRef& n) {
    total += n.is<WhileNode>() ? INFINITY : 1;
    const auto* loop = n.as<ForNode>();
    if (!loop) return true;
    auto extent = asConst(loop->extent);
    total += extent ? double(*extent) * nodesVisited(loop->body) : INFINITY;
    return false;
  });
  return total;
}

std::optional<std::vector<int64_t>> knownShape(const Array<Expr>& shape, Analyzer& analyzer) {
  Array<Expr> simple;
  for (const Expr& d : shape) simple.push_back(analyzer.simplify(d));
  auto known = constDims(simple);
  return known && elementCount(*known) ? known : std::nullopt;
}

// The program and its arguments.
bool findProgram(const GraphCall& call, const Module& module, ConstantCall& out) {
  if (call->isOp("call_tir")) {
    if (!module || call->args.size() != 2) return false;
    GraphExpr f = module->find(call->args[0].as<GlobalVarNode>()->name);
    if (!f || !f.is<PrimFuncNode>()) return false;
    out.program = cast<PrimFuncNode>(f);
    out.tensors = call->args[1].as<TupleNode>()->items;
    return true;
  }
  const Op* op = call->op.is<OpRefNode>() ? findOp(call->opName()) : nullptr;
  if (!op || !op->compute || !op->pure) return false;
  auto program = programOf(call);
  if (!program || !program->extra.empty()) return false;
  out.program = program->function;
  out.tensors = program->tensors;
  out.isView = op->view;
  return true;
}

bool computesText(const NodeRef& n) {
  const auto* call = n.as<CallNode>();
  bool computes = n.is<BinaryNode>() || n.is<UnaryNode>() || n.is<CastNode>() ||
                  (call && call->op != Intrin::kIfThenElse);
  return computes && cast<ExprNode>(n)->dtype.isString();
}

// A program that only moves strings moves their numbers in a sorted list as well: the same call on int64.
bool moveNumbersOfStrings(const GraphCall& call, ConstantCall& c) {
  for (const auto& [dtype, shape] : c.results)
    if (!dtype.isString()) return false;
  bool moves = !call->isOp("call_tir");
  walk(c.program->body, [&](const NodeRef& n) { return moves = moves && !computesText(n); });
  if (!moves) return false;
  Array<GraphExpr> args;
  for (const GraphExpr& a : call->args) {
    const auto* t = a->type.as<TensorTypeNode>();
    bool text = t && t->dtype.isString();
    args.push_back(
        text ? make<const GraphVarNode>("text", make<const TensorTypeNode>(kInt64, t->shape), false) : a);
  }
  auto numbers = programOf(make<const GraphCallNode>(call->op, args, call->attrs));
  if (!numbers || !numbers->extra.empty()) return false;
  c.program = numbers->function;
  return true;
}

// The empty string, which fills, is number 0.
std::vector<std::string> sortedStrings(const HostTensors& in) {
  std::vector<std::string> all = {""};
  for (const Tensor& t : in) all.insert(all.end(), t->strings.begin(), t->strings.end());
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

Tensor numbersOf(const Tensor& t, const std::vector<std::string>& sorted) {
  if (!t->dtype.isString()) return t;
  auto numbers = TensorObject::zeros(kInt64, t->shape);
  for (int64_t i = 0; i < t->size(); ++i)
    numbers->setInt(i,
                    std::lower_bound(sorted.begin(), sorted.end(), t->strings[size_t(i)]) - sorted.begin());
  return numbers;
}

Result<Tensor> stringsOf(const Tensor& numbers, const std::vector<std::string>& sorted) {
  std::vector<std::string> strings;
  for (int64_t i = 0; i < numbers->size(); ++i) {
    int64_t k = numbers->asInt(i);
    if (k < 0 || k >= int64_t(sorted.size()))
      return fail(ErrorCode::kInvalid, "a result is none of the strings");
    strings.push_back(sorted[size_t(k)]);
  }
  return Tensor(TensorObject::ofStrings(numbers->shape, std::move(strings)));
}

} // namespace

std::optional<ConstantCall> ConstantCall::of(const GraphCall& call, const Module& module) {
  ConstantCall out;
  if (!findProgram(call, module, out)) return std::nullopt;
  Analyzer analyzer;
  std::vector<size_t> handles = kernelBuffers(out.program);
  bool strings = false;
  for (size_t k = 0; k < handles.size(); ++k) {
    const Buffer& b = out.program->buffers[handles[k]];
    auto shape = knownShape(b->shape, analyzer);
    if (!shape) return std::nullopt;
    strings |= b->dtype.isString();
    if (k >= out.tensors.size()) out.results.emplace_back(b->dtype, std::move(*shape));
  }
  if (handles.size() != out.program->params.size()) return std::nullopt; // scalars
  out.isView = out.isView || (!strings && bevel::isView(out.program));
  if (strings && !out.isView && !moveNumbersOfStrings(call, out)) return std::nullopt;
  out.isSmall = out.isView || nodesVisited(out.program->body) <= kSmallRun;
  return out;
}

Result<HostTensors> ConstantCall::run(const HostTensors& in, const RunProgram& machineCode,
                                      int threads) const {
  if (isView) {
    auto owner = std::make_shared<Tensor>(in[0]);
    if (in[0]->dtype.isString())
      return HostTensors{TensorObject::ofStrings(results[0].second, in[0]->strings)};
    return HostTensors{TensorObject::wrap(results[0].first, results[0].second, in[0]->bytes(), owner)};
  }
  bool text = !results.empty() && results[0].first.isString();
  std::vector<std::string> sorted = text ? sortedStrings(in) : std::vector<std::string>();
  HostTensors inputs, done;
  std::vector<Ref<TensorObject>> out, all;
  for (const Tensor& t : in) inputs.push_back(numbersOf(t, sorted));
  for (const auto& [dtype, shape] : results) out.push_back(TensorObject::zeros(text ? kInt64 : dtype, shape));
  if (machineCode) {
    BEVEL_CHECK(machineCode(inputs, out, threads));
  } else {
    for (const Tensor& t : inputs) all.push_back(Ref<TensorObject>(const_cast<TensorObject*>(t.get())));
    all.insert(all.end(), out.begin(), out.end());
    BEVEL_CHECK(interpret(program, all));
  }
  if (!text) return HostTensors(out.begin(), out.end());
  for (const auto& t : out) {
    BEVEL_TRY(Tensor strings, stringsOf(t, sorted));
    done.push_back(strings);
  }
  return done;
}

GraphExpr constantsOf(const HostTensors& results, bool isTuple, const std::string& name) {
  Array<GraphExpr> constants;
  for (const Tensor& t : results) constants.push_back(make<const ConstantNode>(t, name));
  return isTuple || constants.size() != 1 ? GraphExpr(make<const TupleNode>(constants)) : constants[0];
}

} // namespace bevel
