// TensorProtos as host tensors: raw data is referenced where it lies, typed fields are decoded, external data
// is mapped.
#pragma once

#include "base/file.h"
#include "base/tensor.h"
#include "import/onnx_proto.h"

#include <map>

namespace bevel::onnx {

/// Element type, or nothing for what we do not hold (complex, undefined).
std::optional<DType> dtypeOf(int32_t dataType);
int32_t dataTypeOf(DType dtype);

/// Where tensor data may come from: the model's bytes, and files beside it.
class TensorSource {
public:
  /// `folder`: the model's; empty when there is none (external data is then refused).
  TensorSource(std::shared_ptr<const void> owner, std::string folder)
      : owner_(std::move(owner)), folder_(std::move(folder)) {}
  Result<Tensor> decode(const TensorProto& proto);
  /// A sparse tensor, made dense.
  Result<Tensor> decode(const SparseTensorProto& proto);

private:
  Result<Tensor> external(const TensorProto& proto, DType dtype, int64_t bytes);
  Result<std::shared_ptr<const MappedFile>> open(const std::string& location);
  std::shared_ptr<const void> owner_;
  std::string folder_;
  std::map<std::string, std::shared_ptr<const MappedFile>> files_;
};

} // namespace bevel::onnx
