// Writes images: see vm_image.h.
#include "codegen/vm_image.h"

#include <algorithm>
#include <cstring>

namespace bevel {

uint32_t FunctionBuilder::addParam(ParamSpec spec) {
  params_.push_back(std::move(spec));
  return newRegister();
}

void FunctionBuilder::addResult(ParamSpec spec) {
  results_.push_back(std::move(spec));
}

void FunctionBuilder::words(const Args& args) {
  for (const ImageArg& arg : args) {
    uint8_t kind = arg.kind;
    int64_t value = arg.integer;
    if (kind == BEVEL_ARG_INT && (value << 8 >> 8) != value) { // does not fit 56 bits
      value = int64_t(image_.addInts({&arg.integer, 1}));
      kind = BEVEL_ARG_WIDE;
    } else if (kind == BEVEL_ARG_FLOAT) {
      int64_t bits;
      memcpy(&bits, &arg.number, 8);
      value = int64_t(image_.addInts({&bits, 1}));
    } else if (kind == BEVEL_ARG_STRING) {
      value = image_.textAlways(arg.text);
    }
    code_.push_back(uint64_t(kind) | uint64_t(value) << 8);
  }
}

void FunctionBuilder::call(uint8_t kind, uint32_t index, const Args& args, uint32_t destination,
                           std::string_view origins) {
  code_.push_back(BEVEL_OP_CALL | uint64_t(args.size()) << 8 | uint64_t(destination) << 32);
  code_.push_back(kind | uint64_t(index) << 8 | uint64_t(image_.text(origins)) << 32);
  words(args);
  ++numInstructions_;
}

void FunctionBuilder::kernel(uint32_t kernel, const Args& args, std::string_view origins) {
  call(BEVEL_CALLEE_KERNEL, kernel, args, BEVEL_NO_REGISTER, origins);
}

void FunctionBuilder::packed(std::string_view name, const Args& args, uint32_t destination,
                             std::string_view origins) {
  call(BEVEL_CALLEE_PACKED, image_.packedIndex(name), args, destination, origins);
}

uint32_t FunctionBuilder::builtinTo(std::string_view name, const Args& args, std::string_view origins) {
  uint32_t destination = newRegister();
  packed(name, args, destination, origins);
  return destination;
}

void FunctionBuilder::function(uint32_t callee, const Args& args, uint32_t destination,
                               std::string_view origins) {
  call(BEVEL_CALLEE_FUNCTION, callee, args, destination, origins);
}

FunctionBuilder::Label FunctionBuilder::newLabel() {
  labels_.push_back(UINT32_MAX);
  return {uint32_t(labels_.size() - 1)};
}

void FunctionBuilder::bind(Label label) {
  labels_[label.id] = numInstructions_;
}

void FunctionBuilder::branchUnless(uint32_t condition, Label label) {
  code_.push_back(BEVEL_OP_BRANCH | uint64_t(condition) << 32);
  jumps_.push_back(code_.size());
  code_.push_back(label.id);
  ++numInstructions_;
}

void FunctionBuilder::jump(Label label) {
  code_.push_back(BEVEL_OP_JUMP);
  jumps_.push_back(code_.size());
  code_.push_back(label.id);
  ++numInstructions_;
}

void FunctionBuilder::ret(const Args& results) {
  code_.push_back(BEVEL_OP_RETURN | uint64_t(results.size()) << 8);
  words(results);
  ++numInstructions_;
}

ImageBuilder::ImageBuilder(const TargetSpec& target, std::string_view producer) {
  producer_ = text(producer); // not as an initialiser: it uses later members
  addTarget(target);
}

uint32_t ImageBuilder::addTarget(const TargetSpec& spec) {
  bevel_target_entry e = {};
  e.name = text(spec.name), e.device = spec.device, e.features = text(spec.features);
  e.code = bytes_.size(), e.code_size = spec.code.size();
  bytes_.insert(bytes_.end(), spec.code.begin(), spec.code.end());
  targets_.push_back(e);
  return uint32_t(targets_.size() - 1);
}

uint32_t ImageBuilder::textAlways(std::string_view s) {
  s = s.substr(0, s.find('\0')); // a zero byte ends text
  auto it = stringOffsets_.find(s);
  if (it != stringOffsets_.end()) return it->second;
  uint32_t offset = uint32_t(strings_.size());
  strings_.append(s);
  strings_.push_back('\0');
  stringOffsets_.emplace(s, offset);
  return offset;
}

uint32_t ImageBuilder::text(std::string_view s) {
  return s.empty() ? BEVEL_NO_STRING : textAlways(s);
}

uint32_t ImageBuilder::packedIndex(std::string_view name) {
  auto it = packedIndices_.find(name);
  if (it != packedIndices_.end()) return it->second;
  packed_.push_back(textAlways(name));
  return packedIndices_.emplace(name, uint32_t(packed_.size() - 1)).first->second;
}

uint64_t ImageBuilder::addInts(std::span<const int64_t> values) {
  ints_.insert(ints_.end(), values.begin(), values.end());
  return ints_.size() - values.size();
}

uint32_t ImageBuilder::addKernel(const KernelSpec& spec) {
  bevel_kernel_entry e = {};
  e.name = text(spec.name);
  e.flags = spec.dynamicWorkspace ? BEVEL_KERNEL_DYNAMIC_WORKSPACE : 0;
  e.num_buffers = spec.numBuffers, e.num_dims = spec.numDims;
  e.workspace_shared = spec.workspaceShared, e.workspace_per_thread = spec.workspacePerThread;
  e.target = spec.target;
  e.launch = spec.launch.empty() ? BEVEL_NO_LAUNCH : addInts(spec.launch);
  e.origins = text(spec.origins), e.flops_text = text(spec.flopsText), e.bytes_text = text(spec.bytesText);
  e.flops = spec.flops, e.bytes = spec.bytes;
  kernels_.push_back(e);
  return uint32_t(kernels_.size() - 1);
}

uint32_t ImageBuilder::addConstant(std::string_view name, uint32_t dtype, std::span<const int64_t> dims,
                                   std::span<const std::byte> bytes) {
  bevel_constant_entry e = {};
  e.name = text(name), e.dtype = dtype, e.rank = int32_t(dims.size());
  e.dims = addInts(dims);
  e.offset = (weightsSize_ + 63) / 64 * 64, e.size = bytes.size();
  weights_.push_back({e.offset, bytes});
  weightsSize_ = e.offset + e.size;
  constants_.push_back(e);
  return uint32_t(constants_.size() - 1);
}

FunctionBuilder& ImageBuilder::addFunction(std::string_view name) {
  functions_.push_back(std::unique_ptr<FunctionBuilder>(
      new FunctionBuilder(*this, std::string(name), uint32_t(functions_.size()))));
  return *functions_.back();
}

std::vector<std::span<const std::byte>> ImageBuilder::weightPieces() const {
  static const std::byte zeros[64] = {}; // gaps are shorter: offsets are the next multiples of 64
  std::vector<std::span<const std::byte>> out;
  uint64_t end = 0;
  for (const WeightPart& part : weights_) {
    if (part.offset > end) out.push_back({zeros, part.offset - end});
    out.push_back(part.bytes);
    end = part.offset + part.bytes.size();
  }
  return out;
}

void ImageBuilder::copyWeights(void* to) const {
  auto* at = static_cast<std::byte*>(to);
  for (std::span<const std::byte> piece : weightPieces()) at = std::copy(piece.begin(), piece.end(), at);
}

std::vector<std::byte> ImageBuilder::encodeTexts(std::span<const std::string> texts) {
  std::vector<std::byte> bytes;
  for (const std::string& t : texts) {
    uint32_t size = uint32_t(t.size());
    size_t at = bytes.size();
    bytes.resize(at + sizeof size + t.size());
    memcpy(bytes.data() + at, &size, sizeof size);
    memcpy(bytes.data() + at + sizeof size, t.data(), t.size());
  }
  return bytes;
}

bevel_param_entry ImageBuilder::paramEntry(const ParamSpec& spec) {
  bevel_param_entry e = {};
  e.name = text(spec.name), e.kind = spec.kind, e.dtype = spec.dtype;
  e.rank = spec.unknownRank ? -1 : int32_t(spec.dims.size());
  std::vector<int64_t> dims;
  for (const DimSpec& d : spec.dims) {
    if (d.extent >= 0)
      dims.push_back(d.extent);
    else
      dims.push_back(d.name.empty() ? -1 : -2 - int64_t(textAlways(d.name)));
  }
  e.dims = addInts(dims);
  e.default_constant = spec.defaultConstant;
  return e;
}

namespace {
/// The block while it grows: each section starts at a multiple of 8.
struct Block {
  std::vector<uint64_t> words;
  bevel_section add(const void* data, size_t count, size_t size) {
    bevel_section section = {words.size() * 8, count};
    words.resize(words.size() + (count * size + 7) / 8);
    if (count) memcpy(words.data() + section.offset / 8, data, count * size);
    return section;
  }
  template <class T> bevel_section add(const std::vector<T>& entries) {
    return add(entries.data(), entries.size(), sizeof(T));
  }
};
} // namespace

std::vector<uint64_t> ImageBuilder::finish() {
  std::vector<bevel_function_entry> functions;
  std::vector<bevel_param_entry> params;
  std::vector<uint64_t> code;
  for (auto& f : functions_) {
    bevel_function_entry e = {};
    e.name = textAlways(f->name_);
    e.flags = f->isPrivate_ ? BEVEL_FUNCTION_PRIVATE : 0;
    e.num_params = uint32_t(f->params_.size()), e.num_results = uint32_t(f->results_.size());
    e.first_param = params.size();
    for (const ParamSpec& spec : f->params_) params.push_back(paramEntry(spec));
    for (const ParamSpec& spec : f->results_) params.push_back(paramEntry(spec));
    e.num_registers = f->numRegisters_, e.num_slots = f->numSlots_;
    e.first_word = code.size(), e.num_words = f->code_.size();
    code.insert(code.end(), f->code_.begin(), f->code_.end());
    for (size_t at : f->jumps_) code[e.first_word + at] = f->labels_[f->code_[at]];
    functions.push_back(e);
  }
  Block block;
  block.words.resize((sizeof(bevel_image_header) + 7) / 8);
  bevel_image_header h = {};
  h.magic = BEVEL_IMAGE_MAGIC, h.abi_version = BEVEL_ABI_VERSION, h.header_size = sizeof h;
  h.producer = producer_, h.weights_size = weightsSize_;
  h.strings = block.add(strings_.data(), strings_.size(), 1);
  h.ints = block.add(ints_);
  h.functions = block.add(functions);
  h.params = block.add(params);
  h.targets = block.add(targets_);
  h.kernels = block.add(kernels_);
  h.packed = block.add(packed_);
  h.constants = block.add(constants_);
  h.code = block.add(code);
  h.bytes = block.add(bytes_);
  h.image_size = block.words.size() * 8;
  memcpy(block.words.data(), &h, sizeof h);
  return std::move(block.words);
}

} // namespace bevel
