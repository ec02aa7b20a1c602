/* Bevel's run time: loads compiled models and runs them. C API, C11 and C++.
 *
 *   bevel_model* model;                                          // shared by any number of threads
 *   bevel_instance* run;                                         // one for each thread
 *   if (bevel_model_load("model.so", &model)) die(bevel_last_error());
 *   if (bevel_instance_create(model, NULL, &run)) die(bevel_last_error());
 *   bevel_set_input(run, 0, &my_dltensor);                       // borrowed, not copied
 *   if (bevel_run(run)) die(bevel_last_error());
 *   const DLTensor* y = bevel_output(run, 0);                    // valid until the next run
 *   bevel_instance_release(run); bevel_model_release(model);
 *
 * Every function that can fail returns a bevel_status (0: success) and leaves a message for bevel_last_error.
 * Handles are counted: release each one that you got from create, load, new or retain. A handle argument must
 * not be null unless it is said. A model may be used by many threads at once; an instance by one at a time.
 */
#ifndef BEVEL_RUNTIME_H_
#define BEVEL_RUNTIME_H_

#include "abi/bytecode.h"

#include <stddef.h>

#if defined(_WIN32)
#define BEVEL_API
#else
#define BEVEL_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct bevel_model bevel_model;
typedef struct bevel_instance bevel_instance;
typedef struct bevel_pool bevel_pool;

/* ---- Errors and versions ---- */

/* Why the last call on this thread that failed did so. Never null; valid until the next failing call. */
BEVEL_API const char* bevel_last_error(void);
/* Version of the library, such as "0.1.0". */
BEVEL_API const char* bevel_version(void);
/* BEVEL_ABI_VERSION of the library; images of another version are refused. */
BEVEL_API uint32_t bevel_abi_version(void);

/* ---- Models ---- */

/* Loads a model library (it exports `bevel_image_v1`). A weights file is looked for beside it. */
BEVEL_API int32_t bevel_model_load(const char* path, bevel_model** model);
/* From an image that is linked into the program or was made in memory. The image must outlive the model.
 * `directory` is where its weights file lies; null: the current one. */
BEVEL_API int32_t bevel_model_from_image(const bevel_image* image, const char* directory,
                                         bevel_model** model);
BEVEL_API void bevel_model_retain(bevel_model* model);
BEVEL_API void bevel_model_release(bevel_model* model);

/* What the kernels were compiled for. */
BEVEL_API const char* bevel_model_target(const bevel_model* model);
/* Public functions; 0 is the model's main one. */
BEVEL_API int32_t bevel_model_num_functions(const bevel_model* model);
BEVEL_API const char* bevel_model_function_name(const bevel_model* model, int32_t function);
/* Index of a public function, or -1. */
BEVEL_API int32_t bevel_model_find_function(const bevel_model* model, const char* name);
BEVEL_API int32_t bevel_model_num_inputs(const bevel_model* model, int32_t function);
BEVEL_API int32_t bevel_model_num_outputs(const bevel_model* model, int32_t function);

/* An input or an output. Pointers live as long as the model. */
typedef struct bevel_param {
  const char* name;
  int32_t kind; /* BEVEL_PARAM_* */
  bevel_dtype dtype;
  int32_t rank;                 /* -1: unknown */
  const int64_t* dims;          /* -1 where not constant */
  const char* const* dim_names; /* null where constant or unnamed */
  int32_t has_default;          /* 1: may be left unset */
} bevel_param;
BEVEL_API int32_t bevel_model_input(const bevel_model* model, int32_t function, int32_t index,
                                    bevel_param* param);
BEVEL_API int32_t bevel_model_output(const bevel_model* model, int32_t function, int32_t index,
                                     bevel_param* param);

/* ---- Running ---- */

/* Runs run(arg, i) for every 0 <= i < n, at once on up to n threads of the caller's, and returns when all are
 * done. Each i runs to its end without waiting for another, so fewer threads than n are fine. */
typedef void (*bevel_parallel)(void* user, int32_t n, void (*run)(void* arg, int32_t i), void* arg);

typedef struct bevel_options {
  uint32_t size;       /* sizeof(bevel_options): set it, all else may be 0 */
  int32_t num_threads; /* 0: as many as the process has processors; with `pool`: at most the pool's */
  bevel_pool*
      pool; /* null: an own pool. A pool that is busy with another instance's loop is not waited for. */
  bevel_parallel parallel; /* null, or the caller's threads: no pool is made */
  void* parallel_user;
  int32_t profile; /* 1: measure each call, see bevel_profile_row */
} bevel_options;

/* `options` may be null. */
BEVEL_API int32_t bevel_instance_create(bevel_model* model, const bevel_options* options,
                                        bevel_instance** instance);
BEVEL_API void bevel_instance_release(bevel_instance* instance);

/* Chooses the function that the calls below mean; at first it is 0. Forgets inputs and outputs. */
BEVEL_API int32_t bevel_select_function(bevel_instance* instance, int32_t function);
/* Sets an input for the runs to come. The data is borrowed: it must stay valid and may change between runs.
 * It is read in place where compact in row-major order and aligned to its element, and copied at each run
 * otherwise. `tensor` null: back to unset. */
BEVEL_API int32_t bevel_set_input(bevel_instance* instance, int32_t index, const DLTensor* tensor);
/* The same with a value of any kind (lists, text, BEVEL_NONE for an absent optional), of which a reference is
 * kept. */
BEVEL_API int32_t bevel_set_input_value(bevel_instance* instance, int32_t index, const bevel_value* value);
/* Gives memory of the caller's for an output: dtype and shape must be what the run yields. Any strides. It may
 * overlap an input's (then the outputs are computed elsewhere and copied at the end), not another output's.
 * `tensor` null: the runtime allocates, as at first. */
BEVEL_API int32_t bevel_set_output(bevel_instance* instance, int32_t index, const DLTensor* tensor);
/* Refused, as is all that changes an instance, while it runs: in a packed function that the run calls. */
BEVEL_API int32_t bevel_run(bevel_instance* instance);
/* An output of the last run, which must have succeeded: null where there is none or it is no tensor.
 * Valid until the next run. */
BEVEL_API const DLTensor* bevel_output(bevel_instance* instance, int32_t index);
/* The same as a value with a reference of its own, valid after the next run too. */
BEVEL_API int32_t bevel_output_value(bevel_instance* instance, int32_t index, bevel_value* value);

/* Calls a function in one go. Arguments are borrowed (BEVEL_VIEW allowed), results owned by the caller. */
BEVEL_API int32_t bevel_call(bevel_instance* instance, int32_t function, const bevel_value* args,
                             int32_t num_args, bevel_value* results, int32_t num_results);

/* ---- Threads ---- */

/* A pool of num_threads - 1 threads and the one that calls. 0: as many as the process has processors. */
BEVEL_API int32_t bevel_pool_create(int32_t num_threads, bevel_pool** pool);
BEVEL_API void bevel_pool_release(bevel_pool* pool); /* instances keep theirs alive */

/* ---- Profile ---- */

typedef struct bevel_profile_entry {
  const char* function; /* that contains the call */
  const char* callee;   /* kernel, builtin or packed function */
  const char* origins;  /* ONNX nodes, separated by ';'; "" where unknown */
  int32_t kind;         /* BEVEL_CALLEE_* */
  int32_t num_dims;     /* of a kernel */
  const int64_t* dims;  /* at its last call */
  uint64_t calls;
  uint64_t nanoseconds;                /* sum over the calls */
  double flops, bytes;                 /* of one call; negative: unknown */
  const char *flops_text, *bytes_text; /* over the dims, as "d0 * d1 * 64"; "" where constant or unknown */
} bevel_profile_entry;
/* One row a call site that ran, in the order of the code. */
BEVEL_API int32_t bevel_profile_num_rows(bevel_instance* instance);
BEVEL_API int32_t bevel_profile_row(bevel_instance* instance, int32_t row, bevel_profile_entry* entry);
BEVEL_API void bevel_profile_reset(bevel_instance* instance);

/* Bytes that the instance holds: arenas, workspaces, outputs of the last run. */
BEVEL_API uint64_t bevel_instance_memory(const bevel_instance* instance);

/* ---- Packed functions ---- */

/* Registers a function of the host's under a name, for all models of the process. `deleter` (may be null)
 * gets `self` once nothing can call the function any more. Refused where the name is taken, unless
 * `override`. */
BEVEL_API int32_t bevel_register_packed(const char* name, bevel_packed function, void* self,
                                        void (*deleter)(void* self), int32_t override_existing);
BEVEL_API int32_t bevel_unregister_packed(const char* name);
/* Calls one from the host. */
BEVEL_API int32_t bevel_call_packed(const char* name, const bevel_value* args, int32_t num_args,
                                    bevel_value* result);
/* Reports a failure from inside a packed function: return what it returns. */
BEVEL_API int32_t bevel_fail(int32_t status, const char* message);

/* ---- Values ---- */

BEVEL_API void bevel_retain(const bevel_value* value);
/* Gives the reference back and sets the value to BEVEL_NONE. */
BEVEL_API void bevel_release(bevel_value* value);

/* A tensor with memory of its own, 64-byte aligned, contents undefined (text: all empty). */
BEVEL_API int32_t bevel_tensor_new(bevel_dtype dtype, int32_t rank, const int64_t* shape,
                                   bevel_tensor** tensor);
/* Takes over a DLPack tensor without copying: its deleter is called when the last reference goes.
 * On failure it still belongs to the caller. */
BEVEL_API int32_t bevel_tensor_from_dlpack(DLManagedTensor* managed, bevel_tensor** tensor);
/* Shares the tensor's memory by DLPack. Text cannot be shared. */
BEVEL_API int32_t bevel_tensor_to_dlpack(bevel_tensor* tensor, DLManagedTensor** managed);
BEVEL_API const DLTensor* bevel_tensor_view(const bevel_tensor* tensor);
/* Bytes of a compact tensor; 0 for text; -1 where a size is negative or too large. */
BEVEL_API int64_t bevel_tensor_bytes(const DLTensor* tensor);
/* Element `index` (row-major) of a text tensor. The text is valid until it is set again or the tensor goes.
 */
BEVEL_API int32_t bevel_tensor_string(const bevel_tensor* tensor, int64_t index, const char** data,
                                      size_t* size);
BEVEL_API int32_t bevel_tensor_set_string(bevel_tensor* tensor, int64_t index, const char* data, size_t size);
BEVEL_API void bevel_tensor_release(bevel_tensor* tensor);

BEVEL_API int32_t bevel_string_new(const char* data, size_t size, bevel_value* value);
BEVEL_API int32_t bevel_string_get(const bevel_value* value, const char** data, size_t* size);

BEVEL_API int32_t bevel_list_new(bevel_value* value);
BEVEL_API int64_t bevel_list_size(const bevel_value* list);                            /* -1: no list */
BEVEL_API int32_t bevel_list_append(const bevel_value* list, const bevel_value* item); /* takes a reference */
BEVEL_API int32_t bevel_list_get(const bevel_value* list, int64_t index, bevel_value* item); /* borrowed */

#ifdef __cplusplus
}
#endif
#endif
