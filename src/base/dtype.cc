// Spelling and limits of element types.
#include "base/dtype.h"

#include <charconv>
#include <limits>

namespace bevel {
namespace {

struct Named {
  const char* name;
  DType dtype;
};

// Types whose spelling is not "<kind><bits>".
constexpr Named kNamed[] = {
    {"bool", DType::Bool()},
    {"void", DType::Void()},
    {"handle", DType::Handle()},
    {"string", DType::String()},
    {"bfloat16", DType::BFloat16()},
    {"float8_e4m3fn", {TypeCode::kFloat8E4M3FN, 8, 1}},
    {"float8_e4m3fnuz", {TypeCode::kFloat8E4M3FNUZ, 8, 1}},
    {"float8_e5m2", {TypeCode::kFloat8E5M2, 8, 1}},
    {"float8_e5m2fnuz", {TypeCode::kFloat8E5M2FNUZ, 8, 1}},
    {"float8_e8m0fnu", {TypeCode::kFloat8E8M0FNU, 8, 1}},
    {"float4_e2m1fn", {TypeCode::kFloat4E2M1FN, 4, 1}},
    {"complex64", {TypeCode::kComplex, 64, 1}},
    {"complex128", {TypeCode::kComplex, 128, 1}},
};

std::optional<DType> parseScalar(std::string_view text) {
  for (const Named& n : kNamed)
    if (text == n.name) return n.dtype;
  if (text == "boolean" || text == "uint1") return DType::Bool();
  const Named kinds[] = {{"float", DType::Float(0)}, {"uint", DType::UInt(0)}, {"int", DType::Int(0)}};
  for (const Named& kind : kinds) {
    std::string_view name = kind.name;
    if (!text.starts_with(name)) continue;
    std::string_view digits = text.substr(name.size());
    int bits = 0;
    auto [end, ec] = std::from_chars(digits.data(), digits.data() + digits.size(), bits);
    if (ec != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
    bool ok = kind.dtype.code == TypeCode::kFloat
                  ? bits == 16 || bits == 32 || bits == 64
                  : bits == 2 || bits == 4 || bits == 8 || bits == 16 || bits == 32 || bits == 64;
    if (!ok) return std::nullopt;
    return DType{kind.dtype.code, uint8_t(bits), 1};
  }
  return std::nullopt;
}

} // namespace

std::string DType::str() const {
  std::string text;
  for (const Named& n : kNamed)
    if (scalar() == n.dtype) text = n.name;
  if (text.empty()) text = (isFloat() ? "float" : isUInt() ? "uint" : "int") + std::to_string(bits);
  if (lanes > 1) text += "x" + std::to_string(lanes);
  return text;
}

std::optional<DType> DType::parse(std::string_view text) {
  if (auto dtype = parseScalar(text)) return dtype;
  size_t x = text.rfind('x');
  if (x == std::string_view::npos) return std::nullopt;
  std::string_view digits = text.substr(x + 1);
  int lanes = 0;
  auto [end, ec] = std::from_chars(digits.data(), digits.data() + digits.size(), lanes);
  if (ec != std::errc() || end != digits.data() + digits.size() || lanes < 1 || lanes > 65535)
    return std::nullopt;
  auto dtype = parseScalar(text.substr(0, x));
  if (!dtype || dtype->isVoid() || dtype->isString()) return std::nullopt;
  return dtype->withLanes(lanes);
}

int64_t minValue(DType dtype) {
  if (!dtype.isInt()) return 0;
  return dtype.bits >= 64 ? std::numeric_limits<int64_t>::min() : -(int64_t(1) << (dtype.bits - 1));
}

int64_t maxValue(DType dtype) {
  if (dtype.isBool()) return 1;
  int bits = dtype.isInt() ? dtype.bits - 1 : dtype.bits;
  return bits >= 63 ? std::numeric_limits<int64_t>::max() : (int64_t(1) << bits) - 1;
}

} // namespace bevel
