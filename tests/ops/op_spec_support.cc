// Parses operator test cases, makes their inputs, runs and compares.
#include "ops/op_spec_support.h"

#include "arith/analyzer.h"
#include "base/hash.h"
#include "graph/infer.h"
#include "loop/interpreter.h"

#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <sstream>

namespace bevel::test {

namespace {

struct Random {
  uint64_t state;
  uint64_t next() { return state = hashMix(state + 0x9e3779b97f4a7c15ULL); }
  double unit() { return double(next() >> 11) / double(uint64_t(1) << 53); }
  int64_t below(int64_t n) { return int64_t(next() % uint64_t(n)); }
};

std::vector<int64_t> readInts(std::string_view text) {
  std::vector<int64_t> out;
  std::stringstream in{std::string(text)};
  for (std::string item; std::getline(in, item, ',');) out.push_back(std::stoll(item));
  return out;
}

double valueOf(const std::string& kind, DType t, Random& r, int64_t i) {
  static const double special[] = {NAN, INFINITY, -INFINITY, 0.0, -0.0, 1.0, -1.5, 1e-8, 50.0};
  if (t.isBool()) return double(r.below(2));
  bool isUnsigned = t.isUInt();
  if (kind == "idx5") return double(isUnsigned ? r.below(5) : r.below(10) - 5);
  if (kind == "int9" || (!t.isFloat() && kind.empty()))
    return double(isUnsigned ? r.below(10) : r.below(19) - 9);
  if (kind == "special") return special[size_t(i) % 9];
  if (kind == "pos") return t.isFloat() ? 0.5 + 2.5 * r.unit() : double(1 + r.below(9));
  if (kind == "unit") return 1.8 * r.unit() - 0.9;
  if (kind == "nonzero") return (0.5 + 1.5 * r.unit()) * (r.below(2) ? 1 : -1);
  return 4 * r.unit() - 2;
}

// "float32[2,3]:pos"
Result<Tensor> readTensor(const std::string& text, Random& r) {
  size_t open = text.find('['), close = text.find(']');
  auto dtype = DType::parse(text.substr(0, open));
  if (!dtype || close == std::string::npos)
    return fail(ErrorCode::kUsage, "bad input in a test case: " + text);
  auto shape = readInts(text.substr(open + 1, close - open - 1));
  std::string kind = close + 1 < text.size() ? text.substr(close + 2) : "";
  auto t = TensorObject::zeros(*dtype, shape);
  for (int64_t i = 0; i < t->size(); ++i) {
    double v = valueOf(kind, *dtype, r, i);
    if (dtype->isFloat())
      t->setDouble(i, v);
    else
      t->setInt(i, int64_t(v));
  }
  return Tensor(t);
}

NodeRef readAttr(const std::string& text) {
  if (text[0] == '[') {
    Array<NodeRef> items;
    std::stringstream in(text.substr(1, text.size() - 2));
    for (std::string item; std::getline(in, item, ',');)
      items.push_back(item.find('.') == std::string::npos
                          ? NodeRef(intImm(std::stoll(item)))
                          : NodeRef(constantFloat(DType::Float(64), std::stod(item))));
    return list(items);
  }
  bool number = text.find_first_not_of("0123456789-.e") == std::string::npos &&
                text.find_first_of("0123456789") != std::string::npos;
  if (!number) return str(text);
  if (text.find('.') != std::string::npos) return constantFloat(DType::Float(64), std::stod(text));
  return intImm(std::stoll(text));
}

double toleranceOf(DType t) {
  if (!t.isFloat()) return 0;
  return t.bits >= 64                  ? 1e-12
         : t.bits == 32                ? 2e-6
         : t.code == TypeCode::kBFloat ? 1e-2
         : t.bits == 16                ? 1e-3
                                       : 0.13;
}

} // namespace

Result<OpCase> parseOpCase(const std::string& op, const std::string& spec, uint64_t seed) {
  Random r{hashText(spec, seed)};
  Array<GraphExpr> args;
  HostTensors inputs;
  std::vector<std::pair<std::string, NodeRef>> attrs;
  std::stringstream in(spec);
  for (std::string word; in >> word;) {
    if (size_t eqPos = word.find('='); eqPos != std::string::npos) {
      attrs.emplace_back(word.substr(0, eqPos), readAttr(word.substr(eqPos + 1)));
    } else if (word == "_") {
      args.push_back(absent());
      inputs.emplace_back();
    } else if (word.starts_with("shape(")) {
      args.push_back(make<const ShapeExprNode>(dims(readInts(word.substr(6, word.size() - 7)))));
      inputs.emplace_back();
    } else {
      BEVEL_TRY(Tensor t, readTensor(word, r));
      args.push_back(
          make<const GraphVarNode>(fmt::format("x{}", inputs.size()), tensorType(t->dtype, t->shape)));
      inputs.push_back(std::move(t));
    }
  }
  return OpCase{opCall(op, args, attrs.empty() ? nullptr : dict(attrs)), inputs};
}

Result<HostTensors> interpretCall(const OpCase& c) {
  Analyzer analyzer;
  InferContext context(analyzer);
  BEVEL_TRY(Type type, inferType(c.call, nullptr, context));
  BEVEL_TRY(OpProgram program, programOf(c.call));
  std::vector<Ref<TensorObject>> tensors;
  for (const Tensor& t : c.inputs)
    if (t) tensors.push_back(Ref<TensorObject>(const_cast<TensorObject*>(t.get())));
  HostTensors results;
  std::vector<Type> types;
  if (const auto* tuple = type.as<TupleTypeNode>())
    for (const Type& t : tuple->fields_) types.push_back(t);
  else
    types.push_back(type);
  for (const Type& t : types) {
    Array<Expr> shape;
    for (const Expr& d : t.as<TensorTypeNode>()->shape) shape.push_back(analyzer.simplify(d));
    auto known = constDims(shape);
    if (!known) return fail(ErrorCode::kInternal, "the result shape is not constant");
    tensors.push_back(TensorObject::zeros(t.as<TensorTypeNode>()->dtype, *known));
    results.push_back(tensors.back());
  }
  BEVEL_CHECK(interpret(program.function, tensors));
  return results;
}

std::string difference(const TensorObject& expected, const TensorObject& actual) {
  if (expected.dtype != actual.dtype)
    return fmt::format("dtype {} against {}", expected.dtype.str(), actual.dtype.str());
  if (expected.shape != actual.shape)
    return fmt::format("shapes differ: {} against {} elements", expected.size(), actual.size());
  double scale = 0, tolerance = toleranceOf(expected.dtype);
  for (int64_t i = 0; i < expected.size(); ++i)
    if (expected.dtype.isFloat() && std::isfinite(expected.asDouble(i)))
      scale = std::max(scale, std::fabs(expected.asDouble(i)));
  for (int64_t i = 0; i < expected.size(); ++i) {
    if (!expected.dtype.isFloat()) {
      if (expected.asInt(i) != actual.asInt(i))
        return fmt::format("element {}: {} against {}", i, expected.asInt(i), actual.asInt(i));
      continue;
    }
    double a = expected.asDouble(i), b = actual.asDouble(i);
    if ((std::isnan(a) && std::isnan(b)) || a == b) continue;
    if (!(std::fabs(a - b) <= tolerance * std::max(std::fabs(a), std::min(scale, 1.0))))
      return fmt::format("element {}: {} against {}", i, a, b);
  }
  return "";
}

} // namespace bevel::test
