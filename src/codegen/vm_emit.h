// Graph functions with explicit memory (planMemory) to the bytecode of the virtual machine.
//
//   storage = R.memory.alloc_storage(R.shape([1024]))    →    r2 = vm.alloc_storage(1024)
//   lv = R.memory.alloc_tensor(storage, 0, R.shape([n, 4]))   r3 = vm.alloc_tensor(r2, 0, float32, slot 0, 4)
//   _ = cls.add(x, y, lv)                                     kernel 0 (r0, r1, r3, slot 0)
//   return lv                                                 return r3
//
// 1. Every graph variable is a register.
// 2. Every symbolic dimension is a slot of the function's shape heap: parameters and match_casts bind them by
//    vm.match_shape.
// 3. Other expressions over dimensions get slots of their own; all those that become computable at one point
//    are computed there by one small kernel over the heap.
#pragma once

#include "codegen/llvm.h"
#include "codegen/vm_image.h"

namespace bevel {

/// An image and the kernels that its table names, in the order of that table. `keep` holds the tensors whose
/// bytes the image builder refers to.
struct VmProgram {
  std::unique_ptr<ImageBuilder> image;
  std::vector<KernelSource> kernels; // lowered
  std::vector<Tensor> keep;
};

/// The module's graph functions as an image. Its tensor programs must be lowered (loop/lower.h); those that
/// nothing calls are left out. kInternal for forms that planMemory does not make, kUnsupported for operators
/// without a run-time form.
Result<VmProgram> emitVm(const Module& module, const Target& target);

/// Number of values that a graph function of this result type returns: the fields of a tuple, else one.
size_t numResults(const Type& type);

/// Name `i` of the list under that key ("input_names", "output_names"), or `otherwise`.
std::string listedName(const Dict& attrs, const char* key, size_t i, std::string otherwise);

} // namespace bevel
