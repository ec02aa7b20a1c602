// A loaded model: program, kernels, weights. Immutable, shared by threads.
#pragma once

#include "runtime/mapped_file.h"
#include "runtime/program.h"
#include "runtime/tensor.h"

struct bevel_model {};

namespace bevel::rt {

class Model final : public Object, public bevel_model {
public:
  ~Model() override;
  /// Null on failure (the message is set). The image must outlive the model.
  static Ref<Model> fromImage(const bevel_image& image, const std::string& directory);
  static Ref<Model> load(const char* path);

  Program program;
  std::span<const bevel_kernel> kernels;
  std::vector<Ref<Tensor>> constants;
  std::vector<const Function*> publicFunctions;

private:
  Status init(const bevel_image& image, const std::string& directory);
  Status findWeights(const bevel_image& image, const std::string& directory, const char** weights);
  Status makeConstants(const char* weights);

  void* library_ = nullptr; // of dlopen
  MappedFile weightsFile_;
};

} // namespace bevel::rt
