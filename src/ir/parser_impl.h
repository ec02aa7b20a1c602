// The parser's state and members, shared by the parser_*.cc files.
//
// Recursive descent that evaluates as it goes: every expression becomes a Value, calls of `T.`, `R.` and `I.`
// functions go through tables of handlers. No member throws; a failed Value or a false means that an error
// has been recorded.
#pragma once

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

/// Where `text` stands among the tokens from `i` (behind an opening bracket) at the same depth, before the bracket
/// closes: the first place or the last one.
std::optional<size_t> findInside(const std::vector<Token>& tokens, size_t i, std::string_view text,
                                 bool last);
/// What a node stands for in an expression.
Value capturedValue(const NodeRef& node);

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
  Value failed(const Token& where, std::string message, std::string hint = "");
  bool report(const Token& where, std::string message, std::string hint = "") {
    failed(where, std::move(message), std::move(hint));
    return false;
  }
  Error firstError();
  void skipStatement();
  void skipSuite();
  Origin originAt(const Token& t);
  template <class T> Ref<const T> placed(Ref<T> node, const Token& t) {
    node->origin = originAt(t);
    return node;
  }

  void pushScope() { scopes_.emplace_back(); }
  void popScope() { scopes_.pop_back(); }
  void bind(const std::string& name, Value value);
  const Value* lookup(std::string_view name) const;
  Value nameValue(const Token& t);

  void imports();
  void importLine();
  bool decorators(std::string& kind, bool& isPrivate, bool& pure, bool& sTir);
  void findFunctions();
  bool moduleClass(std::vector<std::pair<std::string, GraphExpr>>& functions);
  bool moduleStatement(std::vector<std::pair<std::string, GraphExpr>>& functions);
  bool functionDef(std::vector<std::pair<std::string, GraphExpr>>& functions);
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
  Value bufferMethod(const Buffer& b, const std::string& method, Args& args);
  Value indexBuffer(const Buffer& b, std::vector<Value> items, const Token& where);
  Value letForm(const Token& where);      // T.let(x, value, body)
  Value letWhereForm(const Token& where); // T.Let(body, where={x: value})
  Value lambdaForm(const std::vector<Expr>& identity, const Token& where);
  Value combinerForm(const Token& where);
  Value reduceForm(const Token& where);
  Value iterVarForm(const Token& where);
  struct Nested {
    Parser& parser;
    bool ok;
    explicit Nested(Parser& p);
    ~Nested() { --parser.nesting_; }
  };

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
  std::optional<int64_t> intArg(const Args& args, std::string_view key, int64_t otherwise);
  std::optional<std::string> stringArg(const Args& args, std::string_view key, std::string otherwise);
  /// A storage scope; `otherwise` is not looked at.
  std::optional<std::string> scopeArg(const Args& args, std::string_view key, std::string otherwise);
  std::optional<DType> dtypeArg(const Args& args, std::string_view key, DType otherwise);
  std::optional<DType> dtypeOf(const Value& v, const Token& where);
  bool exprList(const Value& v, Array<Expr>& out, const Token& where, DType wanted = DType::Void());
  bool toRegion(const Value& v, BufferRegion& out, const Token& where);
  Range rangeOf(const Value& start, const Value& stop, const Token& where, DType wanted = DType::Void());
  bool tooDeep(int depth, const Token& where);
  std::string describe(const Value& v) const;

  // ---- parser_tir.cc: tensor programs
  struct BlockState {
    std::string name;
    std::vector<IterVar> iters;
    std::vector<Expr> values;
    Expr predicate;
    Array<Buffer> allocs;
    Array<MatchBuffer> matches;
    Array<BufferRegion> reads, writes;
    std::optional<Token> readsAt, writesAt;
    bool oldSpelling = false, noRealize = false;
    Dict annotations;
    Stmt init;
  };
  struct Frame {                 // statements of one suite
    std::vector<Stmt> stmts;     // those that hold the rest have a null body
    BlockState* block = nullptr; // the suite is this block's
    bool function = false;       // the function's own suite
  };
  GraphExpr primFunc(const std::string& name, bool isPrivate, bool sTir);
  bool primParams();
  bool primParam(const Token& name);
  bool tirSuite(); // ':' and the statements, into the current frame
  void tirStatement();
  bool tirSimple();
  bool tirAssign();
  bool tirStore(const Value& target, const Token& where);
  bool tirReturn();
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
  Value mergeFuncAttr(Args& args);
  bool bindTargets(const std::vector<Token>& targets, Value value, const std::optional<Value>& annotation,
                   const Token& where);
  bool letBinding(const Token& target, const Value& value, const std::optional<Value>& annotation);
  bool forStatement();
  bool forHeader(const std::vector<Token>& targets, std::vector<For>& loops);
  bool withStatement();
  bool initStatement();
  bool scopedStatement();
  template <class F> bool withFrame(Frame& frame, F&& f) {
    Frame* outer = std::exchange(frame_, &frame);
    pushScope();
    bool ok = f();
    popScope();
    frame_ = outer;
    return ok;
  }
  bool blockStatement(const Token& where);
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
  bool countWrapper(const Token& where);
  bool endOfLine();
  bool suiteStart();
  std::string targetName(const char* otherwise);

  // ---- parser_calls.cc: forms of the notation; parser_tir_calls.cc and parser_tir_decls.cc: those of T.
  Value callForm(Args& args);
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
  Value tLimit(Args& args);
  Value regions(Args& args);
  Value axis(Args& args);
  Value callTirLike(Args& args);
  BlockState* blockHere(const Args& args);

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
  GraphExpr relaxFunction(const std::string& name, bool isPrivate, bool pure);
  bool relaxParams(Array<GraphVar>& params);
  void relaxStatement(SeqState& seq);
  bool relaxSimple(SeqState& seq);
  bool relaxAssign(SeqState& seq);
  bool relaxBind(SeqState& seq, const Token& target, Value value, const std::optional<Value>& annotation);
  bool relaxReturn(SeqState& seq, const Value& value, const Token& where);
  bool relaxIf(SeqState& seq);
  bool relaxBranch(SeqState& seq, SeqExpr& out, GraphVar& var, const Token& where);
  bool relaxWith(SeqState& seq);
  bool relaxNested(SeqState& seq);
  void findOutputs(SeqState& seq);
  void emit(SeqState& seq, NodeRef binding);
  void closePlain(SeqState& seq);
  GraphExpr leaf(SeqState& seq, GraphExpr e, const char* name);
  GraphExpr flatten(GraphExpr e);
  bool isLeaf(const GraphExpr& e) const;

  // ---- parser_relax_calls.cc and parser_types.cc: handlers of R.
  Value relaxOp(const std::string& op, Args& args);
  bool operands(const OpSignature& signature, Args& args, std::vector<const Value*>& values,
                std::vector<std::pair<std::string, NodeRef>>& attrs);
  GraphExpr graphArg(const Value& v, const Token& where);
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
  std::vector<std::string> functionNames_;
  bool knownFunctions_ = false; // functionNames_ are all there are
  std::string className_;
  Dict moduleAttrs_;

  // The function under way.
  bool inTir_ = false;
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
  std::unordered_map<std::string, bool> blockNames_;
  Frame* frame_ = nullptr;
  SeqState* seq_ = nullptr;
  std::vector<std::string> targets_; // names on the left of the assignment under way
  size_t nextTarget_ = 0;
  bool defineSymbols_ = false;                  // an unknown name in a dimension is a new symbolic dimension
  std::unordered_set<Var, RefHash> undeclared_; // symbolic dimensions not yet declared by `n = T.int64()`
};

} // namespace bevel::detail
