// The parser's state and members, shared by the parser_*.cc files.
//
// Recursive descent that evaluates as it goes: every expression becomes a Value, calls of `T.`, `R.` and `I.`
// functions go through tables of handlers. No member throws; a failed Value or a false means that an error
// has been recorded.
#pragma once

#include "base/function_ref.h"
#include "base/near_name.h"
#include "ir/build.h"
#include "ir/notation.h"
#include "ir/parser.h"
#include "ir/parser_value.h"
#include "ir/script.h"

#include <optional>
#include <unordered_map>
#include <unordered_set>

namespace bevel::detail {

/// The intrinsic of that name.
std::optional<Intrin> intrinOf(std::string_view name);
/// What a node stands for in an expression.
Value capturedValue(const NodeRef& node);

/// Gives a place another value until the end of the scope.
template <class T> class Saved {
public:
  Saved(T& place, std::type_identity_t<T> value)
      : place_(place), old_(std::exchange(place, std::move(value))) {}
  ~Saved() { place_ = std::move(old_); }

private:
  T& place_;
  T old_;
};

class Parser {
public:
  Parser(std::string_view text, const ParseOptions& options) : text_(text), options_(options) {}
  Result<Module> module();
  Result<NodeRef> function();
  Result<NodeRef> expression();
  Status script(ScriptHandler handler);
  /// A row of spellings.def.
  struct Spelling {
    std::string_view names, parameters, meaning;
  };

private:
  /// A form of the notation: a row of notation.def.
  struct Form {
    Value (Parser::*handler)(Args&);
    int code;
    std::string_view arguments;
  };
  static const std::vector<std::pair<std::string_view, Form>>& forms(); // by spelling, sorted
  static const Form* findForm(std::string_view name);

  // ---- parser.cc: tokens, errors, names, module level
  bool start();
  const Token& peek(size_t ahead = 0) const { return tokens_[std::min(pos_ + ahead, tokens_.size() - 1)]; }
  const Token& previous() const { return tokens_[pos_ ? pos_ - 1 : 0]; }
  bool at(std::string_view text) const { return peek().is(text); }
  bool atKind(TokenKind kind) const { return peek().kind == kind; }
  const Token& take() {
    const Token& t = peek();
    if (pos_ + 1 < tokens_.size()) ++pos_;
    return t;
  }
  bool accept(std::string_view text) { return at(text) && (take(), true); }
  bool expect(std::string_view text);
  static std::string found(const Token& t); // for messages
  bool expectKind(TokenKind kind, const char* what);
  Failed failed(const Token& where, std::string message, std::string hint = "");
  Error firstError();
  bool skipTo(std::string_view text, std::string_view orElse = "");
  void skipStatement();
  void skipSuite();
  Origin originAt(const Token& t);
  template <class T> Ref<const T> placed(Ref<T> node, const Token& t) {
    node->origin = originAt(t);
    return node;
  }

  /// Names bound during its life are gone afterwards.
  struct Scope {
    Parser& parser;
    explicit Scope(Parser& p) : parser(p) { p.scopes_.emplace_back(); }
    ~Scope() { parser.scopes_.pop_back(); }
  };
  void bind(const std::string& name, Value value);
  const Value* lookup(std::string_view name) const;
  Value nameValue(const Token& t);

  void imports();
  void importLine();
  struct Decorators {
    std::string kind; // the last name of the last one
    bool isPrivate = false, pure = true, sTir = false;
  };
  std::optional<Decorators> decorators();
  void findFunctions();
  bool moduleClass();
  bool moduleStatement();
  bool functionDef();
  bool constantDef();
  GlobalVar globalVar(const std::string& name);
  Value failedHabit(const Token& word, std::string advice);

  // ---- parser_expr.cc: the grammar
  Value expr(int least = kPrecLowest);
  Value unary();
  Value postfix();
  Value atom();
  Value bracketed(std::string_view close, Value::Tag tag);
  Value dictionary();
  Value number();
  Value call(Value callee, const Token& where);
  Value arguments(Args& args);
  Value subscript(Value base, const Token& where);
  Value subscriptItem();
  Value sliceOf(const Value& base, const Value& slice, const Token& where);
  Value attribute(const Value& base, const Token& where);
  Value bufferAttribute(const Buffer& b, const Token& name);
  Value indexBuffer(const Buffer& b, std::vector<Value> items, const Token& where);
  struct Nested {
    Parser& parser;
    bool ok;
    explicit Nested(Parser& p);
    ~Nested() { --parser.nesting_; }
  };

  // ---- parser_forms.cc: calls that bind names inside their parentheses
  Var newVar(const Token& name, DType dtype);
  bool argumentPlaces(Args& args);
  const Token& startOf(const Args& args, std::string_view key);
  bool argumentEnds();
  Value read(const Args& args, std::string_view key);
  std::optional<Token> readName(const Args& args, std::string_view key);
  bool lambda(Array<Var>& params, Value& result, FunctionRef<DType(size_t)> dtype);

  // ---- parser_value.cc: conversions and arithmetic
  Expr toExpr(const Value& v, const Token& where, DType wanted = DType::Void());
  Expr exprArg(const Args& args, std::string_view key, DType wanted = DType::Void());
  Expr literal(const Value& v, DType wanted, const Token& where);
  Expr coerce(const Value& v, DType wanted, const Token& where, const char* what);
  bool meet(Expr& a, Expr& b, const Token& where);
  bool toExprs(const Value& a, const Value& b, Expr& x, Expr& y, const Token& where);
  Value applyBinary(BinaryOp op, const Value& a, const Value& b, const Token& where);
  Value power(const Value& a, const Value& b, const Token& where);
  Value applyUnary(std::optional<UnaryOp> op, const Value& a, const Token& where);
  Value foldNumbers(BinaryOp op, bool trueDivision, const Value& a, const Value& b, const Token& where);
  Value makeBinary(BinaryOp op, const Value& a, const Value& b, const Token& where);
  NodeRef attrNode(const Value& v, const Token& where);
  Dict attrDict(const Value& v, const Token& where);
  static Dict merged(const Dict& a, const Dict& b);
  bool dictArg(const Args& args, std::string_view key, Dict& out);
  bool hasType(const Value& v, std::string_view type, const Token& where);
  // Arguments whose types the form's row names.
  int64_t intArg(const Args& args, std::string_view key, int64_t otherwise);
  std::string stringArg(const Args& args, std::string_view key, std::string otherwise = "");
  DType dtypeArg(const Args& args, std::string_view key, DType otherwise = DType::Void());
  std::optional<DType> dtypeOf(const Value& v, const Token& where);
  bool exprList(const Value& v, Array<Expr>& out, const Token& where, DType wanted = DType::Void());
  BufferRegion toRegion(const Value& v, const Token& where);
  Range rangeOf(const Value& start, const Value& stop, const Token& where, DType wanted = DType::Void());
  Value over(Expr e, int depth, const Token& where);
  std::string describe(const Value& v) const;
  /// Converts values until one fails.
  template <class T, class F> bool collect(std::span<const Value> values, Array<T>& out, F&& convert) {
    for (const Value& v : values) {
      T node = convert(v);
      if (!node) return false;
      out.push_back(std::move(node));
    }
    return true;
  }
  /// The same for the positional arguments that the form has no names for.
  template <class T>
  bool rest(const Args& args, Array<T>& out, T (Parser::*convert)(const Value&, const Token&)) {
    const Token* at = args.posAt.data() + args.rest;
    return collect(std::span(args.pos).subspan(args.rest), out,
                   [&](const Value& v) { return (this->*convert)(v, *at++); });
  }

  // ---- parser_tir.cc: tensor programs
  struct BlockState {
    std::string name;
    Array<IterVar> iters;
    Array<Expr> values;
    Expr predicate;
    Array<Buffer> allocs;
    Array<MatchBuffer> matches;
    Array<BufferRegion> reads, writes;
    std::optional<Token> readsAt, writesAt;
    bool oldSpelling = false, noRealize = false;
    Dict annotations;
    Stmt init;
  };
  struct Frame {                                     // statements of one suite
    std::vector<Stmt> stmts{};                       // those that hold the rest have a null body
    BlockState* block = nullptr;                     // the suite is this block's
    bool function = false;                           // the function's own suite
    BlockState *around = nullptr, *opened = nullptr; // for the head of a `with`: T.init()'s block, a new one
  };
  GraphExpr primFunc(const Decorators& marks);
  bool primParams();
  bool primParam(const Token& name);
  bool suite(FunctionRef<bool()> statement);
  bool tirSuite(); // ':' and the statements, into the current frame
  bool tirStatement();
  bool simple();
  bool assign();
  bool tirBind(const Token& target, Value value, const std::optional<Value>& annotation, const Token& where);
  bool tirStore(const Value& target, const Token& where);
  bool tirReturn(const Token& where);
  bool mayAssign(const Token& target, const Value& value);
  void poison(const std::vector<Token>& targets);
  std::vector<Token> assignTargets() const; // of `a, b = …` and `a: T = …`; empty for other statements
  struct Assignment {
    std::vector<Token> targets;
    std::optional<Value> annotation;
    Token where; // the value
    Value value; // not ok: reported, and the targets are poisoned
  };
  Assignment assignment();
  Value exprList(); // `x`, or `x, y` as a tuple
  Value mergeAttrs(Dict& attrs, Args& args);
  bool bindTargets(const std::vector<Token>& targets, Value value, const std::optional<Value>& annotation,
                   const Token& where);
  Ref<VarNode> annotated(const Token& name, const Value& annotation, const Token& where);
  bool letBinding(const Token& target, const Value& value, const std::optional<Value>& annotation);
  bool forStatement();
  bool forHeader(const std::vector<Token>& targets, std::vector<For>& loops);
  bool scopedStatement();
  /// The statements that f reads, as one.
  template <class F> bool inFrame(Frame& frame, Stmt& out, F&& f) {
    Saved outer(frame_, &frame);
    Scope scope(*this);
    if (!f()) return false;
    out = foldFrame(frame);
    return true;
  }
  template <class F> bool inFrame(Stmt& out, F&& f) {
    Frame frame;
    return inFrame(frame, out, f);
  }
  bool ifStatement();
  bool whileStatement();
  bool assertStatement();
  Stmt foldFrame(Frame& frame);
  Stmt finishBlock(BlockState& b, Stmt body, const Token& where);
  Block withAccess(const BlockState& b, Block block, bool isRoot);
  template <class T> void add(Ref<T> stmt, const Token& where) {
    stmt->origin = originAt(where);
    if (frame_) frame_->stmts.push_back(Stmt(stmt));
  }
  /// A statement that holds the rest of its scope, and what it declares, if anything.
  template <class T> Value holdsRest(Ref<T> stmt, const NodeRef& declared, const Token& where) {
    if (++wrappers_ > 4000) return failed(where, "too many declarations in one function");
    add(stmt, where);
    return declared ? Value::declared(declared) : Value::done();
  }
  bool endOfLine();
  bool suiteStart();
  std::string targetName(const char* otherwise);

  // ---- parser_calls.cc: forms of the notation; parser_tir_calls.cc and parser_tir_decls.cc: those of T.
  Value callUnlisted(Args& args);
  bool bindArguments(Args& args, std::string_view arguments);
  Value unknownForm(const Args& args);
  Value intrinsic(Intrin op, Args& args);
  Value dtypeCall(DType dtype, Args& args);
  Buffer bufferArgs(Args& args, DType otherwise);
#define FORM(handler, spellings, arguments) Value handler(Args&);
#include "ir/notation.def"
  Value binaryCall(Args& args);
  Value loops(Args& args);
  Value unaryCall(Args& args);
  Value bufferVector(Args& args);
  Value bindingBlock(Args& args);
  Value namedFunction(Args& args);
  Value tLimit(Args& args);
  Value regions(Args& args);
  Value axis(Args& args);
  Value callTirLike(Args& args);
  bool inPlace(const Args& args, bool inBlock);

  // ---- parser_relax.cc: graph functions
  struct SeqState {
    Array<BindingBlock> blocks;
    std::vector<NodeRef> plain;           // bindings of the plain block under way
    std::vector<NodeRef>* open = nullptr; // the dataflow or explicit block under way
    bool dataflow = false;
    std::unordered_map<std::string, int> outputs; // names that R.output lists, with their assignments to come
    GraphExpr result;                             // of the function, once returned
    std::string lastName;                         // what the last statement bound
    bool lastIsBinding = false;
  };
  GraphExpr relaxFunction(const std::string& name, const Decorators& marks);
  bool relaxParams(Array<GraphVar>& params);
  bool relaxStatement();
  bool relaxBind(const Token& target, Value value, const std::optional<Value>& annotation);
  bool relaxReturn(const Value& value, const Token& where);
  bool relaxIf();
  bool relaxBranch(SeqExpr& out, GraphVar& var, const Token& where);
  bool relaxWith();
  bool relaxNested();
  void findOutputs();
  void emit(NodeRef binding);
  void closePlain();
  GraphExpr leaf(GraphExpr e, const char* name);
  GraphExpr flatten(GraphExpr e);
  static bool isLeaf(const GraphExpr& e);

  // ---- parser_relax_calls.cc and parser_types.cc: handlers of R.
  Value relaxOp(const std::string& op, Args& args);
  bool operands(const OpSignature& signature, Args& args, std::vector<const Value*>& values,
                std::vector<std::pair<std::string, NodeRef>>& attrs);
  GraphExpr graphArg(const Value& v, const Token& where);
  GraphExpr tupleArg(const Value& v, const Token& where);
  Value callValue(GraphExpr callee, Args& args);
  Value finishCall(GraphExpr op, Array<GraphExpr> values, Dict attrs, Array<Type> typeArgs);
  bool typeList(const Value& v, Array<Type>& out, const Token& where);
  Type toType(const Value& v, const Token& where);
  bool dimensions(const Value& v, Array<Expr>& out, const Token& where, bool signs = false);
  Expr dimension(const Value& v, const Token& where,
                 bool signs = false); // signs: as an operator's argument, -1 may stand for something
  Expr parseDimension(const std::string& text, const Token& where);
  bool outTypes(Args& args, Array<Type>& out);
  bool opAttributes(Args& args, Dict& out);
  bool constItems(const Value& v, std::vector<int64_t>& shape, std::vector<const Value*>& items, size_t axis,
                  const Token& where);

  // ---- parser_spelling.cc: other spellings of operators
  bool fitsCondition(Value& v);
  bool bindSpelling(std::string_view parameters, const Args& args);
  std::optional<Value> spelled(const std::string& op, const Args& args);
  /// What f reads from another text, whose faults lie at `where`.
  Value evaluate(std::string_view text, const Token& where, FunctionRef<Value()> f);
  bool expanding_ = false; // the text is the meaning of another spelling

  // ---- parser_script.cc: schedule scripts
  bool scriptLine();
  Value scriptCall(Args& args);
  Value scriptLambda();
  bool unpack(std::vector<Value>& items, std::vector<Token>* places); // `*list`
  bool bindScript(const std::vector<std::string>& names, bool isTuple, const Value& value,
                  const Token& where);

  std::string_view text_;
  const ParseOptions& options_;
  const ScriptHandler* script_ = nullptr; // of a schedule script: runs its calls
  std::vector<std::string> scriptNames_;  // that the call under way gives its result to
  bool scriptList_ = false;               // one name for a list
  std::vector<Token> tokens_;
  size_t pos_ = 0;
  int nesting_ = 0;
  std::vector<Error> errors_;
  std::vector<std::unordered_map<std::string, Value>> scopes_;
  std::unordered_map<std::string, std::string> aliases_; // import names: "T" → "T", "tir" → "T"
  std::unordered_map<std::string, GlobalVar> globals_;
  std::vector<std::pair<std::string, GraphExpr>> functions_; // read so far
  std::vector<std::string> functionNames_;
  bool knownFunctions_ = false; // functionNames_ are all there are
  std::string className_;
  Dict moduleAttrs_;

  // The function under way.
  Array<Var> params_;
  Array<Buffer> buffers_;
  Dict attrs_;
  DType result_;
  bool oldAllocs_ = false; // T.alloc_buffer means a block's buffer
  bool sawBlock_ = false;
  bool inSignature_ = false;
  Array<Buffer> rootAllocs_;
  int wrappers_ = 0; // statements that hold the rest of their scope
  std::unordered_map<Var, Range, RefHash> loopRanges_;
  std::unordered_map<Var, std::string, RefHash> threads_; // tags of T.env_thread
  std::unordered_set<Var, RefHash> axes_;                 // of blocks
  std::unordered_set<std::string> blockNames_;
  Frame* frame_ = nullptr;
  SeqState* seq_ = nullptr;
  std::vector<Token> targets_; // names on the left of the assignment under way, the first one last
  bool defineSymbols_ = false; // an unknown name in a dimension is a new symbolic dimension
  std::unordered_set<Var, RefHash> undeclared_; // symbolic dimensions not yet declared by `n = T.int64()`
};

} // namespace bevel::detail
