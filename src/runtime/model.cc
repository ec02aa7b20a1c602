// Loading of models: from an image in memory, or from a library by dlopen.
#include "runtime/model.h"

#include <cstring>
#include <dlfcn.h>
#include <elf.h>

namespace bevel::rt {

Model::~Model() {
  constants.clear();
  if (library_) dlclose(library_);
}

Ref<Model> Model::fromImage(const bevel_image& image, const std::string& directory) {
  auto model = Ref<Model>::adopt(new Model);
  if (model->init(image, directory)) return {};
  return model;
}

/// Refuses a library that is shorter than its own headers say: what lies beyond the end of a mapped file is fatal to
/// touch. Everything else is dlopen's to judge.
static Status checkWhole(const char* path) {
  MappedFile file;
  if (file.open(path)) return BEVEL_OK; // dlopen says why
  Elf64_Ehdr header;
  if (file.size() < sizeof header)
    return fail(BEVEL_ERROR_REFUSED, "%s is no library: it is too short", path);
  memcpy(&header, file.data(), sizeof header);
  if (memcmp(header.e_ident, ELFMAG, SELFMAG) || header.e_ident[EI_CLASS] != ELFCLASS64) return BEVEL_OK;
  uint64_t size = file.size(), table = uint64_t(header.e_phnum) * sizeof(Elf64_Phdr);
  bool whole = header.e_phoff <= size && table <= size - header.e_phoff;
  for (uint32_t i = 0; whole && i < header.e_phnum; ++i) {
    Elf64_Phdr part;
    memcpy(&part, file.data() + header.e_phoff + i * sizeof part, sizeof part);
    whole = part.p_type != PT_LOAD || (part.p_offset <= size && part.p_filesz <= size - part.p_offset);
  }
  return whole ? Status(BEVEL_OK)
               : fail(BEVEL_ERROR_REFUSED, "%s is truncated: a part of the library is missing", path);
}

Ref<Model> Model::load(const char* path) {
  // dlopen searches the system's folders for names without a slash; a model is always a path.
  std::string file = strchr(path, '/') ? path : std::string("./") + path;
  if (checkWhole(file.c_str())) return {};
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    (void)fail(BEVEL_ERROR_MISSING, "cannot load %s", dlerror());
    return {};
  }
  auto model = Ref<Model>::adopt(new Model);
  model->library_ = library;
  auto* image = static_cast<const bevel_image*>(dlsym(library, "bevel_image_v1"));
  if (!image) {
    (void)fail(BEVEL_ERROR_REFUSED, "%s is not a compiled model: it exports no bevel_image_v1", path);
    return {};
  }
  if (model->init(*image, file.substr(0, file.rfind('/')))) return {};
  return model;
}

Status Model::init(const bevel_image& image, const std::string& directory) {
  if (image.size < sizeof(bevel_image))
    return fail(BEVEL_ERROR_REFUSED, "the model was compiled for an older runtime: compile it again");
  BEVEL_RT_TRY(readProgram(image.image, image.image_size, &program));
  if (image.num_kernels != program.kernels.size() || (image.num_kernels && !image.kernels))
    return fail(BEVEL_ERROR_REFUSED, "malformed image: it lists %zu kernels, %u are given",
                program.kernels.size(), image.num_kernels);
  kernels = {image.kernels, image.num_kernels};
  for (size_t i = 0; i < kernels.size(); ++i)
    if (!kernels[i] && program.targets[program.kernels[i].target].native)
      return fail(BEVEL_ERROR_MISSING, "kernel '%s' has no code", program.kernels[i].name);
  const char* weights;
  BEVEL_RT_TRY(findWeights(image, directory, &weights));
  BEVEL_RT_TRY(makeConstants(weights));
  for (const Function& f : program.functions)
    if (!f.isPrivate) publicFunctions.push_back(&f);
  return BEVEL_OK;
}

Status Model::findWeights(const bevel_image& image, const std::string& directory, const char** weights) {
  *weights = static_cast<const char*>(image.weights);
  uint64_t size = image.weights ? image.weights_size : 0;
  if (!image.weights && image.weights_file) {
    const char* name = image.weights_file;
    if (!*name || strchr(name, '/') || !strcmp(name, ".."))
      return fail(BEVEL_ERROR_REFUSED, "the weights file '%s' is not a file name beside the model", name);
    BEVEL_RT_TRY(weightsFile_.open((directory.empty() ? name : directory + "/" + name).c_str()));
    *weights = weightsFile_.data(), size = weightsFile_.size();
  }
  if (size < program.weightsSize)
    return fail(BEVEL_ERROR_REFUSED, "the model needs %llu bytes of weights, %llu are there",
                static_cast<unsigned long long>(program.weightsSize), static_cast<unsigned long long>(size));
  return BEVEL_OK;
}

/// Text constants: for each element a length and that many bytes.
static Status readTexts(const char* data, uint64_t size, Tensor& tensor) {
  for (std::string& text : tensor.storage->strings) {
    uint32_t length;
    if (size < sizeof length)
      return fail(BEVEL_ERROR_REFUSED, "malformed image: a text constant is truncated");
    memcpy(&length, data, sizeof length);
    data += sizeof length, size -= sizeof length;
    if (length > size) return fail(BEVEL_ERROR_REFUSED, "malformed image: a text constant is truncated");
    text.assign(data, length);
    data += length, size -= length;
  }
  return BEVEL_OK;
}

Status Model::makeConstants(const char* weights) {
  auto all = Storage::borrow(const_cast<char*>(weights), program.weightsSize);
  for (const ConstantInfo& c : program.constants) {
    int32_t rank = int32_t(c.dims.size());
    Ref<Tensor> tensor;
    if (isString(c.dtype)) {
      int64_t count = numElements(rank, c.dims.data());
      if (uint64_t(count) > c.size / sizeof(uint32_t))
        return fail(BEVEL_ERROR_REFUSED, "malformed image: a text constant is truncated");
      tensor = Tensor::make(c.dtype, rank, c.dims.data());
      if (tensor) BEVEL_RT_TRY(readTexts(weights + c.offset, c.size, *tensor));
    } else {
      tensor = Tensor::view(all, c.offset, c.dtype, rank, c.dims.data());
    }
    if (!tensor) return lastStatus();
    constants.push_back(std::move(tensor));
  }
  return BEVEL_OK;
}

} // namespace bevel::rt
