// Calls of `T.` functions that declare something or are statements.
#include "ir/parser_impl.h"

#include "ir/structural.h"

namespace bevel::detail {

/// Whether a form that is a statement, or one of a block, stands in its place.
bool Parser::inPlace(const Args& args, bool inBlock) {
  if (!frame_ && !inBlock) return failed(args.at, args.name + " is a statement");
  return (frame_ && (frame_->block || !inBlock)) ||
         failed(args.at, args.name + " belongs directly into a block",
                "put it under 'with T.sblock(\"name\"):'");
}

/// The buffer that shape, dtype and layout describe, named after the target of the assignment.
Buffer Parser::bufferArgs(Args& args, DType otherwise) {
  Array<Expr> shape, strides, separators;
  const Value* shapeArg = args.find("shape");
  const Token& where = args.where("shape");
  if (!shapeArg) return failed(args.at, args.name + " needs the argument 'shape'");
  if (!exprList(*shapeArg, shape, where)) return nullptr;
  std::string name = targetName("buffer");
  auto dtype = dtypeArg(args, "dtype", otherwise);
  if (const Value* s = args.given("strides"))
    for (const Value& item : s->parts()) { // a string names a new symbol
      Expr e = item.tag == Value::kString ? Expr(var(item.text, shape.empty() ? kInt32 : shape[0]->dtype))
                                          : toExpr(item, where);
      if (!e) return nullptr;
      if (item.tag == Value::kString) bind(item.text, Value::of(e));
      strides.push_back(e);
    }
  Expr offset;
  if (const Value* o = args.given("elem_offset")) {
    offset = toExpr(*o, args.where("elem_offset"), shape.empty() ? DType::Void() : shape[0]->dtype);
    if (!offset) return nullptr;
  }
  auto scope = stringArg(args, "scope", "global");
  auto align = intArg(args, "align", 64);
  auto factor = intArg(args, "offset_factor", 0);
  const Value* axes = args.given("axis_separators");
  if (axes && !exprList(*axes, separators, where)) return nullptr;
  if (align < 0 || align > 1 << 20 || factor < 0)
    return failed(args.at, "align and offset_factor are not negative");
  if (dtype.isVoid() || dtype.isString()) return failed(args.at, "a buffer cannot hold " + dtype.str());
  for (const auto* list : {&shape, &strides})
    for (const Expr& e : *list) {
      if (!e->dtype.isInt() || e->dtype.isVector())
        return failed(where, "dimensions and strides are signed integers, not " + e->dtype.str());
      if (auto c = asConst(e); c && *c < 0 && list == &shape) return failed(where, "a dimension is negative");
    }
  if (!strides.empty() && strides.size() != shape.size())
    return failed(args.at, "a buffer has one stride for each dimension");
  if (offset && (!offset->dtype.isInt() || offset->dtype.isVector()))
    return failed(args.at, "elem_offset is a signed integer");
  if (!offset && factor > 0) offset = var(name + "_elem_offset", shape.empty() ? kInt32 : shape[0]->dtype);
  Var data;
  if (const Value* given = args.given("data")) {
    data = given->to<VarNode>();
    if (!data || !data->dtype.isHandle()) return failed(args.at, "data= takes a pointer such as A.data");
  }
  if (!data) data = buffer(name, dtype, {}, scope)->data;
  auto b = make<BufferNode>(data, dtype, shape, std::move(name));
  b->strides = strides, b->elemOffset = offset, b->scope = scope, b->alignment = align,
  b->offsetFactor = factor, b->axisSeparators = separators;
  return b;
}

/// In a signature: the parameter. In an assignment with data=: a declaration over memory that exists.
Value Parser::tBuffer(Args& args) {
  if (inSignature_) {
    Buffer b = bufferArgs(args, kFloat32);
    return b ? Value::declared(b) : Value();
  }
  return tDeclBuffer(args);
}

Value Parser::tDeclBuffer(Args& args) {
  if (!args.given("data"))
    return failed(args.at, args.name + " needs data=, the memory that the buffer lies in",
                  "use T.alloc_buffer for new memory");
  if (!inPlace(args, false)) return Value();
  Buffer b = bufferArgs(args, kFloat32);
  return b ? holdsRest(make<DeclBufferNode>(b, Stmt()), b, args.at) : Value();
}

Value Parser::tAllocBuffer(Args& args) {
  if ((frame_->block && frame_->block->oldSpelling) || (frame_->function && oldAllocs_))
    return tBlockAlloc(args);
  Dict annotations;
  if (!dictArg(args, "annotations", annotations)) return Value();
  Buffer b = bufferArgs(args, kFloat32);
  return b ? holdsRest(make<AllocNode>(b, Stmt(), annotations), b, args.at) : Value();
}

Value Parser::tBlockAlloc(Args& args) {
  if (!frame_ || (!frame_->block && !frame_->function))
    return failed(args.at, args.name + " belongs directly into a block or function",
                  "use T.alloc_buffer inside loops");
  Buffer b = bufferArgs(args, kFloat32);
  if (!b) return Value();
  (frame_->block ? frame_->block->allocs : rootAllocs_).push_back(b);
  return Value::declared(b);
}

/// Older lowered programs: a pointer to new memory, A = T.allocate([128], "float32", "local").
Value Parser::tAllocate(Args& args) {
  Array<Expr> shape;
  auto dtype = dtypeArg(args, "dtype", kFloat32);
  auto scope = stringArg(args, "scope", "global");
  Dict annotations;
  if (!exprList(*args.find("extents"), shape, args.at) || !dictArg(args, "annotations", annotations))
    return Value();
  for (const Expr& e : shape)
    if (!e->dtype.isInt() || e->dtype.isVector()) return failed(args.at, "dimensions are signed integers");
  Buffer b = buffer(targetName("buffer"), dtype, shape, scope);
  return holdsRest(make<AllocNode>(b, Stmt(), annotations), b->data, args.at);
}

/// Of a parameter: A = T.match_buffer(a, (n, 128), "float32"). Of a region, in a block: a view of it.
Value Parser::tMatchBuffer(Args& args) {
  const Value source = *args.find("param");
  if (auto* handle = source.as<VarNode>()) {
    size_t i = 0;
    while (i < params_.size() && params_[i].get() != handle) ++i;
    if (i == params_.size() || !handle->dtype.isHandle())
      return failed(args.at, "T.match_buffer takes a parameter of type T.handle, or a region of a buffer");
    if (buffers_[i]) return failed(args.at, "the parameter '" + handle->name + "' has a buffer already");
    Buffer b = bufferArgs(args, kFloat32);
    if (!b) return Value();
    for (auto& scope : scopes_)
      for (auto& [key, value] : scope)
        if (value.as<VarNode>() == handle) value = Value::of(b->data);
    params_.set(i, b->data), buffers_.set(i, b);
    return Value::declared(b);
  }
  BufferRegion region = inPlace(args, true) ? toRegion(source, args.where("param")) : BufferRegion();
  if (!region) return Value();
  Value shape{.tag = Value::kTuple}; // that of the region, unless given
  for (const Range& r : region->region) shape.items.push_back(Value::of(r->extent));
  for (Args::Bound& a : args.bound)
    if (a.name == "shape" && !a.value) a.value = &shape;
  Buffer b = bufferArgs(args, region->buffer->dtype);
  if (!b) return Value();
  frame_->block->matches.push_back(make<const MatchBufferNode>(b, region));
  return Value::declared(b);
}

Value Parser::tLetStmt(Args& args) {
  Expr value = exprArg(args, "value");
  const Value* type = args.find("type");
  if (!value) return Value();
  Value v{.tag = Value::kLet, .depth = args.find("value")->depth, .node = value};
  if (type) v.items.push_back(*type);
  return v;
}

Value Parser::tEvaluate(Args& args) {
  Expr value = exprArg(args, "value");
  if (!value) return Value();
  add(make<EvaluateNode>(value), args.at);
  return Value::done();
}

Value Parser::tAttr(Args& args) {
  auto convert = [&](const Value& v, const Token& where) -> NodeRef {
    if (v.tag == Value::kNone) return nullptr;
    if (v.tag == Value::kNode) return v.node;
    return v.isNumber() || v.tag == Value::kString ? NodeRef(toExpr(v, where)) : attrNode(v, where);
  };
  const Value &node = *args.find("node"), &value = *args.find("value");
  NodeRef n = convert(node, args.at), x = convert(value, args.at);
  if ((!n && node.tag != Value::kNone) || (!x && value.tag != Value::kNone)) return Value();
  return holdsRest(make<AttrStmtNode>(n, stringArg(args, "attr_key"), x, Stmt()), nullptr, args.at);
}

/// Variables do not change: neither loop variables and axes, nor in an inner scope one of a scope around.
bool Parser::mayAssign(const Token& target, const Value& value) {
  const Value* known = lookup(target.text);
  const auto* v = known ? known->as<VarNode>() : nullptr;
  if (!v || value.tag != Value::kNode || !value.node.is<ExprNode>() || !usesVar(value.node, Var(v)))
    return true;
  std::string name = "'" + v->name + "'";
  if (loopRanges_.contains(Var(v)) || axes_.contains(Var(v)))
    return failed(target,
                  name + (axes_.contains(Var(v)) ? " is an axis of a block" : " is a loop variable") +
                      " and cannot be assigned",
                  "give the new value a name of its own");
  if (scopes_.back().contains(v->name)) return true;
  return failed(target, name + " belongs to a scope around this one and cannot change here",
                "keep a running value in a buffer of one element: s = T.alloc_buffer((1,), \"float32\")");
}

/// tx = T.env_thread("threadIdx.x"): the index of a thread, whose number T.launch_thread says.
Value Parser::tEnvThread(Args& args) {
  Var v = var(targetName("thread"), dtypeArg(args, "dtype", kInt32));
  threads_[v] = stringArg(args, "thread_tag");
  return Value::declared(v);
}

/// A loop over threads around the rest of the scope: T.launch_thread(tx, 128), or with a tag in place of tx.
Value Parser::tLaunchThread(Args& args) {
  const Value& thread = *args.find("thread");
  const auto* known = thread.as<VarNode>();
  auto tag = known ? threads_.find(Var(known)) : threads_.end();
  if (thread.tag != Value::kString && tag == threads_.end())
    return failed(args.where("thread"),
                  "T.launch_thread takes a tag such as \"threadIdx.x\", or a variable of T.env_thread",
                  "T.env_thread gives a variable that is launched once");
  Range r = rangeOf(Value::integer(0), *args.find("extent"), args.where("extent"),
                    known ? known->dtype : DType::Void());
  if (!r) return Value();
  if (known && r->extent->dtype != known->dtype)
    return failed(args.where("extent"), "the number of threads is " + r->extent->dtype.str() +
                                            ", their index " + known->dtype.str());
  Var v = known ? Var(known) : var(targetName("thread"), r->extent->dtype);
  std::string name = known ? tag->second : thread.text;
  if (known) threads_.erase(tag);
  loopRanges_[v] = r;
  auto loop = make<ForNode>(v, r->min, r->extent, ForKind::kThreadBinding, Stmt(), nullptr, name);
  return holdsRest(loop, v, args.at);
}

Value Parser::tWhere(Args& args) {
  BlockState* b = frame_->block;
  Expr p = coerce(*args.find("predicate"), kBool, args.at, "the condition");
  if (!p) return Value();
  if (b->predicate) return failed(args.at, "the block has T.where twice");
  for (const IterVar& i : b->iters)
    if (usesVar(p, i->var))
      return failed(args.at, "the condition of T.where uses the block's axis '" + i->var->name + "'",
                    "write it over the loops around the block");
  b->predicate = p;
  return Value::done();
}

Value Parser::regions(Args& args) {
  bool reads = args.code == 0;
  BlockState* b = frame_->block;
  std::optional<Token>& seen = reads ? b->readsAt : b->writesAt;
  if (seen) return failed(args.at, "the block has " + args.name + " twice");
  seen = args.at;
  Array<BufferRegion>& out = reads ? b->reads : b->writes;
  for (size_t i = 0; i < args.pos.size(); ++i)
    if (!collect(args.pos[i].parts(), out, [&](const Value& v) { return toRegion(v, args.posAt[i]); }))
      return Value();
  return Value::done();
}
Value Parser::tBlockAttr(Args& args) {
  return mergeAttrs(frame_->block->annotations, args);
}

/// Later attributes replace earlier ones of the same name.
Value Parser::mergeAttrs(Dict& attrs, Args& args) {
  Dict d = attrDict(*args.find("attrs"), args.at);
  if (!d) return Value();
  attrs = merged(attrs, d);
  return Value::done();
}

Value Parser::tFuncAttr(Args& args) {
  if (!frame_ || !frame_->function) return failed(args.at, args.name + " belongs directly into the function");
  return mergeAttrs(attrs_, args);
}

Value Parser::tFuncResult(Args& args) {
  result_ = dtypeArg(args, "dtype");
  return Value::done();
}

/// vi = T.axis.spatial(128, i), T.axis.reduce((min, end), value)
Value Parser::axis(Args& args) {
  BlockState* b = frame_->block;
  const Value& domain = *args.find("dom");
  const Value* value = args.find("binding");
  DType wanted; // bare bounds take the dtype of the value
  if (value)
    if (auto* e = value->as<ExprNode>(); e && e->dtype.isInteger()) wanted = e->dtype;
  Range r;
  if (domain.is<RangeNode>())
    r = domain.to<RangeNode>();
  else if (domain.isSequence() && domain.items.size() == 2)
    r = rangeOf(domain.items[0], domain.items[1], args.at, wanted);
  else
    r = rangeOf(Value::integer(0), domain, args.at, wanted);
  if (!r) return Value();
  Var v = var(targetName("v"), r->extent->dtype);
  if (value) {
    Expr e = coerce(*value, v->dtype, args.where("binding"), "the value of the axis");
    if (!e) return Value();
    b->values.push_back(e);
  } else if (!b->noRealize)
    return failed(args.at, args.name + " needs the value of the axis", "write T.axis.spatial(extent, value)");
  b->iters.push_back(make<const IterVarNode>(r, v, IterType(args.code)));
  axes_.insert(v);
  return Value::declared(v);
}
/// vi, vk = T.axis.remap("SR", [i, k]): each axis runs over its loop.
Value Parser::tRemap(Args& args) {
  BlockState* b = frame_->block;
  auto kinds = stringArg(args, "kinds");
  const Value& list = *args.find("bindings");
  if (!list.isSequence() || list.items.size() != kinds.size())
    return failed(args.at, "T.axis.remap has " + std::to_string(kinds.size()) + " kinds for " +
                               std::to_string(list.isSequence() ? list.items.size() : 1) + " values");
  Value out{.tag = Value::kTuple};
  for (size_t i = 0; i < kinds.size(); ++i) {
    char k = kinds[i];
    if (k != 'S' && k != 'R')
      return failed(args.at, "the kinds of T.axis.remap are S (spatial) and R (reduce)");
    auto* loop = list.items[i].as<VarNode>();
    auto range = loop ? loopRanges_.find(Var(loop)) : loopRanges_.end();
    if (range == loopRanges_.end())
      return failed(args.where("bindings"), "T.axis.remap takes loop variables",
                    "use T.axis.spatial(extent, value) for other values");
    Var v = var(targetName("v"), loop->dtype);
    b->iters.push_back(
        make<const IterVarNode>(range->second, v, k == 'S' ? IterType::kSpatial : IterType::kReduce));
    b->values.push_back(Var(loop));
    axes_.insert(v);
    out.items.push_back(Value::declared(v));
  }
  if (out.items.size() == 1) return out.items[0];
  return out;
}

} // namespace bevel::detail
