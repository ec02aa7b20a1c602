// Calls and values; see vm_emit.h.
#include "codegen/vm_function.h"
#include "graph/op.h"
#include "graph/shape_util.h"
#include "ir/build.h"
#include "loop/kernel_signature.h"

#include <fmt/format.h>

namespace bevel {

std::string VmFunction::originsOf(const Node& n) {
  std::string out;
  if (n.origin)
    for (const std::string& name : n.origin->nodes) out += (out.empty() ? "" : ";") + name;
  return out;
}

Result<ImageArg> VmFunction::scalarArg(const Expr& e) {
  if (const auto* s = e.as<StringImmNode>()) return image::str(s->value);
  if (const auto* f = e.as<FloatImmNode>()) return image::flt(f->value);
  return slots_.value(e);
}

Status VmFunction::appendDims(Args& args, const Array<Expr>& dims) {
  for (const Expr& d : dims) {
    BEVEL_TRY(ImageArg a, slots_.value(d));
    args.push_back(std::move(a));
  }
  return {};
}

Status VmFunction::appendShape(Args& args, const GraphExpr& shape) {
  const auto* s = shape.as<ShapeExprNode>();
  const auto* t = shape->type.as<ShapeTypeNode>();
  if (s) return appendDims(args, s->values);
  if (t && t->known) return appendDims(args, t->values);
  return fail(Error(ErrorCode::kUnsupported, "a shape that is known only as a value").at(shape));
}

Result<ImageArg> VmFunction::arg(const GraphExpr& e) {
  if (const auto* v = e.as<GraphVarNode>()) {
    if (auto it = values_.find(GraphVar(v)); it != values_.end()) return it->second;
    auto it = tuples_.find(GraphVar(v));
    if (it == tuples_.end())
      return fail(
          Error(ErrorCode::kInternal, fmt::format("'{}' is used before it has a value", v->name)).at(e));
    return arg(it->second);
  }
  if (const auto* c = e.as<ConstantNode>()) return image::constant(tables_.constant(Constant(c)));
  if (const auto* t = e.as<TupleNode>()) {
    if (t->items.empty()) return image::none();
    Args items;
    for (const GraphExpr& item : t->items) {
      BEVEL_TRY(ImageArg a, arg(item));
      items.push_back(std::move(a));
    }
    return image::reg(out_.builtinTo("vm.tuple", items));
  }
  if (const auto* g = e.as<TupleGetNode>()) {
    const auto* v = g->tuple.as<GraphVarNode>();
    auto it = v ? tuples_.find(GraphVar(v)) : tuples_.end();
    if (it != tuples_.end() && size_t(g->index) < it->second->items.size())
      return arg(it->second->items[size_t(g->index)]);
    BEVEL_TRY(ImageArg tuple, arg(g->tuple));
    return image::reg(out_.builtinTo("vm.tuple_get", {tuple, image::imm(g->index)}));
  }
  if (const auto* s = e.as<ShapeExprNode>()) {
    Args dims;
    BEVEL_CHECK(appendDims(dims, s->values));
    return image::reg(out_.builtinTo("vm.make_shape", dims));
  }
  if (const auto* p = e.as<PrimValueNode>()) return scalarArg(p->value);
  if (const auto* d = e.as<DTypeImmNode>()) return image::imm(int64_t(imageDtypeOf(d->value)));
  return fail(
      Error(ErrorCode::kInternal, fmt::format("a {} is no argument at run time", e->kindName())).at(e));
}

Result<uint32_t> VmFunction::inRegister(const GraphExpr& e) {
  BEVEL_TRY(ImageArg a, arg(e));
  if (a.kind == BEVEL_ARG_REGISTER) return uint32_t(a.integer);
  return out_.builtinTo("vm.move", {a});
}

Status VmFunction::emitCall(const GraphVar& var, const GraphCall& call) {
  if (const auto* g = call->op.as<GlobalVarNode>()) {
    GraphExpr f = tables_.module->find(g->name);
    if (f.is<PrimFuncNode>()) return emitKernel(call, GlobalVar(g), cast<PrimFuncNode>(f));
    if (f.is<FunctionNode>()) return emitFunctionCall(var, call, GlobalVar(g));
    return fail(ErrorCode::kInternal, fmt::format("there is no function '{}'", g->name));
  }
  if (const auto* e = call->op.as<ExternFuncNode>()) return emitPacked(var, call, e->name);
  if (call->isOp("while_loop")) return emitWhile(var, call);
  if (call->op.is<OpRefNode>()) return emitOp(var, call);
  return fail(ErrorCode::kUnsupported, "a call of a computed function");
}

// Tensors first, then the values of dims: those that the tensors' shapes give, and the scalars of the call.
Status VmFunction::emitKernel(const GraphCall& call, const GlobalVar& name, const PrimFunc& f) {
  BEVEL_TRY(uint32_t kernel, tables_.kernel(name->name, f));
  Args args;
  VarMap dims;
  size_t tensor = 0;
  std::vector<Var> scalars;
  for (size_t i = 0; i < f->params.size(); ++i) {
    const Buffer& b = f->buffers[i];
    if (!b) {
      scalars.push_back(f->params[i]);
      continue;
    }
    if (tensor >= call->args.size())
      return fail(ErrorCode::kInternal, fmt::format("too few arguments for '{}'", name->name));
    const GraphExpr& value = call->args[tensor++];
    const auto* t = value->type.as<TensorTypeNode>();
    if (!t || !t->known)
      return fail(Error(ErrorCode::kUnsupported, "a kernel argument of unknown shape").at(value));
    auto ok = unifyShape(b->shape, t->shape, dims, analyzer_);
    if (!ok)
      return fail(
          std::move(ok.error()).note(fmt::format("argument {} of kernel '{}'", tensor - 1, name->name)));
    BEVEL_TRY(ImageArg a, arg(value));
    args.push_back(std::move(a));
  }
  if (!scalars.empty()) {
    const auto* given = tensor < call->args.size() ? call->args[tensor].as<ShapeExprNode>() : nullptr;
    if (!given || given->values.size() != scalars.size())
      return fail(ErrorCode::kInternal, fmt::format("the scalar arguments of '{}' are missing", name->name));
    for (size_t i = 0; i < scalars.size(); ++i) dims[scalars[i]] = given->values[i];
  }
  for (const Var& v : kernelDims(f)) {
    auto it = dims.find(v);
    if (it == dims.end())
      return fail(
          Error(ErrorCode::kInvalid, fmt::format("size '{}' of tensor program '{}' has no value: it is no "
                                                 "dimension of a tensor",
                                                 v->name, name->name))
              .help("make it a scalar parameter"));
    BEVEL_TRY(ImageArg a, slots_.value(it->second));
    args.push_back(std::move(a));
  }
  Expr shared = workspaceBytes(f), perThread = workspacePerThreadBytes(f);
  if (!asConst(shared) || !asConst(perThread))
    for (const Expr& e : {shared, perThread}) {
      BEVEL_TRY(ImageArg a, slots_.value(substitute(e, dims)));
      args.push_back(std::move(a));
    }
  out_.kernel(kernel, args, originsOf(*call));
  return {};
}

Status VmFunction::emitPacked(const GraphVar& var, const GraphCall& call, const std::string& name) {
  if (name == "vm.builtin.tensor_to_shape") { // a shape is an integer tensor at run time
    BEVEL_TRY(values_[var], arg(call->args[0]));
    return {};
  }
  BEVEL_TRY(Args args, argsOf(*call));
  const auto* fields = var->type.as<TupleTypeNode>();
  if (fields && fields->fields_.empty()) { // it writes into its last arguments and must return nothing
    out_.packed(name, args, BEVEL_NO_REGISTER, originsOf(*call));
    values_[var] = image::none();
    return {};
  }
  ImageArg result = values_[var] = image::reg(out_.builtinTo(name, args, originsOf(*call)));
  BEVEL_CHECK(matchType(result, image::str(fmt::format("the result of '{}'", name)), var->type));
  BEVEL_CHECK(endPoint());
  return matchLater();
}

Result<VmFunction::Args> VmFunction::argsOf(const GraphCallNode& call) {
  Args args;
  for (const GraphExpr& e : call.args) {
    BEVEL_TRY(ImageArg a, arg(e));
    args.push_back(std::move(a));
  }
  return args;
}

// The value of a call: a list for tuples (also of one field), as everywhere.
Result<ImageArg> VmFunction::callFunction(const std::string& name, const Args& args,
                                          const std::string& origins) {
  auto it = tables_.functions.find(name);
  GraphExpr f = tables_.module->find(name);
  if (it == tables_.functions.end() || !f)
    return fail(ErrorCode::kInternal, fmt::format("there is no function '{}'", name));
  uint32_t result = out_.newRegister();
  out_.function(it->second, args, result, origins);
  const auto* fn = f.as<FunctionNode>();
  const auto* tuple = (fn->body->body->type ? fn->body->body->type : fn->result).as<TupleTypeNode>();
  if (tuple && tuple->fields_.size() == 1)
    return image::reg(out_.builtinTo("vm.tuple", {image::reg(result)}));
  return image::reg(result);
}

Status VmFunction::emitFunctionCall(const GraphVar& var, const GraphCall& call, const GlobalVar& name) {
  BEVEL_TRY(Args args, argsOf(*call));
  BEVEL_TRY(values_[var], callFunction(name->name, args, originsOf(*call)));
  return {};
}

Status VmFunction::emitWhile(const GraphVar& var, const GraphCall& call) {
  const auto *condition = call->args[0].as<GlobalVarNode>(), *body = call->args[1].as<GlobalVarNode>();
  const auto* fields = call->args[2]->type.as<TupleTypeNode>();
  if (!condition || !body || !fields) return fail(ErrorCode::kInternal, "a malformed while_loop");
  BEVEL_TRY(ImageArg initial, arg(call->args[2]));
  Args state;
  for (size_t i = 0; i < fields->fields_.size(); ++i)
    state.push_back(image::reg(out_.builtinTo("vm.tuple_get", {initial, image::imm(int64_t(i))})));
  auto again = out_.newLabel(), end = out_.newLabel();
  out_.bind(again);
  std::string origins = originsOf(*call);
  BEVEL_TRY(ImageArg more, callFunction(condition->name, state, origins));
  out_.branchUnless(uint32_t(more.integer), end);
  BEVEL_TRY(ImageArg next, callFunction(body->name, state, origins));
  for (size_t i = 0; i < state.size(); ++i)
    out_.packed("vm.tuple_get", {next, image::imm(int64_t(i))}, uint32_t(state[i].integer));
  out_.builtin("vm.kill", {next});
  out_.jump(again);
  out_.bind(end);
  values_[var] = image::reg(out_.builtinTo("vm.tuple", state));
  return {};
}

Status VmFunction::allocate(const GraphVar& var, const GraphCall& call) {
  const auto* dtype = attr(call->attrs, "dtype").as<DTypeImmNode>();
  const auto* t = var->type.as<TensorTypeNode>();
  ImageArg word = image::imm(int64_t(imageDtypeOf(dtype ? dtype->value : t->dtype)));
  if (call->isOp("memory.new_tensor")) {
    auto output = outputs_.find(var);
    Args args = {image::none(), image::imm(0), word};
    if (output != outputs_.end()) args = {image::imm(output->second), word};
    BEVEL_CHECK(appendShape(args, call->args[0]));
    values_[var] =
        image::reg(out_.builtinTo(output != outputs_.end() ? "vm.alloc_output" : "vm.alloc_tensor", args));
    return {};
  }
  BEVEL_TRY(ImageArg storage, arg(call->args[0]));
  BEVEL_TRY(ImageArg offset, arg(call->args[1]));
  Args args = {storage, offset, word};
  BEVEL_CHECK(appendShape(args, call->args[2]));
  values_[var] = image::reg(out_.builtinTo("vm.alloc_tensor", args));
  return {};
}

Status VmFunction::emitOp(const GraphVar& var, const GraphCall& call) {
  const std::string& name = call->opName();
  if (name == "memory.alloc_tensor" || name == "memory.new_tensor") return allocate(var, call);
  Args args;
  if (name == "memory.alloc_storage") {
    BEVEL_CHECK(appendShape(args, call->args[0]));
    values_[var] = image::reg(out_.builtinTo("vm.alloc_storage", args));
    return {};
  }
  if (name == "memory.view") {
    BEVEL_TRY(ImageArg source, arg(call->args[0]));
    args.push_back(source);
    BEVEL_CHECK(appendShape(args, call->args[1]));
    values_[var] = image::reg(out_.builtinTo("vm.reshape", args, originsOf(*call)));
    return {};
  }
  if (name == "shape_of") {
    BEVEL_TRY(ImageArg source, arg(call->args[0]));
    values_[var] = image::reg(out_.builtinTo("vm.shape_of", {source}, originsOf(*call)));
    return {};
  }
  return fail(
      Error(ErrorCode::kUnsupported,
            fmt::format("operator '{}' cannot run: it has neither a tensor program nor a run-time function",
                        name)));
}

} // namespace bevel
