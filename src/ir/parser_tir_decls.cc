// Calls of `T.` functions that declare something or are statements.
#include "ir/parser_impl.h"

#include "ir/structural.h"

namespace bevel::detail {

const std::vector<Parser::Named>& Parser::tirDeclHandlers() {
  static const std::vector<Named> table = {{"T.evaluate", &Parser::tEvaluate},
                                           {"T.where", &Parser::tWhere},
                                           {"T.reads", &Parser::tReads},
                                           {"T.writes", &Parser::tWrites},
                                           {"T.sblock_attr", &Parser::tBlockAttr},
                                           {"T.block_attr", &Parser::tBlockAttr},
                                           {"T.func_attr", &Parser::tFuncAttr},
                                           {"T.func_result", &Parser::tFuncResult},
                                           {"T.attr", &Parser::tAttr},
                                           {"T.alloc_buffer", &Parser::tAllocBuffer},
                                           {"T.sblock_alloc_buffer", &Parser::tBlockAlloc},
                                           {"T.allocate", &Parser::tAllocate},
                                           {"T.decl_buffer", &Parser::tDeclBuffer},
                                           {"T.buffer_decl", &Parser::tDeclBuffer},
                                           {"T.match_buffer", &Parser::tMatchBuffer},
                                           {"T.Buffer", &Parser::tBuffer},
                                           {"T.LetStmt", &Parser::tLetStmt},
                                           {"T.axis.spatial", &Parser::tSpatial},
                                           {"T.axis.S", &Parser::tSpatial},
                                           {"T.axis.reduce", &Parser::tReduce},
                                           {"T.axis.R", &Parser::tReduce},
                                           {"T.axis.scan", &Parser::tScan},
                                           {"T.axis.opaque", &Parser::tOpaque},
                                           {"T.axis.remap", &Parser::tRemap}};
  return table;
}

Parser::BlockState* Parser::blockHere(const Args& args) {
  if (frame_ && frame_->block) return frame_->block;
  failed(args.at, args.name + " belongs directly into a block", "put it under 'with T.sblock(\"name\"):'");
  return nullptr;
}

/// Shape, dtype and the layout keywords of a buffer, from argument `first` on. `data`: its pointer, or null
/// for a new one.
Buffer Parser::bufferArgs(Args& args, size_t first, std::string name, Var data, DType otherwise) {
  if (!need(args, first, "shape")) return nullptr;
  Array<Expr> shape, strides, separators;
  const Value* shapeArg = args.find(first, "shape");
  const Token& where = args.where(first, "shape");
  if (!exprList(*shapeArg, shape, where)) return nullptr;
  auto dtype = dtypeArg(args, first + 1, "dtype", otherwise);
  const Value* given = args.find(first + 2, "data");
  if (const Value* s = args.find(first + 3, "strides"); s && s->tag != Value::kNone)
    for (const Value& item :
         s->isSequence() ? s->items : std::vector<Value>{*s}) { // a string names a new symbol
      Expr e = item.tag == Value::kString ? Expr(var(item.text, shape.empty() ? kInt32 : shape[0]->dtype))
                                          : toExpr(item, where);
      if (!e) return nullptr;
      if (item.tag == Value::kString) bind(item.text, Value::of(e));
      strides.push_back(e);
    }
  Expr offset;
  if (const Value* o = args.find(first + 4, "elem_offset"); o && o->tag != Value::kNone) {
    offset =
        toExpr(*o, args.where(first + 4, "elem_offset"), shape.empty() ? DType::Void() : shape[0]->dtype);
    if (!offset) return nullptr;
  }
  auto scope = stringArg(args, first + 5, "scope", "global");
  auto align = intArg(args, first + 6, "align", 64);
  auto factor = intArg(args, first + 7, "offset_factor", 0);
  (void)stringArg(args, first + 8, "buffer_type", "");
  const Value* axes = args.find(first + 9, "axis_separators");
  if (axes && axes->tag != Value::kNone && !exprList(*axes, separators, where)) return nullptr;
  if (!dtype || !scope || !align || !factor) return nullptr;
  if (*align < 0 || *align > 1 << 20 || *factor < 0)
    return failed(args.at, "align and offset_factor are not negative"), nullptr;
  if (dtype->isVoid() || dtype->isString())
    return failed(args.at, "a buffer cannot hold " + dtype->str()), nullptr;
  for (const auto* list : {&shape, &strides})
    for (const Expr& e : *list) {
      if (!e->dtype.isInt() || e->dtype.isVector())
        return failed(where, "dimensions and strides are signed integers, not " + e->dtype.str()), nullptr;
      if (auto c = asConst(e); c && *c < 0 && list == &shape)
        return failed(where, "a dimension is negative"), nullptr;
    }
  if (!strides.empty() && strides.size() != shape.size())
    return failed(args.at, "a buffer has one stride for each dimension"), nullptr;
  if (offset && (!offset->dtype.isInt() || offset->dtype.isVector()))
    return failed(args.at, "elem_offset is a signed integer"), nullptr;
  if (!offset && *factor > 0) offset = var(name + "_elem_offset", shape.empty() ? kInt32 : shape[0]->dtype);
  if (given && given->tag != Value::kNone && !data) {
    data = given->as<VarNode>() ? cast<VarNode>(given->node) : Var();
    if (!data || !data->dtype.isHandle())
      return failed(args.at, "data= takes a pointer such as A.data"), nullptr;
  }
  if (!finish(args)) return nullptr;
  if (!data) data = buffer(name, *dtype, {}, *scope)->data;
  auto b = make<BufferNode>(data, *dtype, shape, std::move(name));
  b->strides = strides, b->elemOffset = offset, b->scope = *scope, b->alignment = *align,
  b->offsetFactor = *factor, b->axisSeparators = separators;
  return b;
}

/// In a signature: the parameter. In an assignment with data=: a declaration over memory that exists.
Value Parser::tBuffer(Args& args) {
  if (inSignature_) {
    Buffer b = bufferArgs(args, 0, targetName("buffer"), nullptr, kFloat32);
    return b ? Value::declared(b) : Value();
  }
  return tDeclBuffer(args);
}

Value Parser::tDeclBuffer(Args& args) {
  const Value* data = args.find(2, "data");
  if (!data || data->tag == Value::kNone)
    return failed(args.at, args.name + " needs data=, the memory that the buffer lies in",
                  "use T.alloc_buffer for new memory");
  if (!frame_) return failed(args.at, args.name + " is a statement");
  Buffer b = bufferArgs(args, 0, targetName("buffer"), nullptr, kFloat32);
  if (!b || !countWrapper(args.at)) return Value();
  add(make<DeclBufferNode>(b, Stmt()), args.at);
  return Value::declared(b);
}

Value Parser::tAllocBuffer(Args& args) {
  bool ofBlock =
      frame_ && ((frame_->block && frame_->block->oldSpelling) || (frame_->function && oldAllocs_));
  if (ofBlock) return tBlockAlloc(args);
  if (!frame_) return failed(args.at, args.name + " is a statement");
  Dict annotations;
  if (const Value* a = args.find(Args::kKeywordOnly, "annotations"); a && a->tag != Value::kNone) {
    annotations = attrDict(*a, args.at);
    if (!annotations) return Value();
  }
  Buffer b = bufferArgs(args, 0, targetName("buffer"), nullptr, kFloat32);
  if (!b || !countWrapper(args.at)) return Value();
  add(make<AllocNode>(b, Stmt(), annotations), args.at);
  return Value::declared(b);
}

Value Parser::tBlockAlloc(Args& args) {
  if (!frame_ || (!frame_->block && !frame_->function))
    return failed(args.at, args.name + " belongs directly into a block or function",
                  "use T.alloc_buffer inside loops");
  Buffer b = bufferArgs(args, 0, targetName("buffer"), nullptr, kFloat32);
  if (!b) return Value();
  (frame_->block ? frame_->block->allocs : rootAllocs_).push_back(b);
  return Value::declared(b);
}

/// Older lowered programs: a pointer to new memory, A = T.allocate([128], "float32", "local").
Value Parser::tAllocate(Args& args) {
  if (!frame_) return failed(args.at, args.name + " is a statement");
  if (!need(args, 0, "extents")) return Value();
  Array<Expr> shape;
  auto dtype = dtypeArg(args, 1, "dtype", kFloat32);
  auto scope = stringArg(args, 2, "scope", "global");
  if (!dtype || !scope || !exprList(*args.find(0, "extents"), shape, args.at)) return Value();
  args.find(3, "condition");
  Dict annotations;
  if (const Value* a = args.find(4, "annotations"); a && a->tag == Value::kDict)
    annotations = attrDict(*a, args.at);
  if (!finish(args)) return Value();
  for (const Expr& e : shape)
    if (!e->dtype.isInt() || e->dtype.isVector()) return failed(args.at, "dimensions are signed integers");
  Buffer b = buffer(targetName("buffer"), *dtype, shape, *scope);
  if (!countWrapper(args.at)) return Value();
  add(make<AllocNode>(b, Stmt(), annotations), args.at);
  return Value::declared(b->data);
}

/// Of a parameter: A = T.match_buffer(a, (n, 128), "float32"). Of a region, in a block: a view of it.
Value Parser::tMatchBuffer(Args& args) {
  if (!need(args, 0, "param")) return Value();
  const Value source = *args.find(0, "param");
  std::string name = targetName("buffer");
  if (auto* handle = source.as<VarNode>()) {
    size_t i = 0;
    while (i < params_.size() && params_[i].get() != handle) ++i;
    if (i == params_.size() || !handle->dtype.isHandle())
      return failed(args.at, "T.match_buffer takes a parameter of type T.handle, or a region of a buffer");
    if (buffers_[i]) return failed(args.at, "the parameter '" + handle->name + "' has a buffer already");
    Buffer b = bufferArgs(args, 1, name, nullptr, kFloat32);
    if (!b) return Value();
    for (auto& scope : scopes_)
      for (auto& [key, value] : scope)
        if (value.as<VarNode>() == handle) value = Value::of(b->data);
    params_.set(i, b->data), buffers_.set(i, b);
    return Value::declared(b);
  }
  BlockState* block = blockHere(args);
  BufferRegion region;
  if (!block || !toRegion(source, region, args.where(0, "param"))) return Value();
  if (!args.find(1, "shape")) {
    Value shape;
    shape.tag = Value::kTuple;
    for (const Range& r : region->region) shape.items.push_back(Value::of(r->extent));
    args.kw.emplace_back("shape", shape);
    args.kwAt.push_back(args.at);
  }
  Buffer b = bufferArgs(args, 1, name, nullptr, region->buffer->dtype);
  if (!b) return Value();
  block->matches.push_back(make<const MatchBufferNode>(b, region));
  return Value::declared(b);
}

Value Parser::tLetStmt(Args& args) {
  Expr value = exprArg(args, 0, "value");
  const Value* type = args.find(1, "type");
  if (!value || !finish(args)) return Value();
  Value v = Value::of(value, args.pos.empty() ? 1 : args.pos[0].depth);
  v.tag = Value::kLet;
  if (type) v.items.push_back(*type);
  return v;
}

Value Parser::tEvaluate(Args& args) {
  Expr value = exprArg(args, 0, "value");
  if (!value || !finish(args)) return Value();
  if (!frame_) return failed(args.at, args.name + " is a statement");
  add(make<EvaluateNode>(value), args.at);
  return Value::done();
}

Value Parser::tAttr(Args& args) {
  if (!need(args, 0, "node") || !need(args, 1, "attr_key") || !need(args, 2, "value")) return Value();
  auto convert = [&](const Value& v, const Token& where) -> NodeRef {
    if (v.tag == Value::kNone) return nullptr;
    if (v.tag == Value::kNode) return v.node;
    return v.isNumber() || v.tag == Value::kString ? NodeRef(toExpr(v, where)) : attrNode(v, where);
  };
  const Value &node = *args.find(0, "node"), &value = *args.find(2, "value");
  NodeRef n = convert(node, args.at), x = convert(value, args.at);
  auto key = stringArg(args, 1, "attr_key", "");
  if (!key || !finish(args) || (!n && node.tag != Value::kNone) || (!x && value.tag != Value::kNone))
    return Value();
  if (!frame_ || !countWrapper(args.at))
    return frame_ ? Value() : failed(args.at, args.name + " is a statement");
  add(make<AttrStmtNode>(n, *key, x, Stmt()), args.at);
  return Value::done();
}

Value Parser::tWhere(Args& args) {
  BlockState* b = blockHere(args);
  if (!b || !need(args, 0, "predicate")) return Value();
  Expr p = coerce(*args.find(0, "predicate"), kBool, args.at, "the condition");
  if (!p || !finish(args)) return Value();
  if (b->predicate) return failed(args.at, "the block has T.where twice");
  for (const IterVar& i : b->iters)
    if (usesVar(p, i->var))
      return failed(args.at, "the condition of T.where uses the block's axis '" + i->var->name + "'",
                    "write it over the loops around the block");
  b->predicate = p;
  return Value::done();
}

Value Parser::regions(Args& args, bool reads) {
  BlockState* b = blockHere(args);
  if (!b) return Value();
  std::optional<Token>& seen = reads ? b->readsAt : b->writesAt;
  if (seen) return failed(args.at, "the block has " + args.name + " twice");
  seen = args.at;
  Array<BufferRegion>& out = reads ? b->reads : b->writes;
  args.taken = args.pos.size();
  for (size_t i = 0; i < args.pos.size(); ++i)
    for (const Value& item : args.pos[i].isSequence() ? args.pos[i].items : std::vector<Value>{args.pos[i]}) {
      BufferRegion r;
      if (!toRegion(item, r, args.posAt[i])) return Value();
      out.push_back(r);
    }
  return finish(args) ? Value::done() : Value();
}
Value Parser::tReads(Args& args) {
  return regions(args, true);
}
Value Parser::tWrites(Args& args) {
  return regions(args, false);
}

Value Parser::tBlockAttr(Args& args) {
  BlockState* b = blockHere(args);
  if (!b || !need(args, 0, "attrs")) return Value();
  Dict d = attrDict(*args.find(0, "attrs"), args.at);
  if (!d || !finish(args)) return Value();
  Dict merged = b->annotations ? b->annotations : d;
  for (size_t i = 0; b->annotations && i < d->keys.size(); ++i)
    merged = withAttr(merged, d->keys[i], d->values[i]);
  b->annotations = merged;
  return Value::done();
}

/// Later attributes replace earlier ones of the same name.
Value Parser::mergeFuncAttr(Args& args) {
  if (!need(args, 0, "attrs")) return Value();
  Dict d = attrDict(*args.find(0, "attrs"), args.at);
  if (!d || !finish(args)) return Value();
  Dict merged = attrs_ ? attrs_ : d;
  for (size_t i = 0; attrs_ && i < d->keys.size(); ++i) merged = withAttr(merged, d->keys[i], d->values[i]);
  attrs_ = merged;
  return Value::done();
}

Value Parser::tFuncAttr(Args& args) {
  if (!frame_ || !frame_->function) return failed(args.at, args.name + " belongs directly into the function");
  return mergeFuncAttr(args);
}

Value Parser::tFuncResult(Args& args) {
  auto dtype = dtypeArg(args, 0, "dtype", DType::Void());
  if (!dtype || !finish(args)) return Value();
  result_ = *dtype;
  return Value::done();
}

/// vi = T.axis.spatial(128, i), T.axis.reduce((min, end), value)
Value Parser::axis(Args& args, IterType type) {
  BlockState* b = blockHere(args);
  if (!b || !need(args, 0, "dom")) return Value();
  const Value& domain = *args.find(0, "dom");
  const Value* value = args.find(1, "binding");
  if (!value) value = args.find(1, "value");
  (void)dtypeArg(args, 2, "dtype", kInt32);
  if (!finish(args)) return Value();
  DType wanted; // bare bounds take the dtype of the value
  if (value)
    if (auto* e = value->as<ExprNode>(); e && e->dtype.isInteger()) wanted = e->dtype;
  Range r;
  if (domain.as<RangeNode>())
    r = cast<RangeNode>(domain.node);
  else if (domain.isSequence() && domain.items.size() == 2)
    r = rangeOf(domain.items[0], domain.items[1], args.at, wanted);
  else
    r = rangeOf(Value::integer(0), domain, args.at, wanted);
  if (!r) return Value();
  Var v = var(targetName("v"), r->extent->dtype);
  if (value) {
    Expr e = coerce(*value, v->dtype, args.where(1, "binding"), "the value of the axis");
    if (!e) return Value();
    b->values.push_back(e);
  } else if (!b->noRealize)
    return failed(args.at, args.name + " needs the value of the axis", "write T.axis.spatial(extent, value)");
  b->iters.push_back(make<const IterVarNode>(r, v, type));
  return Value::declared(v);
}
Value Parser::tSpatial(Args& args) {
  return axis(args, IterType::kSpatial);
}
Value Parser::tReduce(Args& args) {
  return axis(args, IterType::kReduce);
}
Value Parser::tScan(Args& args) {
  return axis(args, IterType::kScan);
}
Value Parser::tOpaque(Args& args) {
  return axis(args, IterType::kOpaque);
}

/// vi, vk = T.axis.remap("SR", [i, k]): each axis runs over its loop.
Value Parser::tRemap(Args& args) {
  BlockState* b = blockHere(args);
  auto kinds = b ? stringArg(args, 0, "kinds", "") : std::nullopt;
  if (!kinds || !need(args, 1, "bindings")) return Value();
  const Value& list = *args.find(1, "bindings");
  if (!finish(args)) return Value();
  if (!list.isSequence() || list.items.size() != kinds->size())
    return failed(args.at, "T.axis.remap has " + std::to_string(kinds->size()) + " kinds for " +
                               std::to_string(list.isSequence() ? list.items.size() : 1) + " values");
  Value out;
  out.tag = Value::kTuple;
  for (size_t i = 0; i < kinds->size(); ++i) {
    char k = (*kinds)[i];
    if (k != 'S' && k != 'R')
      return failed(args.at, "the kinds of T.axis.remap are S (spatial) and R (reduce)");
    auto* loop = list.items[i].as<VarNode>();
    auto range = loop ? loopRanges_.find(loop) : loopRanges_.end();
    if (range == loopRanges_.end())
      return failed(args.where(1, "bindings"), "T.axis.remap takes loop variables",
                    "use T.axis.spatial(extent, value) for other values");
    Var v = var(targetName("v"), loop->dtype);
    b->iters.push_back(
        make<const IterVarNode>(range->second, v, k == 'S' ? IterType::kSpatial : IterType::kReduce));
    b->values.push_back(Var(loop));
    out.items.push_back(Value::declared(v));
  }
  if (out.items.size() == 1) return out.items[0];
  return out;
}

} // namespace bevel::detail
