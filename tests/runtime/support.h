// Helpers of the runtime's tests: small models built by hand, with kernels written in C++.
#pragma once

#include "bevel/runtime.h"
#include "codegen/vm_image.h"

#include <cstdlib>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace bevel {

inline constexpr uint32_t kF32 = imageDtype(BEVEL_FLOAT_CODE, 32);
inline constexpr uint32_t kI64 = imageDtype(BEVEL_INT_CODE, 64);
inline constexpr uint32_t kBoolType = imageDtype(BEVEL_BOOL_CODE, 8);
inline constexpr uint32_t kText = imageDtype(BEVEL_STRING_CODE, 0);

/// An image under construction and what it becomes.
class TestModel {
public:
  ImageBuilder image{{.name = "test"}, "test"};

  ~TestModel() {
    bevel_model_release(model_);
    free(weights_);
  }

  uint32_t addKernel(KernelSpec spec, bevel_kernel function) {
    kernels_.push_back(function);
    return image.addKernel(spec);
  }

  /// The bevel_image; valid as long as this lives.
  const bevel_image& build() {
    block_ = image.finish();
    weights_ = aligned_alloc(64, (image.weightsSize() + 127) / 64 * 64);
    image.copyWeights(weights_);
    image_ = {sizeof(bevel_image), uint32_t(kernels_.size()),
              block_.data(),       block_.size() * 8,
              kernels_.data(),     weights_,
              image.weightsSize(), nullptr};
    return image_;
  }

  bevel_model* load() {
    EXPECT_EQ(bevel_model_from_image(&build(), nullptr, &model_), BEVEL_OK) << bevel_last_error();
    return model_;
  }

  std::vector<uint64_t>& block() { return block_; }

private:
  std::vector<bevel_kernel> kernels_;
  std::vector<uint64_t> block_;
  void* weights_ = nullptr;
  bevel_image image_ = {};
  bevel_model* model_ = nullptr;
};

/// An instance that goes at the end of its scope.
struct TestInstance {
  explicit TestInstance(bevel_model* model, int threads = 1, bool profile = false) {
    bevel_options options = {};
    options.size = sizeof options, options.num_threads = threads, options.profile = profile;
    EXPECT_EQ(bevel_instance_create(model, &options, &handle), BEVEL_OK) << bevel_last_error();
  }
  ~TestInstance() { bevel_instance_release(handle); }
  operator bevel_instance*() const { return handle; }
  bevel_instance* handle = nullptr;
};

/// A DLTensor over a vector.
template <class T> struct View {
  View(std::vector<T> d, std::vector<int64_t> s) : data(std::move(d)), shape(std::move(s)) {
    int code = std::is_same_v<T, float> || std::is_same_v<T, double> ? BEVEL_FLOAT_CODE
               : std::is_signed_v<T>                                 ? BEVEL_INT_CODE
                                                                     : BEVEL_UINT_CODE;
    tensor = {data.data(),
              {kDLCPU, 0},
              int(shape.size()),
              {uint8_t(code), uint8_t(8 * sizeof(T)), 1},
              shape.data(),
              nullptr,
              0};
  }
  explicit View(std::vector<T> d) : View(d, {int64_t(d.size())}) {}
  View(const View&) = delete;
  operator const DLTensor*() const { return &tensor; }
  bevel_value value() const {
    bevel_value v = {BEVEL_VIEW, 0, {}};
    v.v.view = &tensor;
    return v;
  }
  std::vector<T> data;
  std::vector<int64_t> shape;
  DLTensor tensor;
};

template <class T> std::vector<T> elements(const DLTensor* t) {
  if (!t) return {};
  int64_t n = 1;
  for (int i = 0; i < t->ndim; ++i) n *= t->shape[i];
  auto* data = reinterpret_cast<const T*>(static_cast<const char*>(t->data) + t->byte_offset);
  return std::vector<T>(data, data + n);
}

inline std::vector<int64_t> shapeOf(const DLTensor* t) {
  return {t->shape, t->shape + t->ndim};
}

inline bevel_value intValue(int64_t i) {
  bevel_value v = {BEVEL_INT, 0, {}};
  v.v.i = i;
  return v;
}

/// out[i] = a[i] + b[i] for i < dims[0].
inline int32_t addKernel(const bevel_ctx*, void* const* buffers, const int64_t* dims, void*) {
  auto *a = static_cast<const float*>(buffers[0]), *b = static_cast<const float*>(buffers[1]);
  auto* out = static_cast<float*>(buffers[2]);
  for (int64_t i = 0; i < dims[0]; ++i) out[i] = a[i] + b[i];
  return BEVEL_OK;
}

/// main(x: float32[n], y: float32[n]) = x + y.
inline void buildAdd(TestModel& m) {
  using namespace image;
  uint32_t add = m.addKernel({.name = "add", .numBuffers = 3, .numDims = 1, .flopsText = "n"}, addKernel);
  FunctionBuilder& f = m.image.addFunction("main");
  uint32_t x = f.addParam({.name = "x", .dtype = kF32, .dims = {"n"}});
  uint32_t y = f.addParam({.name = "y", .dtype = kF32, .dims = {"n"}});
  f.addResult({.name = "sum", .dtype = kF32, .dims = {"n"}});
  uint32_t n = f.newSlot();
  f.builtin("vm.match_shape", {reg(x), imm(0), imm(kF32), imm(1), imm(BEVEL_DIM_BIND), imm(n)});
  f.builtin("vm.match_shape", {reg(y), imm(1), imm(kF32), imm(1), imm(BEVEL_DIM_EQUAL_SLOT), imm(n)});
  uint32_t out = f.builtinTo("vm.alloc_output", {imm(0), imm(kF32), slot(n)});
  f.kernel(add, {reg(x), reg(y), reg(out), slot(n)}, "/Add_1");
  f.ret({reg(out)});
}

} // namespace bevel
