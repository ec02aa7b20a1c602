// See the header: one walk with everything known at each place.
#include "loop/bounds_verifier.h"

#include "loop/passes/context.h"

#include <fmt/format.h>

namespace bevel {
namespace {

class BoundsVerifier : public ContextRewriter {
public:
  explicit BoundsVerifier(const PrimFunc& f) : ContextRewriter(f) {}
  std::optional<Error> error;

private:
  NodeRef visit(const NodeRef& node) override {
    if (error) return node;
    if (const auto* l = node.as<LoadNode>()) check(l->buffer, l->indices, l->predicate, node);
    if (const auto* s = node.as<StoreNode>()) check(s->buffer, s->indices, s->predicate, node);
    return ContextRewriter::visit(node);
  }

  void check(const Buffer& b, const Array<Expr>& indices, const Expr& predicate, const NodeRef& at) {
    if (predicate) return; // lanes that are on: as scheduled, proved before vectorising
    for (size_t d = 0; d < indices.size() && !error; ++d) {
      Expr lo = indices[d], hi = indices[d];
      if (const auto* r = indices[d].as<RampNode>()) {
        lo = r->base;
        hi = r->base + r->stride * (r->dtype.lanes - 1);
        auto stride = asConst(r->stride);
        if (stride && *stride < 0) std::swap(lo, hi);
      } else if (const auto* v = indices[d].as<BroadcastNode>()) {
        lo = hi = v->value;
      }
      bool above = !lo->dtype.isVector() && analyzer.prove(lo >= constant(lo->dtype, 0));
      bool below = !hi->dtype.isVector() && analyzer.prove(hi < b->shape[d]);
      if (above && below) continue;
      error = Error(ErrorCode::kIllegal,
                    fmt::format("an access of buffer \"{}\" may leave dimension {}: it is not proved {}",
                                b->name, d, above ? "below its size" : "not negative"))
                  .at(at)
                  .at(indices[d]);
    }
  }
};

} // namespace

Status verifyBounds(const PrimFunc& f) {
  BoundsVerifier verifier(f);
  verifier.run(f);
  if (verifier.error) return fail(std::move(*verifier.error));
  return {};
}

} // namespace bevel
