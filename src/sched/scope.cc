#include "sched/scope.h"

#include "ir/structural.h"
#include "loop/regions.h"

#include <algorithm>

namespace bevel {

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

Status checkFixedRange(const For& loop) {
  if (!changesCondition(loop->body, loop->min) && !changesCondition(loop->body, loop->extent)) return {};
  return illegal("the range of " + quoted(loop) + " is read from memory that may be changed inside the loop");
}

Result<size_t> positionOf(const IntArg& decision, size_t candidates) {
  const auto* position = decision.as<IntImmNode>();
  if (!position) return fail(ErrorCode::kUsage, "the decision must be a number");
  if (position->value < 0 || position->value >= int64_t(candidates))
    return illegal("the decision is not the position of a candidate");
  return size_t(position->value);
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

Result<BlockSite> siteOf(const Schedule& sch, BlockRV block) {
  BEVEL_TRY(Path path, sch.locate(block));
  BEVEL_TRY(BlockRealize scope, scopeOf(path));
  std::vector<Stmt> around;
  for (int i = 0; i <= path.scope(); ++i) around.push_back(path.ancestors[size_t(i)].node);
  ScopeInfo info(scope, std::move(around));
  int self = info.indexOf(realizeAt(path)->block->name);
  return BlockSite{std::move(path), std::move(info), self};
}

Plan BlockSite::give(const std::vector<int>& blocks) const {
  Plan plan;
  for (int b : blocks) plan.results.push_back(str(info.blocks[size_t(b)].name()));
  return plan;
}

Result<Buffer> bufferOf(const BlockNode& block, const BufferArg& arg) {
  if (const auto* name = arg.as<StringImmNode>()) {
    for (const auto* list : {&block.writes, &block.reads})
      for (const BufferRegion& r : *list)
        if (r->buffer->name == name->value) return r->buffer;
    return fail(ErrorCode::kUsage, "block " + block.name + " accesses no buffer " + name->value);
  }
  const ListNode& pair = *arg.as<ListNode>();
  bool write = pair.items[0].as<StringImmNode>()->value == "write";
  int64_t index = pair.items[1].as<IntImmNode>()->value;
  const Array<BufferRegion>& list = write ? block.writes : block.reads;
  if (index < 0 || index >= int64_t(list.size()))
    return fail(ErrorCode::kUsage, "block " + block.name + (write ? " writes " : " reads ") +
                                       std::to_string(list.size()) + " buffers; there is no number " +
                                       std::to_string(index));
  return list[size_t(index)]->buffer;
}

bool isParameter(const PrimFunc& f, const Buffer& buffer) {
  return holdsData(f->buffers, buffer->data);
}

Status checkIntermediate(const PrimFunc& f, const Buffer& buffer) {
  if (isParameter(f, buffer)) return illegal("buffer " + buffer->name + " is a parameter of the function");
  bool allocated = false;
  walk(f->body, [&](const NodeRef& n) {
    if (auto* a = n.as<AllocNode>()) allocated |= a->buffer->data == buffer->data;
    if (auto* b = n.as<BlockNode>()) allocated |= holdsData(b->allocs, buffer->data);
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
  Path holder = findAllocator(root, data);
  if (!holder.target) return root;
  Array<Buffer> kept;
  for (const Buffer& b : realizeAt(holder)->block->allocs)
    if (b->data != data) kept.push_back(b);
  return replaceAt(holder, withBlock(realizeAt(holder), &BlockNode::allocs, kept));
}

BlockRealize withAlloc(const BlockRealize& scope, const Buffer& buffer) {
  Array<Buffer> all = scope->block->allocs;
  all.push_back(buffer);
  return withBlock(scope, &BlockNode::allocs, all);
}

} // namespace bevel
