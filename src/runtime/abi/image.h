/* The serialised Executable: what the compiler hands to the runtime, in memory (JIT) or inside a library.
 * Plain C.
 *
 * An image is one block of bytes: bevel_image_header, then tables. Everything is little-endian, offsets count
 * from the start of the block and are multiples of 8. The runtime checks every offset, count and index when
 * it loads an image. Text is referred to by its offset in the strings section, where each string ends with a
 * zero byte; BEVEL_NO_STRING means none.
 *
 * Kernels stand in sections by target (bevel_target_entry). Those of a CPU are native code outside the block,
 * found through bevel_image.kernels; code for other devices lies in the block as bytes, and each of its kernels
 * says how many threads run it. A section that a machine cannot run is skipped: the image is refused only
 * where a function calls one of its kernels. */
#ifndef BEVEL_ABI_IMAGE_H_
#define BEVEL_ABI_IMAGE_H_

#include "kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

#define BEVEL_IMAGE_MAGIC 0x474d494c45564542ull /* "BEVELIMG" */
#define BEVEL_NO_STRING 0xffffffffu
#define BEVEL_NO_CONSTANT 0xffffffffu
#define BEVEL_NO_LAUNCH 0xffffffffffffffffull

typedef struct bevel_section {
  uint64_t offset;
  uint64_t count; /* of entries; bytes for strings, 8-byte words for code and ints */
} bevel_section;

typedef struct bevel_image_header {
  uint64_t magic;
  uint32_t abi_version;
  uint32_t header_size; /* sizeof(bevel_image_header) */
  uint64_t image_size;  /* of the whole block */
  uint32_t producer;    /* string: compiler version */
  uint32_t reserved;
  bevel_section strings;
  bevel_section ints;      /* int64_t: shapes, wide immediates; a double is stored by its bits */
  bevel_section functions; /* bevel_function_entry */
  bevel_section params;    /* bevel_param_entry */
  bevel_section targets;   /* bevel_target_entry; the first is what the model was compiled for */
  bevel_section kernels;   /* bevel_kernel_entry */
  bevel_section packed;    /* uint32_t strings: names of builtins ("vm.…") and of packed functions */
  bevel_section constants; /* bevel_constant_entry */
  bevel_section code;      /* uint64_t words, see bytecode.h */
  bevel_section bytes;     /* code of devices */
  uint64_t weights_size;   /* bytes that the weights must have at least */
} bevel_image_header;

enum { BEVEL_PARAM_TENSOR = 0, BEVEL_PARAM_LIST = 1, BEVEL_PARAM_OPTIONAL = 2, BEVEL_PARAM_ANY = 3 };

/* A parameter or a result of a function. */
typedef struct bevel_param_entry {
  uint32_t name;
  uint32_t kind;  /* BEVEL_PARAM_* */
  uint32_t dtype; /* code | bits << 8 | lanes << 16, of the tensor or of the list's tensors */
  int32_t rank;   /* -1: unknown */
  uint64_t dims;  /* index into ints of `rank` entries: >= 0 the extent; -1: unknown; -2 - s: symbolic, with
                   * string s its name or expression ("batch", "2*n + 1") */
  uint32_t default_constant; /* used where the caller passes nothing (ONNX initialisers that are inputs) */
  uint32_t reserved;
} bevel_param_entry;

enum { BEVEL_FUNCTION_PRIVATE = 1 /* not listed to users */ };

typedef struct bevel_function_entry {
  uint32_t name;
  uint32_t flags;
  uint32_t num_params, num_results;
  uint64_t first_param;           /* params first, then results, in the params section */
  uint32_t num_registers;         /* registers 0 … num_params - 1 hold the arguments on entry */
  uint32_t num_slots;             /* of the shape heap, all 0 on entry */
  uint64_t first_word, num_words; /* in the code section */
} bevel_function_entry;

typedef struct bevel_target_entry {
  uint32_t name;     /* string: what the section was compiled for, "x86-64-v3" */
  uint32_t device;   /* DLDeviceType: kDLCPU, … */
  uint32_t features; /* string: what its code needs of the processor, names of cpu_features.def with a space
                       * between ("avx2 fma") */
  uint32_t reserved;
  uint64_t code;      /* offset in the bytes section */
  uint64_t code_size; /* 0 for a CPU, and only there */
} bevel_target_entry;

/* The two numbers of a workspace come with each call instead (two more integer arguments, after the dims). */
enum { BEVEL_KERNEL_DYNAMIC_WORKSPACE = 1 };

typedef struct bevel_kernel_entry {
  uint32_t name; /* symbol; shown in the profile */
  uint32_t flags;
  uint32_t num_buffers, num_dims;
  uint64_t workspace_shared, workspace_per_thread; /* bytes */
  uint64_t launch;  /* BEVEL_NO_LAUNCH for a CPU; else index into ints of seven numbers: blocks along x, y, z,
                     * threads of a block along x, y, z (-1 - d: the value of dim d), bytes that a block shares */
  uint32_t target;  /* the section that holds it */
  uint32_t origins; /* string: ONNX node names, separated by ';' (call sites may say it more exactly) */
  uint32_t flops_text,
      bytes_text;      /* strings: work and memory traffic as expressions over the dims d0, d1, … */
  double flops, bytes; /* the same where constant; negative: unknown */
} bevel_kernel_entry;

typedef struct bevel_constant_entry {
  uint32_t name;
  uint32_t dtype; /* code | bits << 8 | lanes << 16 */
  int32_t rank;
  uint32_t reserved;
  uint64_t dims;   /* index into ints */
  uint64_t offset; /* into the weights, a multiple of 64 */
  uint64_t size;   /* bytes; text: for each element a uint32_t length and that many bytes */
} bevel_constant_entry;

/* What a model library exports as `bevel_image_v1`, what a model linked into a program is known by, and what
 * the JIT fills in: one path for all. All pointers must stay valid while the model is loaded. */
typedef struct bevel_image {
  uint32_t size; /* sizeof(bevel_image) */
  uint32_t num_kernels;
  const void* image; /* the block, 8-byte aligned */
  uint64_t image_size;
  const bevel_kernel* kernels; /* in the order of the kernel table; null for those of other devices */
  const void* weights;         /* 64-byte aligned; null where in a file or where there are none */
  uint64_t weights_size;
  const char* weights_file; /* null, or a file name beside the library: mapped, never read as a whole */
} bevel_image;

#ifdef __cplusplus
}
#endif
#endif
