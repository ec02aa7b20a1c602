// 1. The program is loops around one block, which stores one element of the input at its axes.
// 2. The positions of the load and of the store in row-major order are the same for all values of the axes.
// 3. Both have the same number of elements.
#include "loop/view.h"

#include "arith/analyzer.h"
#include "ir/build.h"
#include "ir/structural.h"

#include <algorithm>

namespace bevel {
namespace {

// The block of a program that is nothing but loops around it; null otherwise.
const BlockNode* soleBlock(const PrimFunc& f) {
  const BlockNode* block = nullptr;
  for (Stmt s = f->body; s;) {
    if (const auto* loop = s.as<ForNode>()) {
      s = loop->body;
    } else if (const auto* realize = s.as<BlockRealizeNode>()) {
      block = realize->block.get();
      if (block->init || !block->allocs.empty() || !block->matches.empty()) return nullptr;
      s = block->body;
    } else {
      return block && s.is<StoreNode>() ? block : nullptr;
    }
  }
  return nullptr;
}

bool isDense(const Buffer& b) {
  return b->strides.empty() && (!b->elemOffset || isConst(b->elemOffset, 0));
}

// In the dtype of the program's indices: a cast would hide a quotient from the remainder that belongs to it.
Expr position(const Buffer& b, const Array<Expr>& indices, DType t) {
  Expr at = constant(t, 0);
  for (size_t d = 0; d < b->rank(); ++d) at = at * castTo(t, b->shape[d]) + castTo(t, indices[d]);
  return at;
}

Expr elements(const Buffer& b) {
  Expr n = intImm(1);
  for (const Expr& d : b->shape) n = n * castTo(kInt64, d);
  return n;
}

// A dimension that is a variable is not zero, or there is nothing to compare; other variables are not
// negative.
void bindDims(const std::vector<Buffer>& buffers, Analyzer& analyzer) {
  for (bool dimension : {false, true})
    for (const Buffer& b : buffers)
      for (const Expr& d : b->shape)
        for (const NodeRef& v : freeVars(d))
          if (d.is<VarNode>() == dimension)
            analyzer.bind(cast<VarNode>(v), ConstBound{dimension ? 1 : 0, kPosInf});
}

} // namespace

bool isView(const PrimFunc& f) {
  if (attrInt(f->attrs, "view")) return true;
  const BlockNode* block = soleBlock(f);
  const auto* store = block ? block->body.as<StoreNode>() : nullptr;
  const auto* load = store ? store->value.as<LoadNode>() : nullptr;
  if (!load || store->predicate || load->predicate || load->dtype != load->buffer->dtype) return false;
  std::vector<Buffer> tensors;
  for (const Buffer& b : f->buffers)
    if (b) tensors.push_back(b);
  const Buffer &from = load->buffer, &to = store->buffer;
  bool plain = tensors.size() == 2 && tensors[0]->data == from->data && tensors[1]->data == to->data &&
               from->dtype == to->dtype && isDense(from) && isDense(to) &&
               load->indices.size() == from->rank() && store->indices.size() == to->rank();
  if (!plain) return false;
  Analyzer analyzer;
  bindDims(tensors, analyzer);
  for (const IterVar& iv : block->iters) {
    if (iv->type != IterType::kSpatial) return false;
    analyzer.bind(iv->var, iv->domain);
  }
  auto narrow = [](const Expr& e) { return e->dtype == kInt32; };
  bool small = std::ranges::all_of(load->indices, narrow) && std::ranges::all_of(store->indices, narrow);
  DType t = small ? kInt32 : kInt64;
  return analyzer.proveEqual(elements(from), elements(to)) &&
         analyzer.proveEqual(position(from, load->indices, t), position(to, store->indices, t));
}

} // namespace bevel
