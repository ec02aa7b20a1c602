// Tensors and element types: sizes, DLPack in and out, strides, text.
#include "runtime/tensor.h"
#include "tests/runtime/support.h"

using namespace bevel;

TEST(Dtype, NamesAndSizes) {
  EXPECT_EQ(rt::dtypeName(rt::kFloat32), "float32");
  EXPECT_EQ(rt::dtypeName(rt::makeDtype(BEVEL_UINT_CODE, 4)), "uint4");
  EXPECT_EQ(rt::dtypeName(rt::makeDtype(BEVEL_BFLOAT_CODE, 16)), "bfloat16");
  EXPECT_EQ(rt::dtypeName(rt::makeDtype(BEVEL_F8E4M3FN_CODE, 8)), "float8_e4m3fn");
  EXPECT_EQ(rt::dtypeName(rt::makeDtype(BEVEL_F8E5M2FNUZ_CODE, 8)), "float8_e5m2fnuz");
  EXPECT_EQ(rt::dtypeName(rt::makeDtype(BEVEL_F8E8M0_CODE, 8)), "float8_e8m0fnu");
  EXPECT_EQ(rt::dtypeName(rt::kBool), "bool");
  EXPECT_EQ(rt::dtypeName(rt::kString), "string");
  EXPECT_FALSE(rt::isValidDtype({BEVEL_FLOAT_CODE, 32, 4}));
  EXPECT_FALSE(rt::isValidDtype({BEVEL_FLOAT_CODE, 7, 1}));
  EXPECT_FALSE(rt::isValidDtype({200, 8, 1}));
  int64_t shape[] = {3, 5}, negative[] = {3, -1}, huge[] = {INT64_MAX, 2}, hugeEmpty[] = {INT64_MAX, 2, 0};
  EXPECT_EQ(rt::numBytes(rt::makeDtype(BEVEL_INT_CODE, 4), 2, shape), 8) << "15 nibbles";
  EXPECT_EQ(rt::numBytes(rt::makeDtype(BEVEL_INT_CODE, 2), 2, shape), 4);
  EXPECT_EQ(rt::numBytes(rt::kFloat32, 2, shape), 60);
  EXPECT_EQ(rt::numBytes(rt::kFloat32, 0, nullptr), 4);
  EXPECT_EQ(rt::numBytes(rt::kFloat32, 2, negative), -1);
  EXPECT_EQ(rt::numBytes(rt::kFloat32, 2, huge), -1);
  EXPECT_EQ(rt::numBytes(rt::kFloat32, 3, hugeEmpty), 0);
}

TEST(Tensor, GoesOutAndComesBackByDlpack) {
  int64_t shape[] = {2, 3};
  bevel_tensor* tensor;
  ASSERT_EQ(bevel_tensor_new({BEVEL_FLOAT_CODE, 32, 1}, 2, shape, &tensor), BEVEL_OK);
  const DLTensor* view = bevel_tensor_view(tensor);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(view->data) % 64, 0u);
  EXPECT_EQ(view->strides[0], 3);
  auto* data = static_cast<float*>(view->data);
  for (int i = 0; i < 6; ++i) data[i] = float(i);
  DLManagedTensor* managed;
  ASSERT_EQ(bevel_tensor_to_dlpack(tensor, &managed), BEVEL_OK);
  bevel_tensor_release(tensor); // the exchange keeps it alive
  EXPECT_EQ(managed->dl_tensor.data, data);
  bevel_tensor* back;
  ASSERT_EQ(bevel_tensor_from_dlpack(managed, &back), BEVEL_OK) << bevel_last_error();
  EXPECT_EQ(bevel_tensor_view(back)->data, data);
  EXPECT_EQ(elements<float>(bevel_tensor_view(back)), (std::vector<float>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(bevel_tensor_bytes(bevel_tensor_view(back)), 24);
  bevel_tensor_release(back);
}

TEST(Tensor, CallsTheDeleterOfWhatItTookOver) {
  static int deleted;
  deleted = 0;
  float data[4] = {1, 2, 3, 4};
  int64_t shape[] = {3};
  DLManagedTensor managed = {};
  managed.dl_tensor = {data, {kDLCPU, 0}, 1, {BEVEL_FLOAT_CODE, 32, 1}, shape, nullptr, 4};
  managed.deleter = [](DLManagedTensor*) { ++deleted; };
  bevel_tensor* tensor;
  ASSERT_EQ(bevel_tensor_from_dlpack(&managed, &tensor), BEVEL_OK);
  EXPECT_EQ(elements<float>(bevel_tensor_view(tensor)), (std::vector<float>{2, 3, 4}))
      << "byte offset applied";
  bevel_value value = {BEVEL_TENSOR, 0, {}};
  value.v.tensor = tensor;
  bevel_retain(&value);
  bevel_tensor_release(tensor);
  EXPECT_EQ(deleted, 0);
  bevel_release(&value);
  EXPECT_EQ(deleted, 1);
  managed.dl_tensor.dtype.lanes = 4;
  EXPECT_EQ(bevel_tensor_from_dlpack(&managed, &tensor), BEVEL_ERROR_REFUSED);
  managed.dl_tensor.dtype.lanes = 1, managed.dl_tensor.device.device_type = kDLCUDA;
  EXPECT_EQ(bevel_tensor_from_dlpack(&managed, &tensor), BEVEL_ERROR_REFUSED);
  EXPECT_EQ(deleted, 1) << "what was refused still belongs to the caller";
}

TEST(Tensor, CopiesStrides) {
  std::vector<int32_t> data(24);
  for (int i = 0; i < 24; ++i) data[size_t(i)] = i;
  int64_t shape[] = {4, 3, 2}, strides[] = {1, 4, 12}; // axes reversed
  DLTensor from = {data.data(), {kDLCPU, 0}, 3, rt::kInt32, shape, strides, 0};
  auto compact = rt::makeCompact(rt::Tensor::borrow(from));
  ASSERT_TRUE(compact);
  for (int i = 0, at = 0; i < 4; ++i)
    for (int j = 0; j < 3; ++j)
      for (int k = 0; k < 2; ++k, ++at) EXPECT_EQ(compact->data<int32_t>()[at], i + 4 * j + 12 * k);
  std::vector<int32_t> back(24);
  DLTensor to = from;
  to.data = back.data();
  ASSERT_EQ(rt::copyStrided(compact->dl, to), BEVEL_OK);
  EXPECT_EQ(back, data);
  int64_t zeros[] = {0, 0, 0}, negative[] = {-6, -2, -1};
  from.strides = zeros; // a broadcast scalar
  auto broadcast = rt::makeCompact(rt::Tensor::borrow(from));
  EXPECT_EQ(std::vector<int32_t>(broadcast->data<int32_t>(), broadcast->data<int32_t>() + 24),
            std::vector<int32_t>(24, 0));
  from.strides = negative, from.data = data.data() + 23;
  auto reversed = rt::makeCompact(rt::Tensor::borrow(from));
  for (int i = 0; i < 24; ++i) EXPECT_EQ(reversed->data<int32_t>()[i], 23 - i);
}

TEST(Tensor, AlignsWhatIsNotAligned) {
  alignas(8) char bytes[16] = {};
  int64_t shape[] = {2};
  DLTensor odd = {bytes + 1, {kDLCPU, 0}, 1, rt::kFloat32, shape, nullptr, 0};
  auto aligned = rt::makeCompact(rt::Tensor::borrow(odd));
  EXPECT_NE(aligned->dl.data, bytes + 1);
  odd.data = bytes + 4;
  EXPECT_EQ(rt::makeCompact(rt::Tensor::borrow(odd))->dl.data, bytes + 4);
}

TEST(Tensor, HoldsText) {
  int64_t shape[] = {2, 2};
  bevel_tensor* tensor;
  ASSERT_EQ(bevel_tensor_new({BEVEL_STRING_CODE, 0, 1}, 2, shape, &tensor), BEVEL_OK);
  ASSERT_EQ(bevel_tensor_set_string(tensor, 3, "a\0b", 3), BEVEL_OK);
  const char* data;
  size_t size;
  ASSERT_EQ(bevel_tensor_string(tensor, 3, &data, &size), BEVEL_OK);
  EXPECT_EQ(std::string(data, size), std::string("a\0b", 3));
  EXPECT_EQ(bevel_tensor_set_string(tensor, 4, "", 0), BEVEL_ERROR_USAGE);
  DLManagedTensor* managed;
  EXPECT_EQ(bevel_tensor_to_dlpack(tensor, &managed), BEVEL_ERROR_REFUSED);
  bevel_tensor_release(tensor);
  bevel_value text;
  ASSERT_EQ(bevel_string_new("xyz", 3, &text), BEVEL_OK);
  ASSERT_EQ(bevel_string_get(&text, &data, &size), BEVEL_OK);
  EXPECT_EQ(std::string(data, size), "xyz");
  bevel_release(&text);
  EXPECT_EQ(text.kind, BEVEL_NONE);
}

TEST(Tensor, RefusesSizesThatCannotBe) {
  bevel_tensor* tensor;
  int64_t huge[] = {int64_t(1) << 40, int64_t(1) << 40}, negative[] = {-3}, large[] = {int64_t(1) << 55};
  EXPECT_EQ(bevel_tensor_new({BEVEL_FLOAT_CODE, 32, 1}, 2, huge, &tensor), BEVEL_ERROR_REFUSED);
  EXPECT_EQ(bevel_tensor_new({BEVEL_FLOAT_CODE, 32, 1}, 1, negative, &tensor), BEVEL_ERROR_REFUSED);
  EXPECT_NE(bevel_tensor_new({BEVEL_FLOAT_CODE, 32, 1}, 1, large, &tensor), BEVEL_OK);
  EXPECT_EQ(tensor, nullptr);
  EXPECT_NE(bevel_tensor_new({BEVEL_FLOAT_CODE, 5, 1}, 0, nullptr, &tensor), BEVEL_OK);
}
