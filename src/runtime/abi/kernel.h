/* The calling convention of compiled kernels: the same for JIT, ahead-of-time libraries, the tuner and
 * kernels written by hand in any language that speaks C. Plain C.
 *
 * A kernel holds no globals, never allocates, and reaches threads and packed functions only through its
 * context. */
#ifndef BEVEL_ABI_KERNEL_H_
#define BEVEL_ABI_KERNEL_H_

#include "value.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Grows when the layout of bevel_ctx, of the image or of the bytecode changes. */
#define BEVEL_ABI_VERSION 2

typedef struct bevel_ctx bevel_ctx;

/* Part [begin, end) of a parallel loop. `ctx` is the executing thread's own: its thread_id is this thread's.
 * Returns a bevel_status; the first failure is what parallel_for returns. */
typedef int32_t (*bevel_task)(const bevel_ctx* ctx, void* env, int64_t begin, int64_t end);

/* Field order and offsets are part of the ABI (offsets for 64-bit targets at the right). */
struct bevel_ctx {
  uint32_t size;       /*  0  sizeof(bevel_ctx) of the runtime: later fields are appended */
  int32_t thread_id;   /*  4  0 <= thread_id < num_threads */
  int32_t num_threads; /*  8  threads that may run parts of a loop; >= 1 */
  int32_t reserved;    /* 12 */
  /* 16  Runs task over [0, n): with P = min(n, num_threads), thread t < P gets [n*t/P, n*(t+1)/P), and the
   * call returns when all are done. Inside a task it runs inline: one part on the calling thread. */
  int32_t (*parallel_for)(const bevel_ctx* ctx, bevel_task task, void* env, int64_t n);
  /* 24  Calls the packed function registered as `name`. Arguments may be BEVEL_VIEW. `result` may be null. */
  int32_t (*call_packed)(const bevel_ctx* ctx, const char* name, const bevel_value* args, int32_t num_args,
                         bevel_value* result);
  /* 32  Records why the kernel is about to return a non-zero status; the first message of a run is kept. */
  void (*fail)(const bevel_ctx* ctx, const char* message);
  void* opaque; /* 40  the runtime's */
};

/* buffers:   data pointers of the inputs, then of the outputs, byte offsets applied, elements compact in
 *            row-major order
 * dims:      values of the kernel's symbolic dimensions, in the order of its table entry
 * workspace: shared + per_thread * num_threads bytes as the table entry (or the call) states, aligned to 64
 * bytes and with undefined contents; thread t owns [shared + per_thread * t, shared + per_thread * (t + 1)).
 *            per_thread should be a multiple of 64. Null where both are 0.
 * Returns a bevel_status. */
typedef int32_t (*bevel_kernel)(const bevel_ctx* ctx, void* const* buffers, const int64_t* dims,
                                void* workspace);

/* A packed function: any function of the host, found by name. `self` is what was registered with it.
 * Arguments are borrowed and never BEVEL_VIEW (views come wrapped as tensors that live as long as the call).
 * `result` starts as BEVEL_NONE; a value stored there passes its reference to the caller. */
typedef int32_t (*bevel_packed)(const bevel_ctx* ctx, void* self, const bevel_value* args, int32_t num_args,
                                bevel_value* result);

#ifdef __cplusplus
}
#endif
#endif
