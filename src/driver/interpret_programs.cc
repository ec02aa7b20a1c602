// See interpret_programs.h.
#include "driver/interpret_programs.h"

#include "base/stack.h"
#include "driver/compile.h"
#include "ir/build.h"
#include "ir/render.h"
#include "ir/structural.h"
#include "loop/interpreter.h"
#include "loop/kernel_signature.h"

#include <fmt/format.h>

namespace bevel {
namespace {

struct Interpreted {
  std::string name;
  PrimFunc program;
  Module module; // that its call_tir calls name
};

Result<Ref<TensorObject>> tensorOf(const bevel_value& value, const Buffer& buffer, const VarMap& dims) {
  const DLTensor* view = value.kind == BEVEL_TENSOR ? bevel_tensor_view(value.v.tensor) : nullptr;
  std::vector<int64_t> shape;
  for (const Expr& d : buffer->shape) {
    auto extent = asConst(substitute(d, dims));
    if (!extent) return fail(ErrorCode::kInternal, "a dimension of '" + buffer->name + "' has no value");
    shape.push_back(*extent);
  }
  if (!view) return fail(ErrorCode::kInternal, "the argument for '" + buffer->name + "' is no tensor");
  const auto* data = static_cast<const std::byte*>(view->data) + view->byte_offset;
  return TensorObject::wrap(buffer->dtype, std::move(shape), data, nullptr); // lives as long as the call
}

// Arguments: the buffers in order, then the values of kernelDims.
Status run(const Interpreted& self, const bevel_value* args) {
  const PrimFunc& f = self.program;
  std::vector<size_t> handles = kernelBuffers(f);
  VarMap dims;
  std::vector<InterpretScalar> scalars;
  size_t at = handles.size();
  for (const Var& v : kernelDims(f)) dims[v] = intImm(args[at++].v.i, v->dtype);
  for (const Var& p : f->params)
    if (auto it = dims.find(p); it != dims.end()) scalars.push_back(*asConst(it->second));
  std::vector<Ref<TensorObject>> tensors;
  for (size_t i = 0; i < handles.size(); ++i) {
    BEVEL_TRY(auto tensor, tensorOf(args[i], f->buffers[handles[i]], dims));
    tensors.push_back(std::move(tensor));
  }
  InterpretOptions options;
  options.module = self.module;
  return onLargeStack([&] { return interpret(f, tensors, scalars, options); });
}

int32_t interpretPacked(const bevel_ctx*, void* self, const bevel_value* args, int32_t, bevel_value*) {
  const auto& program = *static_cast<const Interpreted*>(self);
  Status ran = run(program, args);
  if (ran) return BEVEL_OK;
  std::string shown = render(ran.error(), {.within = program.program});
  if (std::string_view lead = "error: "; shown.starts_with(lead)) shown.erase(0, lead.size());
  std::string message = fmt::format("while interpreting '{}': {}", program.name, shown);
  return bevel_fail(BEVEL_ERROR_REFUSED, message.c_str());
}

// The name tells the module, whose functions f may call.
Result<PrimFunc> stub(const Module& module, const std::string& name, const PrimFunc& f, uint64_t moduleHash) {
  std::string packed = fmt::format("bevel.interpret.{}.{:016x}", name, moduleHash);
  auto* self = new Interpreted{name, f, module};
  auto forget = [](void* p) { delete static_cast<Interpreted*>(p); };
  BEVEL_CHECK(runtimeStatus(bevel_register_packed(packed.c_str(), interpretPacked, self, forget, 1)));
  Array<NodeRef> args{make<const StringImmNode>(packed)};
  for (size_t i : kernelBuffers(f)) args.push_back(f->buffers[i]);
  for (const Var& v : kernelDims(f)) args.push_back(v);
  Stmt body = make<const EvaluateNode>(callAs(DType::Void(), Intrin::kCallPacked, args));
  return withAttr(with(f, &PrimFuncNode::body, body), "num_outputs",
                  intImm(int64_t(kernelOutputs(f).size())));
}

} // namespace

Result<Module> interpretPrograms(const Module& module) {
  auto out = mutableCopy(module);
  uint64_t hash = structuralHash(module);
  for (size_t i = 0; i < module->functions.size(); ++i) {
    if (!module->functions[i].is<PrimFuncNode>()) continue;
    BEVEL_TRY(PrimFunc f,
              stub(module, module->names[i]->name, cast<PrimFuncNode>(module->functions[i]), hash));
    out->functions.set(i, f);
  }
  return Module(out);
}

} // namespace bevel
