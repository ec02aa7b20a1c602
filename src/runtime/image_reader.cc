// Reads the tables of an image. Images may be hostile: every offset, count and index is checked, and nothing
// that is allocated here is larger than a small multiple of the image.
#include "runtime/image_reader.h"

#include "runtime/cpu.h"
#include "runtime/device.h"
#include "runtime/dtype.h"

#include <cstring>

namespace bevel::rt {

static constexpr int32_t kMaxRank = 64;
static constexpr uint32_t kMaxSlots = 1u << 20;

Status malformed(const char* what) {
  return fail(BEVEL_ERROR_REFUSED, "malformed image: %s", what);
}

template <class T>
static Status section(const char* base, uint64_t size, bevel_section s, std::span<const T>* out) {
  if (s.offset % 8 || s.offset > size || s.count > (size - s.offset) / sizeof(T))
    return malformed("a section lies outside");
  *out = {reinterpret_cast<const T*>(base + s.offset), size_t(s.count)};
  return BEVEL_OK;
}

Status ImageView::open(const void* image, uint64_t size) {
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
  return fail(BEVEL_ERROR_REFUSED, "images are little-endian");
#endif
  if (!image || size < sizeof(bevel_image_header)) return malformed("shorter than its header");
  if (reinterpret_cast<uintptr_t>(image) % 8) return malformed("not aligned to 8 bytes");
  header = static_cast<const bevel_image_header*>(image);
  auto* base = static_cast<const char*>(image);
  if (header->magic != BEVEL_IMAGE_MAGIC) return malformed("not an image");
  if (header->abi_version != BEVEL_ABI_VERSION)
    return fail(BEVEL_ERROR_REFUSED,
                "the image has ABI version %u, this runtime has %d: compile the model again",
                header->abi_version, BEVEL_ABI_VERSION);
  if (header->header_size < sizeof(bevel_image_header) || header->image_size > size)
    return malformed("truncated");
  size = header->image_size;
  BEVEL_RT_TRY(section(base, size, header->strings, &strings));
  BEVEL_RT_TRY(section(base, size, header->ints, &ints));
  BEVEL_RT_TRY(section(base, size, header->functions, &functions));
  BEVEL_RT_TRY(section(base, size, header->params, &params));
  BEVEL_RT_TRY(section(base, size, header->targets, &targets));
  BEVEL_RT_TRY(section(base, size, header->kernels, &kernels));
  BEVEL_RT_TRY(section(base, size, header->packed, &packed));
  BEVEL_RT_TRY(section(base, size, header->constants, &constants));
  BEVEL_RT_TRY(section(base, size, header->code, &code));
  BEVEL_RT_TRY(section(base, size, header->bytes, &bytes));
  if (!strings.empty() && strings.back() != 0) return malformed("its text does not end");
  return BEVEL_OK;
}

Status ImageView::string(uint32_t offset, const char** text) const {
  *text = "";
  if (offset == BEVEL_NO_STRING) return BEVEL_OK;
  // No text lies within another: else a small image could name a large amount of it.
  if (offset >= strings.size() || (offset && strings[offset - 1]))
    return malformed("text outside of its section");
  *text = strings.data() + offset;
  return BEVEL_OK;
}

Status ImageView::dims(uint64_t first, int32_t rank, std::span<const int64_t>* dims) const {
  *dims = {};
  if (rank <= 0) return rank < -1 ? malformed("a negative rank") : BEVEL_OK;
  if (rank > kMaxRank) return malformed("a rank above 64");
  if (first > ints.size() || uint64_t(rank) > ints.size() - first)
    return malformed("a shape outside of its section");
  *dims = ints.subspan(size_t(first), size_t(rank));
  return BEVEL_OK;
}

std::string Param::describe() const {
  std::string text = kind == BEVEL_PARAM_LIST       ? "a list of "
                     : kind == BEVEL_PARAM_OPTIONAL ? "optional "
                                                    : "";
  if (kind == BEVEL_PARAM_ANY) return "any value";
  text += dtypeName(dtype) + "[";
  if (rank < 0) text += "...";
  for (size_t i = 0; i < dims.size(); ++i) {
    text += i ? ", " : "";
    text += dims[i] >= 0 ? std::to_string(dims[i]) : dimNames[i] && *dimNames[i] ? dimNames[i] : "?";
  }
  return text + "]";
}

static Status readParam(const ImageView& image, const bevel_param_entry& entry, Param& param) {
  BEVEL_RT_TRY(image.string(entry.name, &param.name));
  if (entry.kind > BEVEL_PARAM_ANY) return malformed("an unknown kind of parameter");
  param.kind = entry.kind;
  param.dtype = unpackDtype(entry.dtype);
  // What a list or an optional holds need not be known.
  bool typed = param.kind == BEVEL_PARAM_TENSOR || (param.kind != BEVEL_PARAM_ANY && entry.dtype);
  if (typed && !isValidDtype(param.dtype)) return malformed("an unknown dtype");
  param.rank = entry.rank;
  std::span<const int64_t> dims;
  BEVEL_RT_TRY(image.dims(entry.dims, entry.rank, &dims));
  for (int64_t d : dims) {
    const char* name = nullptr;
    if (d < -1) {
      if (d < -2 - int64_t(UINT32_MAX)) return malformed("a dimension's name");
      BEVEL_RT_TRY(image.string(uint32_t(-2 - d), &name));
    }
    param.dims.push_back(d >= 0 ? d : -1);
    param.dimNames.push_back(name);
  }
  if (entry.default_constant != BEVEL_NO_CONSTANT && entry.default_constant >= image.constants.size())
    return malformed("a default value outside of its table");
  param.defaultConstant = entry.default_constant;
  return BEVEL_OK;
}

static Status readTargets(const ImageView& image, Program& program) {
  if (image.targets.empty()) return malformed("no target");
  for (const bevel_target_entry& e : image.targets) {
    TargetInfo t;
    const char* features;
    BEVEL_RT_TRY(image.string(e.name, &t.name));
    BEVEL_RT_TRY(image.string(e.features, &features));
    t.native = e.device == kDLCPU;
    if (t.native != (e.code_size == 0)) return malformed("a section's code");
    if (e.code > image.bytes.size() || e.code_size > image.bytes.size() - e.code)
      return malformed("code outside of its section");
    std::string missing = missingFeatures(features);
    if (!findDevice(DLDeviceType(e.device)))
      t.refusal = "a device of type " + std::to_string(e.device) + ", which this run time does not have";
    else if (!missing.empty())
      t.refusal = missing + ", which this processor does not have: compile the model for a lesser target";
    program.targets.push_back(std::move(t));
  }
  return BEVEL_OK;
}

/// Extents of a device's kernel: constants, or dims of the call.
static Status checkLaunch(const ImageView& image, const bevel_kernel_entry& e) {
  constexpr size_t kExtents = 6; // and the bytes that are shared
  if (e.launch > image.ints.size() || image.ints.size() - e.launch <= kExtents)
    return malformed("a launch outside of its section");
  for (size_t i = 0; i <= kExtents; ++i) {
    int64_t n = image.ints[size_t(e.launch) + i];
    bool constant = n >= (i < kExtents ? 1 : 0) && n <= INT32_MAX;
    bool dim = i < kExtents && n < 0 && n >= -int64_t(e.num_dims);
    if (!constant && !dim) return malformed("the extents of a launch");
  }
  return BEVEL_OK;
}

static Status readKernels(const ImageView& image, Program& program) {
  for (const bevel_kernel_entry& e : image.kernels) {
    KernelInfo k;
    BEVEL_RT_TRY(image.string(e.name, &k.name));
    BEVEL_RT_TRY(image.string(e.origins, &k.origins));
    BEVEL_RT_TRY(image.string(e.flops_text, &k.flopsText));
    BEVEL_RT_TRY(image.string(e.bytes_text, &k.bytesText));
    if (e.target >= program.targets.size()) return malformed("a kernel of no section");
    k.target = e.target;
    if (!program.targets[k.target].native)
      BEVEL_RT_TRY(checkLaunch(image, e));
    else if (e.launch != BEVEL_NO_LAUNCH)
      return malformed("the launch of a CPU's kernel");
    if (e.workspace_shared > INT64_MAX / 2 || e.workspace_per_thread > INT64_MAX / 65536)
      return malformed("a workspace is too large");
    k.numBuffers = e.num_buffers, k.numDims = e.num_dims;
    k.dynamicWorkspace = e.flags & BEVEL_KERNEL_DYNAMIC_WORKSPACE;
    k.workspaceShared = e.workspace_shared, k.workspacePerThread = e.workspace_per_thread;
    k.flops = e.flops, k.bytes = e.bytes;
    program.kernels.push_back(k);
  }
  for (uint32_t name : image.packed) {
    const char* text;
    BEVEL_RT_TRY(image.string(name, &text));
    if (!strncmp(text, "vm.", 3) && !findBuiltin(text))
      return fail(BEVEL_ERROR_REFUSED, "malformed image: this runtime has no builtin '%s'", text);
    program.packed.push_back(text);
  }
  return BEVEL_OK;
}

static Status readConstants(const ImageView& image, Program& program) {
  program.weightsSize = image.header->weights_size;
  for (const bevel_constant_entry& e : image.constants) {
    ConstantInfo c;
    BEVEL_RT_TRY(image.string(e.name, &c.name));
    c.dtype = unpackDtype(e.dtype);
    if (!isValidDtype(c.dtype)) return malformed("a constant of unknown dtype");
    if (e.rank < 0) return malformed("a constant's rank");
    std::span<const int64_t> dims;
    BEVEL_RT_TRY(image.dims(e.dims, e.rank, &dims));
    c.dims.assign(dims.begin(), dims.end());
    c.offset = e.offset, c.size = e.size;
    int64_t bytes = numBytes(c.dtype, e.rank, c.dims.data());
    if (bytes < 0 || (!isString(c.dtype) && uint64_t(bytes) != c.size)) return malformed("a constant's size");
    if (c.offset % kConstantAlignment || c.offset > program.weightsSize ||
        c.size > program.weightsSize - c.offset)
      return malformed("a constant outside of the weights");
    program.constants.push_back(std::move(c));
  }
  return BEVEL_OK;
}

static Status readFunction(const ImageView& image, const bevel_function_entry& e, Program& program,
                           Function& f) {
  BEVEL_RT_TRY(image.string(e.name, &f.name));
  f.isPrivate = e.flags & BEVEL_FUNCTION_PRIVATE;
  uint64_t numParams = uint64_t(e.num_params) + e.num_results;
  if (e.first_param > image.params.size() || numParams > image.params.size() - e.first_param)
    return malformed("parameters outside of their table");
  f.params.resize(e.num_params);
  f.results.resize(e.num_results);
  for (size_t i = 0; i < numParams; ++i)
    BEVEL_RT_TRY(readParam(image, image.params[size_t(e.first_param) + i],
                           i < e.num_params ? f.params[i] : f.results[i - e.num_params]));
  // An instruction names one register at most and its arguments one each, so more registers than words are
  // none's.
  if (e.num_registers < e.num_params || e.num_registers > e.num_params + e.num_words ||
      e.num_slots > kMaxSlots)
    return malformed("a number of registers or slots");
  f.numRegisters = e.num_registers, f.numSlots = e.num_slots;
  if (e.first_word > image.code.size() || e.num_words > image.code.size() - e.first_word)
    return malformed("code outside of its section");
  return decodeCode(image, image.code.subspan(size_t(e.first_word), size_t(e.num_words)), program, f);
}

Status readProgram(const void* data, uint64_t size, Program* program) {
  ImageView image;
  BEVEL_RT_TRY(image.open(data, size));
  BEVEL_RT_TRY(image.string(image.header->producer, &program->producer));
  BEVEL_RT_TRY(readTargets(image, *program));
  BEVEL_RT_TRY(readKernels(image, *program));
  BEVEL_RT_TRY(readConstants(image, *program));
  // Functions share neither code nor parameters: else a small image could decode to a large program.
  uint64_t nextParam = 0, nextWord = 0;
  for (const bevel_function_entry& e : image.functions) {
    if (e.first_param < nextParam || e.first_word < nextWord) return malformed("functions overlap");
    program->functions.emplace_back();
    BEVEL_RT_TRY(readFunction(image, e, *program, program->functions.back()));
    nextParam = e.first_param + e.num_params + e.num_results;
    nextWord = e.first_word + e.num_words;
  }
  // Callees and argument counts of function calls can only be checked now that all functions are known.
  for (const Function& f : program->functions)
    for (const Instruction& in : f.code)
      if (in.op == BEVEL_OP_CALL && in.callee == BEVEL_CALLEE_FUNCTION &&
          (in.index >= program->functions.size() || program->functions[in.index].params.size() != in.numArgs))
        return malformed("a call of a function with other parameters");
  return BEVEL_OK;
}

} // namespace bevel::rt
