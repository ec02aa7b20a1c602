// The messages of an ONNX file, as far as importing needs them. Strings are copied; tensor data stays in the
// mapped file.
#pragma once

#include "base/result.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace bevel::onnx {

/// onnx.TensorProto.DataType.
namespace datatype {
enum : int32_t {
  kUndefined = 0,
  kFloat = 1,
  kUint8 = 2,
  kInt8 = 3,
  kUint16 = 4,
  kInt16 = 5,
  kInt32 = 6,
  kInt64 = 7,
  kStringType = 8,
  kBoolType = 9,
  kFloat16 = 10,
  kDouble = 11,
  kUint32 = 12,
  kUint64 = 13,
  kComplex64 = 14,
  kComplex128 = 15,
  kBfloat16 = 16,
  kFloat8E4M3FN = 17,
  kFloat8E4M3FNUZ = 18,
  kFloat8E5M2 = 19,
  kFloat8E5M2FNUZ = 20,
  kUint4 = 21,
  kInt4 = 22,
  kFloat4E2M1 = 23,
  kFloat8E8M0 = 24,
  kUint2 = 25,
  kInt2 = 26,
};
} // namespace datatype

struct TensorProto {
  std::vector<int64_t> dims;
  int32_t dataType = 0, location = 0;
  std::string name;
  bool hasRaw = false, segmented = false, external = false;
  std::string_view raw;
  std::vector<float> floats;
  std::vector<int32_t> int32s;
  std::vector<int64_t> int64s;
  std::vector<double> doubles;
  std::vector<uint64_t> uint64s;
  std::vector<std::string> strings;
  std::vector<std::pair<std::string, std::string>> externalData;
};

struct SparseTensorProto {
  TensorProto values, indices;
  std::vector<int64_t> dims;
};

struct Dimension {
  bool hasValue = false;
  int64_t value = 0;
  std::string param;
};

struct TypeProto {
  /// The number of the field that was given.
  enum Kind : uint8_t {
    kNone = 0,
    kTensor = 1,
    kSequence = 4,
    kMap = 5,
    kOpaque = 7,
    kSparse = 8,
    kOptional = 9,
  } kind = kNone;
  int32_t elemType = 0;
  bool hasShape = false;
  std::vector<Dimension> shape;
  std::shared_ptr<TypeProto> element; // of a sequence or optional; value of a map
};

struct ValueInfo {
  std::string name;
  TypeProto type;
};

struct GraphProto;

/// onnx.AttributeProto.AttributeType.
enum class AttrType : int32_t {
  kUndefined = 0,
  kFloat = 1,
  kInt = 2,
  kString = 3,
  kTensor = 4,
  kGraph = 5,
  kFloats = 6,
  kInts = 7,
  kStrings = 8,
  kTensors = 9,
  kGraphs = 10,
  kSparse = 11,
  kSparses = 12,
  kType = 13,
  kTypes = 14,
};

struct AttributeProto {
  std::string name, refName;
  AttrType type = AttrType::kUndefined;
  float f = 0;
  int64_t i = 0;
  std::string s;
  std::shared_ptr<const TensorProto> t;
  std::shared_ptr<const SparseTensorProto> sparse;
  std::shared_ptr<const GraphProto> g;
  std::shared_ptr<const TypeProto> tp;
  std::vector<float> floats;
  std::vector<int64_t> ints;
  std::vector<std::string> strings;
};

struct NodeProto {
  std::vector<std::string> inputs, outputs;
  std::string name, opType, domain, overload;
  std::vector<AttributeProto> attributes;
};

struct GraphProto {
  std::string name;
  std::vector<NodeProto> nodes;
  std::vector<TensorProto> initializers;
  std::vector<SparseTensorProto> sparseInitializers;
  std::vector<ValueInfo> inputs, outputs, valueInfo;
};

struct OpsetId {
  std::string domain;
  int64_t version = 0;
};

struct FunctionProto {
  std::string name, domain, overload;
  std::vector<std::string> inputs, outputs, attributes;
  std::vector<AttributeProto> attributeDefaults;
  std::vector<NodeProto> nodes;
  std::vector<OpsetId> opsets;
};

struct ModelProto {
  int64_t irVersion = 0;
  std::string producer;
  std::vector<OpsetId> opsets;
  bool hasGraph = false;
  GraphProto graph;
  std::vector<FunctionProto> functions;
};

/// Reads a message; views in the result point into `bytes`. Malformed wire data and nesting beyond a bound
/// are errors.
Result<ModelProto> parseModel(std::string_view bytes);
Result<TensorProto> parseTensor(std::string_view bytes);

} // namespace bevel::onnx
