// See the header: one walk with everything known at each place.
#include "loop/bounds_verifier.h"

#include "loop/passes/context.h"
#include "loop/passes/vector_util.h"

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
    if (const auto* m = node.as<MatchBufferNode>()) check(*m);
    return ContextRewriter::visit(node);
  }

  /// Lanes that are on are inside the buffer, given that they are on.
  void check(const Buffer& b, const Array<Expr>& indices, const Expr& predicate, const NodeRef& at) {
    if (!predicate) return check(b, indices, at);
    for (int lane = 0; lane < predicate->dtype.lanes && !error; ++lane) {
      Expr on = laneOf(predicate, lane);
      if (on && isConst(on, 0)) continue;
      auto scope = analyzer.assume(on ? on : boolImm(true));
      Array<Expr> own = indices;
      for (size_t d = 0; d < own.size(); ++d)
        if (Expr e = laneOf(own[d], lane)) own.set(d, e);
      check(b, own, at);
    }
  }

  void check(const Buffer& b, const Array<Expr>& indices, const NodeRef& at) {
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
      check(b, d, lo, hi, "an access", at, indices[d]);
    }
  }

  /// The whole region that a view shows: its own accesses are held against the view's shape.
  void check(const MatchBufferNode& m) {
    const BufferRegionNode& source = *m.source;
    for (size_t d = 0; d < source.region.size() && !error; ++d) {
      const Range& r = source.region[d];
      check(source.buffer, d, r->min, r->min + r->extent - 1, "a view", m.source, r);
    }
  }

  void check(const Buffer& b, size_t d, const Expr& lo, const Expr& hi, const char* what, const NodeRef& at,
             const NodeRef& place) {
    bool above = !lo->dtype.isVector() && analyzer.prove(lo >= constant(lo->dtype, 0));
    bool below = !hi->dtype.isVector() && analyzer.prove(hi < b->shape[d]);
    if (above && below) return;
    error = Error(ErrorCode::kIllegal,
                  fmt::format("{} of buffer \"{}\" may leave dimension {}: it is not proved {}", what,
                              b->name, d, above ? "below its size" : "not negative"))
                .at(at)
                .at(place);
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
