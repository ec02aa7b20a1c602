// Operator cases on which existing systems fail, with the values that ONNX defines: each node is imported on
// constants.
#include "import/onnx_model_support.h"

#include <cmath>
#include <gtest/gtest.h>

namespace bevel {
namespace {

using test::foldNode;
using test::intAttribute;
using test::intsAttribute;
using test::OnnxAttr;
using test::stringAttribute;
using Shape = std::vector<int64_t>;

Tensor f32(Shape shape, std::vector<double> values) {
  return TensorObject::of(kFloat32, std::move(shape), values);
}
Tensor i64(Shape shape, std::vector<int64_t> values) {
  return TensorObject::of(kInt64, std::move(shape), values);
}
Tensor ramp(Shape shape, double first = 0) {
  int64_t n = 1;
  for (int64_t d : shape) n *= d;
  std::vector<double> v;
  for (int64_t i = 0; i < n; ++i) v.push_back(first + double(i));
  return f32(std::move(shape), v);
}

void expectValues(const Result<HostTensors>& r, const Shape& shape, const std::vector<double>& values) {
  ASSERT_TRUE(r) << r.error().str();
  const TensorObject& t = *(*r)[0];
  EXPECT_EQ(t.shape, shape);
  ASSERT_EQ(t.size(), int64_t(values.size()));
  for (int64_t i = 0; i < t.size(); ++i) {
    double want = values[size_t(i)], got = t.asDouble(i);
    if (std::isnan(want))
      EXPECT_TRUE(std::isnan(got)) << "element " << i;
    else if (std::isinf(want))
      EXPECT_EQ(got, want) << "element " << i;
    else
      EXPECT_NEAR(got, want, 2e-6 * std::max(1.0, std::fabs(want))) << "element " << i;
  }
}

TEST(OnnxCases, ResizeFollowsTheGivenScale) {
  Tensor x = ramp({1, 1, 3, 3});
  auto nearest = foldNode("Resize", {x, nullptr, f32({4}, {1, 1, 1.5, 1.5})}, {}, 18);
  expectValues(nearest, {1, 1, 4, 4}, {0, 0, 1, 2, 0, 0, 1, 2, 3, 3, 4, 5, 6, 6, 7, 8});
  auto wide = foldNode("Resize", {x, nullptr, f32({4}, {1, 1, 2.5, 2.5})}, {}, 18);
  ASSERT_TRUE(wide) << wide.error().str();
  EXPECT_EQ((*wide)[0]->shape, (Shape{1, 1, 7, 7}));
  const double row[] = {0, 0, 0, 1, 1, 2, 2};
  for (int64_t i = 0; i < 7; ++i) EXPECT_EQ((*wide)[0]->asDouble(i), row[i]);
  auto linear =
      foldNode("Resize", {x, nullptr, f32({4}, {1, 1, 1, 2.5})}, {stringAttribute("mode", "linear")}, 18);
  ASSERT_TRUE(linear) << linear.error().str();
  const double smooth[] = {0, .1, .5, .9, 1.3, 1.7, 2};
  for (int64_t i = 0; i < 7; ++i) EXPECT_NEAR((*linear)[0]->asDouble(i), smooth[i], 1e-6);
  auto line = foldNode("Resize", {ramp({1, 1, 4}), nullptr, nullptr, i64({3}, {1, 1, 7})},
                       {stringAttribute("mode", "linear")}, 18);
  expectValues(line, {1, 1, 7}, {0, .357142857, .928571428, 1.5, 2.071428571, 2.642857142, 3});
}

TEST(OnnxCases, NegativeIndicesCountFromTheEnd) {
  Tensor x = ramp({3, 4});
  expectValues(foldNode("GatherElements", {x, i64({3, 4}, Shape(12, -1))}, {intAttribute("axis", 1)}), {3, 4},
               {3, 3, 3, 3, 7, 7, 7, 7, 11, 11, 11, 11});
  expectValues(foldNode("GatherND", {x, i64({2, 2}, {-1, -1, 0, -2})}, {}), {2}, {11, 2});
  expectValues(foldNode("ScatterND",
                        {f32({3, 4}, std::vector<double>(12, 0)), i64({2, 1}, {-1, 0}), ramp({2, 4}, 1)}, {}),
               {3, 4}, {5, 6, 7, 8, 0, 0, 0, 0, 1, 2, 3, 4});
  expectValues(foldNode("OneHot", {i64({4}, {0, 2, 4, -1}), i64({}, {5}), f32({2}, {0, 1})}, {}), {4, 5},
               {1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1});
  expectValues(foldNode("Gather", {ramp({5}, 1), i64({3}, {-1, -3, 0})}, {}), {3}, {5, 3, 1});
}

TEST(OnnxCases, IndicesOutOfRangeAreErrors) {
  Tensor x = ramp({3, 4});
  for (int64_t bad : {int64_t(3), int64_t(4), int64_t(-4), int64_t(INT32_MIN), INT64_MIN, INT64_MAX}) {
    EXPECT_FALSE(foldNode("Gather", {x, i64({1}, {bad})}, {})) << bad;
    EXPECT_FALSE(foldNode("GatherElements", {x, i64({1, 1}, {bad})}, {})) << bad;
    EXPECT_FALSE(foldNode("ScatterElements", {x, i64({1, 1}, {bad}), f32({1, 1}, {1})}, {})) << bad;
    EXPECT_FALSE(foldNode("ScatterND", {x, i64({1, 1}, {bad}), ramp({1, 4})}, {})) << bad;
    EXPECT_FALSE(foldNode("GatherND", {x, i64({1, 1}, {bad})}, {})) << bad;
  }
}

TEST(OnnxCases, AveragePoolCeilModeAndPads) {
  auto a = foldNode("AveragePool", {ramp({1, 1, 17, 17})},
                    {intsAttribute("kernel_shape", {2, 2}), intsAttribute("strides", {2, 2}),
                     intsAttribute("pads", {1, 1, 1, 1}), intAttribute("ceil_mode", 1)},
                    19);
  ASSERT_TRUE(a) << a.error().str();
  EXPECT_EQ((*a)[0]->shape, (Shape{1, 1, 9, 9}));
  auto b = foldNode("AveragePool", {ramp({1, 1, 12}, 1)},
                    {intsAttribute("kernel_shape", {7}), intsAttribute("strides", {3}),
                     intsAttribute("pads", {0, 3}), intAttribute("ceil_mode", 1),
                     intAttribute("count_include_pad", 1)},
                    19);
  expectValues(b, {1, 1, 4}, {4, 7, 57.0 / 7, 5.5});
}

TEST(OnnxCases, ClipBounds) {
  Tensor x = f32({5}, {.5, -3, 4.5, 11, NAN});
  expectValues(foldNode("Clip", {x, f32({}, {0}), f32({}, {NAN})}, {}), {5},
               {.5, 0, 4.5, 11, NAN}); // a NaN bound is none
  expectValues(foldNode("Clip", {x, nullptr, f32({}, {3})}, {}), {5}, {.5, -3, 3, 3, NAN});
  expectValues(foldNode("Clip", {x, f32({}, {2}), f32({}, {1})}, {}), {5}, {1, 1, 1, 1, NAN});
}

TEST(OnnxCases, Reductions) {
  expectValues(foldNode("ReduceSumSquare", {ramp({2, 2}, 1)}, {intAttribute("noop_with_empty_axes", 1)}),
               {2, 2}, {1, 4, 9, 16});
  expectValues(foldNode("ReduceSum", {ramp({2, 2}, 1), i64({0}, {})}, {intAttribute("keepdims", 0)}), {},
               {10});
  expectValues(foldNode("ReduceMax", {f32({}, {3})}, {}), {}, {3});
  expectValues(foldNode("ReduceSum", {f32({2, 0, 4}, {}), i64({1}, {1})}, {}), {2, 1, 4},
               std::vector<double>(8, 0));
  expectValues(foldNode("ReduceProd", {f32({2, 0}, {}), i64({1}, {1})}, {}), {2, 1}, {1, 1});
  expectValues(foldNode("ReduceMax", {f32({1, 0}, {}), i64({1}, {1})}, {}), {1, 1}, {-INFINITY});
  expectValues(foldNode("ReduceLogSumExp", {f32({2}, {100, 100})}, {intAttribute("keepdims", 0)}), {},
               {100.69314718});
}

TEST(OnnxCases, IntegerArithmetic) {
  expectValues(foldNode("Div", {i64({4}, {8, -8, 7, -7}), i64({4}, {-3, 3, -2, 2})}, {}), {4},
               {-2, -2, -3, -3});
  expectValues(foldNode("Mod", {i64({6}, {-4, 7, 5, 4, -7, 8}), i64({6}, {2, -3, 8, -2, 3, 5})}, {}), {6},
               {0, -2, 5, 0, 2, 3});
  expectValues(foldNode("Mod", {i64({6}, {-4, 7, 5, 4, -7, 8}), i64({6}, {2, -3, 8, -2, 3, 5})},
                        {intAttribute("fmod", 1)}),
               {6}, {0, 1, 5, 0, -1, 3});
  auto p = foldNode("Pow", {i64({4}, {13, 17, 19, 23}), i64({4}, {8, 7, 7, 6})}, {});
  ASSERT_TRUE(p) << p.error().str();
  const int64_t powers[] = {815730721, 410338673, 893871739, 148035889};
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ((*p)[0]->asInt(i), powers[i]);
  auto smallest = foldNode("Div", {i64({2}, {INT64_MIN, 5}), i64({2}, {-1, 0})}, {});
  ASSERT_TRUE(smallest);
  EXPECT_EQ((*smallest)[0]->asInt(0), INT64_MIN);
  EXPECT_EQ((*smallest)[0]->asInt(1), 0);
}

TEST(OnnxCases, Numerics) {
  expectValues(foldNode("Softmax", {f32({3}, {1e4, 1e4, -1e4})}, {}), {3}, {.5, .5, 0});
  expectValues(foldNode("Softmax", {f32({3}, {-INFINITY, 0, -INFINITY})}, {}), {3}, {0, 1, 0});
  expectValues(foldNode("Tanh", {f32({2}, {50, NAN})}, {}), {2}, {1, NAN});
  auto erf = foldNode("Erf", {f32({1}, {3e-12})}, {});
  ASSERT_TRUE(erf);
  EXPECT_NEAR((*erf)[0]->asDouble(0), 3.385137e-12, 1e-17);
}

TEST(OnnxCases, Shapes) {
  expectValues(
      foldNode("PRelu", {f32({1, 2, 1, 4}, {-1, -1, -1, -1, -1, -1, -1, -1}), f32({4}, {1, 2, 3, 4})}, {}),
      {1, 2, 1, 4}, {-1, -2, -3, -4, -1, -2, -3, -4});
  expectValues(foldNode("CumSum", {ramp({3}, 1), i64({}, {0})}, {intAttribute("reverse", 1)}), {3},
               {6, 5, 3});
  expectValues(foldNode("MatMul", {f32({2, 0}, {}), f32({0, 3}, {})}, {}), {2, 3}, std::vector<double>(6, 0));
  auto top = foldNode("TopK", {ramp({5}), i64({1}, {2})}, {}, 18, 2);
  ASSERT_TRUE(top) << top.error().str();
  EXPECT_EQ((*top)[1]->dtype, kInt64);
  EXPECT_EQ((*top)[1]->asInt(0), 4);
}

} // namespace
} // namespace bevel
