// Functions, parameters, bindings and branches; see vm_emit.h.
#include "codegen/vm_emit.h"

#include "base/stack.h"
#include "codegen/vm_function.h"
#include "graph/shape_util.h"
#include "ir/build.h"
#include "ir/parser.h"
#include "ir/printer.h"
#include "loop/kernel_signature.h"
#include "loop/lower.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>

namespace bevel {

size_t numResults(const Type& type) {
  const auto* t = type.as<TupleTypeNode>();
  return t ? t->fields_.size() : 1;
}

namespace {

std::string dimText(const Expr& e) {
  return e.is<VarNode>() ? e.as<VarNode>()->name : print(e);
}

ParamSpec paramSpec(const Type& type, std::string name) {
  ParamSpec spec;
  spec.name = std::move(name);
  if (const auto* t = type.as<TensorTypeNode>()) {
    spec.dtype = imageDtypeOf(t->dtype);
    spec.unknownRank = t->ndim < 0;
    if (!t->known)
      for (int64_t i = 0; i < t->ndim; ++i) spec.dims.push_back(DimSpec(""));
    for (const Expr& d : t->shape) {
      auto c = asConst(d);
      spec.dims.push_back(c ? DimSpec(*c) : DimSpec(std::string_view(dimText(d))));
    }
    return spec;
  }
  spec.unknownRank = true;
  const auto* o = type.as<ObjectTypeNode>();
  if (type.is<TupleTypeNode>() || (o && o->name == "sequence"))
    spec.kind = BEVEL_PARAM_LIST;
  else
    spec.kind = o && o->name == "optional" ? BEVEL_PARAM_OPTIONAL : BEVEL_PARAM_ANY;
  if (const auto* item = o && !o->params.empty() ? o->params[0].as<TensorTypeNode>() : nullptr)
    spec.dtype = imageDtypeOf(item->dtype);
  return spec;
}

} // namespace

std::string listedName(const Dict& attrs, const char* key, size_t i, std::string otherwise) {
  NodeRef names = attr(attrs, key);
  const auto* list = names.as<ListNode>();
  if (!list || i >= list->items.size() || !list->items[i].is<StringImmNode>()) return otherwise;
  return list->items[i].as<StringImmNode>()->value;
}

VmTables::VmTables(const Module& m, const Target& t, const std::string& features) : module(m), target(t) {
  program.image = std::make_unique<ImageBuilder>(TargetSpec{.name = t.str(), .features = features}, "bevel");
  sections_.emplace(t.brief(), 0);
}

// The section of the image for the target that the program carries.
Result<uint32_t> VmTables::section(const PrimFunc& f) {
  const auto* text = attr(f->attrs, "target").as<StringImmNode>();
  auto [it, fresh] = sections_.emplace(text ? text->value : target.brief(), 0);
  if (!fresh) return it->second;
  BEVEL_TRY(Target own, targetOf(f, target));
  if (own == target) return 0;
  if (own.architecture().name != std::string_view(target.architecture().name))
    return fail(ErrorCode::kUnsupported,
                "it is for " + own.brief() + ", and the library for " + target.brief());
  BEVEL_TRY(std::string features, requiredFeatures(own));
  it->second = program.image->addTarget({.name = own.str(), .features = features});
  return it->second;
}

uint32_t VmTables::constant(const Constant& c) {
  auto [it, fresh] = constants_.emplace(c->value.get(), 0);
  if (!fresh) return it->second;
  const TensorObject& t = *c->value;
  program.keep.push_back(c->value);
  std::span<const std::byte> bytes{t.bytes(), size_t(t.byteSize())};
  if (t.dtype.isString()) { // the encoded text is kept as a tensor of bytes
    std::vector<std::byte> text = ImageBuilder::encodeTexts(t.strings);
    auto copy = TensorObject::zeros(DType::UInt(8), {int64_t(text.size())});
    std::copy(text.begin(), text.end(), copy->mutableBytes());
    program.keep.push_back(copy);
    bytes = {copy->bytes(), text.size()};
  }
  it->second = program.image->addConstant(c->name, imageDtypeOf(t.dtype), t.shape, bytes);
  return it->second;
}

// An expression over the names of the kernel's dimensions, in terms of their numbers: d0, d1, …; "" where it
// uses anything else.
static std::string overDims(const PrimFunc& f, const char* key) {
  NodeRef text = attr(f->attrs, key);
  if (!text.is<StringImmNode>()) return "";
  ParseOptions options;
  std::set<std::string> names;
  for (const Var& v : kernelDims(f)) {
    if (!names.insert(v->name).second) return "";
    options.captures.emplace_back(v->name, var("d" + std::to_string(options.captures.size()), v->dtype));
  }
  auto parsed = parseExpression(text.as<StringImmNode>()->value, options);
  return parsed ? print(*parsed) : "";
}

Result<uint32_t> VmTables::kernel(const std::string& name, const PrimFunc& f) {
  auto [it, fresh] = kernels_.emplace(name, 0);
  if (!fresh) return it->second;
  KernelSpec spec;
  spec.name = name;
  auto section = this->section(f);
  if (!section) return fail(std::move(section.error()).note("in tensor program '" + name + "'"));
  spec.target = *section;
  spec.numBuffers = uint32_t(kernelBuffers(f).size());
  spec.numDims = uint32_t(kernelDims(f).size());
  auto shared = asConst(workspaceBytes(f)), perThread = asConst(workspacePerThreadBytes(f));
  spec.dynamicWorkspace = !shared || !perThread;
  if (!spec.dynamicWorkspace)
    spec.workspaceShared = uint64_t(*shared), spec.workspacePerThread = uint64_t(*perThread);
  spec.flops = attrFloat(f->attrs, "flops", -1);
  spec.bytes = attrFloat(f->attrs, "bytes", -1);
  spec.flopsText = overDims(f, "flops_text");
  spec.bytesText = overDims(f, "bytes_text");
  if (f->origin)
    for (const std::string& n : f->origin->nodes) spec.origins += (spec.origins.empty() ? "" : ";") + n;
  it->second = program.image->addKernel(spec);
  program.kernels.push_back({"bevel_k_" + name, f}); // never the name of a function of libm
  return it->second;
}

Status VmFunction::run(const Function& f) {
  BEVEL_CHECK(declareParams(f));
  declareResults(f);
  BEVEL_CHECK(emitSeq(f->body));
  return emitResult(f);
}

Status VmFunction::declareParams(const Function& f) {
  std::vector<ImageArg> registers;
  for (size_t i = 0; i < f->params.size(); ++i) {
    const GraphVar& p = f->params[i];
    ParamSpec spec = paramSpec(p->type, listedName(f->attrs, "input_names", i, p->name));
    registers.push_back(image::reg(out_.addParam(std::move(spec))));
    values_[p] = registers.back();
  }
  for (size_t i = 0; i < f->params.size(); ++i)
    BEVEL_CHECK(matchType(registers[i], image::imm(int64_t(i)), f->params[i]->type));
  BEVEL_CHECK(endPoint());
  return matchLater();
}

void VmFunction::declareResults(const Function& f) {
  Type type = f->body->body->type ? f->body->body->type : f->result;
  const auto* tuple = type.as<TupleTypeNode>();
  for (size_t i = 0; i < numResults(type); ++i)
    out_.addResult(paramSpec(tuple ? tuple->fields_[i] : type,
                             listedName(f->attrs, "output_names", i, fmt::format("output_{}", i))));
  if (attrInt(f->attrs, "private") || attrInt(f->attrs, "Primitive")) out_.setPrivate();
  const auto* items = f->body->body.as<TupleNode>();
  for (size_t i = 0; i < (items ? items->items.size() : 1); ++i) {
    const auto* v = (items ? items->items[i] : f->body->body).as<GraphVarNode>();
    if (v && !v->type.is<TupleTypeNode>()) outputs_.emplace(GraphVar(v), int64_t(i));
  }
}

Status VmFunction::emitResult(const Function& f) {
  const GraphExpr& result = f->body->body;
  Args results;
  const auto* tuple = result.as<TupleNode>();
  if (const auto* v = result.as<GraphVarNode>(); !tuple && v)
    if (auto it = tuples_.find(GraphVar(v)); it != tuples_.end()) tuple = it->second.get();
  if (tuple) {
    for (const GraphExpr& item : tuple->items) {
      BEVEL_TRY(ImageArg a, arg(item));
      results.push_back(std::move(a));
    }
  } else {
    BEVEL_TRY(ImageArg a, arg(result));
    if (!result->type.is<TupleTypeNode>())
      results.push_back(a);
    else
      for (size_t i = 0; i < numResults(result->type); ++i)
        results.push_back(image::reg(out_.builtinTo("vm.tuple_get", {a, image::imm(int64_t(i))})));
  }
  out_.ret(results);
  return {};
}

Status VmFunction::emitSeq(const SeqExpr& seq) {
  for (const BindingBlock& block : seq->blocks)
    for (const NodeRef& b : block->bindings) {
      if (const auto* m = b.as<MatchCastNode>())
        BEVEL_CHECK(emitMatchCast(MatchCast(m)));
      else
        BEVEL_CHECK(emitBinding(cast<VarBindingNode>(b)));
    }
  return {};
}

Status VmFunction::emitBinding(const VarBinding& b) {
  const GraphExpr& value = b->value;
  if (const auto* e = value.as<GraphIfNode>()) return emitIf(b->var, GraphIf(e));
  if (const auto* c = value.as<GraphCallNode>()) {
    auto ok = emitCall(b->var, GraphCall(c));
    if (!ok) return fail(std::move(ok.error()).at(value));
    return {};
  }
  if (const auto* t = value.as<TupleNode>(); t && !t->items.empty()) {
    tuples_[b->var] = Tuple(t);
    return {};
  }
  if (const auto* v = value.as<GraphVarNode>())
    if (auto it = tuples_.find(GraphVar(v)); it != tuples_.end()) {
      tuples_[b->var] = Tuple(it->second);
      return {};
    }
  BEVEL_TRY(values_[b->var], arg(value));
  return {};
}

// What the branch binds is unknown behind it: a register that only one branch sets holds nothing in the other.
Status VmFunction::emitBranch(const SeqExpr& branch, uint32_t result) {
  size_t dims = slots_.numBound();
  BEVEL_CHECK(emitSeq(branch));
  BEVEL_TRY(ImageArg value, arg(branch->body));
  out_.packed("vm.move", {value}, result);
  slots_.unbind(dims);
  for (const BindingBlock& block : branch->blocks)
    for (const NodeRef& b : block->bindings) {
      const auto* m = b.as<MatchCastNode>();
      const GraphVar& v = m ? m->var : b.as<VarBindingNode>()->var;
      values_.erase(v);
      tuples_.erase(v);
    }
  return {};
}

Status VmFunction::emitIf(const GraphVar& var, const GraphIf& e) {
  BEVEL_TRY(uint32_t condition, inRegister(e->condition));
  uint32_t result = out_.newRegister();
  auto otherwise = out_.newLabel(), end = out_.newLabel();
  out_.branchUnless(condition, otherwise);
  BEVEL_CHECK(emitBranch(e->thenBranch, result));
  out_.jump(end);
  out_.bind(otherwise);
  BEVEL_CHECK(emitBranch(e->elseBranch, result));
  out_.bind(end);
  values_[var] = image::reg(result);
  return {};
}

// What a check says when it fails; bool conditions are compared with 1.
static std::string conditionText(const Expr& value, const Expr& wanted) {
  const auto* cast = value.as<CastNode>();
  std::string text = cast && cast->value->dtype.isBool() && isConst(wanted, 1)
                         ? print(cast->value)
                         : fmt::format("{} == {}", print(value), print(wanted));
  return fmt::format("the extents of the inputs do not fit the model: {} does not hold", text);
}

Status VmFunction::emitMatchCast(const MatchCast& m) {
  const auto* shape = m->value.as<ShapeExprNode>();
  const auto* pattern = m->pattern.as<ShapeTypeNode>();
  if (shape && pattern && pattern->known && shape->values.size() == pattern->values.size()) {
    for (size_t i = 0; i < shape->values.size(); ++i) { // integers against integers, without a tensor
      const Expr& p = pattern->values[i];
      BEVEL_TRY(ImageArg given, slots_.value(shape->values[i]));
      if (p.is<VarNode>() && !slots_.isBound(cast<VarNode>(p))) {
        uint32_t slot = slots_.reserve(1);
        out_.builtin("vm.set_slot", {image::imm(slot), given});
        slots_.bind(cast<VarNode>(p), slot);
      } else {
        BEVEL_TRY(ImageArg wanted, slots_.value(p));
        out_.packed("vm.check_equal", {given, wanted, image::str(conditionText(shape->values[i], p))},
                    BEVEL_NO_REGISTER, originsOf(*m));
      }
    }
    return endPoint();
  }
  BEVEL_TRY(ImageArg value, arg(m->value));
  BEVEL_CHECK(matchType(value, image::str(m->var->name), m->pattern));
  values_[m->var] = value;
  BEVEL_CHECK(endPoint());
  return matchLater();
}

Status VmFunction::endPoint() {
  const auto& values = slots_.point();
  if (values.empty()) return {};
  BEVEL_TRY(PrimFunc f, lower(slots_.kernel(values), tables_.target));
  std::string name = fmt::format("{}_shapes", name_);
  for (int i = 1; tables_.module->find(name) || tables_.hasKernel(name); ++i)
    name = fmt::format("{}_shapes_{}", name_, i);
  BEVEL_TRY(uint32_t kernel, tables_.kernel(name, f));
  out_.kernel(kernel, {image::heap()});
  return {};
}

Status VmFunction::matchType(const ImageArg& value, const ImageArg& what, const Type& type) {
  if (const auto* t = type.as<TensorTypeNode>()) return matchTensor(value, what, *t, false);
  if (const auto* s = type.as<ShapeTypeNode>()) return matchShape(value, *s);
  if (const auto* t = type.as<TupleTypeNode>()) {
    for (size_t i = 0; i < t->fields_.size(); ++i) {
      auto item = image::reg(out_.builtinTo("vm.tuple_get", {value, image::imm(int64_t(i))}));
      ImageArg named = what.kind == BEVEL_ARG_STRING ? image::str(fmt::format("{}[{}]", what.text, i))
                                                     : image::str("a field");
      BEVEL_CHECK(matchType(item, named, t->fields_[i]));
    }
  }
  return {};
}

Status VmFunction::matchTensor(const ImageArg& value, const ImageArg& what, const TensorTypeNode& t,
                               bool late) {
  Args args = {value, what, image::imm(t.dtype.isVoid() ? -1 : int64_t(imageDtypeOf(t.dtype))),
               image::imm(t.known ? int64_t(t.shape.size()) : t.ndim)};
  bool expressions = false;
  for (int64_t i = 0; i < (t.known ? int64_t(t.shape.size()) : t.ndim); ++i) {
    Expr d = t.known ? t.shape[size_t(i)] : nullptr;
    int code = BEVEL_DIM_ANY;
    ImageArg wanted = image::imm(0);
    if (d && asConst(d))
      code = BEVEL_DIM_EQUAL, wanted = image::imm(*asConst(d));
    else if (d.is<VarNode>() && !slots_.isBound(cast<VarNode>(d))) {
      code = BEVEL_DIM_BIND;
      uint32_t slot = slots_.reserve(1);
      slots_.bind(cast<VarNode>(d), slot);
      wanted = image::imm(slot);
    } else if (d && (d.is<VarNode>() || late)) {
      code = BEVEL_DIM_EQUAL_SLOT;
      BEVEL_TRY(wanted, slots_.value(d));
      wanted.kind = BEVEL_ARG_INT; // the slot's number
    } else
      expressions |= bool(d);
    args.push_back(image::imm(code));
    args.push_back(wanted);
  }
  out_.builtin("vm.match_shape", args);
  if (expressions) later_.push_back({value, what, TensorType(&t)});
  return {};
}

// Dimensions that are expressions are compared when those that they use are bound.
Status VmFunction::matchLater() {
  std::vector<Later> later = std::move(later_);
  later_.clear();
  for (const Later& l : later) {
    bool bound = true;
    for (const Var& v : shapeVars(l.type)) bound &= slots_.isBound(v);
    if (bound) BEVEL_CHECK(matchTensor(l.value, l.what, *l.type, true));
  }
  return {};
}

Status VmFunction::matchShape(const ImageArg& value, const ShapeTypeNode& t) {
  if (!t.known || t.values.empty()) return {};
  uint32_t first = slots_.reserve(uint32_t(t.values.size()));
  out_.builtin("vm.load_slots", {value, image::imm(first), image::imm(int64_t(t.values.size()))});
  for (size_t i = 0; i < t.values.size(); ++i) {
    const Expr& p = t.values[i];
    uint32_t slot = first + uint32_t(i);
    if (p.is<VarNode>() && !slots_.isBound(cast<VarNode>(p))) {
      slots_.bind(cast<VarNode>(p), slot);
      continue;
    }
    BEVEL_TRY(ImageArg wanted, slots_.value(p));
    out_.builtin("vm.check_equal", {image::slot(slot), wanted, image::str("a value read as a shape")});
  }
  return {};
}

namespace {

Status emitAll(VmTables& tables, std::map<std::string, ShapeSlots>& slots) {
  std::vector<std::pair<std::string, Function>> functions;
  std::vector<FunctionBuilder*> builders;
  for (size_t i = 0; i < tables.module->names.size(); ++i) {
    if (!tables.module->functions[i].is<FunctionNode>()) continue;
    const std::string& name = tables.module->names[i]->name;
    functions.emplace_back(name, cast<FunctionNode>(tables.module->functions[i]));
    const Dict& attrs = functions.back().second->attrs;
    builders.push_back(&tables.program.image->addFunction(attrStr(attrs, "global_symbol", name)));
    tables.functions.emplace(name, builders.back()->index());
  }
  for (size_t i = 0; i < functions.size(); ++i) {
    const auto& [name, f] = functions[i];
    auto ok = VmFunction(tables, *builders[i], slots[name], name).run(f);
    if (!ok) return fail(std::move(ok.error()).note("in function '" + name + "'"));
    while (builders[i]->numSlots() < slots[name].numSlots()) builders[i]->newSlot();
  }
  return {};
}

} // namespace

Result<VmProgram> emitVm(const Module& module, const Target& target) {
  BEVEL_TRY(std::string features, requiredFeatures(target));
  bool callable = std::ranges::any_of(module->functions.raw(), [](const NodeRef& f) {
    return f.is<FunctionNode>() && !attrInt(f.as<FunctionNode>()->attrs, "private");
  });
  if (!callable)
    return fail(ErrorCode::kInvalid, "the module has no function that can be called from outside");
  return onLargeStack([&]() -> Result<VmProgram> {
    std::map<std::string, ShapeSlots> slots;
    {
      VmTables draft(module, target, features);
      BEVEL_CHECK(emitAll(draft, slots));
    }
    for (auto& [name, s] : slots) s.replay();
    VmTables tables(module, target, features);
    BEVEL_CHECK(emitAll(tables, slots));
    return std::move(tables.program);
  });
}

} // namespace bevel
