// Bounded access to the sections of an image.
#pragma once

#include "runtime/program.h"

namespace bevel::rt {

/// The sections, each checked to lie inside the image; strings checked to end.
struct ImageView {
  const bevel_image_header* header = nullptr;
  std::span<const char> strings;
  std::span<const int64_t> ints;
  std::span<const bevel_function_entry> functions;
  std::span<const bevel_param_entry> params;
  std::span<const bevel_target_entry> targets;
  std::span<const bevel_kernel_entry> kernels;
  std::span<const uint32_t> packed;
  std::span<const bevel_constant_entry> constants;
  std::span<const uint64_t> code;
  std::span<const char> bytes;

  Status open(const void* image, uint64_t size);
  /// Text at an offset; "" for BEVEL_NO_STRING; refused beyond the section.
  Status string(uint32_t offset, const char** text) const;
  /// `rank` entries of ints from `first`.
  Status dims(uint64_t first, int32_t rank, std::span<const int64_t>* dims) const;
};

/// Decodes the words of one function (its registers, slots and parameters are filled in already).
Status decodeCode(const ImageView& image, std::span<const uint64_t> words, Program& program,
                  Function& function);

/// Constants lie at multiples of this in the weights.
inline constexpr uint64_t kConstantAlignment = 64;

/// "malformed image: …".
Status malformed(const char* what);

} // namespace bevel::rt
