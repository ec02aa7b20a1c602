/* The instructions of the virtual machine that runs graph functions: call, branch, jump, return. Plain C.
 *
 * A function works on registers (bevel_value each; arguments in the first ones, the rest BEVEL_NONE) and on a
 * shape heap of int64_t slots that hold the values of symbolic dimensions. Kernels compute, builtins ("vm.…")
 * handle tensors, packed functions are the user's. Code is a list of 64-bit words:
 *
 *   head        opcode | num_args << 8 | register << 32
 *   call        head (register: destination, or BEVEL_NO_REGISTER)
 *               word: callee kind | index << 8 | origins (string, or BEVEL_NO_STRING) << 32
 *               num_args argument words
 *   branch      head (register: condition), word: instruction to go to if the condition is false
 *               The condition is an integer or a tensor with one element; anything but 0 is true.
 *   jump        head, word: instruction to go to
 *   return      head, num_args argument words: the results
 *
 * Instructions are counted from the start of the function. Code must end with a jump or a return.
 * An argument word is kind | value << 8 with a signed 56-bit value.
 *
 * A kernel's arguments: its buffers (register, constant or heap), then its dims (integer or slot), then, with
 * BEVEL_KERNEL_DYNAMIC_WORKSPACE, the bytes shared and per thread (integer or slot).
 * A function call with one result puts it into the destination; with several or none, a list of them. */
#ifndef BEVEL_ABI_BYTECODE_H_
#define BEVEL_ABI_BYTECODE_H_

#include "image.h"

#define BEVEL_NO_REGISTER 0xffffffffu

enum { BEVEL_OP_CALL = 1, BEVEL_OP_BRANCH = 2, BEVEL_OP_JUMP = 3, BEVEL_OP_RETURN = 4 };

enum { BEVEL_CALLEE_KERNEL = 1, BEVEL_CALLEE_PACKED = 2 /* builtins too */, BEVEL_CALLEE_FUNCTION = 3 };

enum {
  BEVEL_ARG_NONE = 0,
  BEVEL_ARG_REGISTER = 1,
  BEVEL_ARG_INT = 2,    /* immediate */
  BEVEL_ARG_WIDE = 3,   /* integer from the ints section */
  BEVEL_ARG_FLOAT = 4,  /* double from the ints section */
  BEVEL_ARG_CONST = 5,  /* tensor of the constant table */
  BEVEL_ARG_STRING = 6, /* offset in the strings section */
  BEVEL_ARG_SLOT = 7,   /* the value of a slot of the shape heap */
  BEVEL_ARG_HEAP = 8    /* the shape heap itself, an int64 tensor [num_slots] */
};

/* Builtins. `dims…` are integers or slots, dtype is code | bits << 8 | lanes << 16 as an integer.
 *
 *   vm.match_shape(tensor, what, dtype, rank, code0, value0, …)
 *                                      dtype or rank -1: any. `what` names the tensor in the error: an integer
 *                                      is that parameter of the function, a string is shown as it is. Codes
 *                                      below, one pair a dim.
 *   vm.alloc_storage(bytes)            memory kept by the call site between runs, grown when needed
 *   vm.alloc_tensor(storage, offset, dtype, dims…)
 *                                      a view of the storage; storage none (and offset 0): memory of its own
 *   vm.alloc_output(index, dtype, dims…)
 *                                      the caller's tensor for result `index` where one was set, else as above
 *   vm.reshape(tensor, dims…)          view with the same elements
 *   vm.shape_of(tensor)                int64 tensor [rank]
 *   vm.make_shape(values…)             int64 tensor of integers and slots
 *   vm.load_slots(tensor, first, count)
 *                                      integer elements into slots
 *   vm.set_slot(slot, integer)         slot as an integer: its number
 *   vm.move(x)                         x
 *   vm.kill(registers…)                releases what they hold
 *   vm.tuple(x…)  vm.tuple_get(list, i)
 *   vm.check_equal(a, b, text)         the run fails with this message where integers differ */
enum {
  BEVEL_DIM_ANY = 0,       /* value ignored */
  BEVEL_DIM_EQUAL = 1,     /* must be value */
  BEVEL_DIM_BIND = 2,      /* slot[value] = extent */
  BEVEL_DIM_EQUAL_SLOT = 3 /* must be slot[value] */
};

#endif
