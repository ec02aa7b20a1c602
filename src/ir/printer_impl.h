// The printer's state and its members, shared by the printer_*.cc files.
#pragma once

#include "ir/notation.h"
#include "ir/printer.h"
#include "ir/step.h"

#include <unordered_set>

namespace bevel::detail {

/// Names in scope. A name is free again when its scope ends; within nested scopes no name hides another.
class NameScopes {
public:
  void push() { frames_.emplace_back(); }
  void pop();
  /// Names an object in the innermost scope, or in the outermost (free variables): `hint` made an identifier and unique.
  const std::string& define(const Object* object, std::string_view hint, bool global = false);
  const std::string* find(const Object* object) const;

private:
  std::unordered_map<const Object*, std::string> names_;
  std::unordered_set<std::string> used_;
  std::vector<std::vector<const Object*>> frames_{1};
};

class Printer {
public:
  explicit Printer(const PrintOptions& options) : options_(options) {}
  std::string run(const NodeRef& node);

private:
  // printer.cc: text, scopes, dispatch.
  void put(std::string_view text) { out_ += text; }
  void put(int64_t number) { out_ += std::to_string(number); }
  void put(DType dtype) { out_ += quoted(dtype.str()); }
  template <class T> void put(const Ref<const T>& node) {
    if constexpr (std::is_base_of_v<ExprNode, T>)
      expr(node);
    else if constexpr (std::is_base_of_v<TypeNode, T>)
      type(node);
    else
      any(node);
  }
  template <class T> void put(const Array<T>& items) {
    commaList(items, [&](const T& item) { put(item); });
  }
  template <class First, class Second, class... Rest>
  void put(const First& first, const Second& second, const Rest&... rest) {
    put(first), put(second);
    (put(rest), ...);
  }
  void line() {
    if (!out_.empty()) out_ += '\n';
    out_.append(size_t(indent_) * 4, ' ');
  }
  void line(std::string_view text) {
    line();
    put(text);
  }
  void any(const NodeRef& node); // as an operand: expressions, buffers, types, graph values, attribute values
  void top(const NodeRef& node); // as a whole text
  void other(const NodeRef& node);
  struct Scope { // of names, and of a suite that is indented
    Printer& printer;
    int indent;
    explicit Scope(Printer& p, bool indented = false) : printer(p), indent(indented) {
      p.names_.push(), p.indent_ += indent;
    }
    Scope(const Scope&) = delete;
    ~Scope() { printer.names_.pop(), printer.indent_ -= indent; }
  };
  struct Mark { // records the range of one node
    Printer& printer;
    const Object* object;
    size_t begin;
    Mark(Printer& p, const RefBase& n, size_t skip = 0)
        : printer(p), object(n.object()), begin(p.out_.size() + skip) {}
    ~Mark() {
      if (printer.options_.ranges && object)
        printer.options_.ranges->try_emplace(object, PrintedRange{begin, printer.out_.size()});
    }
  };
  template <class List, class F> void commaList(const List& items, F&& f) {
    bool first = true;
    for (const auto& item : items) {
      if (!std::exchange(first, false)) put(", ");
      f(item);
    }
  }
  /// (a, b) with Python's comma in a tuple of one.
  template <class List, class F> void tuple(const List& items, F&& f) {
    put("(");
    commaList(items, f);
    put(items.size() == 1 ? ",)" : ")");
  }

  // printer_expr.cc
  void expr(const Expr& e, int minPrecedence = kPrecLowest);
  void exprNode(const Expr& e);
  /// An integer constant of this dtype is written bare, because the parser gives it the dtype of its
  /// surroundings.
  void operand(const Expr& e, DType bareDType, int minPrecedence = kPrecLowest);
  void intImm(const IntImmNode& n);
  void typedInt(const IntImmNode& n);
  void binaryExpr(const BinaryNode& n);
  void unaryExpr(const UnaryNode& n);
  void callExpr(const CallNode& n);
  void letExpr(const LetNode& n);
  void reduceExpr(const ReduceNode& n);
  void iterVar(const IterVarNode& n);
  void indices(const Buffer& b, const Array<Expr>& list);
  void region(const BufferRegionNode& n);
  void stop(const Expr& min, const Expr& extent, DType bareDType);
  std::string varName(const Object* object, const std::string& hint);
  std::string bufferName(const Buffer& b);
  void defineBuffer(const Buffer& b);
  void dictText(const Dict& d);
  void attrValue(const NodeRef& node);
  void keywords(const Dict& d, bool& first, std::string_view reserved = "");
  void separator(bool& first) {
    if (!std::exchange(first, false)) put(", ");
  }

  // printer_stmt.cc
  void stmt(const Stmt& s, bool tail);
  void body(const Stmt& s); // indented
  void ifStmt(const IfNode& n);
  void forStmt(const ForNode& n);
  bool gridLoops(const ForNode& n, std::vector<const ForNode*>& loops) const;
  void scoped(const Node& n, const Stmt& rest, bool tail,
              FunctionRef<std::pair<std::string, std::string>()> parts);
  void letStmt(const LetStmtNode& n, bool tail);
  void allocStmt(const AllocNode& n, bool tail);
  void declStmt(const DeclBufferNode& n, bool tail);
  void attrStmt(const AttrStmtNode& n, bool tail);
  void storeStmt(const StoreNode& n);
  void blockRealize(const Array<Expr>* values, const Expr& predicate, const BlockNode& block);
  void blockAxes(const Array<Expr>* values, const BlockNode& block);
  void blockAllocs(const BlockNode& block);
  void blockBuffers(const BlockNode& block);
  void blockRest(const Expr& predicate, const BlockNode& block);
  bool isLoopOf(const Expr& value, const IterVarNode& iter) const;
  void bufferArgs(const Buffer& b, const char* dataArg = nullptr);
  std::string handleType(const VarNode& v);
  void symbols(const Buffer& b); // declares the unbound variables of a buffer's shape, strides and offset
  void declareVar(const Var& v);
  template <class F> std::string capture(F&& f) {
    std::string saved = std::move(out_);
    out_.clear();
    f();
    std::swap(saved, out_);
    return saved;
  }

  // printer_func.cc
  void functionHead(const char* decorator, const Dict& attrs, std::string_view flag, const std::string& name,
                    std::optional<Mark>& mark, const NodeRef& f);
  void primFunc(const PrimFunc& f, const std::string& name);
  bool simpleBuffer(const Buffer& b) const;
  void function(const Function& f, const std::string& name);
  void moduleText(const ModuleNode& m);
  void funcAttrs(const char* prefix, const Dict& attrs);

  // printer_graph.cc
  void graph(const NodeRef& e);
  void graphCall(const GraphCallNode& n);
  void callTir(const GraphCallNode& n);
  void constant(const Constant& c);
  bool inlineConstant(const TensorObject& t) const;
  void constantItems(const TensorObject& t, size_t axis, int64_t& next);
  void typeArgs(const char* key, const Array<Type>& types, bool& first);
  void binding(const NodeRef& b);
  void bindingTo(const GraphVarNode& var, const GraphExpr& value);
  void seqExpr(const SeqExpr& s);
  void seqBlocks(const SeqExpr& s);
  void graphIf(const GraphVarNode& var, const GraphIfNode& n);
  void block(const BindingBlockNode& b, bool explicitScope);

  // printer_type.cc
  void type(const Type& t);
  void tensorType(const TensorTypeNode& n);
  void placement(const PlacementNode& n);
  void dims(const Array<Expr>& values); // (a, b), int64 bare; quoted where quoteSymbols_ is set
  void dim(const Expr& e);

  // printer_step.cc
  void trace(const StepListNode& t);
  void step(const StepNode& s);
  void stepField(const StepNode& s, const StepField& f);
  void stepValue(const NodeRef& v);
  void lambda(const LambdaNode& n);
  std::string defineHandle(const Var& v);

  const PrintOptions& options_;
  std::string out_;
  int indent_ = 0;
  NameScopes names_;
  std::unordered_map<const Object*, std::vector<Buffer>> views_; // by data variable, in order of definition
  std::unordered_map<const Object*, const ForNode*> loops_;      // loops around, by variable
  std::unordered_map<const Object*, size_t> constantIndex_;
  size_t handles_ = 0;        // of a trace, so far
  bool quoteSymbols_ = false; // in a signature: symbolic dimensions as strings
  std::string moduleName_ = "Module";
};

} // namespace bevel::detail
