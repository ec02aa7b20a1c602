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

Result<const Schedule::Entry*> Schedule::entry(const RV& handle) const {
  for (size_t i = entries_.size(); i-- > 0;) // the latest are used most
    if (entries_[i].handle == handle) return &entries_[i];
  return fail(ErrorCode::kUsage, "the handle was not given by this schedule");
}

std::string Schedule::Entry::str() const {
  const auto* name = node.as<StringImmNode>();
  return name ? "block " + name->value : "loop " + cast<VarNode>(node)->name;
}

Result<const Schedule::Entry*> Schedule::entryHere(const RV& handle) const {
  BEVEL_TRY(const Entry* e, entry(handle));
  if (e->func == current_) return e;
  return fail(ErrorCode::kUsage, e->str() + " belongs to function " + functions_[size_t(e->func)].name);
}

Result<Path> Schedule::pathOf(const Entry& e) const {
  const Stmt& root = functions_[size_t(e.func)].func->body;
  const auto* name = e.node.as<StringImmNode>();
  Path path;
  if (!e.gone) path = name ? findBlock(root, name->value) : findLoop(root, cast<VarNode>(e.node));
  if (!path.target) return fail(ErrorCode::kIllegal, e.str() + " is no longer in the program");
  return path;
}

Result<Path> Schedule::locate(const RV& blockOrLoop) const {
  BEVEL_TRY(const Entry* e, entryHere(blockOrLoop));
  return pathOf(*e);
}

Result<std::string> Schedule::nameOf(BlockRV block) const {
  BEVEL_TRY(const Entry* e, entryHere(block));
  if (e->gone) return fail(ErrorCode::kIllegal, e->str() + " is no longer in the program");
  return cast<StringImmNode>(e->node)->value;
}

Result<Var> Schedule::varOf(LoopRV loop) const {
  BEVEL_TRY(const Entry* e, entryHere(loop));
  return Var(cast<VarNode>(e->node));
}

Result<BlockRealize> Schedule::get(BlockRV block) const {
  BEVEL_TRY(const Entry* e, entry(block));
  BEVEL_TRY(Path path, pathOf(*e));
  return cast<BlockRealizeNode>(path.target);
}

Result<For> Schedule::get(LoopRV loop) const {
  BEVEL_TRY(const Entry* e, entry(loop));
  BEVEL_TRY(Path path, pathOf(*e));
  return cast<ForNode>(path.target);
}

Result<int64_t> Schedule::get(ExprRV value) const {
  BEVEL_TRY(const Entry* e, entry(value));
  return cast<IntImmNode>(e->node)->value;
}

Result<int64_t> Schedule::get(const IntArg& value) const {
  if (!value) return fail(ErrorCode::kUsage, "None where an integer is needed");
  if (const auto* i = value.as<IntImmNode>()) return i->value;
  return get(ExprRV(cast<VarNode>(value)));
}

uint64_t Schedule::nextRandom() {
  uint64_t x = random_ += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

/// Works on the function that the step's first block or loop belongs to.
Status Schedule::focus(const StepNode& step) {
  Status status;
  bool found = false;
  forEachChild(Step(&step), [&](const NodeRef& child, Role role) {
    if (role == Role::kDef || found || !status) return;
    walk(child, [&](const NodeRef& n) {
      const auto* handle = n.as<VarNode>();
      if (!handle || !handle->dtype.isHandle() || found) return status.has_value();
      auto e = entry(RV(handle));
      if (e)
        current_ = (*e)->func, found = true;
      else
        status = fail(std::move(e.error()));
      return false;
    });
  });
  return status;
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

/// Handles of a block that was renamed follow it; those of one that was taken out stay without one.
void Schedule::carryOut(const Plan& plan, StepNode& step, const std::vector<std::string>& names) {
  if (plan.body) functions_[size_t(current_)].func = with(func(), &PrimFuncNode::body, plan.body);
  for (Entry& e : plan.block.empty() ? std::span<Entry>() : std::span(entries_)) {
    const auto* name = e.node.as<StringImmNode>();
    if (!name || e.gone || e.func != current_ || name->value != plan.block) continue;
    e.gone = plan.renamed.empty();
    if (!e.gone) e.node = str(plan.renamed);
  }
  Array<NodeRef> handles;
  for (const NodeRef& what : plan.results) {
    size_t i = handles.size();
    handles.push_back(newHandle(*step.step->result(), i < names.size() ? names[i] : ""));
    entries_.push_back({cast<VarNode>(handles.back()), current_, what});
  }
  setResults(step, handles);
}

Status Schedule::execute(const Ref<StepNode>& step, std::vector<std::string> names) {
  int32_t working = current_;
  uint64_t random = random_;
  std::vector<Function> before = functions_;
  Status status;
  if (functions_.size() > 1) status = focus(*step);
  if (status) {
    auto plan = infoOf(*step).check(*this, *step);
    if (plan)
      carryOut(*plan, *step, names);
    else
      status = fail(std::move(plan.error()));
  }
  if (status) status = checkResult(before[size_t(current_)].func);
  if (!status) {
    functions_ = std::move(before);
    current_ = working;
    random_ = random;
    status.error().message = std::string(step->kindName()) + ": " + status.error().message;
    return status;
  }
  if (std::string_view(step->kindName()) != "work_on") current_ = working;
  trace_.steps.push_back(Step(step));
  return {};
}

Status Schedule::replay(const StepNode& step, VarMap& handles) {
  Array<Var> from = step.outputs();
  std::vector<std::string> names;
  for (const Var& handle : from) names.push_back(handle->name);
  Ref<StepNode> again = freshStep(step, handles);
  BEVEL_CHECK(execute(again, std::move(names)));
  Array<Var> to = again->outputs();
  if (from.size() != to.size())
    return fail(ErrorCode::kInvalid, "the step gives " + std::to_string(to.size()) +
                                         " handles where the trace expects " + std::to_string(from.size()));
  for (size_t i = 0; i < from.size(); ++i) handles[from[i]] = to[i];
  return {};
}

Result<NodeRef> Schedule::call(std::string_view name, const std::vector<NodeRef>& args,
                               const std::vector<std::pair<std::string, NodeRef>>& named) {
  const StepInfo* info = findStep(name);
  if (!info) return fail(ErrorCode::kUsage, "there is no schedule step " + std::string(name));
  BEVEL_TRY(Ref<StepNode> step, makeStep(*info, args, named));
  BEVEL_CHECK(execute(step));
  return resultOf(*step);
}

} // namespace bevel
