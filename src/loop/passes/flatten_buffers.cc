// Makes every buffer one-dimensional and dense.
//
// before:  def f(A: T.Buffer((16, 8), "float32")):        after:  def f(A: T.Buffer((16, 8), "float32")):
//            A[i, j] = 0                                            A_1 = T.decl_buffer((128,), data=A.data)
//                                                                   A_1[i*8 + j] = 0
//
// Parameters keep their declared buffers (the kernel's signature) and are viewed flat inside. Index
// arithmetic stays int64, so neither an element number nor a byte offset of any buffer that fits memory
// overflows (constant sizes whose product leaves int64 are refused). Views of one data variable keep their own
// strides; a size below zero is none.
#include "loop/passes/context.h"
#include "loop/passes/passes.h"
#include "loop/passes/vector_util.h"

#include <fmt/format.h>

namespace bevel {
namespace {

class Flattening : public ContextRewriter {
public:
  explicit Flattening(const PrimFunc& f) : ContextRewriter(f), f_(f) {}
  std::optional<Error> error;

  PrimFunc flatten() {
    std::vector<Buffer> params;
    for (const Buffer& b : f_->buffers) {
      if (!b || !usesVar(f_->body, b->data)) continue;
      params.push_back(flat(b, b->name));
      views_[b->data].back().parameter = true;
    }
    Stmt body = orNoOp((*this)(f_->body));
    for (size_t i = params.size(); i-- > 0;) body = make<const DeclBufferNode>(params[i], body);
    return withBody(f_, body);
  }

private:
  struct Flat {
    Buffer source, buffer;
    std::vector<Expr> strides;
    Expr offset;            // of element 0; null: 0
    bool parameter = false; // the body names it with sizes in another type
  };

  NodeRef visit(const NodeRef& node) override {
    switch (node->kind) {
    case Kind::kAlloc:
      return visitView(cast<AllocNode>(node));
    case Kind::kDeclBuffer:
      return visitView(cast<DeclBufferNode>(node));
    case Kind::kLoad:
    case Kind::kStore: {
      NodeRef out = ContextRewriter::visit(node);
      auto access = elementAccess(out);
      const Flat* v = view(access->buffer, access->indices.size());
      return v ? withAccess(out, v->buffer, {address(*v, access->indices)}) : out;
    }
    case Kind::kCall:
      return visitCall(cast<CallNode>(node));
    default:
      return ContextRewriter::visit(node);
    }
  }

  template <class T> NodeRef visitView(const Ref<const T>& node) {
    Buffer made = flat(node->buffer, node->buffer->name);
    Stmt body = (*this)(node->body);
    views_[made->data].pop_back();
    return body ? NodeRef(with(node, &T::buffer, made, &T::body, body)) : NodeRef();
  }

  /// Whole buffers and regions as arguments become the flat buffer.
  NodeRef visitCall(const Call& call) {
    return mapChildren(ContextRewriter::visit(call), [&](const NodeRef& arg) -> NodeRef {
      const auto* b = arg.as<BufferNode>();
      const Flat* v = b ? view(Buffer(b), b->rank()) : nullptr;
      return v ? v->buffer : arg;
    });
  }

  const Flat* view(const Buffer& b, size_t indices) {
    auto it = views_.find(b->data);
    if (it != views_.end() && b->rank() == indices)
      for (size_t i = it->second.size(); i-- > 0;)
        if (same(it->second[i].source, b) || it->second[i].parameter) return &it->second[i];
    if (!error)
      error =
          Error(ErrorCode::kInvalid, fmt::format("buffer \"{}\" is used outside of its declaration or with "
                                                 "another number of dimensions",
                                                 b->name))
              .at(b);
    return nullptr;
  }

  Buffer flat(const Buffer& b, const std::string& name) {
    Flat v;
    v.source = b;
    Expr step = intImm(1);
    v.strides.resize(b->rank());
    int64_t known = 1;
    for (size_t d = b->rank(); d-- > 0;) {
      v.strides[d] = b->strides.empty() ? analyzer.simplify(step) : castTo(kInt64, b->strides[d]);
      if (auto c = asConst(b->shape[d]); c && *c > 0 && __builtin_mul_overflow(known, *c, &known) && !error)
        error = Error(ErrorCode::kUnsupported,
                      fmt::format("the number of elements of buffer \"{}\" exceeds 63 bits", b->name))
                    .at(b);
      step = step * castTo(kInt64, b->shape[d]);
    }
    if (b->elemOffset) v.offset = castTo(kInt64, b->elemOffset);
    auto made = make<BufferNode>(b->data, b->dtype, Array<Expr>{flatSize(*b, v, step)}, name);
    made->scope = b->scope;
    made->alignment = b->alignment;
    made->origin = b->origin;
    v.buffer = made;
    views_[b->data].push_back(v);
    return v.buffer;
  }

  /// Elements from the first of the memory to the last that is addressed.
  Expr flatSize(const BufferNode& b, const Flat& v, const Expr& dense) {
    Expr size = dense;
    if (!b.strides.empty()) {
      size = intImm(1);
      for (size_t d = 0; d < b.rank(); ++d) size = size + (castTo(kInt64, b.shape[d]) - 1) * v.strides[d];
    }
    size = analyzer.simplify(v.offset ? size + v.offset : size);
    auto known = asConst(size);
    return known && *known < 0 ? intImm(0) : size;
  }

  Expr address(const Flat& v, const Array<Expr>& indices) {
    Expr out = v.offset ? v.offset : intImm(0);
    for (size_t d = 0; d < indices.size(); ++d) {
      Expr index = castTo(kInt64.withLanes(indices[d]->dtype.lanes), indices[d]);
      out = vectorBinary(BinaryOp::kAdd, out, vectorBinary(BinaryOp::kMul, index, v.strides[d]));
    }
    return out->dtype.isVector() ? out : analyzer.simplify(out);
  }

  const PrimFunc& f_;
  std::unordered_map<Var, std::vector<Flat>, RefHash> views_; // by data variable, the innermost last
};

} // namespace

Result<PrimFunc> flattenBuffers(const PrimFunc& f, const Target&) {
  Flattening flattening(f);
  PrimFunc out = flattening.flatten();
  if (flattening.error) return fail(std::move(*flattening.error));
  return out;
}

} // namespace bevel
