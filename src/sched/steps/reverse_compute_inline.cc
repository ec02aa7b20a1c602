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
once, at its axes or at a one-to-one affine map of them that reads all of the buffer. Where it reads only part of the buffer, the producer
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

/// How the block's axes index the buffer: each dimension is `axis + offset`, `offset - axis` or the offset alone, and
/// each axis of more than one value indexes one.
static Result<std::vector<AxisIndex>> plainIndices(const Array<Expr>& indices, const Block& block,
                                                   Analyzer& analyzer) {
  std::vector<AxisIndex> out;
  std::vector<int> uses(block->iters.size(), 0);
  for (const Expr& e : indices) {
    auto index = axisIndex(e, block, analyzer);
    if (!index || (index->axis >= 0 && std::abs(index->scale) != 1) || !asConst(index->offset))
      return illegal(quoted(*block) + " reads the buffer not simply at its axes");
    if (index->axis >= 0 && ++uses[size_t(index->axis)] > 1)
      return illegal("axis " + block->iters[size_t(index->axis)]->var->name + " indexes two dimensions");
    out.push_back(*index);
  }
  for (size_t i = 0; i < uses.size(); ++i)
    if (uses[i] == 0 && !isConst(block->iters[i]->domain->extent, 1))
      return illegal("axis " + block->iters[i]->var->name + " of " + quoted(*block) +
                     " does not index the buffer");
  return out;
}

/// The consumer's axes by the producer's, where it reads each element that the producer writes once, in whatever order.
static std::optional<VarMap> axesByElement(const Block& block, const Array<Expr>& indices,
                                           const BlockNode& source, const Array<Expr>& sourceIndices,
                                           const std::vector<int>& sourceAxes, Analyzer& analyzer) {
  auto [map, box] = axisMap(indices, *block);
  auto inverse = map.inverse(box, analyzer);
  auto read = map.applyRanges(box, analyzer);
  if (!inverse || !read) return std::nullopt;
  for (size_t d = 0; d < sourceAxes.size(); ++d) {
    Range produced = sourceAxes[d] >= 0 ? source.iters[size_t(sourceAxes[d])]->domain
                                        : range(sourceIndices[d], constant(sourceIndices[d]->dtype, 1));
    if (!analyzer.proveEqual(produced->min, (*read)[d]->min) ||
        !analyzer.proveEqual(produced->extent, (*read)[d]->extent))
      return std::nullopt;
  }
  Array<Expr> values = inverse->apply(sourceIndices, analyzer);
  VarMap axes;
  for (size_t i = 0; i < values.size(); ++i)
    axes[block->iters[i]->var] = castTo(block->iters[i]->var->dtype, values[i]);
  return axes;
}

/// The consumer's axes by the producer's, and where the consumer has instances.
static Result<VarMap> axesByProducer(const Block& block, const Array<Expr>& indices, const BlockNode& source,
                                     const Array<Expr>& sourceIndices, Analyzer& analyzer, Expr& condition) {
  auto plain = plainIndices(indices, block, analyzer);
  BEVEL_TRY(std::vector<int> sourceAxes, indexAxes(sourceIndices, source));
  VarMap map;
  condition = boolImm(true);
  if (!plain) {
    auto all = axesByElement(block, indices, source, sourceIndices, sourceAxes, analyzer);
    return all ? std::move(*all) : Result<VarMap>(fail(std::move(plain.error())));
  }
  const std::vector<AxisIndex>& reads = *plain;
  for (const IterVar& iv : block->iters) map[iv->var] = iv->domain->min;
  for (const IterVar& iv : source.iters) analyzer.bind(iv->var, iv->domain);
  for (size_t d = 0; d < reads.size(); ++d) {
    Expr at = sourceIndices[d];
    if (reads[d].axis < 0) {
      condition = logicalAnd(condition, analyzer.simplify(eq(at, indices[d])));
      continue;
    }
    const IterVar& iv = block->iters[size_t(reads[d].axis)];
    bool forward = reads[d].scale > 0;
    Expr offset = castTo(iv->var->dtype, reads[d].offset), last = iv->domain->min + iv->domain->extent - 1;
    at = castTo(iv->var->dtype, at);
    Expr value = analyzer.simplify(forward ? at - offset : offset - at);
    map[iv->var] = value;
    for (const Expr& c : conjuncts(logicalAnd(value >= iv->domain->min, value <= last)))
      if (!analyzer.prove(c)) condition = logicalAnd(condition, c);
    // The producer must reach every instance of the consumer.
    const Range produced = sourceAxes[d] >= 0 ? source.iters[size_t(sourceAxes[d])]->domain
                                              : range(sourceIndices[d], constant(at->dtype, 1));
    Expr low = forward ? iv->domain->min + offset : offset - last,
         high = forward ? last + offset : offset - iv->domain->min;
    if (!analyzer.prove(produced->min <= low) || !analyzer.prove(high < produced->min + produced->extent))
      return illegal(quoted(source) + " does not provably write all that " + quoted(*block) + " reads");
  }
  return map;
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
  auto realize = mutableCopy(realizeAt(at));
  auto both = mutableCopy(realize->block);
  both->body =
      replaceReads(substitute(self.store, map), between, value, [&](const Array<Expr>&) { return value; });
  both->origin = mergeOrigins(both->origin, block->origin);
  VarMap values;
  for (size_t i = 0; i < both->iters.size(); ++i) values[both->iters[i]->var] = realize->values[i];
  realize->block = withDetectedAccess(Block(both));
  realize->predicate = logicalAnd(realize->predicate, substitute(condition, values));
  return Plan{.body = replaceAt(at, Stmt(realize)), .block = block->name};
}

STEP_INFO(ReverseComputeInline, "reverse_compute_inline", kDoc)

} // namespace bevel::steps
