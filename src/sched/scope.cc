#include "sched/scope.h"

#include "ir/structural.h"
#include "loop/regions.h"

#include <algorithm>

namespace bevel {

Result<Path> locate(const Schedule& sch, LoopRV loop) {
  BEVEL_TRY(Var v, sch.varOf(loop));
  Path path = findLoop(sch.func()->body, v);
  if (!path.target) return illegal("loop " + v->name + " is no longer in the program");
  return path;
}

Result<Path> locate(const Schedule& sch, BlockRV block) {
  BEVEL_TRY(std::string name, sch.nameOf(block));
  Path path = findBlock(sch.func()->body, name);
  if (!path.target) return illegal("block " + name + " is no longer in the program");
  return path;
}

Result<BlockRealize> scopeOf(const Path& path) {
  int i = path.scope();
  if (i < 0) return illegal("the root block itself cannot be scheduled");
  return BlockRealize(cast<BlockRealizeNode>(path.ancestors[size_t(i)].node));
}

Status checkPlainLoop(const For& loop) {
  if (loop->forKind != ForKind::kSerial)
    return illegal(quoted(loop) + " is " + kForKindNames[int(loop->forKind)] +
                   ": take it apart before making it so");
  if (loop->annotations && !loop->annotations->keys.empty())
    return illegal(quoted(loop) + " has annotations: take it apart before adding them");
  return {};
}

void setBody(Schedule& sch, Stmt body) {
  auto f = mutableCopy(sch.func());
  f->body = std::move(body);
  sch.setFunc(PrimFunc(f));
}

void bindLoop(const For& loop, Analyzer& analyzer) {
  analyzer.bind(loop->var, range(loop->min, loop->extent));
}

void bindLoops(const Path& path, Analyzer& analyzer) {
  for (const PathItem& item : path.ancestors) {
    if (item.node->kind == Kind::kFor) bindLoop(cast<ForNode>(item.node), analyzer);
    if (auto* realize = item.node.as<BlockRealizeNode>())
      for (const IterVar& iv : realize->block->iters) analyzer.bind(iv->var, iv->domain);
  }
}

void bindContext(const Schedule& sch, const Path& path, Analyzer& analyzer) {
  bindDims(sch.func(), analyzer);
  bindLoops(path, analyzer);
}

namespace {

void collectBlocks(const Stmt& s, std::vector<For>& loops, std::vector<ScopeBlock>& out) {
  if (s->kind == Kind::kBlockRealize) {
    out.push_back({cast<BlockRealizeNode>(s), loops});
    return;
  }
  bool isLoop = s->kind == Kind::kFor;
  if (isLoop) loops.push_back(cast<ForNode>(s));
  int n = numChildren(s);
  for (int i = 0; i < n; ++i)
    if (Stmt child = childAt(s, i)) collectBlocks(child, loops, out);
  if (isLoop) loops.pop_back();
}

bool touches(const Array<BufferRegion>& regions, const Var& data) {
  return std::ranges::any_of(
      regions.raw(), [&](const NodeRef& r) { return r.as<BufferRegionNode>()->buffer->data == data; });
}

} // namespace

ScopeInfo::ScopeInfo(const BlockRealize& s) : scope(s) {
  std::vector<For> loops;
  collectBlocks(s->block->body, loops, blocks);
}

int ScopeInfo::indexOf(std::string_view block) const {
  for (size_t i = 0; i < blocks.size(); ++i)
    if (blocks[i].name() == block) return int(i);
  return -1;
}

Result<BlockSite> siteOf(const Schedule& sch, BlockRV block) {
  BEVEL_TRY(Path path, locate(sch, block));
  BEVEL_TRY(BlockRealize scope, scopeOf(path));
  ScopeInfo info(scope);
  int self = info.indexOf(realizeAt(path)->block->name);
  return BlockSite{std::move(path), std::move(info), self};
}

bool reads(const BlockNode& block, const Var& data) {
  return touches(block.reads, data) || (block.init && touches(block.writes, data));
}
bool writes(const BlockNode& block, const Var& data) {
  return touches(block.writes, data);
}

std::vector<int> ScopeInfo::writers(const Var& data) const {
  std::vector<int> out;
  for (size_t i = 0; i < blocks.size(); ++i)
    if (writes(blocks[i].block(), data)) out.push_back(int(i));
  return out;
}

std::vector<int> ScopeInfo::readers(const Var& data) const {
  std::vector<int> out;
  for (size_t i = 0; i < blocks.size(); ++i)
    if (reads(blocks[i].block(), data)) out.push_back(int(i));
  return out;
}

namespace {

std::vector<int> related(const ScopeInfo& info, int block, bool producers) {
  const BlockNode& self = info.blocks[size_t(block)].block();
  std::vector<int> out;
  for (const BufferRegion& r : producers ? self.reads : self.writes)
    for (int i : producers ? info.writers(r->buffer->data) : info.readers(r->buffer->data))
      if (i != block) out.push_back(i);
  std::ranges::sort(out);
  out.erase(std::ranges::unique(out).begin(), out.end());
  return out;
}

Status soleWriter(const ScopeInfo& scope, int block) {
  for (const BufferRegion& w : scope.blocks[size_t(block)].block().writes)
    for (int other : scope.writers(w->buffer->data))
      if (other != block)
        return illegal("block " + scope.blocks[size_t(other)].name() + " also writes buffer " +
                       w->buffer->name);
  return {};
}

Status checkAxes(const BlockNode& block, bool allowReduce) {
  for (const IterVar& iv : block.iters) {
    if (iv->type == IterType::kSpatial || (allowReduce && iv->type == IterType::kReduce)) continue;
    return illegal("axis " + iv->var->name + " of block " + block.name + " is not " +
                   (allowReduce ? "spatial or a reduction" : "spatial"));
  }
  return {};
}

Status checkNoOverlap(const BlockNode& block) {
  for (const BufferRegion& w : block.writes)
    if (touches(block.reads, w->buffer->data))
      return illegal("block " + block.name + " reads buffer " + w->buffer->name + ", which it also writes");
  return {};
}

} // namespace

std::vector<int> ScopeInfo::producers(int block) const {
  return related(*this, block, true);
}
std::vector<int> ScopeInfo::consumers(int block) const {
  return related(*this, block, false);
}

std::vector<std::string> ScopeInfo::names(const std::vector<int>& which) const {
  std::vector<std::string> out;
  for (int i : which) out.push_back(blocks[size_t(i)].name());
  return out;
}

bool hasReduceAxes(const BlockNode& block) {
  return std::ranges::any_of(
      block.iters.raw(), [](const NodeRef& iv) { return iv.as<IterVarNode>()->type != IterType::kSpatial; });
}

Status checkCompleteBlock(const ScopeInfo& scope, int block) {
  const BlockNode& b = scope.blocks[size_t(block)].block();
  BEVEL_CHECK(checkAxes(b, false));
  BEVEL_CHECK(checkNoOverlap(b));
  return soleWriter(scope, block);
}

Status checkReductionBlock(const ScopeInfo& scope, int block) {
  const BlockNode& b = scope.blocks[size_t(block)].block();
  if (!b.init) return illegal("block " + b.name + " has no init: it is not a whole reduction");
  BEVEL_CHECK(checkAxes(b, true));
  for (const BufferRegion& w : b.writes)
    for (const BufferRegion& r : b.reads)
      if (r->buffer->data == w->buffer->data && !same(r, w))
        return illegal("block " + b.name + " reads other elements of its output " + w->buffer->name);
  for (const BufferRegion& w : b.writes)
    for (const IterVar& iv : b.iters)
      if (iv->type == IterType::kReduce && usesVar(w, iv->var))
        return illegal("reduce axis " + iv->var->name + " indexes the output " + w->buffer->name);
  return soleWriter(scope, block);
}

Status checkCompleteOrReduction(const ScopeInfo& scope, int block) {
  return scope.blocks[size_t(block)].block().init ? checkReductionBlock(scope, block)
                                                  : checkCompleteBlock(scope, block);
}

Result<Buffer> bufferOf(const BlockNode& block, const BufferArg& arg) {
  if (!arg.name.empty()) {
    for (const auto* list : {&block.writes, &block.reads})
      for (const BufferRegion& r : *list)
        if (r->buffer->name == arg.name) return r->buffer;
    return fail(ErrorCode::kUsage, "block " + block.name + " accesses no buffer " + arg.name);
  }
  const Array<BufferRegion>& list = arg.write ? block.writes : block.reads;
  if (arg.index < 0 || arg.index >= int64_t(list.size()))
    return fail(ErrorCode::kUsage, "block " + block.name + (arg.write ? " writes " : " reads ") +
                                       std::to_string(list.size()) + " buffers; there is no number " +
                                       std::to_string(arg.index));
  return list[size_t(arg.index)]->buffer;
}

bool isParameter(const PrimFunc& f, const Buffer& buffer) {
  return std::ranges::any_of(f->buffers.raw(),
                             [&](const NodeRef& b) { return b && b.as<BufferNode>()->data == buffer->data; });
}

Status checkIntermediate(const PrimFunc& f, const Buffer& buffer) {
  if (isParameter(f, buffer)) return illegal("buffer " + buffer->name + " is a parameter of the function");
  bool allocated = false;
  walk(f->body, [&](const NodeRef& n) {
    auto makes = [&](const NodeRef& b) { return b.as<BufferNode>()->data == buffer->data; };
    if (auto* a = n.as<AllocNode>()) allocated |= makes(a->buffer);
    if (auto* b = n.as<BlockNode>()) allocated |= std::ranges::any_of(b->allocs.raw(), makes);
    return !allocated && !n.is<ExprNode>();
  });
  if (!allocated) return illegal("buffer " + buffer->name + " is a view of another one");
  return {};
}

std::string quoted(const BlockNode& block) {
  return "block " + block.name;
}
std::string quoted(const For& loop) {
  return "loop " + loop->var->name;
}

Stmt withoutBlock(const Path& path) {
  return replaceAt(path, nullptr);
}

Stmt withoutAlloc(const Stmt& root, const Var& data) {
  Path holder;
  auto makes = [&](const Stmt& s) {
    auto* r = s.as<BlockRealizeNode>();
    return r && std::ranges::any_of(r->block->allocs.raw(),
                                    [&](const NodeRef& b) { return b.as<BufferNode>()->data == data; });
  };
  std::string name;
  forEachStmt(root, [&](const Stmt& s) {
    if (name.empty() && makes(s)) name = cast<BlockRealizeNode>(s)->block->name;
    return name.empty();
  });
  if (name.empty()) return root;
  holder = findBlock(root, name);
  auto realize = mutableCopy(realizeAt(holder));
  auto block = mutableCopy(realize->block);
  Array<Buffer> kept;
  for (const Buffer& b : block->allocs)
    if (b->data != data) kept.push_back(b);
  block->allocs = kept;
  realize->block = Block(block);
  return replaceAt(holder, Stmt(realize));
}

BlockRealize withAlloc(const BlockRealize& scope, const Buffer& buffer) {
  auto realize = mutableCopy(scope);
  auto block = mutableCopy(realize->block);
  block->allocs.push_back(buffer);
  realize->block = Block(block);
  return BlockRealize(realize);
}

} // namespace bevel
