#include "sched/steps/place.h"

#include "ir/structural.h"
#include "loop/dependence.h"
#include "loop/reduction.h"
#include "loop/regions.h"
#include "sched/inline.h"
#include "sched/steps/step_impl.h"

#include <algorithm>

namespace bevel::steps {

constexpr const char* kDoc =
    R"(Puts a block into its only producer: what the producer would store goes through the block's expression and into its output.

Both must be single stores, the producer not a reduction, and the block must read each element of the intermediate buffer at most
once, at its axes or at a one-to-one affine map of them. Where it reads only part of the buffer, the producer
is kept to that part by a condition.)";

/// The one buffer that the block reads from another block of the scope, and that block.
static Result<int> soleProducer(const ScopeInfo& info, int self, Buffer& buffer) {
  const ScopeBlock& consumer = info.blocks[size_t(self)];
  int producer = -1;
  for (const BufferRegion& r : consumer.block().reads) {
    std::vector<int> writers = info.writers(r->buffer->data);
    if (writers.empty()) continue;
    if (producer < 0 && writers.size() == 1 && info.readers(r->buffer->data).size() == 1 &&
        writers[0] < self) {
      producer = writers[0];
      buffer = r->buffer;
    }
  }
  if (producer < 0)
    return illegal("block " + consumer.name() + " reads no buffer that only it reads and one block writes");
  return producer;
}

/// The indices at which the block reads the buffer: the same in all loads.
static Result<Array<Expr>> readIndices(const BlockNode& block, const Store& store, const Buffer& between) {
  Array<Expr> out;
  bool found = false;
  Status status;
  walk(store->value, [&](const NodeRef& n) {
    auto* l = n.as<LoadNode>();
    if (!l || l->buffer->data != between->data) return true;
    if (found && !sameElement(out, l->indices))
      status = illegal("block " + block.name + " reads several elements of buffer " + between->name);
    out = l->indices;
    found = true;
    return true;
  });
  BEVEL_CHECK(std::move(status));
  if (!found)
    return illegal("block " + block.name + " does not read buffer " + between->name + " in its value");
  return out;
}

/// Nothing else of what the block uses changes between the producer and the block, and nothing uses what it writes.
static Status checkMove(const ScopeInfo& info, int producer, int self, const Buffer& intermediate) {
  const ScopeBlock &source = info.blocks[size_t(producer)], &consumer = info.blocks[size_t(self)];
  Place place{source.loops, producer};
  for (const BufferRegion& r : consumer.block().reads)
    for (int i : between(info, self, place, r->buffer->data, true))
      if (r->buffer->data != intermediate->data)
        return illegal("block " + info.blocks[size_t(i)].name() + " writes another input of block " +
                       consumer.name() + " after the producer has begun");
  for (const BufferRegion& w : consumer.block().writes) {
    for (int i : between(info, self, place, w->buffer->data, false))
      if (i != producer)
        return illegal("block " + info.blocks[size_t(i)].name() + " uses buffer " + w->buffer->name +
                       " before block " + consumer.name());
    if (reads(source.block(), w->buffer->data))
      return illegal("the producer reads buffer " + w->buffer->name + ", which block " + consumer.name() +
                     " writes");
  }
  return {};
}

/// The consumer's axes by the producer's, and where the consumer has instances: it reads each element that the producer
/// writes at most once, in whatever order.
static Result<VarMap> axesByProducer(const Block& block, const Array<Expr>& indices, const BlockNode& source,
                                     const Array<Expr>& sourceIndices, Analyzer& analyzer, Expr& condition) {
  Array<Expr> ahead,
      from; // the indices, and the producer's: both negated where the former run against their axis
  std::vector<bool> against;
  for (size_t d = 0; d < indices.size(); ++d) {
    auto index = axisIndex(indices[d], block, analyzer);
    against.push_back(index && index->scale < 0);
    auto forward = [&](const Expr& e) { return against[d] ? constant(e->dtype, 0) - e : e; };
    ahead.push_back(forward(indices[d]));
    from.push_back(forward(sourceIndices[d]));
  }
  auto [map, box] = axisMap(ahead, *block);
  auto inverse = map.inverse(box, analyzer);
  auto read = map.applyRanges(box, analyzer);
  if (!inverse || !read) {
    BEVEL_CHECK(indexAxes(indices, *block)); // tells why, where it is simple
    return illegal(quoted(*block) + " does not read each element of the buffer at most once");
  }
  BEVEL_TRY(std::vector<int> sourceAxes, indexAxes(sourceIndices, source));
  for (const IterVar& iv : source.iters) analyzer.bind(iv->var, iv->domain);
  condition = boolImm(true);
  for (size_t d = 0; d < sourceAxes.size(); ++d) {
    const Expr &at = from[d], &low = (*read)[d]->min, &extent = (*read)[d]->extent;
    Expr first = at, last = at;
    if (sourceAxes[d] >= 0) {
      const IterVar& iv = source.iters[size_t(sourceAxes[d])];
      first = substitute(at, VarMap{{iv->var, iv->domain->min}});
      last = substitute(at, VarMap{{iv->var, iv->domain->min + iv->domain->extent - 1}});
      if (against[d]) std::swap(first, last);
    }
    if (!analyzer.prove(first <= low) || !analyzer.prove(low + extent - 1 <= last))
      return illegal(quoted(source) + " does not provably write all that " + quoted(*block) + " reads");
    Expr inside = isConst(extent, 1) ? eq(at, low) : logicalAnd(at >= low, at < low + extent);
    for (const Expr& c : conjuncts(inside))
      if (!analyzer.prove(c)) condition = logicalAnd(condition, analyzer.simplify(c));
  }
  Array<Expr> values = inverse->apply(from, analyzer);
  VarMap axes;
  for (size_t i = 0; i < values.size(); ++i)
    axes[block->iters[i]->var] = castTo(block->iters[i]->var->dtype, values[i]);
  return axes;
}

static Result<Plan> check(const Schedule& sch, const ReverseComputeInline& s) {
  Analyzer analyzer;
  BEVEL_TRY(Inlinable self, inlinableOf(sch, s.block, analyzer));
  const ScopeInfo& info = self.site.info;
  const Block& block = self.site.block();
  Buffer between;
  BEVEL_TRY(int producer, soleProducer(info, self.site.self, between));
  const ScopeBlock& source = info.blocks[size_t(producer)];
  BEVEL_CHECK(checkNoEffectsUntil(info, self.site.self, producer));
  BEVEL_CHECK(checkIntermediate(sch.func(), between));
  BEVEL_CHECK(checkUsedOnlyIn(info.scope, sch.func(), between));
  BEVEL_CHECK(checkCompleteBlock(info, producer));
  BEVEL_TRY(Store sourceStore, singleStore(source.block()));
  BEVEL_CHECK(checkPlainReads(self.site.inScope().realize, between));
  BEVEL_TRY(Array<Expr> indices, readIndices(*block, self.store, between));
  BEVEL_CHECK(checkMove(info, producer, self.site.self, between));
  BEVEL_CHECK(checkCoversDomain(source, analyzer));
  Expr condition; // over the producer's axes: where the consumer has instances
  BEVEL_TRY(VarMap map,
            axesByProducer(block, indices, source.block(), sourceStore->indices, analyzer, condition));
  const Expr& value = sourceStore->value;
  Path at = findBlock(withoutAlloc(withoutBlock(self.site.path), between->data), source.name());
  BlockRealize realize = realizeAt(at);
  Stmt body =
      replaceReads(substitute(self.store, map), between, value, [&](const Array<Expr>&) { return value; });
  Block both = with(realize->block, &BlockNode::body, body, &BlockNode::origin,
                    mergeOrigins(realize->block->origin, block->origin));
  VarMap values;
  for (size_t i = 0; i < both->iters.size(); ++i) values[both->iters[i]->var] = realize->values[i];
  realize = with(realize, &BlockRealizeNode::block, withDetectedAccess(both), &BlockRealizeNode::predicate,
                 logicalAnd(realize->predicate, substitute(condition, values)));
  return Plan{.body = replaceAt(at, realize), .block = block->name};
}

STEP_INFO(ReverseComputeInline, "reverse_compute_inline", kDoc)

} // namespace bevel::steps
