// What the verifier knows of the values of indices: which of them certainly leave a buffer.
//
//   for i in range(8):
//       A[i * 2 + 1]          reaches 1 and 15: an error when A has 8 elements
//
// An affine index of loops with constant extents takes its least and its greatest value in some iteration, so one of
// them outside the buffer is a fault of the program. What is not affine has bounds that need not be reached: only an
// index that is outside for all of its values is a fault then. Under a condition nothing is judged.
#include "ir/build.h"
#include "ir/verify_impl.h"

#include <algorithm>

namespace bevel::detail {

bool Verifier::Affine::add(const Affine& other, int64_t factor) {
  int64_t c = 0;
  if (__builtin_mul_overflow(other.constant, factor, &c) || __builtin_add_overflow(constant, c, &constant))
    return false;
  for (const auto& [variable, coefficient] : other.terms) {
    auto it = std::find_if(terms.begin(), terms.end(), [&](const auto& t) { return t.first == variable; });
    if (it == terms.end()) it = terms.insert(terms.end(), {variable, 0});
    if (__builtin_mul_overflow(coefficient, factor, &c) || __builtin_add_overflow(it->second, c, &it->second))
      return false;
    if (it->second == 0) terms.erase(it);
  }
  return true;
}

std::optional<Verifier::Affine> Verifier::affine(const Expr& e) const {
  if (!e) return std::nullopt;
  if (auto c = asConst(e)) return Affine{{}, *c};
  if (auto it = forms_.find(e.get()); it != forms_.end()) return it->second;
  if (ranges_.contains(e.get())) return Affine{{{e.get(), 1}}, 0};
  // Narrow and unsigned arithmetic wraps around.
  if (!e->dtype.isInt() || e->dtype.bits < 32 || e->dtype.isVector()) return std::nullopt;
  if (const auto* cast = e.as<CastNode>()) {
    bool widens = cast->value && cast->value->dtype.isInteger() && cast->value->dtype.bits <= e->dtype.bits;
    return widens ? affine(cast->value) : std::nullopt;
  }
  const auto* n = e.as<BinaryNode>();
  if (!n || (n->op != BinaryOp::kAdd && n->op != BinaryOp::kSub && n->op != BinaryOp::kMul))
    return std::nullopt;
  auto a = affine(n->a);
  auto b = a ? affine(n->b) : std::nullopt;
  if (!b) return std::nullopt;
  if (n->op == BinaryOp::kMul) {
    if (!a->terms.empty()) std::swap(a, b);
    Affine product;
    return a->terms.empty() && product.add(*b, a->constant) ? std::optional(product) : std::nullopt;
  }
  return a->add(*b, n->op == BinaryOp::kSub ? -1 : 1) ? a : std::nullopt;
}

std::optional<Verifier::Bounds> Verifier::boundsOf(const Affine& form) const {
  Bounds out{form.constant, form.constant, true};
  for (const auto& [variable, coefficient] : form.terms) {
    Bounds range = ranges_.at(variable);
    int64_t low = 0, high = 0;
    if (coefficient < 0) std::swap(range.min, range.max);
    if (__builtin_mul_overflow(range.min, coefficient, &low) ||
        __builtin_mul_overflow(range.max, coefficient, &high) ||
        __builtin_add_overflow(out.min, low, &out.min) || __builtin_add_overflow(out.max, high, &out.max))
      return std::nullopt;
    out.reached &= range.reached;
  }
  return out;
}

std::optional<Verifier::Bounds> Verifier::boundsOfRamp(const RampNode& r) const {
  auto base = bounds(r.base);
  auto stride = asConst(r.stride);
  int64_t span = 0;
  if (!base || !stride || __builtin_mul_overflow(*stride, int64_t(r.dtype.lanes - 1), &span))
    return std::nullopt;
  int64_t& end = span < 0 ? base->min : base->max;
  return __builtin_add_overflow(end, span, &end) ? std::nullopt : base;
}

std::optional<Verifier::Bounds> Verifier::bounds(const Expr& e) const {
  if (auto form = affine(e)) return boundsOf(*form);
  if (!e) return std::nullopt;
  if (const auto* r = e.as<RampNode>()) return boundsOfRamp(*r);
  const auto* n = e.as<BinaryNode>();
  if (!n || !e->dtype.isInt() || e->dtype.bits < 32) return std::nullopt;
  auto a = bounds(n->a), b = bounds(n->b);
  if (!a || !b) return std::nullopt;
  bool constant = b->min == b->max; // then a monotone operation keeps what is reached
  Bounds r{0, 0, false};
  switch (n->op) {
  case BinaryOp::kAdd:
    if (__builtin_add_overflow(a->min, b->min, &r.min) || __builtin_add_overflow(a->max, b->max, &r.max))
      return std::nullopt;
    break;
  case BinaryOp::kSub:
    if (__builtin_sub_overflow(a->min, b->max, &r.min) || __builtin_sub_overflow(a->max, b->min, &r.max))
      return std::nullopt;
    break;
  case BinaryOp::kMul: {
    int64_t p[4];
    if (__builtin_mul_overflow(a->min, b->min, &p[0]) || __builtin_mul_overflow(a->min, b->max, &p[1]) ||
        __builtin_mul_overflow(a->max, b->min, &p[2]) || __builtin_mul_overflow(a->max, b->max, &p[3]))
      return std::nullopt;
    r.min = *std::min_element(p, p + 4), r.max = *std::max_element(p, p + 4);
    break;
  }
  case BinaryOp::kFloorDiv:
    if (!constant || b->min <= 0) return std::nullopt;
    return Bounds{floorDivide(a->min, b->min), floorDivide(a->max, b->min), a->reached};
  case BinaryOp::kFloorMod:
    if (!constant || b->min <= 0) return std::nullopt;
    if (a->min >= 0 && a->max < b->min) return a;
    r.max = b->min - 1;
    return r;
  case BinaryOp::kMin:
    r.min = std::min(a->min, b->min), r.max = std::min(a->max, b->max);
    break;
  case BinaryOp::kMax:
    r.min = std::max(a->min, b->min), r.max = std::max(a->max, b->max);
    break;
  default:
    return std::nullopt;
  }
  r.reached = constant && a->reached && n->op != BinaryOp::kMul;
  return r;
}

void Verifier::indexInside(const Buffer& b, size_t dim, const Expr& index, const RefBase& node) {
  if (conditional_) return;
  auto size = asConst(b->shape[dim]);
  auto range = size ? bounds(index) : std::nullopt;
  if (!range) return;
  std::string text;
  if (range->min >= *size || range->max < 0)
    text = "index " + std::to_string(range->min) +
           (range->min == range->max ? "" : " to " + std::to_string(range->max)) + " lies";
  else if (range->reached && (range->max >= *size || range->min < 0))
    text = "index reaches " + std::to_string(range->min < 0 ? range->min : range->max) + ", which lies";
  else
    return;
  error(index->origin ? RefBase(index) : node, text + " outside dimension " + std::to_string(dim) +
                                                   " of buffer '" + b->name + "', which has " +
                                                   std::to_string(*size) + " elements");
}

bool Verifier::masks(const Expr& predicate) {
  if (!predicate) return false;
  const auto* same = predicate.as<BroadcastNode>();
  return !isConst(same ? same->value : predicate, 1);
}

void Verifier::viewInside(const BufferRegionNode& source) {
  NodeRef node(&source);
  if (!source.buffer || source.region.size() != source.buffer->rank()) return;
  for (size_t d = 0; d < source.region.size(); ++d) {
    const Range& r = source.region[d];
    if (!r || !r->min || !r->extent || !r->min->dtype.isInteger() || r->min->dtype.isVector()) continue;
    size_t before = errors_.size();
    indexInside(source.buffer, d, r->min, node);
    auto extent = affine(r->extent);
    if (extent && extent->terms.empty() && extent->constant > 1 && errors_.size() == before)
      indexInside(source.buffer, d, r->min + (extent->constant - 1), node);
  }
}

void Verifier::pointerInside(const CallNode& n) {
  auto found = n.args.size() == 5 ? buffers_.find(n.args[1].get()) : buffers_.end();
  if (conditional_ || found == buffers_.end()) return;
  for (const NodeRef& arg : n.args)
    if (!arg || !arg.is<ExprNode>()) return;
  const Buffer& b = found->second;
  bool dense = b->strides.empty() && !b->elemOffset && n.arg(0)->dtype == b->dtype; // positions are elements
  auto first = dense ? affine(n.arg(2)) : std::nullopt;
  auto count = dense ? affine(n.arg(3)) : std::nullopt;
  int64_t size = 1;
  for (const Expr& d : b->shape) {
    auto c = asConst(d);
    if (!c || __builtin_mul_overflow(size, *c, &size)) return;
  }
  if (!first || !count) return;
  Affine end = *first;
  if (!end.add(*count, 1)) return;
  auto low = boundsOf(*first), length = boundsOf(*count), high = boundsOf(end);
  if (!low || !length || !high || !low->reached || !length->reached || !high->reached) return;
  if (low->min < 0 || length->min < 0 || high->max > size)
    error(NodeRef(&n), "a pointer to " + std::to_string(length->min < 0 ? length->min : length->max) +
                           " elements from " + std::to_string(low->min < 0 ? low->min : low->max) +
                           " on leaves buffer '" + b->name + "', which has " + std::to_string(size) +
                           " elements");
}

void Verifier::setLoopRange(const ForNode& n, const std::optional<Bounds>& extent) {
  auto low = affine(n.min);
  auto around = bounds(n.min);
  if (!extent || extent->max <= 0 || !around) return;
  bool constant = extent->min == extent->max;
  if (low && constant && !low->terms.empty()) { // starts at other loops: its own part is independent of them
    ranges_[n.var.get()] = {0, extent->max - 1, true};
    low->terms.emplace_back(n.var.get(), 1);
    forms_[n.var.get()] = std::move(*low);
    return;
  }
  int64_t last = 0;
  if (!__builtin_add_overflow(around->max, extent->max - 1, &last))
    ranges_[n.var.get()] = {around->min, last, constant && around->reached};
}

void Verifier::setValue(const Var& v, const Expr& value) {
  if (!v || !value) return;
  if (auto form = affine(value))
    forms_[v.get()] = std::move(*form);
  else if (auto range = bounds(value))
    ranges_[v.get()] = *range;
}

} // namespace bevel::detail
