// Operators on text tensors: joining, splitting, normalising, comparing, and casts between text and numbers.
#include "runtime/ops/access.h"
#include "runtime/ops/entries.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace bevel::rt {

static Status textTensor(const Args& args, int32_t i, Ref<Tensor>* tensor) {
  BEVEL_RT_TRY(args.tensor(i, tensor));
  return (*tensor)->isText() ? Status(BEVEL_OK) : args.refuse("expected text");
}

/// Calls f(position in the result, in a, in b) over the broadcast of both; gives the result's shape.
template <class F>
static Status broadcast(const Args& args, const Tensor& a, const Tensor& b, std::vector<int64_t>* shape,
                        F f) {
  size_t rank = size_t(std::max(a.dl.ndim, b.dl.ndim));
  shape->assign(rank, 1);
  std::vector<int64_t> strideA(rank, 0), strideB(rank, 0), index(rank, 0);
  auto merge = [&](const Tensor& t, std::vector<int64_t>& strides) {
    int64_t stride = 1;
    for (int32_t i = t.dl.ndim - 1; i >= 0; --i) {
      size_t to = rank - size_t(t.dl.ndim - i);
      int64_t extent = t.dl.shape[i];
      if (extent != 1) {
        if ((*shape)[to] != 1 && (*shape)[to] != extent) return false;
        (*shape)[to] = extent, strides[to] = stride;
      }
      stride *= extent;
    }
    return true;
  };
  if (!merge(a, strideA) || !merge(b, strideB)) return args.refuse("the shapes do not broadcast");
  int64_t n = numElements(int32_t(rank), shape->data());
  f.begin(*shape);
  for (int64_t k = 0, pa = 0, pb = 0; k < n; ++k) {
    f(k, pa, pb);
    for (size_t d = rank; d-- > 0;) {
      pa += strideA[d], pb += strideB[d];
      if (++index[d] < (*shape)[d]) break;
      pa -= strideA[d] * index[d], pb -= strideB[d] * index[d];
      index[d] = 0;
    }
  }
  return BEVEL_OK;
}

namespace {
struct Concat {
  const Tensor &a, &b;
  Ref<Tensor>& out;
  void begin(const std::vector<int64_t>& shape) { out = Tensor::make(kString, shape); }
  void operator()(int64_t k, int64_t i, int64_t j) {
    if (out) out->text(k) = a.storage->strings[size_t(i)] + b.storage->strings[size_t(j)];
  }
};
struct Equal {
  const Tensor &a, &b;
  Ref<Tensor>& out;
  void begin(const std::vector<int64_t>& shape) { out = Tensor::make(kBool, shape); }
  void operator()(int64_t k, int64_t i, int64_t j) {
    if (out) out->data<uint8_t>()[k] = a.storage->strings[size_t(i)] == b.storage->strings[size_t(j)];
  }
};
} // namespace

template <class Op>
static Status textBinary(const char* name, const bevel_value* raw, int32_t count, bevel_value* result) {
  Args args(name, raw, count);
  Ref<Tensor> a, b, out;
  BEVEL_RT_TRY(textTensor(args, 0, &a));
  BEVEL_RT_TRY(textTensor(args, 1, &b));
  std::vector<int64_t> shape;
  BEVEL_RT_TRY(broadcast(args, *a, *b, &shape, Op{*a, *b, out}));
  return give(result, std::move(out));
}

/// text_concat(a, b), with broadcasting. ONNX StringConcat-20.
int32_t textConcat(const bevel_ctx*, void*, const bevel_value* args, int32_t count, bevel_value* result) {
  return textBinary<Concat>("text_concat", args, count, result);
}

/// text_equal(a, b) → bool, with broadcasting. ONNX Equal-19 on strings.
int32_t textEqual(const bevel_ctx*, void*, const bevel_value* args, int32_t count, bevel_value* result) {
  return textBinary<Equal>("text_equal", args, count, result);
}

/// As Python's str.split: an empty delimiter means runs of white space.
static std::vector<std::string> split(const std::string& text, const std::string& delimiter,
                                      int64_t maxSplit) {
  static const char kSpace[] = " \t\n\r\v\f";
  std::vector<std::string> parts;
  size_t at = 0;
  if (delimiter.empty()) {
    for (;;) {
      at = text.find_first_not_of(kSpace, at);
      if (at == std::string::npos) return parts;
      bool last = maxSplit >= 0 && int64_t(parts.size()) == maxSplit;
      size_t end = last ? text.find_last_not_of(kSpace) + 1 : text.find_first_of(kSpace, at);
      if (end == std::string::npos) end = text.size();
      parts.push_back(text.substr(at, end - at));
      if (last) return parts;
      at = end;
    }
  }
  for (;;) {
    size_t end =
        maxSplit >= 0 && int64_t(parts.size()) == maxSplit ? std::string::npos : text.find(delimiter, at);
    parts.push_back(text.substr(at, end == std::string::npos ? end : end - at));
    if (end == std::string::npos) return parts;
    at = end + delimiter.size();
  }
}

/// text_split(x, delimiter = "", maxsplit = none) → [parts [..., most parts], number of parts]. ONNX
/// StringSplit-20.
int32_t textSplit(const bevel_ctx*, void*, const bevel_value* raw, int32_t count, bevel_value* result) {
  Args args("text_split", raw, count);
  Ref<Tensor> x;
  std::string delimiter;
  int64_t maxSplit;
  BEVEL_RT_TRY(textTensor(args, 0, &x));
  BEVEL_RT_TRY(args.text(1, "", &delimiter));
  BEVEL_RT_TRY(args.integer(2, -1, &maxSplit));
  std::vector<std::vector<std::string>> parts;
  size_t most = 0;
  for (const std::string& text : x->storage->strings) {
    parts.push_back(split(text, delimiter, maxSplit));
    most = std::max(most, parts.back().size());
  }
  std::vector<int64_t> shape = shapeOf(*x);
  auto numbers = Tensor::make(kInt64, shape);
  shape.push_back(int64_t(most));
  auto out = Tensor::make(kString, shape);
  if (!numbers || !out) return lastStatus();
  for (size_t i = 0; i < parts.size(); ++i) {
    numbers->data<int64_t>()[i] = int64_t(parts[i].size());
    for (size_t k = 0; k < parts[i].size(); ++k) out->text(int64_t(i * most + k)) = std::move(parts[i][k]);
  }
  return give(result, {out, numbers});
}

/// Another case for ASCII, Latin-1, Greek and Cyrillic letters.
static uint32_t changeCase(uint32_t c, bool upper) {
  auto inside = [&](uint32_t lo, uint32_t hi) { return c >= lo && c <= hi; };
  if (upper) {
    if (inside('a', 'z') || (inside(0xe0, 0xfe) && c != 0xf7) || (inside(0x3b1, 0x3c9) && c != 0x3c2) ||
        inside(0x430, 0x44f))
      return c - 32;
    return inside(0x450, 0x45f) ? c - 80 : c;
  }
  if (inside('A', 'Z') || (inside(0xc0, 0xde) && c != 0xd7) || (inside(0x391, 0x3a9) && c != 0x3a2) ||
      inside(0x410, 0x42f))
    return c + 32;
  return inside(0x400, 0x40f) ? c + 80 : c;
}

/// Letters of one and two bytes of UTF-8 (all that changeCase knows lie there); other bytes stay.
static std::string withCase(const std::string& text, bool upper) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    auto c = uint8_t(text[i]);
    if (c < 0x80) {
      out += char(changeCase(c, upper));
    } else if ((c & 0xe0) == 0xc0 && i + 1 < text.size()) {
      uint32_t code = changeCase((c & 0x1fu) << 6 | (uint8_t(text[++i]) & 0x3fu), upper);
      out += char(0xc0 | code >> 6), out += char(0x80 | (code & 0x3f));
    } else {
      out += char(c);
    }
  }
  return out;
}

/// text_normalize(x, case_change_action = "NONE", is_case_sensitive = 0, stop words, one text each …).
/// ONNX StringNormalizer-10: x is [n] or [1, n]; where nothing remains, one empty text does.
int32_t textNormalize(const bevel_ctx*, void*, const bevel_value* raw, int32_t count, bevel_value* result) {
  Args args("text_normalize", raw, count);
  Ref<Tensor> x;
  std::string action;
  int64_t sensitive;
  BEVEL_RT_TRY(textTensor(args, 0, &x));
  BEVEL_RT_TRY(args.text(1, "NONE", &action));
  BEVEL_RT_TRY(args.integer(2, 0, &sensitive));
  if (x->dl.ndim < 1 || x->dl.ndim > 2 || (x->dl.ndim == 2 && x->dl.shape[0] != 1))
    return args.refuse("expected [n] or [1, n]");
  if (action != "NONE" && action != "LOWER" && action != "UPPER")
    return args.refuse("unknown case_change_action");
  auto key = [&](const std::string& text) { return sensitive ? text : withCase(text, false); };
  std::vector<std::string> words;
  for (int32_t i = 3; i < count; ++i) {
    std::string word;
    BEVEL_RT_TRY(args.text(i, "", &word));
    words.push_back(key(word));
  }
  std::vector<std::string> kept;
  for (const std::string& text : x->storage->strings) {
    if (std::find(words.begin(), words.end(), key(text)) != words.end()) continue;
    kept.push_back(action == "NONE" ? text : withCase(text, action == "UPPER"));
  }
  if (kept.empty()) kept.emplace_back();
  std::vector<int64_t> shape = shapeOf(*x);
  shape.back() = int64_t(kept.size());
  auto out = Tensor::make(kString, shape);
  if (!out) return lastStatus();
  out->storage->strings = std::move(kept);
  return give(result, std::move(out));
}

/// text_to_number(x, dtype name) → float32, float64, int32 or int64. ONNX Cast of strings.
int32_t textToNumber(const bevel_ctx*, void*, const bevel_value* raw, int32_t count, bevel_value* result) {
  Args args("text_to_number", raw, count);
  Ref<Tensor> x;
  std::string name;
  BEVEL_RT_TRY(textTensor(args, 0, &x));
  BEVEL_RT_TRY(args.text(1, "float32", &name));
  bevel_dtype dtype = name == "float64" ? kFloat64
                      : name == "int32" ? kInt32
                      : name == "int64" ? kInt64
                                        : kFloat32;
  if (dtypeName(dtype) != name) return args.refuse("casts text to float32, float64, int32 and int64 only");
  auto out = Tensor::make(dtype, shapeOf(*x));
  if (!out) return lastStatus();
  for (int64_t i = 0, n = x->elements(); i < n; ++i) {
    const std::string& text = x->text(i);
    char* end = nullptr;
    double number = strtod(text.c_str(), &end);
    bool integer = dtype == kInt32 || dtype == kInt64;
    int64_t whole = 0;
    if (integer) whole = strtoll(text.c_str(), &end, 10);
    if (end == text.c_str() || *end) return args.refuse(("'" + text + "' is no number").c_str());
    if (dtype == kFloat32)
      out->data<float>()[i] = strtof(text.c_str(), nullptr);
    else if (dtype == kFloat64)
      out->data<double>()[i] = number;
    else if (dtype == kInt32)
      out->data<int32_t>()[i] = int32_t(whole);
    else
      out->data<int64_t>()[i] = whole;
  }
  return give(result, std::move(out));
}

/// number_to_text(x): as ONNX's Cast to string: shortest decimal that reads back as the same number.
int32_t numberToText(const bevel_ctx*, void*, const bevel_value* raw, int32_t count, bevel_value* result) {
  Args args("number_to_text", raw, count);
  Ref<Tensor> x;
  BEVEL_RT_TRY(args.tensor(0, &x));
  Keys keys;
  BEVEL_RT_TRY(Keys::read(*x, &keys));
  auto out = Tensor::make(kString, shapeOf(*x));
  if (!out) return lastStatus();
  int code = x->dl.dtype.code;
  bool integer = code == BEVEL_INT_CODE || code == BEVEL_UINT_CODE || code == BEVEL_BOOL_CODE;
  for (int64_t i = 0, n = x->elements(); i < n; ++i) {
    double number = keys.number(i);
    char text[40];
    if (integer && x->dl.dtype.bits == 64) {
      auto value = x->data<int64_t>()[i];
      if (code == BEVEL_UINT_CODE)
        snprintf(text, sizeof text, "%llu", static_cast<unsigned long long>(value));
      else
        snprintf(text, sizeof text, "%lld", static_cast<long long>(value));
    } else if (std::isnan(number) || std::isinf(number)) {
      strcpy(text, std::isnan(number) ? "NaN" : number < 0 ? "-INF" : "INF");
    } else {
      int most = x->dl.dtype == kFloat64 ? 17 : 9;
      for (int digits = 1; digits <= most; ++digits) {
        snprintf(text, sizeof text, "%.*g", digits, number);
        if (most == 17 ? strtod(text, nullptr) == number : strtof(text, nullptr) == float(number)) break;
      }
    }
    out->text(i) = text;
  }
  return give(result, std::move(out));
}

} // namespace bevel::rt
