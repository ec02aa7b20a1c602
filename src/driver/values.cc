// Host values in the run time's form, and random ones.
#include "driver/values.h"

#include "driver/commands.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <new>
#include <sys/resource.h>
#include <unistd.h>

namespace bevel {

bevel_dtype toRuntimeDtype(DType dtype) {
  uint32_t word = imageDtypeOf(dtype);
  return {uint8_t(word & 0xff), uint8_t(word >> 8 & 0xff), uint16_t(word >> 16)};
}

DType fromRuntimeDtype(bevel_dtype t) {
  DType dtype{TypeCode(t.code), t.bits, 1};
  return DType::parse(dtype.str()) == dtype ? dtype : DType::Void();
}

namespace {

Result<bevel_value> tensorValue(const TensorObject& t) {
  bevel_value out = {BEVEL_TENSOR, 0, {}};
  BEVEL_CHECK(runtimeStatus(
      bevel_tensor_new(toRuntimeDtype(t.dtype), int32_t(t.shape.size()), t.shape.data(), &out.v.tensor)));
  if (!t.dtype.isString()) {
    const DLTensor* view = bevel_tensor_view(out.v.tensor);
    if (t.byteSize()) std::memcpy(view->data, t.bytes(), size_t(t.byteSize()));
    return out;
  }
  for (size_t i = 0; i < t.strings.size(); ++i)
    if (int32_t status =
            bevel_tensor_set_string(out.v.tensor, int64_t(i), t.strings[i].data(), t.strings[i].size())) {
      bevel_release(&out);
      return fail(runtimeError(status));
    }
  return out;
}

Result<HostValue> tensorFrom(const bevel_tensor* tensor) {
  const DLTensor* view = bevel_tensor_view(tensor);
  DType dtype = fromRuntimeDtype(view->dtype);
  std::vector<int64_t> shape(view->shape, view->shape + view->ndim);
  HostValue out;
  if (dtype.isString()) {
    int64_t count = 1;
    for (int64_t d : shape) count *= d;
    std::vector<std::string> strings;
    for (int64_t i = 0; i < count; ++i) {
      const char* data = nullptr;
      size_t size = 0;
      BEVEL_CHECK(runtimeStatus(bevel_tensor_string(tensor, i, &data, &size)));
      strings.emplace_back(data, size);
    }
    out.tensor = TensorObject::ofStrings(shape, std::move(strings));
    return out;
  }
  auto copy = TensorObject::zeros(dtype, shape);
  const auto* data = static_cast<const char*>(view->data) + view->byte_offset;
  bool dense = view->strides == nullptr;
  int64_t expected = 1;
  if (!dense) {
    dense = true;
    for (int d = view->ndim; d-- > 0;) {
      dense &= view->shape[d] == 1 || view->strides[d] == expected;
      expected *= view->shape[d];
    }
  }
  if (!dense && copy->size())
    return fail(ErrorCode::kInternal, "the run time gave a tensor that is not compact");
  if (copy->byteSize()) std::memcpy(copy->mutableBytes(), data, size_t(copy->byteSize()));
  out.tensor = copy;
  return out;
}

} // namespace

Result<HostValue> readValue(const std::string& path, int32_t kind) {
  if (path.ends_with(".pb")) return readPb(path, kind);
  BEVEL_TRY(Tensor tensor, readNpy(path));
  return HostValue{tensor};
}

Result<bevel_value> toRuntime(const HostValue& value) {
  if (value.tensor) return tensorValue(*value.tensor);
  bevel_value out = {BEVEL_NONE, 0, {}};
  if (!value.isList) return out;
  BEVEL_CHECK(runtimeStatus(bevel_list_new(&out)));
  for (const HostValue& item : value.items) {
    auto inner = toRuntime(item);
    int32_t status = inner ? bevel_list_append(&out, &*inner) : 0;
    if (inner) bevel_release(&*inner);
    if (!inner || status) {
      bevel_release(&out);
      return fail(inner ? runtimeError(status) : std::move(inner.error()));
    }
  }
  return out;
}

Result<HostValue> fromRuntime(const bevel_value& value) {
  HostValue out;
  switch (value.kind) {
  case BEVEL_NONE:
    return out;
  case BEVEL_TENSOR:
    return tensorFrom(value.v.tensor);
  case BEVEL_INT:
    out.tensor = TensorObject::of<int64_t>(kInt64, {}, {value.v.i});
    return out;
  case BEVEL_FLOAT:
    out.tensor = TensorObject::of<double>(DType::Float(64), {}, {value.v.f});
    return out;
  case BEVEL_LIST:
    break;
  default:
    return fail(ErrorCode::kUnsupported, "an output is of a kind that has no file form");
  }
  out.isList = true;
  for (int64_t i = 0; i < bevel_list_size(&value); ++i) {
    bevel_value item = {};
    BEVEL_CHECK(runtimeStatus(bevel_list_get(&value, i, &item)));
    BEVEL_TRY(HostValue inner, fromRuntime(item));
    out.items.push_back(std::move(inner));
  }
  return out;
}

namespace {

/// Bytes that this process may use: the machine's memory, or what ulimit -v leaves.
double memoryLimit() {
  double bytes = double(sysconf(_SC_PHYS_PAGES)) * double(sysconf(_SC_PAGESIZE));
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    bytes = std::min(bytes, double(limit.rlim_cur));
  return bytes;
}

} // namespace

Result<Ref<TensorObject>> inputTensor(DType dtype, const std::vector<int64_t>& shape) {
  BEVEL_TRY(int64_t count, elementCount(shape));
  double bytes = double(count) * std::max<int>(dtype.bits, 1) / 8,
         limit = memoryLimit() / 2; // the run copies it
  std::string text =
      fmt::format("a tensor of {} elements of {} takes {}", count, dtype.str(), byteText(bytes));
  if (bytes > limit)
    return fail(ErrorCode::kInvalid,
                fmt::format("{}: the most is {}, half of the memory that there is", text, byteText(limit)));
  try {
    return TensorObject::zeros(dtype, shape);
  } catch (const std::bad_alloc&) {
    return fail(ErrorCode::kInvalid, text + ": that much memory is not free");
  }
}

Result<Tensor> randomTensor(DType dtype, const std::vector<int64_t>& shape, uint64_t& state) {
  BEVEL_TRY(Ref<TensorObject> out, inputTensor(dtype, shape));
  auto next = [&] { // SplitMix64 (Steele, Lea, Flood 2014)
    uint64_t z = state += 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  };
  for (int64_t i = 0; i < out->size(); ++i) {
    uint64_t bits = next();
    if (dtype.isBool())
      out->setInt(i, int64_t(bits & 1));
    else if (dtype.isInteger())
      out->setInt(i, int64_t(bits % 10) % (int64_t(1) << std::min<int>(dtype.bits - 1, 8)));
    else
      out->setDouble(i, double(bits >> 11) * 0x1p-52 - 1);
  }
  return Tensor(out);
}

} // namespace bevel
