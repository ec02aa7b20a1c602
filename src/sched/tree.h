// Where a loop or block stands in a program, and path copy: the program with one statement replaced.
//
// A path goes from the root statement to the target through statements only. Blocks are passed by their
// realization, so the body of a block is the child of its BlockRealize.
#pragma once

#include "base/function_ref.h"
#include "ir/build.h"

#include <string_view>
#include <vector>

namespace bevel {

struct PathItem {
  Stmt node; // an ancestor
  int slot;  // which child of it comes next
};

struct Path {
  std::vector<PathItem> ancestors; // outermost first
  Stmt target;

  /// Index in `ancestors` of the innermost enclosing block realization: the scope. -1 when there is none.
  int scope() const;
  /// Enclosing loops inside the scope, outermost first.
  std::vector<For> loops() const;
  /// The path to ancestor i.
  Path upTo(size_t i) const;
};

/// The path to the loop of that variable, or to the realization of the block of that name; an empty target
/// when there is none.
Path findLoop(const Stmt& root, const Var& var);
Path findBlock(const Stmt& root, std::string_view name);
/// The path to the realization of the block that allocates a buffer with that data.
Path findAllocator(const Stmt& root, const Var& data);
/// Whether one of the buffers has that data.
bool holdsData(const Array<Buffer>& buffers, const Var& data);

/// Child statements by slot; a slot may be null (an absent else branch).
int numChildren(const Stmt& s);
Stmt childAt(const Stmt& s, int slot);
/// The statement with one child replaced; a null child removes it: empty loops disappear, a sequence of one
/// collapses. Null when nothing is left. The body of a block must not become empty.
Stmt withChild(const Stmt& s, int slot, Stmt child);

/// The root with the target of the path replaced (or removed, when null).
Stmt replaceAt(const Path& path, Stmt replacement);
/// The root with ancestor i (and all below it) replaced.
Stmt replaceFrom(const Path& path, size_t i, Stmt replacement);

/// Calls f for every loop and block realization under root (in program order, parents first); f returns false
/// to skip what is inside.
void forEachStmt(const Stmt& root, FunctionRef<bool(const Stmt&)> f);
/// The chain of loops from a statement down, while each has a single child; ends before the first other
/// statement.
std::vector<For> loopChain(const Stmt& s);

/// Rebuilds the leaves under a statement: f is given each block realization (not entered) and each plain
/// statement (Store, Evaluate, Assert).
Stmt mapLeaves(const Stmt& s, FunctionRef<Stmt(const Stmt&)> f);
/// Everything under s runs only where the condition holds.
Stmt guarded(const Stmt& s, const Expr& condition);

/// A realization whose block has other values of fields.
template <class... Changes> BlockRealize withBlock(const BlockRealize& realize, Changes&&... changes) {
  return with(realize, &BlockRealizeNode::block, with(realize->block, std::forward<Changes>(changes)...));
}
/// A loop or block realization with an annotation set, or removed when the value is null.
Stmt withAnnotation(const Stmt& s, const std::string& key, NodeRef value);

/// A name not used by any block, and a variable name not used by any loop, of the program.
std::string freshBlockName(const Stmt& root, const std::string& base);

} // namespace bevel
