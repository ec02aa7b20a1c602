// Reads ONNX messages with protozero. Bounds: nesting of graphs, types and attributes; everything else is
// bounded by the file's size, because each element takes at least one byte of it.
#include "import/onnx_proto.h"

#include "import/protozero_checked.h"

#include <fmt/format.h>

namespace bevel::onnx {

namespace {

constexpr int kMaxDepth = 48; // graphs in graphs

struct TooDeep {};

using Reader = protozero::pbf_reader;
using Wire = protozero::pbf_wire_type;

std::string text(Reader& r) {
  auto v = r.get_view();
  return {v.data(), v.size()};
}

// A repeated scalar field, packed or not.
template <class T, class Single, class Packed>
void repeated(Reader& r, std::vector<T>& out, Single single, Packed packed) {
  if (r.wire_type() == Wire::length_delimited) {
    for (auto value : packed()) out.push_back(T(value));
    return;
  }
  out.push_back(T(single()));
}
void int64s(Reader& r, std::vector<int64_t>& out) {
  repeated(r, out, [&] { return r.get_int64(); }, [&] { return r.get_packed_int64(); });
}
void floats(Reader& r, std::vector<float>& out) {
  repeated(r, out, [&] { return r.get_float(); }, [&] { return r.get_packed_float(); });
}

void readEntry(Reader r, std::vector<std::pair<std::string, std::string>>& out) {
  std::pair<std::string, std::string> entry;
  while (r.next()) {
    if (r.tag() == 1)
      entry.first = text(r);
    else if (r.tag() == 2)
      entry.second = text(r);
    else
      r.skip();
  }
  out.push_back(std::move(entry));
}

TensorProto readTensor(Reader r) {
  TensorProto t;
  while (r.next()) {
    switch (r.tag()) {
    case 1:
      int64s(r, t.dims);
      break;
    case 2:
      t.dataType = r.get_int32();
      break;
    case 3:
      t.segmented = true;
      r.skip();
      break;
    case 4:
      floats(r, t.floats);
      break;
    case 5:
      repeated(r, t.int32s, [&] { return r.get_int32(); }, [&] { return r.get_packed_int32(); });
      break;
    case 6:
      t.strings.push_back(text(r));
      break;
    case 7:
      int64s(r, t.int64s);
      break;
    case 8:
      t.name = text(r);
      break;
    case 9: {
      auto v = r.get_view();
      t.raw = {v.data(), v.size()};
      t.hasRaw = true;
      break;
    }
    case 10:
      repeated(r, t.doubles, [&] { return r.get_double(); }, [&] { return r.get_packed_double(); });
      break;
    case 11:
      repeated(r, t.uint64s, [&] { return r.get_uint64(); }, [&] { return r.get_packed_uint64(); });
      break;
    case 13:
      readEntry(r.get_message(), t.externalData);
      break;
    case 14:
      t.external = r.get_enum() == 1;
      break;
    default:
      r.skip();
    }
  }
  return t;
}

SparseTensorProto readSparse(Reader r) {
  SparseTensorProto t;
  while (r.next()) {
    if (r.tag() == 1)
      t.values = readTensor(r.get_message());
    else if (r.tag() == 2)
      t.indices = readTensor(r.get_message());
    else if (r.tag() == 3)
      int64s(r, t.dims);
    else
      r.skip();
  }
  return t;
}

Dimension readDimension(Reader r) {
  Dimension d;
  while (r.next()) {
    if (r.tag() == 1) {
      d.value = r.get_int64();
      d.hasValue = true;
    } else if (r.tag() == 2)
      d.param = text(r);
    else
      r.skip();
  }
  return d;
}

void readTensorType(Reader r, TypeProto& t) {
  while (r.next()) {
    if (r.tag() == 1)
      t.elemType = r.get_int32();
    else if (r.tag() == 2) {
      t.hasShape = true;
      Reader shape = r.get_message();
      while (shape.next()) {
        if (shape.tag() == 1)
          t.shape.push_back(readDimension(shape.get_message()));
        else
          shape.skip();
      }
    } else
      r.skip();
  }
}

TypeProto readType(Reader r, int depth);

void readElementType(Reader r, TypeProto& t, uint32_t tag, int depth) {
  while (r.next()) {
    if (r.tag() == tag)
      t.element = std::make_shared<TypeProto>(readType(r.get_message(), depth + 1));
    else
      r.skip();
  }
}

TypeProto readType(Reader r, int depth) {
  if (depth > kMaxDepth) throw TooDeep{};
  TypeProto t;
  while (r.next()) {
    switch (r.tag()) {
    case 1:
      t.kind = TypeProto::kTensor;
      readTensorType(r.get_message(), t);
      break;
    case 4:
      t.kind = TypeProto::kSequence;
      readElementType(r.get_message(), t, 1, depth);
      break;
    case 5:
      t.kind = TypeProto::kMap;
      readElementType(r.get_message(), t, 2, depth);
      break;
    case 7:
      t.kind = TypeProto::kOpaque;
      r.skip();
      break;
    case 8:
      t.kind = TypeProto::kSparse;
      readTensorType(r.get_message(), t);
      break;
    case 9:
      t.kind = TypeProto::kOptional;
      readElementType(r.get_message(), t, 1, depth);
      break;
    default:
      r.skip();
    }
  }
  return t;
}

ValueInfo readValueInfo(Reader r) {
  ValueInfo v;
  while (r.next()) {
    if (r.tag() == 1)
      v.name = text(r);
    else if (r.tag() == 2)
      v.type = readType(r.get_message(), 0);
    else
      r.skip();
  }
  return v;
}

GraphProto readGraph(Reader r, int depth);

// Old files have no type field: it follows from the value given.
AttrType impliedType(const AttributeProto& a, bool hasF, bool hasI, bool hasS) {
  if (a.g) return AttrType::kGraph;
  if (a.t) return AttrType::kTensor;
  if (!a.floats.empty()) return AttrType::kFloats;
  if (!a.ints.empty()) return AttrType::kInts;
  if (!a.strings.empty()) return AttrType::kStrings;
  return hasF ? AttrType::kFloat : hasI ? AttrType::kInt : hasS ? AttrType::kString : AttrType::kUndefined;
}

AttributeProto readAttribute(Reader r, int depth) {
  AttributeProto a;
  bool hasF = false, hasI = false, hasS = false;
  while (r.next()) {
    switch (r.tag()) {
    case 1:
      a.name = text(r);
      break;
    case 2:
      a.f = r.get_float();
      hasF = true;
      break;
    case 3:
      a.i = r.get_int64();
      hasI = true;
      break;
    case 4:
      a.s = text(r);
      hasS = true;
      break;
    case 5:
      a.t = std::make_shared<TensorProto>(readTensor(r.get_message()));
      break;
    case 6:
      a.g = std::make_shared<GraphProto>(readGraph(r.get_message(), depth + 1));
      break;
    case 7:
      floats(r, a.floats);
      break;
    case 8:
      int64s(r, a.ints);
      break;
    case 9:
      a.strings.push_back(text(r));
      break;
    case 14:
      a.tp = std::make_shared<TypeProto>(readType(r.get_message(), 0));
      break;
    case 20:
      a.type = AttrType(r.get_enum());
      break;
    case 21:
      a.refName = text(r);
      break;
    case 22:
      a.sparse = std::make_shared<SparseTensorProto>(readSparse(r.get_message()));
      break;
    default:
      r.skip();
    }
  }
  if (a.type == AttrType::kUndefined) a.type = impliedType(a, hasF, hasI, hasS);
  return a;
}

NodeProto readNode(Reader r, int depth) {
  NodeProto n;
  while (r.next()) {
    switch (r.tag()) {
    case 1:
      n.inputs.push_back(text(r));
      break;
    case 2:
      n.outputs.push_back(text(r));
      break;
    case 3:
      n.name = text(r);
      break;
    case 4:
      n.opType = text(r);
      break;
    case 5:
      n.attributes.push_back(readAttribute(r.get_message(), depth));
      break;
    case 7:
      n.domain = text(r);
      break;
    case 8:
      n.overload = text(r);
      break;
    default:
      r.skip();
    }
  }
  if (n.domain == "ai.onnx") n.domain.clear();
  return n;
}

GraphProto readGraph(Reader r, int depth) {
  if (depth > kMaxDepth) throw TooDeep{};
  GraphProto g;
  while (r.next()) {
    switch (r.tag()) {
    case 1:
      g.nodes.push_back(readNode(r.get_message(), depth));
      break;
    case 2:
      g.name = text(r);
      break;
    case 5:
      g.initializers.push_back(readTensor(r.get_message()));
      break;
    case 11:
      g.inputs.push_back(readValueInfo(r.get_message()));
      break;
    case 12:
      g.outputs.push_back(readValueInfo(r.get_message()));
      break;
    case 13:
      g.valueInfo.push_back(readValueInfo(r.get_message()));
      break;
    case 15:
      g.sparseInitializers.push_back(readSparse(r.get_message()));
      break;
    default:
      r.skip();
    }
  }
  return g;
}

OpsetId readOpset(Reader r) {
  OpsetId id;
  while (r.next()) {
    if (r.tag() == 1)
      id.domain = text(r);
    else if (r.tag() == 2)
      id.version = r.get_int64();
    else
      r.skip();
  }
  if (id.domain == "ai.onnx") id.domain.clear();
  return id;
}

FunctionProto readFunction(Reader r) {
  FunctionProto f;
  while (r.next()) {
    switch (r.tag()) {
    case 1:
      f.name = text(r);
      break;
    case 4:
      f.inputs.push_back(text(r));
      break;
    case 5:
      f.outputs.push_back(text(r));
      break;
    case 6:
      f.attributes.push_back(text(r));
      break;
    case 7:
      f.nodes.push_back(readNode(r.get_message(), 0));
      break;
    case 9:
      f.opsets.push_back(readOpset(r.get_message()));
      break;
    case 10:
      f.domain = text(r);
      break;
    case 11:
      f.attributeDefaults.push_back(readAttribute(r.get_message(), 0));
      break;
    case 13:
      f.overload = text(r);
      break;
    default:
      r.skip();
    }
  }
  if (f.domain == "ai.onnx") f.domain.clear();
  return f;
}

ModelProto readModel(Reader r) {
  ModelProto m;
  while (r.next()) {
    switch (r.tag()) {
    case 1:
      m.irVersion = r.get_int64();
      break;
    case 2:
      m.producer = text(r);
      break;
    case 7:
      m.graph = readGraph(r.get_message(), 0);
      m.hasGraph = true;
      break;
    case 8:
      m.opsets.push_back(readOpset(r.get_message()));
      break;
    case 25:
      m.functions.push_back(readFunction(r.get_message()));
      break;
    default:
      r.skip();
    }
  }
  return m;
}

// protozero reports malformed wire data by exceptions; here they become errors.
template <class F> auto guarded(F read) -> Result<decltype(read())> {
  try {
    return read();
  } catch (const protozero::exception& e) {
    return fail(ErrorCode::kInvalid, fmt::format("not a well-formed ONNX file: {}", e.what()));
  } catch (const WrongWireType&) {
    return fail(ErrorCode::kInvalid, "not a well-formed ONNX file: a field has the wrong type");
  } catch (const TooDeep&) {
    return fail(ErrorCode::kInvalid, fmt::format("graphs or types are nested more than {} deep", kMaxDepth));
  }
}

} // namespace

Result<ModelProto> parseModel(std::string_view bytes) {
  return guarded([&] { return readModel(Reader(bytes.data(), bytes.size())); });
}
Result<TensorProto> parseTensor(std::string_view bytes) {
  return guarded([&] { return readTensor(Reader(bytes.data(), bytes.size())); });
}
Result<std::vector<TensorProto>> parseTensorSequence(std::string_view bytes) {
  return guarded([&] {
    std::vector<TensorProto> out;
    Reader r(bytes.data(), bytes.size());
    while (r.next()) {
      if (r.tag() == 3)
        out.push_back(readTensor(r.get_message()));
      else
        r.skip();
    }
    return out;
  });
}

} // namespace bevel::onnx
