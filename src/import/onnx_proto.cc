// Reads ONNX messages with protozero. Bounds: nesting of graphs and types; everything else is bounded by the file's
// size, because each element takes at least one byte of it.
#include "import/onnx_proto.h"

#include "import/protozero_checked.h"

#include <fmt/format.h>

namespace bevel::onnx {

namespace {

constexpr int kMaxDepth = 64;

struct TooDeep {};

using Reader = protozero::pbf_reader;

// A message that is being read, and how many graphs and types it lies in.
struct In {
  Reader r;
  int depth = 0;
};

// Bit i: field i was in the message.
using Seen = uint64_t;
bool has(Seen seen, int field) {
  return seen >> field & 1;
}

// ---- the fields of every message that importing needs: number and member

template <class F> void fields(std::pair<std::string, std::string>& entry, F f) {
  f(1, entry.first), f(2, entry.second);
}
template <class F> void fields(TensorProto& t, F f) {
  f(1, t.dims), f(2, t.dataType), f(4, t.floats), f(5, t.int32s), f(6, t.strings), f(7, t.int64s);
  f(8, t.name), f(9, t.raw), f(10, t.doubles), f(11, t.uint64s), f(13, t.externalData), f(14, t.location);
}
template <class F> void fields(SparseTensorProto& t, F f) {
  f(1, t.values), f(2, t.indices), f(3, t.dims);
}
template <class F> void fields(Dimension& d, F f) {
  f(1, d.value), f(2, d.param);
}

// Messages inside of a type whose contents lie in the type itself.
struct ShapeOf {
  TypeProto& t;
};
struct TensorTypeOf {
  TypeProto& t;
};
struct ElementTypeOf {
  TypeProto& t;
  uint32_t field;
};
template <class F> void fields(ShapeOf& s, F f) {
  f(1, s.t.shape);
}
template <class F> void fields(TensorTypeOf& s, F f) {
  f(1, s.t.elemType), f(2, ShapeOf{s.t});
}
template <class F> void fields(ElementTypeOf& s, F f) {
  f(s.field, s.t.element);
}
template <class F> void fields(TypeProto& t, F f) {
  f(TypeProto::kTensor, TensorTypeOf{t}), f(TypeProto::kSparse, TensorTypeOf{t});
  f(TypeProto::kSequence, ElementTypeOf{t, 1}), f(TypeProto::kOptional, ElementTypeOf{t, 1});
  f(TypeProto::kMap, ElementTypeOf{t, 2});
}
template <class F> void fields(ValueInfo& v, F f) {
  f(1, v.name), f(2, v.type);
}
template <class F> void fields(AttributeProto& a, F f) {
  f(1, a.name), f(2, a.f), f(3, a.i), f(4, a.s), f(5, a.t), f(6, a.g), f(7, a.floats), f(8, a.ints);
  f(9, a.strings), f(14, a.tp), f(20, a.type), f(21, a.refName), f(22, a.sparse);
}
template <class F> void fields(NodeProto& n, F f) {
  f(1, n.inputs), f(2, n.outputs), f(3, n.name), f(4, n.opType), f(5, n.attributes), f(7, n.domain);
  f(8, n.overload);
}
template <class F> void fields(GraphProto& g, F f) {
  f(1, g.nodes), f(2, g.name), f(5, g.initializers), f(11, g.inputs), f(12, g.outputs), f(13, g.valueInfo);
  f(15, g.sparseInitializers);
}
template <class F> void fields(OpsetId& id, F f) {
  f(1, id.domain), f(2, id.version);
}
template <class F> void fields(FunctionProto& p, F f) {
  f(1, p.name), f(4, p.inputs), f(5, p.outputs), f(6, p.attributes), f(7, p.nodes), f(9, p.opsets);
  f(10, p.domain), f(11, p.attributeDefaults), f(13, p.overload);
}
template <class F> void fields(ModelProto& m, F f) {
  f(1, m.irVersion), f(2, m.producer), f(7, m.graph), f(8, m.opsets), f(25, m.functions);
}

// ---- what follows from the fields that were there

template <class M> void finish(M& message, Seen) {
  if constexpr (requires { message.domain; })
    if (message.domain == "ai.onnx") message.domain.clear();
}
void finish(TensorProto& t, Seen seen) {
  t.segmented = has(seen, 3);
  t.hasRaw = has(seen, 9);
  t.external = t.location == 1;
}
void finish(Dimension& d, Seen seen) {
  d.hasValue = has(seen, 1);
}
void finish(ShapeOf& s, Seen) {
  s.t.hasShape = true;
}
void finish(TypeProto& t, Seen seen) {
  for (TypeProto::Kind kind : {TypeProto::kTensor, TypeProto::kSequence, TypeProto::kMap, TypeProto::kOpaque,
                               TypeProto::kSparse, TypeProto::kOptional})
    if (has(seen, kind)) t.kind = kind;
}
// Old files have no type field: it follows from the value given.
void finish(AttributeProto& a, Seen seen) {
  constexpr std::pair<int, AttrType> kByField[] = {
      {6, AttrType::kGraph},   {5, AttrType::kTensor}, {7, AttrType::kFloats}, {8, AttrType::kInts},
      {9, AttrType::kStrings}, {2, AttrType::kFloat},  {3, AttrType::kInt},    {4, AttrType::kString}};
  for (auto [field, type] : kByField)
    if (a.type == AttrType::kUndefined && has(seen, field)) a.type = type;
}
void finish(ModelProto& m, Seen seen) {
  m.hasGraph = has(seen, 7);
}

// ---- reading

template <class M> void readMessage(In in, M& message) {
  constexpr bool nests = std::is_same_v<M, GraphProto> || std::is_same_v<M, TypeProto>;
  if (nests && ++in.depth > kMaxDepth) throw TooDeep{};
  Seen seen = 0;
  while (in.r.next()) {
    uint32_t tag = in.r.tag();
    if (tag < 64) seen |= Seen(1) << tag;
    bool known = false;
    fields(message, [&](uint32_t field, auto&& member) {
      if (field != tag || known) return;
      known = true;
      read(in, member);
    });
    if (!known) in.r.skip();
  }
  finish(message, seen);
}

// One value, by the type of the member that takes it.
template <class T> void read(In& in, T& out) {
  if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, std::string_view>) {
    auto v = in.r.get_view();
    out = T(v.data(), v.size());
  } else if constexpr (std::is_enum_v<T>)
    out = T(in.r.get_enum());
  else if constexpr (std::is_same_v<T, float>)
    out = in.r.get_float();
  else if constexpr (std::is_same_v<T, double>)
    out = in.r.get_double();
  else if constexpr (std::is_same_v<T, int32_t>)
    out = in.r.get_int32();
  else if constexpr (std::is_same_v<T, int64_t>)
    out = in.r.get_int64();
  else if constexpr (std::is_same_v<T, uint64_t>)
    out = in.r.get_uint64();
  else
    readMessage({in.r.get_message(), in.depth}, out);
}
template <class T> void read(In& in, std::shared_ptr<T>& out) {
  auto made = std::make_shared<std::remove_const_t<T>>();
  read(in, *made);
  out = std::move(made);
}
// A repeated field: one more element, or many numbers that are packed.
template <class T> void read(In& in, std::vector<T>& out) {
  if constexpr (std::is_arithmetic_v<T>)
    if (in.r.wire_type() == protozero::pbf_wire_type::length_delimited) {
      auto add = [&](const auto& packed) { out.insert(out.end(), packed.begin(), packed.end()); };
      if constexpr (std::is_same_v<T, float>)
        add(in.r.get_packed_float());
      else if constexpr (std::is_same_v<T, double>)
        add(in.r.get_packed_double());
      else if constexpr (std::is_same_v<T, int32_t>)
        add(in.r.get_packed_int32());
      else if constexpr (std::is_same_v<T, int64_t>)
        add(in.r.get_packed_int64());
      else
        add(in.r.get_packed_uint64());
      return;
    }
  read(in, out.emplace_back());
}

// protozero reports malformed wire data by exceptions; here they become errors.
template <class M> Result<M> parsed(std::string_view bytes) {
  try {
    M message;
    readMessage({Reader(bytes.data(), bytes.size())}, message);
    return message;
  } catch (const protozero::exception& e) {
    return fail(ErrorCode::kInvalid, fmt::format("not a well-formed ONNX file: {}", e.what()));
  } catch (const WrongWireType&) {
    return fail(ErrorCode::kInvalid, "not a well-formed ONNX file: a field has the wrong type");
  } catch (const TooDeep&) {
    return fail(ErrorCode::kInvalid, fmt::format("graphs and types are nested more than {} deep", kMaxDepth));
  }
}

} // namespace

Result<ModelProto> parseModel(std::string_view bytes) {
  return parsed<ModelProto>(bytes);
}
Result<TensorProto> parseTensor(std::string_view bytes) {
  return parsed<TensorProto>(bytes);
}

} // namespace bevel::onnx
