// Prints functions and modules.
#include "ir/printer_impl.h"

#include "ir/build.h"
#include "ir/structural.h"

namespace bevel::detail {

/// A root block that only holds the function's body and buffers is not written (`s_tir=True` says that it is
/// there).
bool isPlainRoot(const Stmt& body) {
  auto* realize = body.as<BlockRealizeNode>();
  if (!realize || !realize->block || !isConst(realize->predicate, 1)) return false;
  const BlockNode& b = *realize->block;
  return b.name == "root" && b.iters.empty() && realize->values.empty() && b.matches.empty() &&
         b.reads.empty() && b.writes.empty() && !b.annotations && !b.init && b.body;
}

/// `private=True` stands for the attribute "private".
bool isPrivate(const Dict& attrs) {
  auto* flag = attr(attrs, "private").as<IntImmNode>();
  return flag && flag->dtype.isBool() && flag->value == 1;
}

bool Printer::simpleBuffer(const Buffer& b) const {
  if (!b->strides.empty() || b->elemOffset || b->alignment != 64 || b->offsetFactor != 0 ||
      !b->axisSeparators.empty())
    return false;
  for (const Expr& e : b->shape) {
    if (!e) return false;
    for (const NodeRef& v : freeVars(e))
      if (!names_.find(v.get())) return false;
  }
  return true;
}

void Printer::funcAttrs(const char* prefix, const Dict& attrs) {
  if (!attrs) return;
  Dict rest = attrs;
  if (isPrivate(attrs)) rest = withAttr(attrs, "private", nullptr);
  if (rest->keys.empty() && !(rest == attrs)) return;
  line(std::string(prefix) + ".func_attr("), dictText(rest), put(")");
}

/// The decorator with its flags and `def name(`, which `mark` begins at.
void Printer::functionHead(const char* decorator, const Dict& attrs, std::string_view flag,
                           const std::string& name, std::optional<Mark>& mark, const NodeRef& f) {
  std::string flags = isPrivate(attrs) ? "private=True" : "";
  if (!flag.empty()) flags += (flags.empty() ? "" : ", ") + std::string(flag);
  if (!out_.empty() || indent_) line();
  put(decorator, flags.empty() ? "" : "(" + flags + ")");
  line("def ");
  mark.emplace(*this, f);
  put(name.empty() ? attrStr(attrs, "global_symbol", "main") : name, "(");
}

void Printer::primFunc(const PrimFunc& f, const std::string& name) {
  bool root = isPlainRoot(f->body);
  std::optional<Mark> mark;
  functionHead("@T.prim_func", f->attrs, root ? "s_tir=True" : "", name, mark, f);
  Scope scope(*this);
  auto bufferOf = [&](size_t i) { return i < f->buffers.size() ? f->buffers[i] : Buffer(); };
  for (size_t i = 0; i < f->params.size(); ++i) // scalars first: shapes may name them
    if (!bufferOf(i)) names_.define(f->params[i].get(), f->params[i]->name);
  std::vector<size_t> matched; // parameters whose buffer is declared in the body
  std::vector<NodeRef>
      handleNames; // theirs, where the parameter is the buffer's data: uses of that print as `b.data`
  for (size_t i = 0; i < f->params.size(); ++i) {
    if (i) put(", ");
    const Var& p = f->params[i];
    Buffer b = bufferOf(i);
    if (!b) {
      put(*names_.find(p.get()) + ": " + (p->dtype.isHandle() ? handleType(*p) : "T." + p->dtype.str()));
      continue;
    }
    if (simpleBuffer(b)) {
      defineBuffer(b);
      put(bufferName(b), ": T.Buffer("), bufferArgs(b), put(")");
      continue;
    }
    matched.push_back(i);
    std::string handle = p == b->data || p->name == b->name ? "var_" + b->name : p->name;
    handleNames.push_back(p == b->data ? NodeRef(str(handle)) : NodeRef(p));
    put(names_.define(handleNames.back().get(), handle) + ": T.handle");
  }
  put("):");
  ++indent_;
  for (size_t i : matched) symbols(bufferOf(i));
  for (size_t k = 0; k < matched.size(); ++k) {
    Buffer b = bufferOf(matched[k]);
    defineBuffer(b);
    line(bufferName(b) + " = T.match_buffer(" + *names_.find(handleNames[k].get()) + ", "), bufferArgs(b),
        put(")");
  }
  funcAttrs("T", f->attrs);
  if (!f->result.isVoid()) line("T.func_result(" + quoted(f->result.str()) + ")");
  if (root) {
    const BlockNode& block = *f->body.as<BlockRealizeNode>()->block;
    blockAllocs(block);
    stmt(block.body, true);
  } else
    stmt(f->body, true);
  --indent_;
}

void Printer::function(const Function& f, const std::string& given) {
  std::optional<Mark> mark;
  functionHead("@R.function", f->attrs, f->pure ? "" : "pure=False", given, mark, f);
  Scope scope(*this);
  std::vector<Var> symbolic;
  for (const GraphVar& p : f->params)
    if (p && p->type)
      for (const NodeRef& v : freeVars(p->type))
        if (v.is<VarNode>() && !names_.find(v.get())) {
          names_.define(v.get(), v.as<VarNode>()->name);
          symbolic.push_back(cast<VarNode>(v));
        }
  quoteSymbols_ = true;
  commaList(f->params, [&](const GraphVar& p) {
    if (!p) return put("None");
    put(names_.define(p.get(), p->name));
    if (p->type) put(": ", p->type);
  });
  put(")");
  if (f->result) put(" -> ", f->result);
  quoteSymbols_ = false;
  put(":");
  ++indent_;
  for (const Var& v : symbolic) line(*names_.find(v.get()) + " = T." + v->dtype.str() + "()");
  funcAttrs("R", f->attrs);
  if (indent_ > 1) {
    bool usesModule = false;
    walk(f->body, [&](const NodeRef& n) { return usesModule |= n->kind == Kind::kGlobalVar, !usesModule; });
    if (usesModule && given.size()) line("cls = " + moduleName_);
  }
  f->body ? seqExpr(f->body) : line("pass");
  --indent_;
}

void Printer::moduleText(const ModuleNode& m) {
  if (options_.imports)
    put("from tvm.script import ir as I\nfrom tvm.script import relax as R\nfrom tvm.script import tirx as "
        "T\n\n");
  put("@I.ir_module");
  line("class " + moduleName_ + ":");
  ++indent_;
  if (m.attrs) line("I.module_attrs("), dictText(m.attrs), put(")");
  for (size_t i = 0; i < m.names.size() && i < m.functions.size(); ++i) {
    if (i || m.attrs) out_ += '\n';
    const std::string& name = m.names[i]->name;
    NodeRef f = m.functions[i];
    if (!f)
      line(name + " = None");
    else if (f.is<PrimFuncNode>())
      primFunc(cast<PrimFuncNode>(f), name);
    else if (f.is<FunctionNode>())
      function(cast<FunctionNode>(f), name);
    else
      line(name + " = "), any(f);
  }
  if (m.names.empty() && !m.attrs) line("pass");
  --indent_;
}

} // namespace bevel::detail
