// Inputs and outputs of a run on the host: tensors, lists, optional values; their files and their form in the
// run time.
#pragma once

#include "base/tensor.h"

#include <bevel/runtime.h>

#include <vector>

namespace bevel {

/// A tensor, a list of values (an ONNX sequence, a tuple), or nothing (an absent optional).
struct HostValue {
  Tensor tensor;
  bool isList = false;
  std::vector<HostValue> items = {};
  bool isNone() const { return !tensor && !isList; }
};

/// NumPy's `.npy`: little-endian, C or Fortran order; booleans, integers, floats (bfloat16 and the 8-bit
/// floats are written as their bits). Strings and objects are refused.
Result<Tensor> readNpy(const std::string& path);
Status writeNpy(const std::string& path, const TensorObject& tensor);

/// A file of ONNX test data: TensorProto, SequenceProto or OptionalProto by `kind` (BEVEL_PARAM_*).
Result<HostValue> readPb(const std::string& path, int32_t kind);
Status writePb(const std::string& path, const HostValue& value, int32_t kind, const std::string& name);

/// A file of either form, by its ending.
Result<HostValue> readValue(const std::string& path, int32_t kind);

/// A value of the run time, to be released by the caller.
Result<bevel_value> toRuntime(const HostValue& value);
/// A copy.
Result<HostValue> fromRuntime(const bevel_value& value);

DType fromRuntimeDtype(bevel_dtype dtype);
bevel_dtype toRuntimeDtype(DType dtype);

/// A tensor of zeros for an input; refused, with its size and the limit, where memory does not hold it.
Result<Ref<TensorObject>> inputTensor(DType dtype, const std::vector<int64_t>& shape);
/// Pseudo-random values of a shape: floats in [-1, 1), integers in [0, 10), booleans. The same for the same
/// seed everywhere. kInvalid for shapes that this machine's memory cannot hold.
Result<Tensor> randomTensor(DType dtype, const std::vector<int64_t>& shape, uint64_t& state);

} // namespace bevel
