#include "tests/loop/lower_support.h"

#include "tests/loop/random_nest.h"

#include "ir/printer.h"
#include "ir/structural.h"
#include "ir/verify.h"
#include "loop/interpreter.h"
#include "loop/lower.h"
#include "target/target.h"
#include "tests/loop/lowered_programs.h"

#include <algorithm>
#include <cstring>

namespace bevel::test {
namespace {

Stmt addPredicate(const Stmt& s, const Expr& predicate) {
  return cast<StmtNode>(rewrite(s, [&](const NodeRef& n) -> NodeRef {
    if (!n.is<BlockRealizeNode>()) return n;
    auto copy = mutableCopy(cast<BlockRealizeNode>(n));
    copy->predicate = logicalAnd(copy->predicate, predicate);
    return BlockRealize(copy);
  }));
}

template <class F> PrimFunc editLoops(const PrimFunc& f, const std::string& name, F edit) {
  auto copy = mutableCopy(f);
  copy->body = cast<StmtNode>(rewrite(f->body, [&](const NodeRef& n) -> NodeRef {
    const auto* loop = n.as<ForNode>();
    return loop && loop->var->name == name ? NodeRef(edit(cast<ForNode>(n))) : n;
  }));
  return copy;
}

} // namespace

PrimFunc splitLoop(const PrimFunc& f, const std::string& name, int64_t factor) {
  return editLoops(f, name, [&](const For& loop) {
    DType t = loop->var->dtype;
    Var o = var(name + "_o", t), i = var(name + "_i", t);
    Expr value = o * factor + i;
    Stmt body = substitute(loop->body, {{loop->var, value}});
    auto extent = asConst(loop->extent);
    if (!extent || *extent % factor != 0) body = addPredicate(body, value < loop->extent);
    Stmt inner = forLoop(i, constant(t, factor), body);
    return forLoop(o, floordiv(loop->extent + (factor - 1), factor), inner);
  });
}

PrimFunc setLoopKind(const PrimFunc& f, const std::string& name, ForKind kind) {
  return editLoops(f, name, [&](const For& loop) {
    auto copy = mutableCopy(loop);
    copy->forKind = kind;
    return For(copy);
  });
}

PrimFunc setScope(const PrimFunc& f, const std::string& name, const std::string& scope) {
  BufferMap map;
  walk(f->body, [&](const NodeRef& n) {
    const auto* b = n.as<BufferNode>();
    if (!b || b->name != name) return true;
    auto copy = make<BufferNode>(*b);
    copy->scope = scope;
    map[b->data] = Buffer(copy);
    return true;
  });
  auto copy = mutableCopy(f);
  copy->body = replaceBuffers(f->body, map);
  return copy;
}

Result<std::vector<Ref<TensorObject>>> runCopy(const PrimFunc& f,
                                               const std::vector<Ref<TensorObject>>& arguments, bool filled) {
  std::vector<Ref<TensorObject>> copies;
  for (const auto& a : arguments) {
    auto t = TensorObject::zeros(a->dtype, a->shape);
    std::memcpy(t->mutableBytes(), a->bytes(), size_t(a->byteSize()));
    copies.push_back(t);
  }
  BEVEL_CHECK(testing::interpretNest(f, copies, filled));
  return copies;
}

std::string lowerDifference(const PrimFunc& f, const std::vector<std::pair<std::string, int64_t>>& dims) {
  auto arguments = makeArguments(f, dims);
  auto expected = runCopy(f, arguments);
  if (!expected) return "the program itself fails: " + expected.error().str() + "\n" + print(f);
  PrimFunc before = f;
  for (const LoopPass& pass : loopPasses("cpu")) {
    auto after = pass.run(before, Target::host());
    std::string fault;
    if (!after) {
      fault = "fails: " + after.error().str();
    } else if (auto valid = verify(*after); !valid) {
      fault = "the result is malformed: " + valid.error().str();
    } else if (auto result = runCopy(*after, arguments, true); !result) {
      fault = "the result cannot run: " + result.error().str();
    } else {
      for (size_t i = 0; i < expected->size(); ++i)
        if (!identical(*(*expected)[i], *(*result)[i])) fault = "argument " + std::to_string(i) + " differs";
    }
    if (!fault.empty())
      return std::string("pass ") + pass.name + " " + fault + "\n# before\n" + print(before) +
             (after ? "\n# after\n" + print(*after) : "");
    before = *after;
  }
  return flatFormFaults(before);
}

std::string flatFormFaults(const PrimFunc& lowered) {
  std::string out;
  auto fault = [&](const std::string& what, const NodeRef& n) { out += what + ": " + print(n) + "\n"; };
  walk(lowered->body, [&](const NodeRef& n) {
    if (n.is<DictNode>()) return false;   // offsets in the workspace are not limited to machine arithmetic
    if (n.is<BufferNode>()) return false; // nor are shapes
    if (n.is<BlockRealizeNode>() || n.is<BlockNode>()) fault("a block", n);
    if (const auto* l = n.as<ForNode>();
        l && l->forKind != ForKind::kSerial && l->forKind != ForKind::kParallel)
      fault("loop kind", n);
    if (const auto* l = n.as<LoadNode>();
        l && (l->indices.size() != 1 || l->indices[0]->dtype.scalar() != kInt64))
      fault("load", n);
    if (const auto* s = n.as<StoreNode>()) {
      const Expr& i = s->indices[0];
      if (s->indices.size() != 1 || i->dtype.scalar() != kInt64) fault("store", n);
      if (i->dtype.isVector() && !i.is<RampNode>()) fault("scattered store", n);
      if (s->value->dtype.lanes != i->dtype.lanes) fault("lanes of store", n);
      if (s->predicate && s->predicate->dtype.lanes != i->dtype.lanes) fault("lanes of mask", n);
      if (s->value->dtype.scalar() != s->buffer->dtype) fault("type of store", n);
    }
    if (const auto* b = n.as<BinaryNode>()) {
      if (b->op == BinaryOp::kFloorDiv || b->op == BinaryOp::kFloorMod) fault("floor division", n);
      if (!(b->a->dtype == b->b->dtype)) fault("operand types", n);
    }
    if (const auto* a = n.as<AllocNode>()) {
      const std::string& scope = a->buffer->scope;
      if (scope == "global" ? !attr(a->annotations, "workspace_offset")
                            : scope != "local" && scope != "register")
        fault("allocation", n);
    }
    return true;
  });
  return out;
}

} // namespace bevel::test
