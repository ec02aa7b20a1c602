// Statements of tensor programs.
#pragma once

#include "ir/expr.h"

namespace bevel {

class StmtNode : public Node {
public:
  using Node::Node;
  static bool classof(const Node* n) { return n->kind >= Kind::kStore && n->kind <= Kind::kBlockRealize; }
};
using Stmt = Ref<const StmtNode>;

/// buffer[indices] = value. The last index may be a vector; lanes where `predicate` is false write nothing.
class StoreNode : public StmtNode {
public:
  Buffer buffer;
  Expr value;
  Array<Expr> indices;
  Expr predicate; // null: all lanes
  StoreNode(Buffer b, Expr v, Array<Expr> i, Expr p = nullptr)
      : StmtNode(kKind), buffer(std::move(b)), value(std::move(v)), indices(std::move(i)),
        predicate(std::move(p)) {}
  NODE(Store) FIELDS(USE(buffer), USE(value), USE(indices), USE(predicate))
};

/// Statements in order; never nested directly and never of length one (use seq()). An Alloc or DeclBuffer or
/// LetStmt holds the rest of its scope as its body.
class SeqNode : public StmtNode {
public:
  Array<Stmt> stmts;
  explicit SeqNode(Array<Stmt> s) : StmtNode(kKind), stmts(std::move(s)) {}
  NODE(Seq) FIELDS(USE(stmts))
};
/// Flattens nested sequences; one statement stands for itself; none is Evaluate(0).
Stmt seq(const std::vector<Stmt>& stmts);

class IfNode : public StmtNode {
public:
  Expr condition;
  Stmt thenBody, elseBody; // elseBody may be null
  IfNode(Expr c, Stmt t, Stmt e = nullptr)
      : StmtNode(kKind), condition(std::move(c)), thenBody(std::move(t)), elseBody(std::move(e)) {}
  NODE(If) FIELDS(USE(condition), USE(thenBody), USE(elseBody))
};

enum class ForKind : uint8_t { kSerial, kParallel, kVectorized, kUnrolled, kThreadBinding };
extern const char* const kForKindNames[]; // "serial", "parallel", …
/// blockIdx.x/y/z, threadIdx.x/y/z, vthread, vthread.x/y/z.
bool isThreadAxis(std::string_view name);

/// for var in [min, min + extent): body. A loop *is* its variable: unique within the function.
class ForNode : public StmtNode {
public:
  Expr min, extent;
  ForKind forKind;
  std::string thread; // kThreadBinding: "blockIdx.x", "vthread", …
  Dict annotations;   // may be null
  Var var;
  Stmt body;
  ForNode(Var v, Expr m, Expr e, ForKind k, Stmt b, Dict a = nullptr, std::string t = "")
      : StmtNode(kKind), min(std::move(m)), extent(std::move(e)), forKind(k), thread(std::move(t)),
        annotations(std::move(a)), var(std::move(v)), body(std::move(b)) {}
  NODE(For)
  FIELDS(USE(min), USE(extent), ENUM(forKind, kForKindNames), USE(thread), USE(annotations), DEF(var),
         USE(body))
};

class WhileNode : public StmtNode {
public:
  Expr condition;
  Stmt body;
  WhileNode(Expr c, Stmt b) : StmtNode(kKind), condition(std::move(c)), body(std::move(b)) {}
  NODE(While) FIELDS(USE(condition), USE(body))
};

class LetStmtNode : public StmtNode {
public:
  Expr value;
  Var var;
  Stmt body;
  LetStmtNode(Var x, Expr v, Stmt b)
      : StmtNode(kKind), value(std::move(v)), var(std::move(x)), body(std::move(b)) {}
  NODE(LetStmt) FIELDS(USE(value), DEF(var), USE(body))
};

class EvaluateNode : public StmtNode {
public:
  Expr value;
  explicit EvaluateNode(Expr v) : StmtNode(kKind), value(std::move(v)) {}
  NODE(Evaluate) FIELDS(USE(value))
};

/// Allocates a buffer for the duration of body (outside blocks; inside them see BlockNode::allocs).
class AllocNode : public StmtNode {
public:
  Buffer buffer;
  Dict annotations; // may be null
  Stmt body;
  AllocNode(Buffer b, Stmt s, Dict a = nullptr)
      : StmtNode(kKind), buffer(std::move(b)), annotations(std::move(a)), body(std::move(s)) {}
  NODE(Alloc) FIELDS(DEF(buffer), USE(annotations), USE(body))
};

/// Declares a buffer over memory that exists already (its data variable is bound elsewhere).
class DeclBufferNode : public StmtNode {
public:
  Buffer buffer;
  Stmt body;
  DeclBufferNode(Buffer b, Stmt s) : StmtNode(kKind), buffer(std::move(b)), body(std::move(s)) {}
  NODE(DeclBuffer) FIELDS(USE(buffer), USE(body))
};

/// T.attr(node, key, value): pragmas, thread extents and the like over body.
class AttrStmtNode : public StmtNode {
public:
  NodeRef node; // may be null
  std::string key;
  NodeRef value;
  Stmt body;
  AttrStmtNode(NodeRef n, std::string k, NodeRef v, Stmt b)
      : StmtNode(kKind), node(std::move(n)), key(std::move(k)), value(std::move(v)), body(std::move(b)) {}
  NODE(AttrStmt) FIELDS(USE(node), USE(key), USE(value), USE(body))
};

/// Ends the kernel with the message when the condition is false.
class AssertNode : public StmtNode {
public:
  Expr condition;
  std::string message;
  AssertNode(Expr c, std::string m) : StmtNode(kKind), condition(std::move(c)), message(std::move(m)) {}
  NODE(Assert) FIELDS(USE(condition), USE(message))
};

/// A unit of computation isolated from its loops: its axes, what it reads and writes, and a body over the
/// axes. A block *is* its name, unique within the function.
class BlockNode : public StmtNode {
public:
  std::string name;
  Array<IterVar> iters;
  Array<Buffer> allocs;
  Array<MatchBuffer> matches;
  Array<BufferRegion> reads, writes;
  Dict annotations; // may be null
  Stmt init;        // runs before the first update of every reduction; may be null
  Stmt body;
  explicit BlockNode(std::string n) : StmtNode(kKind), name(std::move(n)) {}
  NODE(Block)
  FIELDS(NAME(name), DEF(iters), DEF(allocs), DEF(matches), USE(reads), USE(writes), USE(annotations),
         USE(init), USE(body))
};

/// Runs a block once, with values for its axes, when the predicate holds.
class BlockRealizeNode : public StmtNode {
public:
  Array<Expr> values;
  Expr predicate; // bool, never null
  Block block;
  BlockRealizeNode(Array<Expr> v, Expr p, Block b)
      : StmtNode(kKind), values(std::move(v)), predicate(std::move(p)), block(std::move(b)) {}
  NODE(BlockRealize) FIELDS(USE(values), USE(predicate), USE(block))
};

} // namespace bevel
