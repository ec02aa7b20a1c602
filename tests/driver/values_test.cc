// Files of inputs and outputs: NumPy and ONNX test data, and hostile ones.
#include "driver/compile.h"
#include "driver/values.h"

#include "base/file.h"

#include <filesystem>
#include <gtest/gtest.h>

namespace bevel {
namespace {

std::string temporary(const char* name) {
  return (std::filesystem::temp_directory_path() / name).string();
}

struct Removed {
  std::string path;
  ~Removed() {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
  }
};

Tensor counting(DType dtype, std::vector<int64_t> shape) {
  auto t = TensorObject::zeros(dtype, std::move(shape));
  for (int64_t i = 0; i < t->size(); ++i)
    if (dtype.isFloat())
      t->setDouble(i, double(i) - 1.5);
    else
      t->setInt(i, i - 1);
  return t;
}

TEST(Npy, KeepsEveryTypeAndShape) {
  Removed file{temporary("bevel_values_test.npy")};
  std::vector<std::vector<int64_t>> shapes = {{}, {0}, {1}, {7}, {2, 3}, {3, 0, 2}, {2, 1, 5}};
  for (DType dtype : {kBool, DType::Int(8), DType::Int(16), kInt32, kInt64, DType::UInt(8), DType::UInt(16),
                      DType::UInt(32), DType::UInt(64), DType::Float(16), kFloat32, DType::Float(64)})
    for (const auto& shape : shapes) {
      Tensor t = counting(dtype, shape);
      ASSERT_TRUE(writeNpy(file.path, *t));
      auto back = readNpy(file.path);
      ASSERT_TRUE(back) << back.error().str();
      EXPECT_TRUE(identical(*t, **back)) << dtype.str() << " rank " << shape.size();
    }
}

TEST(Npy, ReadsFortranOrder) {
  Removed file{temporary("bevel_values_fortran.npy")};
  std::string header = "{'descr': '<i4', 'fortran_order': True, 'shape': (2, 3), }";
  header.append(127 - 10 - header.size(), ' ');
  header += '\n';
  std::string text("\x93NUMPY\x01\x00", 8);
  text += char(header.size());
  text += '\0';
  text += header;
  for (int32_t v : {1, 4, 2, 5, 3, 6}) text.append(reinterpret_cast<const char*>(&v), 4);
  ASSERT_TRUE(writeFile(file.path, std::string_view(text)));
  auto t = readNpy(file.path);
  ASSERT_TRUE(t) << t.error().str();
  for (int64_t i = 0; i < 6; ++i) EXPECT_EQ((*t)->asInt(i), i + 1);
}

TEST(Npy, RefusesWhatIsCutOffOrImpossible) {
  Removed file{temporary("bevel_values_cut.npy")};
  ASSERT_TRUE(writeNpy(file.path, *counting(kFloat32, {5, 7})));
  auto whole = readFile(file.path);
  ASSERT_TRUE(whole);
  for (size_t n = 0; n < whole->size(); ++n) {
    ASSERT_TRUE(writeFile(file.path, std::string_view(*whole).substr(0, n)));
    EXPECT_FALSE(readNpy(file.path)) << n;
  }
  std::string huge = *whole;
  huge.replace(huge.find("(5, 7)"), 6, "(9999999999999, 9999999999)");
  ASSERT_TRUE(writeFile(file.path, std::string_view(huge)));
  EXPECT_FALSE(readNpy(file.path));
}

HostValue roundTrip(const HostValue& v, int32_t kind) {
  Removed file{temporary("bevel_values_test.pb")};
  EXPECT_TRUE(writePb(file.path, v, kind, "x"));
  auto back = readPb(file.path, kind);
  EXPECT_TRUE(back) << back.error().str();
  return back ? *back : HostValue();
}

TEST(Pb, KeepsTensorsListsAndOptionals) {
  HostValue a{counting(kFloat32, {2, 3}), false, {}}, b{counting(kInt64, {0}), false, {}};
  HostValue text{TensorObject::ofStrings({2}, {"one", ""}), false, {}};
  EXPECT_TRUE(identical(*roundTrip(a, BEVEL_PARAM_TENSOR).tensor, *a.tensor));
  EXPECT_TRUE(identical(*roundTrip(b, BEVEL_PARAM_TENSOR).tensor, *b.tensor));
  EXPECT_EQ(roundTrip(text, BEVEL_PARAM_TENSOR).tensor->strings, text.tensor->strings);
  HostValue list{nullptr, true, {a, b}};
  HostValue back = roundTrip(list, BEVEL_PARAM_LIST);
  ASSERT_TRUE(back.isList);
  ASSERT_EQ(back.items.size(), 2u);
  EXPECT_TRUE(identical(*back.items[1].tensor, *b.tensor));
  EXPECT_TRUE(roundTrip(HostValue{nullptr, true, {}}, BEVEL_PARAM_LIST).isList);
  EXPECT_TRUE(roundTrip(HostValue(), BEVEL_PARAM_OPTIONAL).isNone());
  EXPECT_TRUE(identical(*roundTrip(a, BEVEL_PARAM_OPTIONAL).tensor, *a.tensor));
  EXPECT_EQ(roundTrip(list, BEVEL_PARAM_OPTIONAL).items.size(), 2u);
}

TEST(Values, PassThroughTheRunTime) {
  HostValue list{nullptr,
                 true,
                 {HostValue{counting(DType::Float(16), {3}), false, {}},
                  HostValue{TensorObject::ofStrings({1}, {"t"}), false, {}}, HostValue()}};
  auto value = toRuntime(list);
  ASSERT_TRUE(value) << value.error().str();
  auto back = fromRuntime(*value);
  bevel_release(&*value);
  ASSERT_TRUE(back) << back.error().str();
  ASSERT_EQ(back->items.size(), 3u);
  EXPECT_TRUE(identical(*back->items[0].tensor, *list.items[0].tensor));
  EXPECT_EQ(back->items[1].tensor->strings[0], "t");
  EXPECT_TRUE(back->items[2].isNone());
}

} // namespace
} // namespace bevel
