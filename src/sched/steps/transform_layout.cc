#include "sched/steps/buffers.h"

#include "ir/structural.h"
#include "loop/passes/context.h"
#include "loop/regions.h"
#include "sched/inline.h"
#include "sched/layout.h"
#include "sched/steps/step_impl.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace bevel::steps {

constexpr const char* kDoc =
    R"(Stores a buffer in another layout: element `i, j` lies at the indices that the map gives.

The map must be one to one over the buffer's shape. Where its image has holes (a dimension that its tile does not divide), they are
padding: nothing reads them, and they stay undefined unless `pad_value` is given. Then the block that writes the buffer runs through the
new layout and stores the pad value in the holes; if that block is a reduction or does more than one store, a block `<buffer>_pad` fills
them first.
A parameter of the function keeps its layout, for callers know it: the step makes a copy as cache_read or cache_write do (scope "global"), and
the copy gets the layout.
`assume_injective_transform` changes nothing: what cannot be proved is refused.)";

struct Change {
  PrimFunc func; // before it
  Buffer buffer, changed;
  Layout layout;
  Expr padValue;      // null: undefined
  std::string writer; // the block that stores the pad value as well; "" when there is none
  Stmt writerNest;    // its new loops
};

/// The whole program accesses the buffer by single elements only.
static Status checkAccesses(const PrimFunc& f, const Buffer& buffer) {
  BlockRealize root = cast<BlockRealizeNode>(f->body);
  std::vector<BlockRealize> blocks = blocksUnder(root->block->body);
  blocks.push_back(root); // for what stands outside of the others
  for (const BlockRealize& r : blocks) {
    BEVEL_CHECK(checkPlainReads(r, buffer));
    bool vectors = anyNode<StoreNode>(r, [&](const StoreNode& s) {
      return s.buffer->data == buffer->data && (s.predicate || s.value->dtype.isVector());
    });
    if (vectors) return illegal("block " + r->block->name + " stores vectors into buffer " + buffer->name);
  }
  return {};
}

/// The pad value as an element of the buffer, which must hold it.
static Result<Expr> padConstant(const AnyArg& value, DType dtype) {
  const auto* i = value.as<IntImmNode>();
  const auto* f = value.as<FloatImmNode>();
  if (!i && !f) return fail(ErrorCode::kUsage, "the pad value must be a number");
  double number = f ? f->value : double(i->value);
  Expr made;
  if (dtype.isFloat())
    made = constantFloat(dtype, number);
  else if (bool whole = i || (std::abs(number) < 9.2e18 && number == std::floor(number)); whole)
    made = constant(dtype, i ? i->value : int64_t(number));
  const auto* asInt = made.as<IntImmNode>();
  const auto* asFloat = made.as<FloatImmNode>();
  bool wide = dtype.isUInt() && dtype.bits == 64; // every int64 that is not negative
  bool fits = asInt ? asInt->value >= minValue(dtype) && (wide || asInt->value <= maxValue(dtype))
                    : asFloat && std::isfinite(asFloat->value) == std::isfinite(number);
  if (!fits) return fail(ErrorCode::kUsage, fmt::format("the pad value {} is no {}", number, dtype.str()));
  return made;
}

static bool hasPadding(const Change& plan) {
  return plan.padValue && !isConst(plan.layout.inverse.padding, 0);
}

/// Lets the writer store the pad value, if it is of a form that can.
static Status planWriter(const Path& path, Change& plan) {
  if (!hasPadding(plan)) return {};
  BEVEL_TRY(BlockRealize scope, scopeOf(path));
  ScopeInfo info(scope);
  std::vector<int> writers = info.writers(plan.buffer->data);
  if (writers.size() != 1) return {};
  const std::string& name = info.blocks[size_t(writers[0])].name();
  Path writer = findBlock(plan.func->body, name);
  if (!soleNest(writer)) return {};
  auto nest = paddedWriter(plan.func, info, writers[0], plan.changed, plan.layout.inverse, plan.padValue);
  if (!nest) return {};
  plan.writer = name;
  plan.writerNest = *nest;
  return {};
}

/// All accesses through the map, simplified by what is known where they stand, and the blocks' declared
/// regions anew.
class LayoutRewriter : public ContextRewriter {
public:
  explicit LayoutRewriter(const Change& plan) : ContextRewriter(plan.func), plan_(plan) {}

private:
  NodeRef visit(const NodeRef& node) override {
    if (auto* b = node.as<BufferNode>(); b && isIt(*b)) return plan_.changed;
    NodeRef n = ContextRewriter::visit(node);
    if (auto* l = n.as<LoadNode>(); l && isIt(*l->buffer))
      return withOrigin(load(plan_.changed, plan_.layout.map.apply(l->indices, analyzer)), l->origin);
    if (auto* s = n.as<StoreNode>(); s && isIt(*s->buffer))
      return withOrigin(store(plan_.changed, s->value, plan_.layout.map.apply(s->indices, analyzer)),
                        s->origin);
    if (auto* block = n.as<BlockNode>();
        block && (touches(block->reads, plan_.buffer->data) || touches(block->writes, plan_.buffer->data)))
      return withDetectedAccess(Block(block));
    return n;
  }
  bool isIt(const BufferNode& b) const { return b.data == plan_.buffer->data; }

  const Change& plan_;
};

/// The number of the buffer among the regions; their count when it is not there.
static int64_t indexIn(const Array<BufferRegion>& regions, const Buffer& buffer) {
  auto isIt = [&](const NodeRef& r) { return r.as<BufferRegionNode>()->buffer->data == buffer->data; };
  return std::ranges::find_if(regions.raw(), isIt) - regions.raw().begin();
}

static Result<Plan> check(const Schedule& sch, const TransformLayout& s) {
  BEVEL_TRY(Path path, sch.locate(s.block));
  Change plan;
  const Block& block = realizeAt(path)->block;
  BEVEL_TRY(plan.buffer, bufferOf(*block, s.buffer));
  const Buffer& buffer = plan.buffer;
  if (isParameter(sch.func(), buffer)) {
    Schedule copied = sch;
    TransformLayout ofCopy = s;
    int64_t written = indexIn(block->writes, buffer), read = indexIn(block->reads, buffer);
    bool writes = written < int64_t(block->writes.size());
    ofCopy.buffer = writes ? writeBuffer(written) : readBuffer(read);
    BEVEL_CHECK(writes ? copied.run(CacheWrite{s.block, written, "global"})
                       : copied.run(CacheRead{s.block, read, "global"}));
    return check(copied, ofCopy);
  }
  plan.func = sch.func();
  BEVEL_CHECK(checkIntermediate(sch.func(), buffer));
  if (!buffer->strides.empty() || buffer->elemOffset)
    return illegal("buffer " + buffer->name + " has strides or an offset");
  if (s.indexMap->params.size() != buffer->rank())
    return fail(ErrorCode::kUsage, "the map takes " + std::to_string(s.indexMap->params.size()) +
                                       " indices, buffer " + buffer->name + " has " +
                                       std::to_string(buffer->rank()) + " dimensions");
  BEVEL_CHECK(checkAccesses(sch.func(), buffer));
  Analyzer analyzer;
  bindDims(sch.func(), analyzer);
  BEVEL_TRY(plan.layout, layoutOf(s.indexMap, buffer->shape, analyzer));
  plan.changed = with(buffer, &BufferNode::shape, plan.layout.shape);
  if (s.padValue) {
    BEVEL_TRY(plan.padValue, padConstant(s.padValue, buffer->dtype));
    BEVEL_CHECK(planWriter(path, plan));
  }
  Stmt root = LayoutRewriter(plan).run(plan.func)->body;
  if (!plan.writer.empty()) {
    auto nest = soleNest(findBlock(root, plan.writer));
    BEVEL_ASSERT(nest.has_value(), "the writer's loops changed with its layout");
    root = replaceAt(*nest, plan.writerNest);
  } else if (hasPadding(plan)) {
    const PaddedInverse& inverse = plan.layout.inverse;
    root = withFill(root, plan.changed, inverse.padding, inverse.map.initial, plan.padValue);
  }
  return Plan{root};
}

STEP_INFO(TransformLayout, "transform_layout", kDoc)

} // namespace bevel::steps
