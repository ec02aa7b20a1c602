// The packed functions of the run time against values from the ONNX documentation and NumPy.
#include "tests/runtime/support.h"

#include <cmath>
#include <cstring>

using namespace bevel;

namespace {

/// A call's arguments and result; tensors of a list result are read by number.
struct PackedCall {
  std::vector<bevel_value> args;
  std::vector<bevel_value> owned;
  bevel_value result = {BEVEL_NONE, 0, {}};
  ~PackedCall() {
    for (bevel_value& v : owned) bevel_release(&v);
    bevel_release(&result);
  }
  template <class T> PackedCall& arg(const View<T>& v) { return args.push_back(v.value()), *this; }
  PackedCall& arg(int64_t i) { return args.push_back(intValue(i)), *this; }
  PackedCall& none() { return args.push_back({BEVEL_NONE, 0, {}}), *this; }
  PackedCall& arg(const char* s) {
    bevel_value v;
    EXPECT_EQ(bevel_string_new(s, strlen(s), &v), BEVEL_OK);
    return owned.push_back(v), args.push_back(v), *this;
  }
  PackedCall& texts(std::vector<std::string> t, std::vector<int64_t> shape) {
    bevel_value v = {BEVEL_TENSOR, 0, {}};
    EXPECT_EQ(bevel_tensor_new({BEVEL_STRING_CODE, 0, 1}, int(shape.size()), shape.data(), &v.v.tensor),
              BEVEL_OK);
    for (size_t i = 0; i < t.size(); ++i)
      bevel_tensor_set_string(v.v.tensor, int64_t(i), t[i].data(), t[i].size());
    return owned.push_back(v), args.push_back(v), *this;
  }
  int32_t run(const char* name) {
    bevel_release(&result);
    return bevel_call_packed(name, args.data(), int32_t(args.size()), &result);
  }
  bevel_tensor* tensor(int64_t i = 0) {
    bevel_value item = result;
    if (result.kind == BEVEL_LIST) {
      EXPECT_EQ(bevel_list_get(&result, i, &item), BEVEL_OK);
    }
    EXPECT_EQ(item.kind, BEVEL_TENSOR) << bevel_last_error();
    return item.v.tensor;
  }
  template <class T> std::vector<T> values(int64_t i = 0) {
    return elements<T>(bevel_tensor_view(tensor(i)));
  }
  std::vector<int64_t> shape(int64_t i = 0) { return shapeOf(bevel_tensor_view(tensor(i))); }
  std::vector<std::string> text(int64_t i = 0) {
    int64_t n = 1;
    for (int64_t d : shape(i)) n *= d;
    std::vector<std::string> out;
    for (int64_t k = 0; k < n; ++k) {
      const char* data;
      size_t size;
      EXPECT_EQ(bevel_tensor_string(tensor(i), k, &data, &size), BEVEL_OK);
      out.emplace_back(data, size);
    }
    return out;
  }
};

using Ints = std::vector<int64_t>;
using Floats = std::vector<float>;
using Texts = std::vector<std::string>;

} // namespace

TEST(PackedOps, TopkOrdersTiesByIndexAndNanFirst) {
  View x(Floats{0, 3, 1, 3, 2, NAN, 7, 7}, {2, 4});
  View<int64_t> k({3});
  PackedCall c, smallest;
  ASSERT_EQ(c.arg(x).arg(k).arg(int64_t(-1)).arg(int64_t(1)).arg(int64_t(1)).run("bevel.topk"), BEVEL_OK);
  EXPECT_EQ(c.values<int64_t>(1), (Ints{1, 3, 2, 1, 2, 3}));
  EXPECT_EQ(c.shape(0), (Ints{2, 3}));
  EXPECT_TRUE(std::isnan(c.values<float>()[3]));
  ASSERT_EQ(smallest.arg(x).arg(k).arg(int64_t(1)).arg(int64_t(0)).run("bevel.topk"), BEVEL_OK);
  EXPECT_EQ(smallest.values<int64_t>(1), (Ints{0, 2, 1, 0, 2, 3}));
  View<int64_t> large({INT64_MAX, INT64_MAX - 1, INT64_MIN}), one({1}), four({4});
  PackedCall exact, tooMany;
  ASSERT_EQ(exact.arg(large).arg(one).run("bevel.topk"), BEVEL_OK) << "beyond the precision of a double";
  EXPECT_EQ(exact.values<int64_t>(0), Ints{INT64_MAX});
  EXPECT_EQ(tooMany.arg(large).arg(four).run("bevel.topk"), BEVEL_ERROR_REFUSED);
}

TEST(PackedOps, TopkReadsHalfAndBfloat) {
  View<uint16_t> half({0x3c00, 0xc000, 0x7c00, 0x0001}); // 1, -2, infinity, the smallest above 0
  View<int64_t> k({4});
  half.tensor.dtype = {BEVEL_FLOAT_CODE, 16, 1};
  PackedCall c;
  ASSERT_EQ(c.arg(half).arg(k).run("bevel.topk"), BEVEL_OK);
  EXPECT_EQ(c.values<int64_t>(1), (Ints{2, 0, 3, 1}));
  View<uint16_t> bfloat({0x3f80, 0xc000, 0x4000, 0x7fc0}); // 1, -2, 2, NaN
  bfloat.tensor.dtype = {BEVEL_BFLOAT_CODE, 16, 1};
  PackedCall b;
  ASSERT_EQ(b.arg(bfloat).arg(k).run("bevel.topk"), BEVEL_OK);
  EXPECT_EQ(b.values<int64_t>(1), (Ints{3, 2, 0, 1}));
}

TEST(PackedOps, SortAlongAnAxis) {
  View<int32_t> x({3, 1, 2, 3, 1, 4}, {3, 2});
  PackedCall c;
  ASSERT_EQ(c.arg(x).arg(int64_t(0)).run("bevel.sort"), BEVEL_OK);
  EXPECT_EQ(c.values<int32_t>(), (std::vector<int32_t>{1, 1, 2, 3, 3, 4}));
  EXPECT_EQ(c.values<int64_t>(1), (Ints{2, 0, 1, 1, 0, 2}));
}

TEST(PackedOps, Unique) { // the examples of ONNX Unique-11
  View x(Floats{2, 1, 1, 3, 4, 3});
  PackedCall sorted, unsorted, rows, texts;
  ASSERT_EQ(sorted.arg(x).run("bevel.unique"), BEVEL_OK);
  EXPECT_EQ(sorted.values<float>(), (Floats{1, 2, 3, 4}));
  EXPECT_EQ(sorted.values<int64_t>(1), (Ints{1, 0, 3, 4}));
  EXPECT_EQ(sorted.values<int64_t>(2), (Ints{1, 0, 0, 2, 3, 2}));
  EXPECT_EQ(sorted.values<int64_t>(3), (Ints{2, 1, 2, 1}));
  ASSERT_EQ(unsorted.arg(x).none().arg(int64_t(0)).run("bevel.unique"), BEVEL_OK);
  EXPECT_EQ(unsorted.values<float>(), (Floats{2, 1, 3, 4}));
  EXPECT_EQ(unsorted.values<int64_t>(1), (Ints{0, 1, 3, 4}));
  EXPECT_EQ(unsorted.values<int64_t>(2), (Ints{0, 1, 1, 2, 3, 2}));
  EXPECT_EQ(unsorted.values<int64_t>(3), (Ints{1, 2, 2, 1}));
  View m(Floats{1, 0, 0, 1, 0, 0, 2, 3, 4}, {3, 3});
  ASSERT_EQ(rows.arg(m).arg(int64_t(0)).run("bevel.unique"), BEVEL_OK);
  EXPECT_EQ(rows.values<float>(), (Floats{1, 0, 0, 2, 3, 4}));
  EXPECT_EQ(rows.values<int64_t>(2), (Ints{0, 0, 1}));
  ASSERT_EQ(texts.texts({"b", "a", "b"}, {3}).run("bevel.unique"), BEVEL_OK);
  EXPECT_EQ(texts.text(), (Texts{"a", "b"}));
}

TEST(PackedOps, NonMaxSuppression) { // "suppress by IOU" of the ONNX tests
  View boxes(Floats{0, 0,  1, 1,  0, 0.1f,  1, 1.1f,  0, -0.1f, 1, 0.9f,
                    0, 10, 1, 11, 0, 10.1f, 1, 11.1f, 0, 100,   1, 101},
             {1, 6, 4});
  View scores(Floats{0.9f, 0.75f, 0.6f, 0.95f, 0.5f, 0.3f}, {1, 1, 6});
  View<int64_t> three({3});
  View iou(Floats{0.5f}), threshold(Floats{0.4f});
  PackedCall c, few, noLimit;
  ASSERT_EQ(c.arg(boxes).arg(scores).arg(three).arg(iou).run("bevel.non_max_suppression"), BEVEL_OK);
  EXPECT_EQ(c.values<int64_t>(), (Ints{0, 0, 3, 0, 0, 0, 0, 0, 5}));
  ASSERT_EQ(few.arg(boxes).arg(scores).arg(three).arg(iou).arg(threshold).run("bevel.non_max_suppression"),
            BEVEL_OK);
  EXPECT_EQ(few.values<int64_t>(), (Ints{0, 0, 3, 0, 0, 0}));
  ASSERT_EQ(noLimit.arg(boxes).arg(scores).run("bevel.non_max_suppression"), BEVEL_OK);
  EXPECT_EQ(noLimit.shape(), (Ints{0, 3}));
  PackedCall wrong;
  EXPECT_EQ(wrong.arg(boxes).arg(boxes).run("bevel.non_max_suppression"), BEVEL_ERROR_REFUSED);
}

TEST(PackedOps, TextConcatAndEqualBroadcast) {
  PackedCall c, e, bad;
  ASSERT_EQ(c.texts({"a", "b"}, {2, 1}).texts({"x", "y", "z"}, {3}).run("bevel.text_concat"), BEVEL_OK);
  EXPECT_EQ(c.shape(), (Ints{2, 3}));
  EXPECT_EQ(c.text(), (Texts{"ax", "ay", "az", "bx", "by", "bz"}));
  ASSERT_EQ(e.texts({"a", "b"}, {2}).texts({"b"}, {}).run("bevel.text_equal"), BEVEL_OK);
  EXPECT_EQ(e.values<uint8_t>(), (std::vector<uint8_t>{0, 1}));
  EXPECT_EQ(bad.texts({"a", "b"}, {2}).texts({"b", "c", "d"}, {3}).run("bevel.text_equal"),
            BEVEL_ERROR_REFUSED);
}

TEST(PackedOps, TextSplit) {
  PackedCall dot, space, most, empty;
  ASSERT_EQ(dot.texts({"abc.com", "def.net.."}, {2}).arg(".").run("bevel.text_split"), BEVEL_OK);
  EXPECT_EQ(dot.shape(), (Ints{2, 4}));
  EXPECT_EQ(dot.text(), (Texts{"abc", "com", "", "", "def", "net", "", ""}));
  EXPECT_EQ(dot.values<int64_t>(1), (Ints{2, 4}));
  ASSERT_EQ(space.texts({" hello  world ", ""}, {2}).none().run("bevel.text_split"), BEVEL_OK);
  EXPECT_EQ(space.text(), (Texts{"hello", "world", "", ""}));
  EXPECT_EQ(space.values<int64_t>(1), (Ints{2, 0}));
  ASSERT_EQ(most.texts({"a b  c ", "o-n"}, {2}).none().arg(int64_t(1)).run("bevel.text_split"), BEVEL_OK);
  EXPECT_EQ(most.text(), (Texts{"a", "b  c", "o-n", ""}));
  ASSERT_EQ(empty.texts({}, {0}).none().run("bevel.text_split"), BEVEL_OK);
  EXPECT_EQ(empty.shape(), (Ints{0, 0}));
}

TEST(PackedOps, TextNormalize) {
  Texts days = {"monday", "Tuesday", "\xc3\xa9t\xc3\xa9"};
  PackedCall upper, insensitive, nothing;
  ASSERT_EQ(upper.texts(days, {3}).arg("UPPER").arg(int64_t(1)).arg("monday").run("bevel.text_normalize"),
            BEVEL_OK);
  EXPECT_EQ(upper.text(), (Texts{"TUESDAY", "\xc3\x89T\xc3\x89"}));
  ASSERT_EQ(
      insensitive.texts(days, {1, 3}).arg("NONE").arg(int64_t(0)).arg("TUESDAY").run("bevel.text_normalize"),
      BEVEL_OK);
  EXPECT_EQ(insensitive.text(), (Texts{"monday", "\xc3\xa9t\xc3\xa9"}));
  EXPECT_EQ(insensitive.shape(), (Ints{1, 2}));
  ASSERT_EQ(nothing.texts({"a"}, {1}).arg("LOWER").arg(int64_t(1)).arg("a").run("bevel.text_normalize"),
            BEVEL_OK);
  EXPECT_EQ(nothing.text(), Texts{""});
}

TEST(PackedOps, TextAndNumbers) {
  View x(Floats{0.5f, -3, NAN, INFINITY, 1e10f, 0.1f});
  View<uint64_t> u({UINT64_MAX});
  PackedCall f, i, back, bad;
  ASSERT_EQ(f.arg(x).run("bevel.number_to_text"), BEVEL_OK);
  EXPECT_EQ(f.text(), (Texts{"0.5", "-3", "NaN", "INF", "1e+10", "0.1"}));
  ASSERT_EQ(i.arg(u).run("bevel.number_to_text"), BEVEL_OK);
  EXPECT_EQ(i.text(), Texts{"18446744073709551615"});
  ASSERT_EQ(back.texts({"0.5", "1e-3", "-INF"}, {3}).arg("float32").run("bevel.text_to_number"), BEVEL_OK);
  EXPECT_EQ(back.values<float>(), (Floats{0.5f, 1e-3f, -INFINITY}));
  EXPECT_EQ(bad.texts({"five"}, {1}).arg("int64").run("bevel.text_to_number"), BEVEL_ERROR_REFUSED);
}
