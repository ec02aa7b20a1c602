// Decodes TensorProtos. Sizes are checked before anything is allocated; external files must lie in the
// model's folder: no absolute path, no "..", no symbolic link on the way.
#include "import/onnx_tensor.h"

#include <charconv>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>

namespace bevel::onnx {

namespace {

struct TypeRow {
  int32_t onnx;
  DType dtype;
};
constexpr TypeRow kTypes[] = {
    {datatype::kFloat, kFloat32},
    {datatype::kUint8, DType::UInt(8)},
    {datatype::kInt8, DType::Int(8)},
    {datatype::kUint16, DType::UInt(16)},
    {datatype::kInt16, DType::Int(16)},
    {datatype::kInt32, kInt32},
    {datatype::kInt64, kInt64},
    {datatype::kStringType, DType::String()},
    {datatype::kBoolType, kBool},
    {datatype::kFloat16, DType::Float(16)},
    {datatype::kDouble, DType::Float(64)},
    {datatype::kUint32, DType::UInt(32)},
    {datatype::kUint64, DType::UInt(64)},
    {datatype::kBfloat16, DType::BFloat16()},
    {datatype::kFloat8E4M3FN, {TypeCode::kFloat8E4M3FN, 8, 1}},
    {datatype::kFloat8E4M3FNUZ, {TypeCode::kFloat8E4M3FNUZ, 8, 1}},
    {datatype::kFloat8E5M2, {TypeCode::kFloat8E5M2, 8, 1}},
    {datatype::kFloat8E5M2FNUZ, {TypeCode::kFloat8E5M2FNUZ, 8, 1}},
    {datatype::kUint4, DType::UInt(4)},
    {datatype::kInt4, DType::Int(4)},
    {datatype::kFloat4E2M1, {TypeCode::kFloat4E2M1FN, 4, 1}},
    {datatype::kFloat8E8M0, {TypeCode::kFloat8E8M0FNU, 8, 1}},
    {datatype::kUint2, DType::UInt(2)},
    {datatype::kInt2, DType::Int(2)},
};

Error tensorError(const TensorProto& t, std::string what) {
  return Error(ErrorCode::kInvalid, fmt::format("tensor '{}': {}", t.name, what));
}

tl::unexpected<Error> wrongCount(const TensorProto& t, size_t have, int64_t want) {
  return fail(tensorError(t, fmt::format("{} values given, its shape needs {}", have, want)));
}

// Bytes of one element from a typed field.
template <class T>
Result<Tensor> fromField(const TensorProto& t, DType dtype, int64_t n, const std::vector<T>& values) {
  if (int64_t(values.size()) != n) return wrongCount(t, values.size(), n);
  auto out = TensorObject::zeros(dtype, t.dims);
  size_t bytes = size_t(dtype.bits / 8);
  for (int64_t i = 0; i < n; ++i) {
    T value = values[size_t(i)];
    if (dtype.isBool()) value = value != 0;
    std::memcpy(out->mutableBytes() + size_t(i) * bytes, &value, bytes); // little endian: the low bytes
  }
  return Tensor(out);
}

// Sub-byte elements: one packed byte an int32.
Result<Tensor> fromPacked(const TensorProto& t, DType dtype, int64_t n) {
  int64_t bytes = dtype.bytesFor(n);
  if (int64_t(t.int32s.size()) != bytes) return wrongCount(t, t.int32s.size(), bytes);
  auto out = TensorObject::zeros(dtype, t.dims);
  for (int64_t i = 0; i < bytes; ++i) out->mutableBytes()[i] = std::byte(t.int32s[size_t(i)] & 0xff);
  return Tensor(out);
}

Result<Tensor> fromTyped(const TensorProto& t, DType dtype, int64_t n) {
  if (dtype.bits < 8) return fromPacked(t, dtype, n);
  switch (t.dataType) {
  case datatype::kFloat:
    return fromField(t, dtype, n, t.floats);
  case datatype::kDouble:
    return fromField(t, dtype, n, t.doubles);
  case datatype::kInt64:
    return fromField(t, dtype, n, t.int64s);
  case datatype::kUint32:
  case datatype::kUint64:
    return fromField(t, dtype, n, t.uint64s);
  default:
    return fromField(t, dtype, n, t.int32s);
  }
}

std::optional<int64_t> number(std::string_view text) {
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

} // namespace

std::optional<DType> dtypeOf(int32_t dataType) {
  for (const TypeRow& row : kTypes)
    if (row.onnx == dataType) return row.dtype;
  return std::nullopt;
}

int32_t dataTypeOf(DType dtype) {
  for (const TypeRow& row : kTypes)
    if (row.dtype == dtype) return row.onnx;
  return datatype::kUndefined;
}

Result<Tensor> TensorSource::decode(const TensorProto& t) {
  auto dtype = dtypeOf(t.dataType);
  if (!dtype)
    return fail(Error(ErrorCode::kUnsupported,
                      fmt::format("tensor '{}': element type {} is not supported", t.name, t.dataType)));
  if (t.segmented)
    return fail(
        Error(ErrorCode::kUnsupported, fmt::format("tensor '{}': segments are not supported", t.name)));
  auto counted = elementCount(t.dims);
  if (!counted) return fail(tensorError(t, counted.error().message));
  int64_t n = *counted;
  if (dtype->isString()) {
    if (int64_t(t.strings.size()) != n) return wrongCount(t, t.strings.size(), n);
    return Tensor(TensorObject::ofStrings(t.dims, t.strings));
  }
  if (n > (int64_t(1) << 58)) return fail(tensorError(t, "it is too large"));
  int64_t bytes = dtype->bytesFor(n);
  if (t.external) return external(t, *dtype, bytes);
  if (!t.hasRaw && n == 0) return Tensor(TensorObject::zeros(*dtype, t.dims));
  if (!t.hasRaw) return fromTyped(t, *dtype, n);
  if (int64_t(t.raw.size()) != bytes)
    return fail(tensorError(t, fmt::format("{} bytes of data, its shape needs {}", t.raw.size(), bytes)));
  return Tensor(TensorObject::wrap(*dtype, t.dims, reinterpret_cast<const std::byte*>(t.raw.data()), owner_));
}

Result<std::shared_ptr<const MappedFile>> TensorSource::open(const std::string& location) {
  namespace fs = std::filesystem;
  auto refuse = [&](const char* why) {
    return fail(Error(ErrorCode::kInvalid, fmt::format("external data '{}': {}", location, why))
                    .help("external data must be a plain file in the model's folder"));
  };
  if (folder_.empty()) return refuse("the model has no folder");
  fs::path relative(location);
  if (location.empty() || location.find('\0') != std::string::npos) return refuse("is not a file name");
  if (relative.is_absolute()) return refuse("an absolute path is not allowed");
  std::error_code error;
  fs::path at = folder_;
  for (const fs::path& part : relative) {
    if (part == "..") return refuse("'..' is not allowed");
    at /= part;
    if (fs::is_symlink(fs::symlink_status(at, error))) return refuse("a symbolic link is not allowed");
  }
  if (!fs::is_regular_file(fs::symlink_status(at, error))) return refuse("there is no such file");
  if (fs::hard_link_count(at, error) > 1) return refuse("a hard link is not allowed");
  auto it = files_.find(location);
  if (it != files_.end()) return it->second;
  BEVEL_TRY(auto file, MappedFile::open(at.string()));
  files_[location] = file;
  return file;
}

Result<Tensor> TensorSource::external(const TensorProto& t, DType dtype, int64_t bytes) {
  std::string location;
  int64_t offset = 0;
  std::optional<int64_t> length;
  for (const auto& [key, value] : t.externalData) {
    if (key == "location") location = value;
    if (key == "offset" || key == "length") {
      auto n = number(value);
      if (!n) return fail(tensorError(t, fmt::format("external {} '{}' is not a number", key, value)));
      if (key == "offset")
        offset = *n;
      else
        length = n;
    }
  }
  auto file = open(location);
  if (!file) return fail(std::move(file.error()).note(fmt::format("of tensor '{}'", t.name)));
  int64_t size = int64_t((*file)->bytes().size());
  if (length && *length != bytes)
    return fail(tensorError(t, fmt::format("external length {}, its shape needs {} bytes", *length, bytes)));
  if (offset > size || bytes > size - offset)
    return fail(tensorError(t, fmt::format("bytes {} to {} lie beyond the external file of {} bytes", offset,
                                           offset + bytes, size)));
  return Tensor(TensorObject::wrap(dtype, t.dims, (*file)->bytes().data() + offset, *file));
}

Result<Tensor> TensorSource::decode(const SparseTensorProto& t) {
  BEVEL_TRY(Tensor values, decode(t.values));
  BEVEL_TRY(Tensor indices, decode(t.indices));
  auto counted = elementCount(t.dims);
  constexpr int64_t kMaxDense = int64_t(1) << 28;
  if (!counted || *counted > kMaxDense) return fail(tensorError(t.values, "the dense form is too large"));
  int64_t nnz = values->size(), rank = int64_t(t.dims.size());
  bool flat = indices->shape.size() == 1;
  if (values->dtype.isString() || indices->dtype != kInt64 || indices->size() != (flat ? nnz : nnz * rank) ||
      indices->shape.size() > 2)
    return fail(tensorError(t.values, "the indices of the sparse tensor do not fit its values"));
  auto out = TensorObject::zeros(values->dtype, t.dims);
  for (int64_t k = 0; k < nnz; ++k) {
    int64_t at = 0;
    if (flat)
      at = indices->asInt(k);
    else
      for (int64_t d = 0; d < rank; ++d) {
        int64_t i = indices->asInt(k * rank + d);
        if (i < 0 || i >= t.dims[size_t(d)])
          return fail(tensorError(t.values, "a sparse index is out of range"));
        at = at * t.dims[size_t(d)] + i;
      }
    if (at < 0 || at >= out->size()) return fail(tensorError(t.values, "a sparse index is out of range"));
    if (out->dtype.isFloat())
      out->setDouble(at, values->asDouble(k));
    else
      out->setInt(at, values->asInt(k));
  }
  return Tensor(out);
}

} // namespace bevel::onnx
