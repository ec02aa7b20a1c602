// Reads and writes of statements and blocks as unions of regions: detection, and the check of declared ones.
#include "arith/analyzer.h"
#include "ir/access_hook.h"
#include "ir/printer.h"
#include "ir/structural.h"
#include "loop/passes/context.h"
#include "loop/regions.h"

#include <algorithm>

namespace bevel {

std::unordered_set<Var, RefHash> buffersWritten(const std::vector<BufferAccess>& accesses) {
  std::unordered_set<Var, RefHash> out;
  for (const BufferAccess& a : accesses)
    if (a.buffer && a.write) out.insert(a.buffer->data);
  return out;
}

BufferRegion withoutChanging(const BufferRegion& region, const std::unordered_set<Var, RefHash>& changing) {
  Array<Range> ranges = region->region, whole = fullRegion(region->buffer)->region;
  auto changes = [&](const LoadNode& l) { return changing.contains(l.buffer->data); };
  for (size_t d = 0; d < ranges.size(); ++d)
    if (anyNode<LoadNode>(ranges[d], changes)) ranges.set(d, whole[d]);
  return ranges == region->region ? region : make<const BufferRegionNode>(region->buffer, ranges);
}

namespace {

void addToUnion(Array<BufferRegion>& list, const BufferRegion& region, Analyzer& analyzer) {
  for (size_t i = 0; i < list.size(); ++i)
    if (list[i]->buffer->sameAs(*region->buffer) && list[i]->region.size() == region->region.size())
      return list.set(i, regionUnion(list[i], region, analyzer));
  list.push_back(region);
}

/// Data variables of buffers that root writes or makes: what is read from them is not known before it.
std::unordered_set<Var, RefHash> changingBuffers(const NodeRef& root,
                                                 const std::vector<BufferAccess>& accesses) {
  std::unordered_set<Var, RefHash> out = buffersWritten(accesses);
  out.merge(buffersMadeInside(root));
  return out;
}

/// Bounds of axes of a block, for unions and comparisons over them.
void bindAxes(const BlockNode& block, Analyzer& analyzer) {
  for (const IterVar& v : block.iters) analyzer.bind(v->var, v->domain);
}

const BufferRegionNode* findRegion(const Array<BufferRegion>& list, const Buffer& buffer) {
  for (const BufferRegion& r : list)
    if (r->buffer->sameAs(*buffer)) return r.get();
  return nullptr;
}

bool isIn(const Array<BufferRegion>& list, const BufferRegion& region) {
  return std::ranges::any_of(list, [&](const BufferRegion& r) { return same(r, region); });
}

std::string textOf(const BufferRegion& region) {
  std::string out = print(region);
  return out.substr(0, out.find('\n'));
}

/// A region, and what holds where it is accessed.
struct Access {
  BufferRegion region;
  Expr condition;
};

/// Everything found (as unions, and access by access) lies in a declared region.
Status checkCovered(const Block& block, const Array<BufferRegion>& declared,
                    const Array<BufferRegion>& unions, const std::vector<Access>& accesses, const char* what,
                    Analyzer& analyzer) {
  std::string name = "block \"" + block->name + "\" ";
  for (const BufferRegion& u : unions) {
    if (!findRegion(declared, u->buffer))
      return fail(Error(ErrorCode::kInvalid,
                        name + what + "s buffer \"" + u->buffer->name + "\" without declaring it")
                      .at(block));
    if (isIn(declared, u)) continue;
    for (const auto& [a, condition] : accesses) {
      auto covers = [&](const NodeRef& d) { return regionCovers(cast<BufferRegionNode>(d), a, analyzer); };
      auto runs = analyzer.assume(condition);
      if (!a->buffer->sameAs(*u->buffer) || std::ranges::any_of(declared.raw(), covers)) continue;
      return fail(Error(ErrorCode::kInvalid, name + "may " + what + " more of buffer \"" + u->buffer->name +
                                                 "\" than it declares: " + textOf(a) +
                                                 " is not provably inside " +
                                                 textOf(BufferRegion(findRegion(declared, u->buffer))))
                      .at(block)
                      .at(a)
                      .note("without T.reads and T.writes the regions are found from the body"));
    }
  }
  return {};
}

} // namespace

Regions accessedRegions(const NodeRef& root, Analyzer& analyzer, AccessOptions options) {
  auto inside = buffersMadeInside(root);
  Regions out;
  std::vector<BufferAccess> accesses = collectAccesses(root, options);
  auto changing = changingBuffers(root, accesses);
  for (const BufferAccess& a : accesses) {
    if (!a.buffer) {
      out.opaque = true;
      continue;
    }
    if (inside.contains(a.buffer->data)) continue;
    BufferRegion region = relaxRegion(a.buffer, a.region, a.loops, a.conditions, analyzer);
    region = withoutChanging(region, changing);
    addToUnion(a.write ? out.writes : out.reads, region, analyzer);
  }
  return out;
}

/// Reads and writes of a block over its axes, by the convention of the notation: buffers that the block or
/// its parents allocate inside are left out, and so are reads of what a block with `init` updates.
static Regions blockAccess(const Block& block, AccessOptions options = {}) {
  Analyzer analyzer;
  bindAxes(*block, analyzer);
  Regions found = accessedRegions(block, analyzer, options);
  if (!block->init) return found;
  // An update reads what it writes: implied by the init. Other elements of its output are not.
  Array<BufferRegion> reads;
  for (const BufferRegion& r : found.reads) {
    const BufferRegionNode* written = findRegion(found.writes, r->buffer);
    if (!written || !same(BufferRegion(written), r)) reads.push_back(r);
  }
  found.reads = reads;
  return found;
}

Block withDetectedAccess(const Block& block) {
  Regions found = blockAccess(block);
  return with(block, &BlockNode::reads, found.reads, &BlockNode::writes, found.writes);
}

PrimFunc withDetectedAccess(const PrimFunc& f) {
  NodeRef body = rewrite(f->body, [&](const NodeRef& n) -> NodeRef {
    return n.is<BlockNode>() ? NodeRef(withDetectedAccess(cast<BlockNode>(n))) : n;
  });
  return withBody(f, cast<StmtNode>(body));
}

Status checkBlockAccess(const Block& block, bool* inWrites) {
  Analyzer analyzer;
  bindAxes(*block, analyzer);
  Regions found = blockAccess(block);
  std::vector<Access> reads, writes;
  auto allAre = [](const Array<BufferRegion>& unions, const Array<BufferRegion>& declared) {
    return std::ranges::all_of(unions, [&](const BufferRegion& u) { return isIn(declared, u); });
  };
  if (allAre(found.reads, block->reads) && allAre(found.writes, block->writes)) return {}; // as detected
  std::vector<BufferAccess> accesses = collectAccesses(block);
  auto changing = changingBuffers(block, accesses);
  for (const BufferAccess& a : accesses) {
    if (!a.buffer) continue;
    std::vector<Expr> here; // conditions of loops inside say nothing of the whole region
    for (const Expr& c : a.conditions)
      if (std::ranges::none_of(a.loops, [&](const VarRange& l) { return usesVar(c, l.first); }))
        here.push_back(c);
    (a.write ? writes : reads)
        .push_back(
            {withoutChanging(relaxRegion(a.buffer, a.region, a.loops, a.conditions, analyzer), changing),
             conjunction(here)});
  }
  BEVEL_CHECK(checkCovered(block, block->reads, found.reads, reads, "read", analyzer));
  if (inWrites) *inWrites = true;
  return checkCovered(block, block->writes, found.writes, writes, "write", analyzer);
}

namespace {

Block detect(const Block& block, bool reads, bool writes, FunctionRef<Buffer(const Var&)> bufferOf) {
  Regions found = blockAccess(block, {.bufferOf = &bufferOf});
  return with(block, &BlockNode::reads, reads ? found.reads : block->reads, &BlockNode::writes,
              writes ? found.writes : block->writes);
}

[[maybe_unused]] const bool kHooked = [] {
  accessHook.detect = detect;
  accessHook.check = [](const Block& block, bool& inWrites) { return checkBlockAccess(block, &inWrites); };
  return true;
}();

} // namespace

} // namespace bevel
