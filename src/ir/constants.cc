// safetensors files, and modules as text with such a file beside it.
#include "ir/constants.h"

#include "base/file.h"
#include "ir/parser.h"
#include "ir/printer.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

namespace bevel {
namespace {

using Json = nlohmann::ordered_json;

struct Format {
  const char* name;
  DType dtype;
};
constexpr Format kFormats[] = {{"F64", DType::Float(64)},
                               {"F32", DType::Float(32)},
                               {"F16", DType::Float(16)},
                               {"BF16", DType::BFloat16()},
                               {"I64", DType::Int(64)},
                               {"I32", DType::Int(32)},
                               {"I16", DType::Int(16)},
                               {"I8", DType::Int(8)},
                               {"U64", DType::UInt(64)},
                               {"U32", DType::UInt(32)},
                               {"U16", DType::UInt(16)},
                               {"U8", DType::UInt(8)},
                               {"BOOL", DType::Bool()},
                               {"F8_E4M3", {TypeCode::kFloat8E4M3FN, 8, 1}},
                               {"F8_E5M2", {TypeCode::kFloat8E5M2, 8, 1}},
                               {"F8_E8M0", {TypeCode::kFloat8E8M0FNU, 8, 1}}};
constexpr size_t kMaxHeader = size_t(100) << 20;

const char* formatName(DType t) {
  for (const Format& f : kFormats)
    if (f.dtype == t) return f.name;
  return nullptr;
}

Error broken(const std::string& path, const std::string& what) {
  return Error(ErrorCode::kInvalid, "malformed safetensors file: " + what).in(path);
}

std::string shapeText(const std::vector<int64_t>& shape) {
  return Json(shape).dump();
}

Result<std::vector<int64_t>> readShape(const Json& json, const std::string& path, const std::string& name) {
  std::vector<int64_t> shape;
  if (!json.is_array()) return fail(broken(path, "'" + name + "' has no shape"));
  for (const Json& d : json) {
    if (!d.is_number_unsigned() || d.get<uint64_t>() > uint64_t(INT64_MAX))
      return fail(broken(path, "'" + name + "' has a malformed shape"));
    shape.push_back(d.get<int64_t>());
  }
  return shape;
}

struct Entry {
  NamedTensor tensor;
  uint64_t begin = 0, end = 0;
};

class Reader {
public:
  Reader(const std::string& path, std::shared_ptr<const MappedFile> file)
      : path_(path), file_(std::move(file)) {}

  Result<Safetensors> run() {
    auto bytes = file_->bytes();
    if (bytes.size() < 8) return fail(broken(path_, "it has " + std::to_string(bytes.size()) + " bytes"));
    uint64_t length = 0;
    for (int i = 7; i >= 0; --i) length = length << 8 | uint64_t(bytes[size_t(i)]);
    if (length > bytes.size() - 8 || length > kMaxHeader)
      return fail(broken(path_, "its header is longer than the file"));
    data_ = bytes.subspan(8 + size_t(length));
    auto flat = [](int depth, Json::parse_event_t event, Json&) { // deep nesting has no place in a header
      return depth < 8 ||
             (event != Json::parse_event_t::object_start && event != Json::parse_event_t::array_start);
    };
    const char* text = reinterpret_cast<const char*>(bytes.data()) + 8;
    Json header = Json::parse(text, text + length, flat, false);
    if (!header.is_object()) return fail(broken(path_, "its header is not JSON"));
    if (header.contains("__metadata__")) BEVEL_CHECK(metadata(header["__metadata__"]));
    for (const auto& [name, value] : header.items())
      if (name != "__metadata__") BEVEL_CHECK(tensor(name, value));
    return finish();
  }

private:
  Status metadata(const Json& json) {
    if (!json.is_object()) return fail(broken(path_, "its metadata is no object"));
    for (const auto& [key, value] : json.items()) {
      if (!value.is_string()) return fail(broken(path_, "its metadata holds something else than strings"));
      out_.metadata.emplace_back(key, value.get<std::string>());
    }
    return {};
  }

  const std::string* meta(const std::string& key) const {
    for (const auto& [k, v] : out_.metadata)
      if (k == key) return &v;
    return nullptr;
  }

  Status tensor(const std::string& name, const Json& json) {
    auto bad = [&](const std::string& what) { return fail(broken(path_, "'" + name + "' " + what)); };
    if (!json.is_object() || !json.contains("dtype") || !json["dtype"].is_string() ||
        !json.contains("shape") || !json.contains("data_offsets"))
      return bad("has no dtype, shape and data_offsets");
    std::optional<DType> dtype;
    std::string spelled = json["dtype"].get<std::string>();
    for (const Format& f : kFormats)
      if (spelled == f.name) dtype = f.dtype;
    if (!dtype)
      return fail(
          Error(ErrorCode::kUnsupported, "'" + name + "' has the unknown dtype " + spelled).in(path_));
    BEVEL_TRY(std::vector<int64_t> shape, readShape(json["shape"], path_, name));
    if (const std::string* real = meta("bevel.dtype." + name)) { // a format without a name in safetensors
      dtype = DType::parse(*real);
      const std::string* dims = meta("bevel.shape." + name);
      Json parsed = dims ? Json::parse(*dims, nullptr, false) : Json();
      if (!dtype || dtype->isString() || dtype->isHandle() || dtype->isVoid())
        return bad("has a malformed dtype");
      BEVEL_TRY(shape, readShape(parsed, path_, name));
    }
    auto count = elementCount(shape);
    if (!count) return bad("has a shape that is too large");
    const Json& offsets = json["data_offsets"];
    bool pair = offsets.is_array() && offsets.size() == 2 && offsets[0].is_number_unsigned() &&
                offsets[1].is_number_unsigned();
    if (!pair) return bad("has malformed data_offsets");
    uint64_t begin = offsets[0].get<uint64_t>(), end = offsets[1].get<uint64_t>();
    if (begin > end || end > data_.size()) return bad("lies outside the file");
    bool large = *count > (int64_t(1) << 56);
    if (large || uint64_t(dtype->bytesFor(*count)) != end - begin)
      return bad("has " + std::to_string(end - begin) + " bytes, which does not fit its shape");
    const std::byte* p = data_.data() + begin;
    size_t unit = std::max<size_t>(1, dtype->bits / 8);
    Tensor t;
    if (reinterpret_cast<uintptr_t>(p) % unit == 0)
      t = TensorObject::wrap(*dtype, shape, p, file_);
    else { // a file that does not align its data
      auto copy = TensorObject::zeros(*dtype, shape);
      std::memcpy(copy->mutableBytes(), p, size_t(end - begin));
      t = copy;
    }
    entries_.push_back({{name, t}, begin, end});
    return {};
  }

  Result<Safetensors> finish() {
    std::stable_sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
      return a.begin < b.begin || (a.begin == b.begin && a.end < b.end);
    });
    for (size_t i = 1; i < entries_.size(); ++i)
      if (entries_[i].begin < entries_[i - 1].end)
        return fail(broken(path_, "'" + entries_[i].tensor.name + "' overlaps '" +
                                      entries_[i - 1].tensor.name + "'"));
    for (Entry& e : entries_) out_.tensors.push_back(std::move(e.tensor));
    return std::move(out_);
  }

  std::string path_;
  std::shared_ptr<const MappedFile> file_;
  std::span<const std::byte> data_;
  Safetensors out_;
  std::vector<Entry> entries_;
};

} // namespace

Status writeSafetensors(const std::string& path, const std::vector<NamedTensor>& tensors,
                        const std::vector<std::pair<std::string, std::string>>& metadata) {
  Json meta = Json::object(), header = Json::object();
  for (const auto& [key, value] : metadata) meta[key] = value;
  std::vector<const NamedTensor*> order;
  for (const NamedTensor& t : tensors) {
    if (t.value->dtype.isString())
      return fail(ErrorCode::kUnsupported, "safetensors files hold no strings ('" + t.name + "')");
    order.push_back(&t);
  }
  // The format allows no gaps: wide elements first keep every tensor aligned to its element.
  std::stable_sort(order.begin(), order.end(), [](const NamedTensor* a, const NamedTensor* b) {
    return a->value->dtype.bits > b->value->dtype.bits;
  });
  uint64_t offset = 0;
  for (const NamedTensor* t : order)
    if (!formatName(t->value->dtype)) {
      meta["bevel.dtype." + t->name] = t->value->dtype.str();
      meta["bevel.shape." + t->name] = shapeText(t->value->shape);
    }
  if (!meta.empty()) header["__metadata__"] = meta;
  for (const NamedTensor* t : order) {
    const char* format = formatName(t->value->dtype);
    uint64_t size = uint64_t(t->value->byteSize());
    Json entry;
    entry["dtype"] = format ? format : "U8";
    entry["shape"] = format ? Json(t->value->shape) : Json(std::vector<uint64_t>{size});
    entry["data_offsets"] = {offset, offset + size};
    if (header.contains(t->name) || t->name == "__metadata__")
      return fail(ErrorCode::kInvalid, "two tensors are named '" + t->name + "'");
    header[t->name] = entry;
    offset += size;
  }
  std::string text = header.dump(-1, ' ', false, Json::error_handler_t::replace);
  while ((8 + text.size()) % 64) text += ' '; // the data begins at a multiple of 64 bytes
  std::vector<std::byte> out(8 + text.size() + size_t(offset));
  for (int i = 0; i < 8; ++i) out[size_t(i)] = std::byte(text.size() >> (8 * i));
  std::memcpy(out.data() + 8, text.data(), text.size());
  size_t at = 8 + text.size();
  for (const NamedTensor* t : order) {
    if (t->value->byteSize() > 0)
      std::memcpy(out.data() + at, t->value->bytes(), size_t(t->value->byteSize()));
    at += size_t(t->value->byteSize());
  }
  return writeFile(path, std::span<const std::byte>(out));
}

Result<Safetensors> readSafetensors(const std::string& path) {
  BEVEL_TRY(std::shared_ptr<const MappedFile> file, MappedFile::open(path));
  return Reader(path, std::move(file)).run();
}

std::string constantsPath(const std::string& textPath) {
  return std::filesystem::path(textPath).replace_extension(".safetensors").string();
}

static Status writeConstants(const std::string& path, const std::vector<Constant>& constants) {
  std::vector<NamedTensor> tensors;
  std::vector<std::pair<std::string, std::string>> names;
  for (size_t i = 0; i < constants.size(); ++i) {
    std::string key = "constant." + std::to_string(i);
    tensors.push_back({key, constants[i]->value});
    if (!constants[i]->name.empty()) names.emplace_back(key + ".name", constants[i]->name);
  }
  return writeSafetensors(path, tensors, names);
}

Status writeModule(const std::string& path, const Module& module, WrittenConstants* last) {
  std::vector<Constant> constants;
  PrintOptions options;
  options.constants = &constants;
  options.imports = true;
  std::string text = print(module, options);
  if (!constants.empty()) {
    std::string beside = constantsPath(path);
    bool linked = false;
    if (last && std::ranges::equal(last->constants, constants, [](const Constant& a, const Constant& b) {
          return a->value == b->value && a->name == b->name;
        })) {
      std::error_code failed;
      std::filesystem::remove(beside, failed);
      std::filesystem::create_hard_link(last->path, beside, failed);
      linked = !failed;
    }
    if (!linked) BEVEL_CHECK(writeConstants(beside, constants));
    if (last) *last = {beside, std::move(constants)};
  }
  return writeFile(path, text);
}

Result<Module> readModule(const std::string& path) {
  return readModule(path, ParseOptions());
}

Result<Module> readModule(const std::string& path, ParseOptions options) {
  BEVEL_TRY(std::string text, readFile(path));
  options.file = path;
  std::error_code ignored;
  std::string beside = constantsPath(path);
  if (text.find("metadata[") != std::string::npos && std::filesystem::exists(beside, ignored)) {
    BEVEL_TRY(Safetensors file, readSafetensors(beside));
    for (size_t i = 0;; ++i) {
      std::string key = "constant." + std::to_string(i), name;
      auto found = std::find_if(file.tensors.begin(), file.tensors.end(),
                                [&](const NamedTensor& t) { return t.name == key; });
      if (found == file.tensors.end()) break;
      for (const auto& [k, v] : file.metadata)
        if (k == key + ".name") name = v;
      options.constants.push_back(make<const ConstantNode>(found->value, name));
    }
  }
  return parseModule(text, options);
}

} // namespace bevel
