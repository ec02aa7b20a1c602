// See the header.
#include "loop/kernel_signature.h"

#include "ir/build.h"
#include "ir/structural.h"
#include "loop/regions.h"

namespace bevel {

Array<Var> kernelDims(const PrimFunc& f) {
  std::unordered_set<Var, RefHash> seen(f->params.begin(), f->params.end());
  for (const Buffer& b : f->buffers)
    if (b) seen.insert(b->data);
  Array<Var> dims;
  for (const Buffer& b : f->buffers)
    for (const NodeRef& v : freeVars(b))
      if (seen.insert(cast<VarNode>(v)).second) dims.push_back(cast<VarNode>(v));
  for (size_t i = 0; i < f->params.size(); ++i)
    if (!f->buffers[i] && !f->params[i]->dtype.isHandle()) dims.push_back(f->params[i]);
  return dims;
}

std::vector<size_t> kernelBuffers(const PrimFunc& f) {
  std::vector<size_t> out;
  for (size_t i = 0; i < f->params.size(); ++i)
    if (f->params[i]->dtype.isHandle()) out.push_back(i);
  return out;
}

std::vector<size_t> kernelOutputs(const PrimFunc& f) {
  std::vector<size_t> handles = kernelBuffers(f);
  if (attr(f->attrs, "num_outputs")) {
    auto n = size_t(std::min<int64_t>(attrInt(f->attrs, "num_outputs"), int64_t(handles.size())));
    return {handles.end() - ptrdiff_t(n), handles.end()};
  }
  auto written = buffersWritten(collectAccesses(f->body));
  std::vector<size_t> out;
  for (size_t i : handles)
    if (f->buffers[i] && written.contains(f->buffers[i]->data)) out.push_back(i);
  return out;
}

namespace {
Expr bytesAttr(const PrimFunc& f, std::string_view key) {
  NodeRef value = attr(f->attrs, key);
  return value && value.is<ExprNode>() ? cast<ExprNode>(value) : intImm(0);
}
} // namespace

Expr workspaceBytes(const PrimFunc& f) {
  return bytesAttr(f, "workspace_bytes");
}
Expr workspacePerThreadBytes(const PrimFunc& f) {
  return bytesAttr(f, "workspace_per_thread_bytes");
}

} // namespace bevel
