// Writes ONNX models with protozero.
#include "import/onnx_model_support.h"

#include "import/onnx_proto.h"
#include "import/onnx_tensor.h"
#include "import/protozero_checked.h"

#include <algorithm>

namespace bevel::test {

namespace {

using Writer = protozero::pbf_writer;

void writeAttr(Writer& node, const OnnxAttr& a) {
  Writer w(node, 5);
  w.add_string(1, a.name);
  switch (a.kind) {
  case OnnxAttr::kInt:
    w.add_int64(3, a.i);
    w.add_enum(20, 2);
    break;
  case OnnxAttr::kFloat:
    w.add_float(2, a.f);
    w.add_enum(20, 1);
    break;
  case OnnxAttr::kString:
    w.add_bytes(4, a.s);
    w.add_enum(20, 3);
    break;
  case OnnxAttr::kInts:
    w.add_packed_int64(8, a.ints.begin(), a.ints.end());
    w.add_enum(20, 7);
    break;
  case OnnxAttr::kFloats:
    w.add_packed_float(7, a.floats.begin(), a.floats.end());
    w.add_enum(20, 6);
    break;
  case OnnxAttr::kGraph:
    w.add_message(6, a.s);
    w.add_enum(20, 5);
    break;
  }
}

void writeNode(Writer& parent, uint32_t tag, const OnnxNode& n) {
  Writer w(parent, tag);
  for (const std::string& i : n.inputs) w.add_string(1, i);
  for (const std::string& o : n.outputs) w.add_string(2, o);
  if (!n.name.empty()) w.add_string(3, n.name);
  w.add_string(4, n.op);
  for (const OnnxAttr& a : n.attrs) writeAttr(w, a);
  if (!n.domain.empty()) w.add_string(7, n.domain);
}

void writeInput(Writer& graph, const std::string& name, const std::vector<std::string>& dims) {
  Writer info(graph, 11);
  info.add_string(1, name);
  Writer type(info, 2), tensor(type, 1);
  tensor.add_int32(1, 1);
  Writer shape(tensor, 2);
  for (const std::string& d : dims) {
    Writer dim(shape, 1);
    bool number = !d.empty() && d.find_first_not_of("0123456789") == std::string::npos;
    if (number)
      dim.add_int64(1, std::stoll(d));
    else
      dim.add_string(2, d);
  }
}

} // namespace

OnnxAttr intAttribute(std::string name, int64_t v) {
  return {std::move(name), OnnxAttr::kInt, v, 0, "", {}, {}};
}
OnnxAttr floatAttribute(std::string name, float v) {
  return {std::move(name), OnnxAttr::kFloat, 0, v, "", {}, {}};
}
OnnxAttr stringAttribute(std::string name, std::string v) {
  return {std::move(name), OnnxAttr::kString, 0, 0, std::move(v), {}, {}};
}
OnnxAttr intsAttribute(std::string name, std::vector<int64_t> v) {
  return {std::move(name), OnnxAttr::kInts, 0, 0, "", std::move(v), {}};
}

// A tensor as TensorProto, raw data.
static std::string tensorBytes(const TensorObject& tensor, const std::string& name) {
  std::string out;
  Writer w(out);
  w.add_packed_int64(1, tensor.shape.begin(), tensor.shape.end());
  w.add_int32(2, onnx::dataTypeOf(tensor.dtype));
  for (const std::string& s : tensor.strings) w.add_bytes(6, s);
  w.add_string(8, name);
  if (!tensor.dtype.isString())
    w.add_bytes(9, reinterpret_cast<const char*>(tensor.bytes()), size_t(tensor.byteSize()));
  return out;
}

std::string serialize(const OnnxGraph& graph, int64_t opset, const std::vector<OnnxFunction>& functions) {
  std::string out;
  Writer model(out);
  model.add_int64(1, 9);
  {
    Writer g(model, 7);
    for (const OnnxNode& n : graph.nodes) writeNode(g, 1, n);
    g.add_string(2, "graph");
    for (const auto& [name, value] : graph.initializers) g.add_message(5, tensorBytes(*value, name));
    for (const auto& [name, dims] : graph.inputs) writeInput(g, name, dims);
    for (const std::string& o : graph.outputs) {
      Writer info(g, 12);
      info.add_string(1, o);
    }
  }
  {
    Writer id(model, 8);
    id.add_string(1, "");
    id.add_int64(2, opset);
  }
  for (const OnnxFunction& f : functions) {
    Writer w(model, 25);
    w.add_string(1, f.name);
    for (const std::string& i : f.inputs) w.add_string(4, i);
    for (const std::string& o : f.outputs) w.add_string(5, o);
    for (const OnnxNode& n : f.nodes) writeNode(w, 7, n);
    w.add_string(10, f.domain);
  }
  return out;
}

Result<HostTensors> foldNode(const std::string& op, const HostTensors& inputs,
                             const std::vector<OnnxAttr>& attrs, int64_t opset, size_t outputs) {
  OnnxGraph g;
  OnnxNode n{op, {}, {}, attrs, "", "node"};
  for (size_t i = 0; i < inputs.size(); ++i) {
    n.inputs.push_back(inputs[i] ? "x" + std::to_string(i) : "");
    if (inputs[i]) g.initializers.emplace_back(n.inputs.back(), inputs[i]);
  }
  for (size_t k = 0; k < outputs; ++k) n.outputs.push_back("y" + std::to_string(k));
  g.outputs = n.outputs;
  g.nodes = {n};
  std::string bytes = serialize(g, opset);
  BEVEL_TRY(OnnxModel model, importOnnx(bytes, nullptr, ""));
  auto f = cast<FunctionNode>(model.module->find(model.function));
  HostTensors out;
  auto take = [&](const GraphExpr& e) -> Status {
    const auto* c = e.as<ConstantNode>();
    if (!c) return fail(ErrorCode::kInternal, "the node was not folded");
    // Copied: constants may refer to `bytes`.
    auto copy = TensorObject::zeros(c->value->dtype, c->value->shape);
    std::copy_n(c->value->bytes(), c->value->byteSize(), copy->mutableBytes());
    out.push_back(copy);
    return {};
  };
  if (const auto* t = f->body->body.as<TupleNode>()) {
    for (const GraphExpr& e : t->items) BEVEL_CHECK(take(e));
  } else
    BEVEL_CHECK(take(f->body->body));
  return out;
}

} // namespace bevel::test
