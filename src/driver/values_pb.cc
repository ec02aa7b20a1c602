// ONNX test data. SequenceProto and OptionalProto (onnx-data.proto): name 1, elem_type 2, tensor 3, sequence
// 5, optional 7.
#include "driver/values.h"

#include "base/file.h"
#include "import/onnx_tensor.h"
#include "import/protozero_checked.h"

#include <fmt/format.h>

namespace bevel {
namespace {

constexpr int kMaxNesting = 16;
enum { kElemTensor = 1, kElemSequence = 3, kElemOptional = 5 };

Result<HostValue> parseValue(std::string_view bytes, int32_t kind, const std::shared_ptr<const void>& owner,
                             int depth) {
  if (depth > kMaxNesting) return fail(ErrorCode::kInvalid, "values are nested too deeply");
  HostValue out;
  if (kind == BEVEL_PARAM_TENSOR || kind == BEVEL_PARAM_ANY) {
    BEVEL_TRY(onnx::TensorProto proto, onnx::parseTensor(bytes));
    BEVEL_TRY(out.tensor, onnx::TensorSource(owner, "").decode(proto));
    return out;
  }
  out.isList = kind == BEVEL_PARAM_LIST;
  protozero::pbf_reader message(bytes.data(), bytes.size());
  while (message.next()) {
    uint32_t field = message.tag();
    if (field == 4 || field == 6)
      return fail(ErrorCode::kUnsupported, "sparse tensors and maps are not supported as inputs");
    if (field != 3 && field != 5 && field != 7) {
      message.skip();
      continue;
    }
    int32_t inner = field == 3 ? BEVEL_PARAM_TENSOR : field == 5 ? BEVEL_PARAM_LIST : BEVEL_PARAM_OPTIONAL;
    auto view = message.get_view();
    BEVEL_TRY(HostValue item, parseValue({view.data(), view.size()}, inner, owner, depth + 1));
    if (!out.isList) return item;
    out.items.push_back(std::move(item));
  }
  return out;
}

Result<std::string> tensorText(const TensorObject& t, const std::string& name) {
  std::string out;
  protozero::pbf_writer message(out);
  for (int64_t d : t.shape) message.add_int64(1, d);
  int32_t type = onnx::dataTypeOf(t.dtype);
  if (t.dtype.code == TypeCode::kComplex) type = t.dtype.bits == 64 ? 14 : 15;
  if (type == 0) return fail(ErrorCode::kUnsupported, "ONNX has no element type " + t.dtype.str());
  message.add_int32(2, type);
  if (!name.empty()) message.add_string(8, name);
  if (t.dtype.isString())
    for (const std::string& s : t.strings) message.add_bytes(6, s);
  else
    message.add_bytes(9, reinterpret_cast<const char*>(t.bytes()), size_t(t.byteSize()));
  return out;
}

Result<std::string> valueText(const HostValue& value, int32_t kind, const std::string& name) {
  bool optional = kind == BEVEL_PARAM_OPTIONAL;
  if (!optional && value.tensor) return tensorText(*value.tensor, name);
  if (!optional && !value.isList)
    return fail(ErrorCode::kInvalid, fmt::format("output '{}' has no value", name));
  std::string out;
  protozero::pbf_writer message(out);
  if (!name.empty()) message.add_string(1, name);
  std::vector<HostValue> items = optional ? std::vector<HostValue>{value} : value.items;
  if (optional && value.isNone()) {
    message.add_int32(2, 0);
    return out;
  }
  bool lists = !items.empty() && items[0].isList, absent = !items.empty() && items[0].isNone();
  message.add_int32(2, lists ? kElemSequence : absent ? kElemOptional : kElemTensor);
  for (const HostValue& item : items) {
    int32_t inner = item.isList     ? BEVEL_PARAM_LIST
                    : item.isNone() ? BEVEL_PARAM_OPTIONAL
                                    : BEVEL_PARAM_TENSOR;
    BEVEL_TRY(std::string text, valueText(item, inner, ""));
    message.add_message(item.isList ? 5 : item.isNone() ? 7 : 3, text);
  }
  return out;
}

} // namespace

Result<HostValue> readPb(const std::string& path, int32_t kind) {
  BEVEL_TRY(auto file, MappedFile::open(path));
  std::string_view bytes(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size());
  auto malformed = [&](const char* why) {
    return fail(Error(ErrorCode::kInvalid, fmt::format("malformed protocol buffer: {}", why)).in(path));
  };
  try {
    auto value = parseValue(bytes, kind, file, 0);
    if (!value) return fail(std::move(value.error()).in(path));
    return value;
  } catch (const protozero::exception& e) {
    return malformed(e.what());
  } catch (const onnx::WrongWireType&) {
    return malformed("a field has the wrong type");
  }
}

Status writePb(const std::string& path, const HostValue& value, int32_t kind, const std::string& name) {
  BEVEL_TRY(std::string text, valueText(value, kind, name));
  return writeFile(path, std::string_view(text));
}

} // namespace bevel
