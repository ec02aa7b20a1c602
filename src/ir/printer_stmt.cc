// Prints statements of tensor programs.
//
// A statement that holds the rest of its scope (let, allocation, buffer declaration, attribute) is one line
// when it ends its scope, and `with … as name:` when other statements follow it there.
#include "ir/printer_impl.h"

#include "ir/build.h"
#include "ir/structural.h"

namespace bevel::detail {

void Printer::body(const Stmt& s) {
  Scope scope(*this, true);
  stmt(s, true);
}

void Printer::stmt(const Stmt& s, bool tail) {
  if (!s) return line("pass");
  if (auto* n = s.as<SeqNode>()) {
    for (size_t i = 0; i < n->stmts.size(); ++i) stmt(n->stmts[i], tail && i + 1 == n->stmts.size());
    return;
  }
  if (auto* n = s.as<LetStmtNode>()) return letStmt(*n, tail);
  if (auto* n = s.as<AllocNode>()) return allocStmt(*n, tail);
  if (auto* n = s.as<DeclBufferNode>()) return declStmt(*n, tail);
  if (auto* n = s.as<AttrStmtNode>()) return attrStmt(*n, tail);
  if (auto* n = s.as<ForNode>()) return forStmt(*n);
  if (auto* n = s.as<IfNode>()) return ifStmt(*n);
  if (auto* n = s.as<BlockRealizeNode>())
    return n->block ? blockRealize(&n->values, n->predicate, *n->block) : line("pass");
  if (auto* n = s.as<BlockNode>()) return blockRealize(nullptr, nullptr, *n);
  line();
  Mark mark(*this, s);
  if (auto* n = s.as<StoreNode>()) return storeStmt(*n);
  if (auto* n = s.as<AssertNode>()) {
    put("assert "), expr(n->condition, kPrecOr);
    return put(", ", quoted(n->message));
  }
  if (auto* n = s.as<EvaluateNode>()) {
    if (n->value.is<CallNode>()) return expr(n->value);
    return put("T.evaluate(", n->value, ")");
  }
  if (auto* n = s.as<WhileNode>()) {
    put("while ", n->condition, ":");
    return body(n->body);
  }
}

void Printer::ifStmt(const IfNode& n) {
  line();
  Mark mark(*this, NodeRef(&n));
  put("if ", n.condition, ":");
  body(n.thenBody);
  if (!n.elseBody) return;
  line("else:");
  body(n.elseBody);
}

void Printer::storeStmt(const StoreNode& n) {
  put(bufferName(n.buffer));
  if (!n.predicate) return indices(n.buffer, n.indices), put(" = ", n.value);
  put(".vstore("), indices(n.buffer, n.indices);
  put(", ", n.value, ", predicate=", n.predicate, ")");
}

/// Serial loops from 0 directly inside each other, whose extents do not depend on the loops before: T.grid.
bool Printer::gridLoops(const ForNode& first, std::vector<const ForNode*>& loops) const {
  const ForNode* n = &first;
  while (n && n->forKind == ForKind::kSerial && !n->annotations && isConst(n->min, 0) && n->thread.empty() &&
         n->extent) {
    for (const ForNode* outer : loops)
      if (usesVar(n->extent, outer->var)) return loops.size() > 1;
    loops.push_back(n);
    n = n->body.as<ForNode>();
  }
  return loops.size() > 1;
}

void Printer::forStmt(const ForNode& n) {
  line();
  Mark mark(*this, NodeRef(&n));
  std::vector<const ForNode*> loops;
  bool grid = gridLoops(n, loops);
  if (!grid) loops.assign(1, &n);
  std::string header = capture([&] {
    if (grid) return put("T.grid("), commaList(loops, [&](const ForNode* l) { expr(l->extent); }), put(")");
    bool plain = n.forKind == ForKind::kSerial && !n.annotations && n.thread.empty();
    put(plain ? "range" : std::string("T.") + kForKindNames[int(n.forKind)], "(");
    if (!isConst(n.min, 0)) put(n.min, ", ");
    stop(n.min, n.extent, DType::Void());
    if (n.forKind == ForKind::kThreadBinding || !n.thread.empty()) put(", thread=" + quoted(n.thread));
    if (n.annotations) put(", annotations="), dictText(n.annotations);
    put(")");
  });
  Scope scope(*this);
  put("for ");
  commaList(loops,
            [&](const ForNode* l) { put(l->var ? names_.define(l->var.get(), l->var->name) : "None"); });
  put(" in " + header + ":");
  for (const ForNode* l : loops) loops_[l->var.get()] = l;
  body(loops.back()->body);
  for (const ForNode* l : loops) loops_.erase(l->var.get());
}

/// A statement that holds the rest of its scope: `name = head`, which ends the scope around, or `with head as name:`.
/// The name that `parts` defines is in scope after the line.
void Printer::scoped(const Node& n, const Stmt& rest, bool tail,
                     FunctionRef<std::pair<std::string, std::string>()> parts) {
  std::optional<Scope> scope;
  if (!tail) scope.emplace(*this);
  auto [name, head] = parts();
  line();
  {
    Mark mark(*this, NodeRef(&n));
    if (tail)
      put(name, name.empty() ? "" : " = ", head);
    else
      put("with ", head, name.empty() ? "" : " as ", name, ":");
  }
  if (!tail)
    body(rest);
  else if (rest)
    stmt(rest, true);
}

std::string Printer::handleType(const VarNode& v) {
  std::string text = "T.handle";
  if (v.pointee.isVoid() && v.scope.empty()) return text;
  text += "(" + quoted(v.pointee.str());
  if (!v.scope.empty()) text += ", " + quoted(v.scope);
  return text + ")";
}

void Printer::letStmt(const LetStmtNode& n, bool tail) {
  std::string value = capture([&] { expr(n.value); });
  if (!n.var) return line("pass");
  bool typedHandle = n.var->dtype.isHandle() && !(n.var->pointee.isVoid() && n.var->scope.empty());
  std::string type = typedHandle ? handleType(*n.var) : "T." + n.var->dtype.str();
  scoped(n, n.body, tail, [&] {
    std::string name = names_.define(n.var.get(), n.var->name);
    if (tail) return std::pair(name + ": " + type, value);
    return std::pair(name, "T.LetStmt(" + value + (typedHandle ? ", type=" + type : "") + ")");
  });
}

void Printer::declareVar(const Var& v) {
  std::string name = names_.define(v.get(), v->name);
  line(name + " = T." + v->dtype.str() + "()");
}

void Printer::symbols(const Buffer& b) {
  auto scan = [&](const Expr& e) {
    if (!e) return;
    for (const NodeRef& v : freeVars(e))
      if (v.is<VarNode>() && !names_.find(v.get()) && !views_.contains(v.get())) declareVar(cast<VarNode>(v));
  };
  for (const Expr& e : b->shape) scan(e);
  for (const Expr& e : b->strides) scan(e);
  scan(b->elemOffset);
}

void Printer::bufferArgs(const Buffer& b, const char* dataArg) {
  tuple(b->shape, [&](const Expr& e) { expr(e); });
  put(", " + quoted(b->dtype.str()));
  if (dataArg) put(std::string(", data=") + dataArg);
  if (!b->strides.empty()) put(", strides=[", b->strides, "]");
  if (b->elemOffset) put(", elem_offset=", b->elemOffset);
  if (b->scope != "global") put(", scope=" + quoted(b->scope));
  if (b->alignment != 64) put(", align=" + std::to_string(b->alignment));
  if (b->offsetFactor != 0) put(", offset_factor=" + std::to_string(b->offsetFactor));
  if (!b->axisSeparators.empty()) put(", axis_separators=[", b->axisSeparators, "]");
}

void Printer::allocStmt(const AllocNode& n, bool tail) {
  scoped(n, n.body, tail, [&] {
    std::string head = capture([&] {
      put("T.alloc_buffer("), bufferArgs(n.buffer);
      if (n.annotations) put(", annotations="), dictText(n.annotations);
      put(")");
    });
    defineBuffer(n.buffer);
    return std::pair(bufferName(n.buffer), head);
  });
}

void Printer::declStmt(const DeclBufferNode& n, bool tail) {
  scoped(n, n.body, tail, [&] {
    std::string data = varName(n.buffer->data.get(), n.buffer->data->name);
    std::string head = capture([&] { put("T.decl_buffer("), bufferArgs(n.buffer, data.c_str()), put(")"); });
    defineBuffer(n.buffer);
    return std::pair(*names_.find(n.buffer.get()), head);
  });
  if (!tail) views_[n.buffer->data.get()].pop_back();
}

void Printer::attrStmt(const AttrStmtNode& n, bool tail) {
  scoped(n, n.body, tail, [&] {
    if (auto* iter = n.node.as<IterVarNode>()) names_.define(iter->var.get(), iter->var->name);
    std::string head = capture([&] { put("T.attr(", n.node, ", ", quoted(n.key), ", ", n.value, ")"); });
    return std::pair(std::string(), head);
  });
}

bool Printer::isLoopOf(const Expr& value, const IterVarNode& iter) const {
  auto it = loops_.find(value.get());
  if (it == loops_.end() || !iter.domain ||
      (iter.type != IterType::kSpatial && iter.type != IterType::kReduce))
    return false;
  return same(it->second->min, iter.domain->min) && same(it->second->extent, iter.domain->extent) &&
         iter.var->dtype == value->dtype;
}

void Printer::blockAxes(const Array<Expr>* values, const BlockNode& block) {
  auto valueOf = [&](size_t i) { return values && i < values->size() ? (*values)[i] : Expr(); };
  for (size_t i = 0; i < block.iters.size();) {
    size_t end = i;
    while (end < block.iters.size() && isLoopOf(valueOf(end), *block.iters[end])) ++end;
    line();
    if (end - i >= 2) {
      std::string kinds;
      for (size_t k = i; k < end; ++k) {
        if (k > i) put(", ");
        put(names_.define(block.iters[k]->var.get(), block.iters[k]->var->name));
        kinds += block.iters[k]->type == IterType::kSpatial ? 'S' : 'R';
      }
      put(" = T.axis.remap(" + quoted(kinds) + ", [");
      for (size_t k = i; k < end; ++k) put(k > i ? ", " : "", valueOf(k));
      put("])");
      i = end;
      continue;
    }
    const IterVarNode& iter = *block.iters[i];
    Mark mark(*this, NodeRef(&iter));
    put(names_.define(iter.var.get(), iter.var->name), " = T.axis.", kIterTypeNames[int(iter.type)], "(");
    bool fromZero = isConst(iter.domain->min, 0);
    if (!fromZero) put("(", iter.domain->min, ", ");
    stop(iter.domain->min, iter.domain->extent, DType::Void());
    if (!fromZero) put(")");
    if (Expr value = valueOf(i)) put(", ", value);
    put(")");
    ++i;
  }
}

void Printer::blockAllocs(const BlockNode& block) {
  for (const Buffer& b : block.allocs) {
    symbols(b);
    defineBuffer(b);
    line(bufferName(b) + " = T.sblock_alloc_buffer("), bufferArgs(b), put(")");
  }
}

void Printer::blockBuffers(const BlockNode& block) {
  blockAllocs(block);
  for (const MatchBuffer& m : block.matches) {
    symbols(m->buffer);
    line();
    std::string source = capture([&] { region(*m->source); });
    defineBuffer(m->buffer);
    put(bufferName(m->buffer) + " = T.match_buffer(" + source + ", "), bufferArgs(m->buffer), put(")");
  }
}

void Printer::blockRest(const Expr& predicate, const BlockNode& block) {
  if (predicate && !isConst(predicate, 1)) line("T.where("), put(predicate, ")");
  std::vector<NodeRef> uses(block.reads.begin(), block.reads.end());
  uses.insert(uses.end(), block.writes.begin(), block.writes.end());
  if (block.annotations) uses.push_back(block.annotations);
  bool ownFirst = false; // what names the block's own buffers comes after those
  for (const NodeRef& use : uses) {
    for (const Buffer& b : block.allocs) ownFirst |= usesVar(use, b->data);
    for (const MatchBuffer& m : block.matches) ownFirst |= usesVar(use, m->buffer->data);
  }
  if (ownFirst) blockBuffers(block);
  line("T.reads("), commaList(block.reads, [&](const BufferRegion& r) { region(*r); }), put(")");
  line("T.writes("), commaList(block.writes, [&](const BufferRegion& r) { region(*r); }), put(")");
  if (block.annotations) line("T.sblock_attr("), dictText(block.annotations), put(")");
  if (!ownFirst) blockBuffers(block);
  if (block.init) line("with T.init():"), body(block.init);
}

void Printer::blockRealize(const Array<Expr>* values, const Expr& predicate, const BlockNode& block) {
  line();
  Mark mark(*this, NodeRef(&block));
  put("with T.sblock(" + quoted(block.name) + (values ? "):" : ", no_realize=True):"));
  Scope scope(*this, true);
  blockAxes(values, block);
  blockRest(predicate, block);
  stmt(block.body, true);
}

} // namespace bevel::detail
