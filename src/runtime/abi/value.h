/* Values that cross the border between compiled code, packed functions and the host program. Plain C.
 *
 * A bevel_value is a tagged 16-byte cell. Numbers are held in place; tensors, strings, lists and objects are
 * handles with a reference count. Arguments are always borrowed: a function that keeps one calls bevel_retain
 * first. Results are always owned by who receives them, who calls bevel_release. */
#ifndef BEVEL_ABI_VALUE_H_
#define BEVEL_ABI_VALUE_H_

#include <dlpack/dlpack.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Element type: the layout and the codes of DLDataType. Lanes are always 1 for tensors of a model.
 * Types narrower than a byte are packed, the low bits first (as ONNX stores them): a tensor of n elements
 * takes (n * bits + 7) / 8 bytes. */
typedef DLDataType bevel_dtype;

enum {
  BEVEL_INT_CODE = 0,       /* int2, int4, int8, int16, int32, int64 */
  BEVEL_UINT_CODE = 1,      /* uint2, uint4, uint8, uint16, uint32, uint64 */
  BEVEL_FLOAT_CODE = 2,     /* float16, float32, float64 */
  BEVEL_BFLOAT_CODE = 4,    /* bfloat16 */
  BEVEL_COMPLEX_CODE = 5,   /* complex64, complex128 (bits counts both parts) */
  BEVEL_BOOL_CODE = 6,      /* bool, one byte an element, 0 or 1 */
  BEVEL_F8E4M3FN_CODE = 10, /* codes 7 to 17 as in DLPack 1.1 */
  BEVEL_F8E4M3FNUZ_CODE = 11,
  BEVEL_F8E5M2_CODE = 12,
  BEVEL_F8E5M2FNUZ_CODE = 13,
  BEVEL_F8E8M0_CODE = 14,
  BEVEL_F4E2M1_CODE = 17,
  BEVEL_STRING_CODE = 64 /* text; bits 0: elements are not bytes in memory, see bevel_tensor_string */
};

typedef enum {
  BEVEL_NONE = 0,   /* nothing: an absent optional */
  BEVEL_INT = 1,    /* i */
  BEVEL_FLOAT = 2,  /* f */
  BEVEL_TENSOR = 3, /* tensor */
  BEVEL_STRING = 4, /* string */
  BEVEL_LIST = 5,   /* list: a tuple or an ONNX sequence */
  BEVEL_OBJECT = 6, /* object: anything else that is counted, such as a storage */
  BEVEL_VIEW =
      7 /* view: a DLTensor that the caller keeps; only as an argument of ctx->call_packed and bevel_call */
} bevel_kind;

typedef struct bevel_tensor bevel_tensor; /* begins with its DLTensor: (const DLTensor*)tensor is valid */
typedef struct bevel_string bevel_string;
typedef struct bevel_list bevel_list;
typedef struct bevel_object bevel_object;

typedef struct bevel_value {
  int32_t kind; /* bevel_kind */
  int32_t reserved;
  union {
    int64_t i;
    double f;
    bevel_tensor* tensor;
    bevel_string* string;
    bevel_list* list;
    bevel_object* object;
    const DLTensor* view;
  } v;
} bevel_value;

/* Status codes of every function of the API, of kernels and of packed functions. 0 is success. */
typedef enum {
  BEVEL_OK = 0,
  BEVEL_ERROR_INTERNAL = 1, /* a bug in the runtime or in compiled code */
  BEVEL_ERROR_USAGE = 2,    /* a call that makes no sense: null handle, index out of range */
  BEVEL_ERROR_REFUSED = 3,  /* malformed image, or inputs that do not fit the model */
  BEVEL_ERROR_MEMORY = 4,   /* out of memory */
  BEVEL_ERROR_MISSING = 5   /* a file, symbol or packed function that is not there */
} bevel_status;

#ifdef __cplusplus
}
#endif
#endif
