// Statements and functions of tensor programs.
#include "ir/access_hook.h"
#include "ir/parser_impl.h"
#include "ir/structural.h"

namespace bevel::detail {

bool Parser::endOfLine() {
  if (atKind(TokenKind::kEnd) || atKind(TokenKind::kDedent)) return true;
  if (atKind(TokenKind::kNewline)) return take(), true;
  return failed(peek(), "expected the end of the line, found '" + std::string(peek().text) + "'");
}

bool Parser::suiteStart() {
  if (!expect(":")) return false;
  if (!atKind(TokenKind::kNewline)) return failed(peek(), "expected the end of the line after ':'");
  while (atKind(TokenKind::kNewline)) take();
  return expectKind(TokenKind::kIndent, "an indented block");
}

std::string Parser::targetName(const char* otherwise) {
  if (targets_.empty()) return otherwise;
  std::string name(targets_.back().text);
  targets_.pop_back();
  return name;
}

/// The rest of a compound statement: ':' and an indented suite, whose statements f reads.
bool Parser::suite(FunctionRef<bool()> statement) {
  if (!suiteStart()) return false;
  while (!atKind(TokenKind::kDedent) && !atKind(TokenKind::kEnd)) {
    size_t before = pos_;
    if (atKind(TokenKind::kNewline)) {
      take();
      continue;
    }
    if (statement()) continue;
    targets_.clear();
    skipStatement();
    if (pos_ == before) take();
  }
  if (atKind(TokenKind::kDedent)) take();
  return true;
}

bool Parser::tirSuite() {
  Nested nested(*this);
  if (!nested.ok) return false;
  if (at(":") && peek(1).kind != TokenKind::kNewline) { // for …: statement
    take();
    return simple() && endOfLine();
  }
  return suite([&] { return tirStatement(); });
}

bool Parser::tirStatement() {
  if (at("for")) return forStatement();
  if (at("with")) return take(), scopedStatement();
  if (at("if")) return ifStatement();
  if (at("while")) return whileStatement();
  return simple() && endOfLine();
}

Stmt Parser::foldFrame(Frame& frame) {
  std::vector<Stmt> rest; // in reverse
  auto body = [&] { return seq(std::vector<Stmt>(rest.rbegin(), rest.rend())); };
  for (size_t i = frame.stmts.size(); i-- > 0;) {
    const Stmt& s = frame.stmts[i];
    if (const Stmt* held = bodyOf(s); held && !*held)
      rest.assign(1, withBody(s, body()));
    else
      rest.push_back(s);
  }
  return body();
}

// ---- assignments

std::vector<Token> Parser::assignTargets() const {
  std::vector<Token> targets;
  size_t k = 0;
  while (peek(k).kind == TokenKind::kName) {
    targets.push_back(peek(k));
    bool annotated = targets.size() == 1 && peek(k + 1).is(":") && adviceFor(peek(k).text, false).empty();
    if (annotated || peek(k + 1).is("=")) return targets;
    if (!peek(k + 1).is(",")) break;
    k += 2;
  }
  return {};
}

void Parser::poison(const std::vector<Token>& targets) {
  for (const Token& t : targets) bind(std::string(t.text), Value());
}

Value Parser::exprList() {
  Value first = expr();
  if (!first.ok() || !at(",")) return first;
  Value items{.tag = Value::kTuple};
  items.items.push_back(std::move(first));
  while (accept(",")) {
    items.items.push_back(expr());
    if (!items.items.back().ok()) return Value();
  }
  return items;
}

Parser::Assignment Parser::assignment() {
  Assignment a;
  a.targets = assignTargets();
  for (size_t i = 0; i < 2 * a.targets.size() - 1; ++i) take();
  bool ok = true;
  if (accept(":")) {
    a.annotation = expr();
    ok = a.annotation->ok() && expect("=");
  } else {
    take(); // =
  }
  a.where = peek();
  if (ok) {
    targets_.assign(a.targets.rbegin(), a.targets.rend());
    a.value = exprList();
    targets_.clear();
  }
  if (!a.value.ok()) poison(a.targets);
  return a;
}

/// The variable of that name which an annotation describes: a dtype or T.handle(…).
Ref<VarNode> Parser::annotated(const Token& name, const Value& annotation, const Token& where) {
  bool handle = annotation.tag == Value::kPath && annotation.text == "T.handle";
  const auto* v = annotation.fresh ? annotation.as<VarNode>() : nullptr;
  auto dtype = handle ? DType::Handle() : v ? v->dtype : dtypeOf(annotation, where);
  if (!dtype) return nullptr;
  auto x = make<VarNode>(std::string(name.text), *dtype);
  if (v) x->pointee = v->pointee, x->scope = v->scope;
  return x;
}

bool Parser::letBinding(const Token& target, const Value& value, const std::optional<Value>& annotation) {
  Ref<VarNode> x = annotation ? annotated(target, *annotation, target) : nullptr;
  if (annotation && !x) return false;
  Expr e = x ? coerce(value, x->dtype, target, "the value") : toExpr(value, target);
  if (!e) return false;
  if (e->dtype.isVoid()) return failed(target, "this call has no value");
  if (!x) x = make<VarNode>(std::string(target.text), e->dtype);
  bind(x->name, Value::of(Var(x)));
  return holdsRest(make<LetStmtNode>(Var(x), e, Stmt()), x, target).ok();
}

bool Parser::bindTargets(const std::vector<Token>& targets, Value value,
                         const std::optional<Value>& annotation, const Token& where) {
  if (targets.size() == 1)
    return seq_ ? relaxBind(targets[0], std::move(value), annotation)
                : tirBind(targets[0], std::move(value), annotation, where);
  if (seq_ && !value.isSequence()) { // a, b = f(x): the fields of a tuple
    GraphExpr tuple = graphArg(value, where);
    if (!tuple) return false;
    value = {.tag = Value::kTuple};
    for (size_t i = 0; i < targets.size(); ++i)
      value.items.push_back(Value::of(make<const TupleGetNode>(tuple, int64_t(i))));
  }
  if (!value.isSequence() || value.items.size() != targets.size())
    return failed(where, "expected " + std::to_string(targets.size()) + " values, found " +
                             (value.isSequence() ? std::to_string(value.items.size()) : describe(value)));
  for (size_t i = 0; i < targets.size(); ++i)
    if (!bindTargets({targets[i]}, value.items[i], std::nullopt, where)) return false;
  return true;
}

bool Parser::tirBind(const Token& target, Value value, const std::optional<Value>& annotation,
                     const Token& where) {
  bool isExpr = value.is<ExprNode>() || value.is<BufferRegionNode>();
  if (value.fresh && value.tag == Value::kNone) return failed(where, "this statement gives no value");
  if (!value.fresh && (isExpr || (annotation && value.isNumber())))
    return letBinding(target, value, annotation);
  bind(std::string(target.text), std::move(value));
  return true;
}

bool Parser::assign() {
  Assignment a = assignment();
  if (!a.value.ok()) return false;
  bool ok = (seq_ || a.targets.size() != 1 || mayAssign(a.targets[0], a.value)) &&
            bindTargets(a.targets, std::move(a.value), a.annotation, a.where);
  if (!ok) poison(a.targets);
  return ok;
}

bool Parser::tirStore(const Value& target, const Token& where) {
  Token op = take();
  Token valueAt = peek();
  Value value = expr();
  if (!value.ok()) return false;
  Expr place = target.tag == Value::kNode ? toExpr(target, where) : Expr();
  if (!place.is<LoadNode>())
    return failed(where, "only names and elements of buffers can be assigned",
                  "names do not change: what changes is an element of a buffer, T.alloc_buffer((1,), dtype)");
  if (!op.is("=")) {
    const Operator* row = operatorOf(op.text.substr(0, op.text.size() - 1));
    if (!row)
      return failed(op, "'" + std::string(op.text) + "' is not part of the notation", "write a = a op b");
    value = applyBinary(*row->op, Value::of(place, target.depth), value, op);
    if (!value.ok()) return false;
  }
  auto load = cast<LoadNode>(place);
  Expr e = coerce(value, load->dtype, valueAt, "the value stored");
  if (!e) return false;
  add(make<StoreNode>(load->buffer, e, load->indices), where);
  return true;
}

bool Parser::tirReturn(const Token& where) {
  bool empty = atKind(TokenKind::kNewline);
  Expr e = empty ? Expr() : toExpr(expr(), where);
  if (!e && !empty) return false;
  Expr result =
      empty ? callAs(DType::Void(), Intrin::kThreadReturn, {}) : callAs(DType::Void(), Intrin::kRet, {e});
  add(make<EvaluateNode>(result), where);
  return true;
}

/// A statement of one line, in a program or a graph function.
bool Parser::simple() {
  if (accept("pass")) return true;
  if (seq_ && seq_->result) return failed(peek(), "this statement follows the return");
  if (!seq_ && at("assert")) return assertStatement();
  Token where = peek();
  if (accept("return")) return seq_ ? relaxReturn(exprList(), where) : tirReturn(where);
  if (!seq_ && (at("def") || at("class") || at("@")))
    return failed(where, "a definition is not a statement of a tensor program");
  if (!assignTargets().empty()) return assign();
  Value v = expr();
  if (!v.ok()) return false;
  bool augmented = atKind(TokenKind::kOperator) && peek().text.size() >= 2 && peek().text.back() == '=' &&
                   !at("==") && !at("<=") && !at(">=") && !at("!=");
  if (!seq_ && (at("=") || augmented)) return tirStore(v, where);
  if (v.fresh || v.tag == Value::kString || v.tag == Value::kNone) return true;
  if (!seq_ && v.is<CallNode>()) return add(make<EvaluateNode>(v.to<CallNode>()), where), true;
  if (seq_ && v.is<GraphCallNode>()) {
    where.text = "_";
    return relaxBind(where, std::move(v), std::nullopt);
  }
  return failed(where, "this expression has no effect", seq_ ? "" : "use T.evaluate(…) to evaluate it");
}

bool Parser::assertStatement() {
  Token where = take();
  Expr c = coerce(expr(), kBool, where, "the condition");
  if (!c) return false;
  std::string message;
  if (accept(",")) {
    Value text = expr();
    if (!text.ok()) return false;
    if (text.tag != Value::kString) return failed(where, "the message of an assertion is a string");
    message = text.text;
  }
  add(make<AssertNode>(c, message), where);
  return true;
}

// ---- compound statements

/// range(n), T.grid(n, m), T.parallel(start, stop), T.thread_binding(n, thread="threadIdx.x")
Value Parser::loops(Args& args) {
  Value out{.tag = Value::kLoops, .number = args.code, .keys = {args.name}};
  bool grid = args.name == "T.grid";
  size_t n = args.pos.size();
  Dict annotations;
  if (!dictArg(args, "annotations", annotations)) return Value();
  out.node = annotations;
  if (ForKind(args.code) == ForKind::kThreadBinding) {
    bool last = n >= 2 && args.pos.back().tag == Value::kString;
    out.text = last ? args.pos.back().text : stringArg(args, "thread");
    if (out.text.empty()) return failed(args.at, "T.thread_binding needs thread=\"blockIdx.x\" or the like");
    n -= last;
  }
  if (intArg(args, "step", 1) != 1)
    return failed(args.at, "loops have a step of 1", "multiply the variable instead");
  if (!grid && (n < 1 || n > 2)) return failed(args.at, args.name + " takes a stop, or a start and a stop");
  for (size_t i = grid ? 0 : n - 1; i < n; ++i) {
    Range r = rangeOf(!grid && n == 2 ? args.pos[0] : Value::integer(0), args.pos[i], args.posAt[i]);
    if (!r) return Value();
    out.items.push_back(Value::of(r));
  }
  return out;
}

bool Parser::forHeader(const std::vector<Token>& targets, std::vector<For>& loops) {
  Token where = peek();
  Value v = postfix();
  if (!v.ok()) return false;
  if (v.tag != Value::kLoops)
    return failed(where, "cannot loop over " + describe(v),
                  "use range, T.grid, T.serial, T.parallel, T.vectorized, T.unroll or T.thread_binding");
  if (v.items.size() != targets.size())
    return failed(where, v.keys[0] + " gives " + std::to_string(v.items.size()) + " loop variable" +
                             (v.items.size() == 1 ? "" : "s") + ", but " + std::to_string(targets.size()) +
                             (targets.size() == 1 ? " is named" : " are named"));
  for (size_t i = 0; i < targets.size(); ++i) {
    Range r = cast<RangeNode>(v.items[i].node);
    Var x = var(std::string(targets[i].text), r->extent->dtype);
    auto loop = make<ForNode>(x, r->min, r->extent, ForKind(v.number), Stmt(),
                              v.node ? cast<DictNode>(v.node) : Dict(), v.text);
    loops.push_back(placed(loop, targets[i]));
    loopRanges_[x] = r;
  }
  return true;
}

bool Parser::forStatement() {
  take();
  std::vector<Token> targets;
  do {
    if (!atKind(TokenKind::kName)) return failed(peek(), "expected a loop variable");
    targets.push_back(take());
  } while (accept(","));
  std::vector<For> loops;
  bool ok = expect("in") && forHeader(targets, loops);
  if (!ok) // read the body anyway: it may hold further errors
    while (!atKind(TokenKind::kNewline) && !atKind(TokenKind::kEnd) &&
           !(at(":") && peek(1).kind == TokenKind::kNewline))
      take();
  Stmt body;
  bool read = inFrame(body, [&] {
    if (!ok) poison(targets);
    for (const For& l : loops) bind(l->var->name, Value::of(l->var));
    return tirSuite();
  });
  if (!ok || !read) return read;
  for (size_t i = loops.size(); i-- > 0;) {
    auto loop = mutableCopy(loops[i]);
    loop->body = body;
    body = Stmt(loop);
  }
  frame_->stmts.push_back(body);
  return true;
}

bool Parser::ifStatement() {
  Token where = take(), conditionAt = peek();
  Expr condition = coerce(expr(), kBool, conditionAt, "the condition");
  if (!condition) return false;
  Stmt then, otherwise;
  if (!inFrame(then, [&] { return tirSuite(); })) return false;
  if (at("elif")) {
    Nested nested(*this);
    if (!nested.ok) return false;
    if (!inFrame(otherwise, [&] { return ifStatement(); })) return true;
  } else if (accept("else") && !inFrame(otherwise, [&] { return tirSuite(); }))
    return false;
  add(make<IfNode>(condition, then, otherwise), where);
  return true;
}

bool Parser::whileStatement() {
  Token where = take(), conditionAt = peek();
  Expr condition = coerce(expr(), kBool, conditionAt, "the condition");
  Stmt body;
  if (!condition || !inFrame(body, [&] { return tirSuite(); })) return false;
  add(make<WhileNode>(condition, body), where);
  return true;
}

/// T.sblock("name"): an empty name stands for a new one, because a block is its name.
Value Parser::tSblock(Args& args) {
  auto name = stringArg(args, "name");
  bool noRealize = intArg(args, "no_realize", 0);
  if (name.empty()) {
    name = "block";
    for (int i = 1; blockNames_.contains(name); ++i) name = "block_" + std::to_string(i);
  }
  blockNames_.insert(name);
  sawBlock_ = true;
  BlockState* block = frame_ ? frame_->opened : nullptr;
  if (!block) return failed(args.at, args.name + " belongs behind 'with'");
  block->name = name, block->noRealize = noRealize, block->oldSpelling = args.code == 1;
  return {.tag = Value::kBlock};
}

Value Parser::tInit(Args& args) {
  BlockState* block = frame_ ? frame_->around : nullptr;
  if (!block) return failed(args.at, "T.init() belongs directly into a block");
  if (block->init) return failed(args.at, "the block has T.init() twice");
  return {.tag = Value::kInit};
}

/// with T.sblock("name"):, with T.init():, or statements that the rest of the scope belongs to: with T.LetStmt(value)
/// as x:, with T.alloc_buffer(…) as A:, with T.attr(…): – the suite follows, or another item after a comma.
bool Parser::scopedStatement() {
  Token where = peek(), with = previous();
  std::optional<Token> name; // after `as`, which ends this item
  size_t begin = pos_;
  if (skipTo("as", ",") && peek(1).kind == TokenKind::kName) name = peek(1);
  pos_ = begin;
  targets_.clear();
  if (name) targets_ = {*name};
  BlockState block, *around = frame_->block;
  Frame frame{.around = around, .opened = &block};
  Value head;
  Stmt body;
  auto read = [&]() -> bool {
    head = expr();
    targets_.clear();
    frame.around = frame.opened = nullptr;
    if (!head.ok()) return false;
    if (head.tag == Value::kBlock) frame.block = &block;
    if (head.tag == Value::kBlock || head.tag == Value::kInit) return tirSuite();
    if (head.tag == Value::kLet) {
      if (!name) return failed(where, "name the variable: with T.LetStmt(value) as x:");
      std::optional<Value> type;
      if (!head.items.empty()) type = head.items[0];
      if (!letBinding(*name, Value::of(head.node, head.depth), type)) return false;
    } else if (name)
      bind(std::string(name->text), head);
    if (name) take(), take();
    if (frame.stmts.size() != 1)
      return failed(where, "this has no meaning in a 'with'",
                    "T.sblock, T.init, T.LetStmt, T.alloc_buffer, T.decl_buffer, T.launch_thread and T.attr "
                    "open a scope");
    return accept(",") ? scopedStatement() : tirSuite();
  };
  if (!inFrame(frame, body, read)) return false;
  if (head.tag == Value::kInit)
    around->init = body;
  else
    frame_->stmts.push_back(head.tag == Value::kBlock ? finishBlock(block, body, with) : body);
  return true;
}

/// Regions that the text leaves out are found from the body; those it states must cover the body. The block that is
/// all of a function declares nothing.
Block Parser::withAccess(const BlockState& b, Block block, bool isRoot) {
  if (!errors_.empty() || !accessHook.detect) return block;
  auto bufferOf = [&](const Var& data) {
    for (size_t i = scopes_.size(); i-- > 0;)
      for (const auto& entry : scopes_[i])
        if (auto* found = entry.second.as<BufferNode>(); found && found->data == data) return Buffer(found);
    return Buffer();
  };
  if (!b.readsAt || !b.writesAt) block = accessHook.detect(block, !b.readsAt, !b.writesAt, bufferOf);
  bool inWrites = false;
  if (isRoot || !(b.readsAt || b.writesAt)) return block;
  if (Status s = accessHook.check(block, inWrites); !s) {
    const std::optional<Token>& at = inWrites ? b.writesAt : b.readsAt;
    if (at) failed(*at, s.error().message, s.error().notes.empty() ? "" : s.error().notes[0]);
  }
  return block;
}

Stmt Parser::finishBlock(BlockState& b, Stmt body, const Token& where) {
  auto block = make<BlockNode>(b.name);
  block->iters = b.iters, block->allocs = b.allocs, block->matches = b.matches;
  block->reads = b.reads, block->writes = b.writes;
  block->annotations = b.annotations, block->init = b.init, block->body = std::move(body);
  block->origin = originAt(where);
  Block complete = withAccess(b, Block(block), frame_ && frame_->function && b.iters.empty());
  if (b.noRealize) return complete;
  return placed(make<BlockRealizeNode>(b.values, b.predicate ? b.predicate : boolImm(true), complete), where);
}

// ---- functions

bool Parser::primParam(const Token& name) {
  targets_ = {name};
  Token where = peek();
  inSignature_ = true;
  Value a = expr();
  inSignature_ = false;
  targets_.clear();
  if (!a.ok()) return false;
  Buffer b = a.to<BufferNode>();
  Var v = b ? b->data : annotated(name, a, where);
  if (!v) return false;
  params_.push_back(v), buffers_.push_back(b);
  bind(std::string(name.text), b ? Value::of(b) : Value::of(v));
  return true;
}

/// Scalars first: the shapes of buffers may name them.
bool Parser::primParams() {
  struct Param {
    Token name;
    size_t at;
  };
  std::vector<Param> list;
  if (!expect("(")) return false;
  while (!at(")")) {
    Token name = peek();
    if (!expectKind(TokenKind::kName, "a parameter") || !expect(":")) return false;
    list.push_back({name, pos_});
    skipTo(",");
    if (!accept(",")) break;
  }
  size_t end = pos_;
  Array<Var> params(std::vector<Var>(list.size()));
  Array<Buffer> buffers(std::vector<Buffer>(list.size()));
  for (bool bufferTurn : {false, true})
    for (size_t i = 0; i < list.size(); ++i) {
      pos_ = list[i].at;
      if (peek(2).is("Buffer") != bufferTurn) continue;
      params_ = {}, buffers_ = {};
      if (!primParam(list[i].name)) return false;
      if (!at(",") && !at(")")) return failed(peek(), "expected ',' or ')' after a parameter");
      params.set(i, params_[0]), buffers.set(i, buffers_[0]);
    }
  params_ = params, buffers_ = buffers;
  pos_ = end;
  return expect(")");
}

GraphExpr Parser::primFunc(const Decorators& marks) {
  Token where = previous();
  params_ = {}, buffers_ = {}, attrs_ = nullptr, result_ = DType::Void(), sawBlock_ = false, rootAllocs_ = {},
  wrappers_ = 0;
  loopRanges_.clear(), threads_.clear(), axes_.clear(), undeclared_.clear(), targets_.clear(),
      blockNames_.clear();
  Frame frame{.function = true};
  Stmt body;
  bool ok = inFrame(frame, body, [&] {
    if (!primParams()) return false;
    if (accept("->") && !accept("None") && !expr().ok()) return false;
    oldAllocs_ = false;
    int depth = 0;
    for (size_t i = pos_; i + 2 < tokens_.size() && !marks.sTir;
         ++i) { // old spelling anywhere in the function
      depth += (tokens_[i].kind == TokenKind::kIndent) - (tokens_[i].kind == TokenKind::kDedent);
      if (tokens_[i].kind == TokenKind::kDedent && depth <= 0) break;
      oldAllocs_ |= tokens_[i].is(".") && tokens_[i + 1].is("block") && tokens_[i + 2].is("(");
    }
    return tirSuite();
  });
  if (!ok) return nullptr;
  auto* realize = body.as<BlockRealizeNode>();
  bool explicitRoot =
      realize && realize->block->iters.empty() && realize->block->name == "root" && rootAllocs_.empty();
  if ((sawBlock_ || marks.sTir || !rootAllocs_.empty()) && !explicitRoot) {
    auto root = make<BlockNode>("root");
    root->allocs = rootAllocs_, root->body = body;
    body = make<const BlockRealizeNode>(Array<Expr>{}, boolImm(true), Block(root));
  }
  if (marks.isPrivate) attrs_ = withAttr(attrs_, "private", boolImm(true));
  auto f = make<PrimFuncNode>(params_, buffers_, body, attrs_);
  f->result = result_;
  return placed(f, where);
}

} // namespace bevel::detail
