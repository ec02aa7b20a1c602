// TensorProto files: inputs and outputs of models, as the ONNX test data holds them.
#include "import/onnx.h"
#include "import/onnx_tensor.h"
#include "import/protozero_checked.h"

namespace bevel {

Result<Tensor> readOnnxTensor(const std::string& path) {
  BEVEL_TRY(auto file, MappedFile::open(path));
  std::string_view bytes(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size());
  auto proto = onnx::parseTensor(bytes);
  if (!proto) return fail(std::move(proto.error()).in(path));
  auto tensor = onnx::TensorSource(file, "").decode(*proto);
  if (!tensor) return fail(std::move(tensor.error()).in(path));
  return tensor;
}

std::string writeOnnxTensor(const TensorObject& tensor, const std::string& name) {
  std::string out;
  protozero::pbf_writer w(out);
  w.add_packed_int64(1, tensor.shape.begin(), tensor.shape.end());
  w.add_int32(2, onnx::dataTypeOf(tensor.dtype));
  for (const std::string& s : tensor.strings) w.add_bytes(6, s);
  w.add_string(8, name);
  if (!tensor.dtype.isString())
    w.add_bytes(9, reinterpret_cast<const char*>(tensor.bytes()), size_t(tensor.byteSize()));
  return out;
}

} // namespace bevel
