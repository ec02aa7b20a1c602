#include "sched/schedule.h"

#include "ir/printer.h"
#include "ir/structural.h"
#include "ir/verify.h"
#include "loop/block_scope.h"
#include "loop/regions.h"
#include "sched/tree.h"

#include <unordered_set>

namespace bevel {

namespace {

Error notBlockForm(const std::string& name, const std::string& why) {
  return Error(ErrorCode::kInvalid, "function " + name + " cannot be scheduled: " + why);
}

/// No two buffers share their data: steps take a buffer for all that touches its elements.
Status checkNoSecondViews(const std::string& name, const PrimFunc& f) {
  Status status;
  std::unordered_set<Var, RefHash> data;
  for (const Buffer& b : f->buffers)
    if (b && !data.insert(b->data).second)
      status = fail(notBlockForm(name, "parameter buffer " + b->name + " is a second view of another one"));
  walk(f->body, [&](const NodeRef& n) {
    if (auto* d = n.as<DeclBufferNode>())
      status = fail(
          notBlockForm(name, "buffer " + d->buffer->name + " is a second view of the data of another one")
              .at(n));
    return status.has_value() && n.is<StmtNode>();
  });
  return status;
}

/// What blocks inside of a block with views access by a view shows only in the regions of the view: no block is taken
/// for an accessor of the source then. A view that only its own block uses is covered by what the block declares.
Status checkOwnViews(const std::string& name, const Block& block) {
  if (block->matches.empty()) return {};
  std::vector<BlockRealize> inside = blocksUnder(block->body);
  if (block->init && inside.empty()) inside = blocksUnder(block->init);
  if (inside.empty()) return {};
  const MatchBuffer& view = block->matches[0];
  return fail(
      notBlockForm(name, "buffer " + view->buffer->name + " is a view of " + view->source->buffer->name +
                             " in block " + block->name + ", which contains block " + inside[0]->block->name)
          .at(view)
          .help("use " + view->source->buffer->name + " itself, or take the view in the block that uses it"));
}

/// Unique block names and loop variables, a root block, and declared accesses that cover the real ones.
Status checkProgram(const std::string& name, const PrimFunc& f) {
  auto* root = f->body.as<BlockRealizeNode>();
  if (!root || !root->block->iters.empty())
    return fail(notBlockForm(name, "its body is not one root block")
                    .help("write the body inside `with T.sblock(\"root\"):`"));
  BEVEL_CHECK(checkNoSecondViews(name, f));
  std::unordered_set<std::string> names;
  std::unordered_set<Var, RefHash> vars;
  Status status;
  forEachStmt(f->body, [&](const Stmt& s) {
    if (!status) return false;
    if (auto* loop = s.as<ForNode>()) {
      if (!vars.insert(loop->var).second)
        status = fail(notBlockForm(name, "loop variable " + loop->var->name + " is bound twice").at(s));
      return true;
    }
    const Block& block = cast<BlockRealizeNode>(s)->block;
    if (!names.insert(block->name).second)
      status = fail(notBlockForm(name, "block name " + block->name + " is used twice").at(s));
    else
      status = checkOwnViews(name, block);
    if (status && block.get() != root->block.get()) status = checkBlockAccess(block);
    return true;
  });
  return status;
}

} // namespace

Result<Schedule> Schedule::create(PrimFunc f, uint64_t seed) {
  Schedule sch;
  std::string name = attrStr(f->attrs, "global_symbol", "main");
  BEVEL_CHECK(checkProgram(name, f));
  sch.functions_.push_back({name, std::move(f)});
  sch.random_ = seed;
  return sch;
}

Result<Schedule> Schedule::create(Module m, uint64_t seed) {
  Schedule sch;
  for (size_t i = 0; i < m->names.size(); ++i) {
    auto* f = m->functions[i].as<PrimFuncNode>();
    if (!f) continue;
    BEVEL_CHECK(checkProgram(m->names[i]->name, PrimFunc(f)));
    if (m->names[i]->name == "main") sch.current_ = int32_t(sch.functions_.size());
    sch.functions_.push_back({m->names[i]->name, PrimFunc(f)});
  }
  if (sch.functions_.empty())
    return fail(ErrorCode::kInvalid, "the module has no tensor program to schedule");
  sch.module_ = std::move(m);
  sch.random_ = seed;
  return sch;
}

Module Schedule::mod() const {
  Module out = module_ ? module_ : Module(make<const ModuleNode>());
  for (const Function& f : functions_)
    if (out->find(f.name) != f.func) out = withFunction(out, f.name, f.func);
  return out;
}

std::string Schedule::show() const {
  return print(func()) + "\n" + trace_.str();
}

Status Schedule::workOnFunction(std::string_view name) {
  for (size_t i = 0; i < functions_.size(); ++i)
    if (functions_[i].name == name) {
      current_ = int32_t(i);
      return {};
    }
  std::string known;
  for (const Function& f : functions_) known += (known.empty() ? "" : ", ") + f.name;
  return fail(Error(ErrorCode::kInvalid, "there is no tensor program " + std::string(name))
                  .note("there are: " + known));
}

Result<const Schedule::Entry*> Schedule::entry(RV rv) const {
  if (rv.id < 0 || rv.id >= int32_t(entries_.size()) || entries_[size_t(rv.id)].kind != rv.kind)
    return fail(ErrorCode::kUsage, "the handle was not given by this schedule");
  return &entries_[size_t(rv.id)];
}

Result<std::string> Schedule::nameOf(BlockRV block) const {
  BEVEL_TRY(const Entry* e, entry(block));
  const std::string& name = cast<StringImmNode>(e->node)->value;
  if (e->func != current_)
    return fail(ErrorCode::kUsage,
                "block " + name + " belongs to function " + functions_[size_t(e->func)].name);
  if (e->gone) return fail(ErrorCode::kIllegal, "block " + name + " is no longer in the program");
  return name;
}

Result<Var> Schedule::varOf(LoopRV loop) const {
  BEVEL_TRY(const Entry* e, entry(loop));
  if (e->func != current_)
    return fail(ErrorCode::kUsage, "loop " + cast<VarNode>(e->node)->name + " belongs to function " +
                                       functions_[size_t(e->func)].name);
  return Var(cast<VarNode>(e->node));
}

Result<BlockRealize> Schedule::get(BlockRV block) const {
  BEVEL_TRY(const Entry* e, entry(block));
  const std::string& name = cast<StringImmNode>(e->node)->value;
  Path path = findBlock(functions_[size_t(e->func)].func->body, name);
  if (e->gone || !path.target)
    return fail(ErrorCode::kIllegal, "block " + name + " is no longer in the program");
  return BlockRealize(cast<BlockRealizeNode>(path.target));
}

Result<For> Schedule::get(LoopRV loop) const {
  BEVEL_TRY(const Entry* e, entry(loop));
  Path path = findLoop(functions_[size_t(e->func)].func->body, cast<VarNode>(e->node));
  if (!path.target)
    return fail(ErrorCode::kIllegal, "loop " + cast<VarNode>(e->node)->name + " is no longer in the program");
  return For(cast<ForNode>(path.target));
}

Result<int64_t> Schedule::get(ExprRV value) const {
  BEVEL_TRY(const Entry* e, entry(value));
  return e->value;
}

Result<int64_t> Schedule::get(const IntArg& value) const {
  if (value.kind == IntArg::Kind::kNone) return fail(ErrorCode::kUsage, "None where an integer is needed");
  if (value.kind == IntArg::Kind::kInt) return value.value;
  return get(ExprRV(int32_t(value.value)));
}

BlockRV Schedule::addBlock(std::string name) {
  entries_.push_back({RVKind::kBlock, current_, str(std::move(name)), 0});
  return BlockRV(int32_t(entries_.size() - 1));
}

std::vector<BlockRV> Schedule::addBlocks(std::vector<std::string> names) {
  std::vector<BlockRV> out;
  for (std::string& name : names) out.push_back(addBlock(std::move(name)));
  return out;
}

LoopRV Schedule::addLoop(Var var) {
  entries_.push_back({RVKind::kLoop, current_, std::move(var), 0});
  return LoopRV(int32_t(entries_.size() - 1));
}

ExprRV Schedule::addValue(int64_t value) {
  entries_.push_back({RVKind::kExpr, current_, nullptr, value});
  return ExprRV(int32_t(entries_.size() - 1));
}

void Schedule::renameBlock(const std::string& from, const std::string& to) {
  NodeRef name = str(to);
  for (Entry& e : entries_)
    if (e.kind == RVKind::kBlock && !e.gone && e.func == current_ &&
        cast<StringImmNode>(e.node)->value == from)
      e.node = name;
}

void Schedule::retireBlock(const std::string& name) {
  for (Entry& e : entries_)
    if (e.kind == RVKind::kBlock && e.func == current_ && cast<StringImmNode>(e.node)->value == name)
      e.gone = true;
}

uint64_t Schedule::nextRandom() {
  uint64_t x = random_ += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

/// Works on the function that the step's first block or loop belongs to.
Status Schedule::focus(const StepNode& step) {
  for (const StepField& f : step.info->fields) {
    if (f.role != StepRole::kIn && f.role != StepRole::kVariadic) continue;
    int32_t func = -1;
    Status status;
    forEachRV(step.get(f), [&](RV rv) {
      auto e = entry(rv);
      if (!e)
        status = fail(std::move(e.error()));
      else if (rv.kind != RVKind::kExpr && func < 0)
        func = (*e)->func;
    });
    BEVEL_CHECK(std::move(status));
    if (func >= 0) {
      current_ = func;
      return {};
    }
  }
  return {};
}

/// What a step makes is well formed, above all in its scopes. Asked in builds with assertions.
Status Schedule::checkResult(const PrimFunc& before) const {
#ifndef NDEBUG
  if (func() == before) return {};
  if (Status sound = verify(func()); !sound)
    return fail(Error(ErrorCode::kInternal, "the step made a malformed program: " + sound.error().str()));
#else
  (void)before;
#endif
  return {};
}

Status Schedule::execute(const Ref<StepNode>& step) {
  int32_t working = current_;
  uint64_t random = random_;
  std::vector<Function> before = functions_;
  Status status;
  if (functions_.size() > 1) status = focus(*step);
  if (status) status = step->info->execute(*this, *step);
  if (status) status = checkResult(before[size_t(current_)].func);
  if (!status) {
    functions_ = std::move(before);
    current_ = working;
    random_ = random;
    status.error().message = std::string(step->info->name) + ": " + status.error().message;
    return status;
  }
  if (std::string_view(step->info->name) != "work_on") current_ = working;
  trace_.steps.push_back(step);
  return {};
}

Result<StepValue> Schedule::run(const StepRef& step) {
  Ref<StepNode> copy = freshCopy(*step);
  BEVEL_CHECK(execute(copy));
  return copy->info->hasResult() ? copy->get(copy->info->fields.back()) : StepValue::none();
}

Result<StepValue> Schedule::call(std::string_view name, const std::vector<StepValue>& args,
                                 const std::vector<std::pair<std::string, StepValue>>& named) {
  const StepInfo* info = findStep(name);
  if (!info) return fail(ErrorCode::kUsage, "there is no schedule step " + std::string(name));
  Ref<StepNode> step = info->create();
  BEVEL_CHECK(bindArguments(*step, args, named));
  BEVEL_CHECK(execute(step));
  return info->hasResult() ? step->get(info->fields.back()) : StepValue::none();
}

void Schedule::setHandleNames(const std::vector<RV>& handles, const std::vector<std::string>& names) {
  for (size_t i = 0; i < handles.size() && i < names.size(); ++i) {
    if (names[i].empty()) continue;
    size_t id = size_t(handles[i].id);
    if (trace_.names.size() <= id) trace_.names.resize(id + 1);
    trace_.names[id] = names[i];
  }
}

} // namespace bevel
