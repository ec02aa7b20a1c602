// Reading of arguments and elements for the packed functions of the run time.
//
// Calling convention (that of legalised operators): tensors in the order of the operator's inputs, then its
// attributes in the order that each function states; integers, floats and text as scalars, lists of integers
// as int64 tensors, what is absent as BEVEL_NONE. One result as itself, several as a list.
#pragma once

#include "runtime/ops/table.h"
#include "runtime/tensor.h"

#include <vector>

namespace bevel::rt {

/// The arguments of one call.
class Args {
public:
  Args(const char* name, const bevel_value* args, int32_t count) : name_(name), args_(args), count_(count) {}

  bool has(int32_t i) const { return i < count_ && args_[i].kind != BEVEL_NONE; }
  /// A compact tensor; refused where it is absent or something else.
  Status tensor(int32_t i, Ref<Tensor>* tensor) const;
  /// An integer or a tensor of one; `otherwise` where absent.
  Status integer(int32_t i, int64_t otherwise, int64_t* value) const;
  Status number(int32_t i, double otherwise, double* value) const;
  Status text(int32_t i, const char* otherwise, std::string* value) const;
  /// An axis of a tensor of that rank, counted from the end where negative.
  Status axis(int32_t i, int64_t otherwise, int32_t rank, int32_t* axis) const;
  /// "topk: …".
  Status refuse(const char* what) const;

private:
  const char* name_;
  const bevel_value* args_;
  int32_t count_;
};

/// Elements as numbers that compare as the elements do: exact for every numeric dtype, NaN included.
class Keys {
public:
  /// Refuses text and complex numbers.
  static Status read(const Tensor& tensor, Keys* keys);
  /// a < b, with NaN above everything.
  bool less(int64_t a, int64_t b) const;
  double number(int64_t i) const;

private:
  enum class Class { kSigned, kUnsigned, kFloat } class_ = Class::kSigned;
  std::vector<int64_t> integers_;
  std::vector<double> floats_;
};

/// Copies one element between tensors of one dtype (text and sub-byte types too).
void copyElement(const Tensor& from, int64_t i, Tensor& to, int64_t j);

/// Element as a double: any dtype but text and complex.
double elementNumber(const Tensor& tensor, int64_t i);

/// Stores results.
Status give(bevel_value* result, Ref<Tensor> tensor);
Status give(bevel_value* result, std::initializer_list<Ref<Tensor>> tensors);

/// A tensor seen as [outer, extent, inner] around an axis.
struct AroundAxis {
  AroundAxis(const Tensor& tensor, int32_t axis);
  int64_t outer = 1, extent = 1, inner = 1;
};

std::vector<int64_t> shapeOf(const Tensor& tensor);

} // namespace bevel::rt
