// How a tensor program's parameters map to the arguments of its compiled kernel (runtime/abi/kernel.h).
#pragma once

#include "ir/graph.h"

namespace bevel {

/// Elements of the kernel's dims[] as i64, in order: the symbolic Vars of the parameters' buffers (shape,
/// then strides, then offset; buffer by buffer; first occurrence), then the scalar parameters. A Var that is
/// a scalar parameter counts only there. The same for a function before and after lowering. float scalar
/// parameters travel as the bits of a double.
Array<Var> kernelDims(const PrimFunc& f);
/// Positions (in f->params) of the handle parameters: the kernel's buffers[], in order.
std::vector<size_t> kernelBuffers(const PrimFunc& f);
/// Positions of the handle parameters that the function writes: from attribute "num_outputs" when present,
/// else found in the body.
std::vector<size_t> kernelOutputs(const PrimFunc& f);

/// Bytes of workspace that a lowered function needs: attributes "workspace_bytes" and
/// "workspace_per_thread_bytes" as int64 expressions over kernelDims(f) (a constant for static shapes);
/// constant 0 when absent.
Expr workspaceBytes(const PrimFunc& f);
Expr workspacePerThreadBytes(const PrimFunc& f);

} // namespace bevel
