// NumPy files: "\x93NUMPY", version, header length, a Python dictionary, data.
#include "driver/values.h"

#include "base/file.h"
#include "ir/build.h"
#include "ir/parser.h"

#include <cstring>
#include <fmt/format.h>

namespace bevel {
namespace {

struct Descr {
  const char* text;
  DType dtype;
};
constexpr Descr kDescrs[] = {
    {"|b1", kBool},
    {"|i1", DType::Int(8)},
    {"<i2", DType::Int(16)},
    {"<i4", kInt32},
    {"<i8", kInt64},
    {"|u1", DType::UInt(8)},
    {"<u2", DType::UInt(16)},
    {"<u4", DType::UInt(32)},
    {"<u8", DType::UInt(64)},
    {"<f2", DType::Float(16)},
    {"<f4", kFloat32},
    {"<f8", DType::Float(64)},
    {"<c8", {TypeCode::kComplex, 64, 1}},
    {"<c16", {TypeCode::kComplex, 128, 1}},
};

tl::unexpected<Error> refuse(const std::string& path, std::string why) {
  return fail(Error(ErrorCode::kInvalid, std::move(why)).in(path));
}

std::optional<std::vector<int64_t>> shapeOf(const NodeRef& shape) {
  const auto* items = shape.as<ListNode>();
  if (!items || items->items.size() > 64) return std::nullopt;
  std::vector<int64_t> out;
  for (const NodeRef& item : items->items) {
    const auto* n = item.as<IntImmNode>();
    if (!n || n->value < 0) return std::nullopt;
    out.push_back(n->value);
  }
  return out;
}

// Fortran order to C order.
Tensor transposed(const TensorObject& t) {
  auto out = TensorObject::zeros(t.dtype, t.shape);
  size_t rank = t.shape.size(), bytes = size_t(t.dtype.bits / 8);
  std::vector<int64_t> index(rank, 0);
  for (int64_t i = 0; i < t.size(); ++i) {
    int64_t from = 0;
    for (size_t d = rank; d-- > 0;) from = from * t.shape[d] + index[d];
    std::memcpy(out->mutableBytes() + size_t(i) * bytes, t.bytes() + size_t(from) * bytes, bytes);
    for (size_t d = rank; d-- > 0;) {
      if (++index[d] < t.shape[d]) break;
      index[d] = 0;
    }
  }
  return out;
}

} // namespace

Result<Tensor> readNpy(const std::string& path) {
  BEVEL_TRY(auto file, MappedFile::open(path));
  std::string_view all(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size());
  if (all.size() < 10 || all.substr(0, 6) != "\x93NUMPY") return refuse(path, "not a NumPy file");
  int major = static_cast<unsigned char>(all[6]);
  size_t prefix = major == 1 ? 10 : 12, length = 0;
  if (all.size() < prefix) return refuse(path, "the header is cut off");
  for (size_t i = prefix; i-- > 8;) length = length << 8 | static_cast<unsigned char>(all[i]);
  if (length > all.size() - prefix) return refuse(path, "the header is cut off");
  std::string_view header = all.substr(prefix, length), data = all.substr(prefix + length);
  auto parsed = parseExpression(header, {});
  Dict fields = parsed && parsed->is<DictNode>() ? cast<DictNode>(*parsed) : Dict();
  if (!fields) return refuse(path, "the header cannot be read");
  auto field = [&](std::string_view key) { return attr(fields, key); };
  NodeRef given = field("descr");
  std::string descr = given.is<StringImmNode>() ? given.as<StringImmNode>()->value : "of several fields";
  std::optional<DType> dtype;
  for (const Descr& d : kDescrs) {
    bool byteSized =
        d.text[0] == '|' && descr.size() == 3 && descr.substr(1) == std::string_view(d.text).substr(1);
    if (descr == d.text || byteSized) dtype = d.dtype;
  }
  if (!dtype) return refuse(path, fmt::format("element type {} is not supported", descr));
  auto shape = shapeOf(field("shape"));
  if (!shape) return refuse(path, "the shape cannot be read");
  auto count = elementCount(*shape);
  if (!count) return refuse(path, count.error().message);
  if (*count > int64_t(data.size()) / std::max<int64_t>(1, dtype->bits / 8))
    return refuse(path, fmt::format("{} bytes of data for {} elements", data.size(), *count));
  auto tensor = inputTensor(*dtype, *shape);
  if (!tensor) return refuse(path, tensor.error().message);
  if ((*tensor)->byteSize())
    std::memcpy((*tensor)->mutableBytes(), data.data(), size_t((*tensor)->byteSize()));
  const auto* fortran = field("fortran_order").as<IntImmNode>();
  if (fortran && fortran->value) return transposed(**tensor);
  return Tensor(*tensor);
}

Status writeNpy(const std::string& path, const TensorObject& t) {
  std::string descr;
  for (const Descr& d : kDescrs)
    if (d.dtype == t.dtype) descr = d.text;
  if (descr.empty() && t.dtype.isFloat() && t.dtype.bits >= 8)
    descr = t.dtype.bits == 16 ? "<u2" : "|u1"; // their bits
  if (descr.empty())
    return fail(Error(ErrorCode::kUnsupported, "NumPy files do not hold " + t.dtype.str()).in(path));
  std::string shape;
  for (int64_t d : t.shape) shape += fmt::format("{}, ", d);
  if (t.shape.size() > 1)
    shape.resize(shape.size() - 2);
  else if (!shape.empty())
    shape.pop_back();
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr, shape);
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  std::string out("\x93NUMPY\x01\x00", 8);
  out += char(header.size() & 0xff);
  out += char(header.size() >> 8);
  out += header;
  out.append(reinterpret_cast<const char*>(t.bytes()), size_t(t.byteSize()));
  return writeFile(path, std::string_view(out));
}

} // namespace bevel
