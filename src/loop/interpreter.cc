// The reference interpreter: memory, statements and blocks. Scalar-wise arithmetic is in interpreter_value.cc.
#include "loop/interpreter.h"

#include "base/hash.h"
#include "base/stack.h"
#include "ir/structural.h"
#include "loop/block_scope.h"
#include "loop/interpreter_memory.h"
#include "loop/interpreter_value.h"

#include <algorithm>
#include <fmt/format.h>
#include <memory>
#include <numeric>

namespace bevel {
namespace {

using interp::Memory;
using interp::Value;

// Thrown out of the recursion and turned into a Status at the edge of this file.
struct Fault {
  Error error;
};
struct Returned {};

class Interpreter {
public:
  explicit Interpreter(const InterpretOptions& options) : options_(options) {}

  void call(const PrimFunc& f, const std::vector<Ref<TensorObject>>& tensors,
            const std::vector<InterpretScalar>& scalars) {
    bindParameters(f, tensors, scalars);
    try {
      run(f->body);
    } catch (const Returned&) {
    }
  }

private:
  [[noreturn]] void fault(std::string message, const NodeRef& node, ErrorCode code = ErrorCode::kInternal) {
    throw Fault{Error(code, std::move(message)).at(node)};
  }
  template <class... Args>
  [[noreturn]] void refuse(const Buffer& argument, fmt::format_string<Args...> text, Args&&... args) {
    fault("argument '" + argument->name + "' " + fmt::format(text, std::forward<Args>(args)...), argument,
          ErrorCode::kInvalid);
  }

  // --- parameters ---

  void bindParameters(const PrimFunc& f, const std::vector<Ref<TensorObject>>& tensors,
                      const std::vector<InterpretScalar>& scalars) {
    size_t nextTensor = 0, nextScalar = 0;
    std::vector<std::pair<Buffer, Ref<TensorObject>>> bound;
    for (size_t i = 0; i < f->params.size(); ++i) {
      if (!f->buffers[i]) {
        if (nextScalar >= scalars.size())
          fault("missing scalar argument '" + f->params[i]->name + "'", f, ErrorCode::kInvalid);
        DType t = f->params[i]->dtype;
        env_[f->params[i]] = std::visit(
            [&](auto v) { return t.isFloat() ? Value::ofFloat(t, double(v)) : Value::ofInt(t, int64_t(v)); },
            scalars[nextScalar++]);
        continue;
      }
      if (nextTensor >= tensors.size())
        fault("missing tensor argument '" + f->buffers[i]->name + "'", f, ErrorCode::kInvalid);
      bound.emplace_back(f->buffers[i], tensors[nextTensor++]);
    }
    for (auto& [b, t] : bound) bindShapeVars(b, *t);
    for (auto& [b, t] : bound) checkShape(b, t);
  }

  void bindShapeVars(const Buffer& b, const TensorObject& t) {
    if (b->rank() != t.shape.size()) refuse(b, "has rank {}, expected {}", t.shape.size(), b->rank());
    if (!(b->dtype == t.dtype)) refuse(b, "is {}, expected {}", t.dtype.str(), b->dtype.str());
    for (size_t d = 0; d < b->rank(); ++d)
      if (b->shape[d].is<VarNode>())
        env_.emplace(cast<VarNode>(b->shape[d]), Value::ofInt(b->shape[d]->dtype, t.shape[d]));
    if (b->strides.empty()) return;
    int64_t stride = 1;
    for (size_t d = b->rank(); d-- > 0; stride *= t.shape[d])
      if (b->strides[d].is<VarNode>())
        env_.emplace(cast<VarNode>(b->strides[d]), Value::ofInt(b->strides[d]->dtype, stride));
  }

  void checkShape(const Buffer& b, const Ref<TensorObject>& t) {
    for (size_t d = 0; d < b->rank(); ++d) {
      int64_t want = evalInt(b->shape[d]);
      if (want != t->shape[d])
        refuse(b, "has {} elements in dimension {}, expected {}", int64_t(t->shape[d]), d, want);
    }
    if (b->elemOffset.is<VarNode>())
      env_.emplace(cast<VarNode>(b->elemOffset), Value::ofInt(b->elemOffset->dtype, 0));
    memory_[b->data] = std::make_shared<Memory>(Memory::ofParameter(t));
  }

  // --- memory ---

  void allocate(const Buffer& b, bool shared) {
    std::vector<int64_t> shape;
    for (const Expr& d : b->shape) shape.push_back(std::max<int64_t>(evalInt(d), 0)); // below zero: none
    if (!b->strides.empty()) { // room for the last element
      int64_t last = 0;
      for (size_t d = 0; d < b->rank(); ++d)
        last += std::max<int64_t>(shape[d] - 1, 0) * evalInt(b->strides[d]);
      shape = {last + 1};
    }
    auto count = elementCount(shape);
    if (!count) fault(count.error().message, b);
    if (*count > (int64_t(1) << 32)) fault("allocation of '" + b->name + "' is too large to interpret", b);
    memory_[b->data] = std::make_shared<Memory>(
        Memory::allocated(b->dtype.scalar(), *count * b->dtype.lanes, options_.filled, shared));
  }

  Memory& memoryOf(const Buffer& b) {
    auto it = memory_.find(b->data);
    if (it == memory_.end()) fault("buffer '" + b->name + "' is used before it is allocated", b);
    return *it->second;
  }

  // Element position of every lane, -1 where the predicate is off; checks each index against the shape.
  std::vector<int64_t> positions(const NodeRef& node) {
    const auto [b, indices, on] = *elementAccess(node);
    std::optional<Value> predicate;
    if (on) predicate = eval(on);
    size_t lanes = 1;
    std::vector<Value> values;
    for (const Expr& e : indices) {
      values.push_back(eval(e));
      lanes = std::max(lanes, values.back().lanes.size());
    }
    if (values.size() != b->rank() && !(b->rank() == 0 && values.size() == 1))
      fault("buffer '" + b->name + "' accessed with a wrong number of indices", node);
    std::vector<int64_t> out(lanes);
    for (size_t k = 0; k < lanes; ++k) {
      if (predicate && !predicate->isTrue(k)) {
        out[k] = -1;
        continue;
      }
      int64_t position = b->elemOffset ? evalInt(b->elemOffset) : 0, dense = 0;
      for (size_t d = 0; d < values.size(); ++d) {
        int64_t index = values[d].asInt(values[d].lanes.size() == 1 ? 0 : k);
        int64_t extent = b->rank() == 0 ? 1 : evalInt(b->shape[d]);
        if (index < 0 || index >= extent)
          fault(fmt::format("index {} of dimension {} of '{}' is outside [0, {})", index, d, b->name, extent),
                node);
        if (b->strides.empty())
          dense = dense * extent + index;
        else
          position += index * evalInt(b->strides[d]);
      }
      out[k] = position + dense;
    }
    return out;
  }

  // Null when the element was never written.
  std::optional<Scalar> elementOrNothing(Memory& m, const Buffer& b, int64_t i, const NodeRef& node) {
    DType t = b->dtype.scalar();
    if (!m.holds(t, i)) fault("access outside the memory of '" + b->name + "'", node);
    std::optional<Scalar> x = m.read(t, i);
    if (x && m.readRaces(iteration_, t, i)) race(b, i, "reads", node);
    return x;
  }

  Scalar readElement(Memory& m, const Buffer& b, int64_t i, const NodeRef& node) {
    std::optional<Scalar> x = elementOrNothing(m, b, i, node);
    if (!x) unwritten(b, i, node);
    return *x;
  }

  [[noreturn]] void unwritten(const Buffer& b, int64_t i, const NodeRef& node) {
    fault("element " + std::to_string(i) + " of '" + b->name + "' is read before it is written", node);
  }

  [[noreturn]] void race(const Buffer& b, int64_t i, const char* does, const NodeRef& node) {
    std::string who = "what follows a parallel loop";
    if (parallel_) who = fmt::format("iteration {} of '{}'", iteration_.index, parallel_->name);
    fault(
        fmt::format("a race: {} {} element {} of '{}', which another iteration uses", who, does, i, b->name),
        node);
  }

  void writeElement(Memory& m, const Buffer& b, int64_t i, const Scalar& x, const NodeRef& node) {
    DType t = b->dtype.scalar();
    if (!m.holds(t, i)) fault("access outside the memory of '" + b->name + "'", node);
    if (m.write(iteration_, t, i, x)) race(b, i, "writes", node);
  }

  Value loadValue(const LoadNode& l, const NodeRef& node) {
    std::vector<int64_t> at = positions(node);
    Memory& m = memoryOf(l.buffer);
    Value out;
    out.dtype = l.dtype;
    int width = l.buffer->dtype.lanes;
    for (int64_t p : at)
      for (int w = 0; w < width; ++w)
        out.lanes.push_back(p < 0 && l.predicate ? Scalar{} : readElement(m, l.buffer, p * width + w, node));
    return out;
  }

  // A copy of one element. Padding of a layout may be copied without having a value: then the copy has none
  // either.
  bool copyElement(const StoreNode& s, const NodeRef& node) {
    const auto* from = s.value.as<LoadNode>();
    bool single = from && !from->predicate && !s.predicate && from->dtype.lanes == 1 && from->dtype.bits >= 8;
    if (!single) return false;
    int64_t source = positions(s.value)[0];
    std::optional<Scalar> x = elementOrNothing(memoryOf(from->buffer), from->buffer, source, s.value);
    std::vector<int64_t> at = positions(node);
    if (at.size() != 1) return false; // refused below
    Memory& m = memoryOf(s.buffer);
    if (!x && m.isParameter()) unwritten(from->buffer, source, s.value); // a result of the function
    writeElement(m, s.buffer, at[0], x.value_or(Scalar{}), node);
    if (x) return true;
    auto [first, end] = Memory::span(s.buffer->dtype, at[0]);
    m.setWritten(first, end, false);
    return true;
  }

  void storeValue(const StoreNode& s, const NodeRef& node) {
    if (copyElement(s, node)) return;
    Value v = eval(s.value);
    std::vector<int64_t> at = positions(node);
    Memory& m = memoryOf(s.buffer);
    int width = s.buffer->dtype.lanes;
    if (at.size() * size_t(width) != v.lanes.size())
      fault(fmt::format("a store of {} lanes to {} elements", v.lanes.size(), at.size()), node);
    for (size_t k = 0; k < at.size(); ++k)
      for (int w = 0; w < width; ++w)
        if (!(s.predicate && at[k] < 0))
          writeElement(m, s.buffer, at[k] * width + w, v.lanes[k * size_t(width) + size_t(w)], node);
  }

  // --- expressions ---

  int64_t evalInt(const Expr& e) {
    if (const auto* i = e.as<IntImmNode>()) return i->value;
    return eval(e).asInt();
  }

  Value eval(const Expr& e) {
    switch (e->kind) {
    case Kind::kVar: {
      auto it = env_.find(cast<VarNode>(e));
      if (it == env_.end()) fault("variable '" + e.as<VarNode>()->name + "' has no value", e);
      return it->second;
    }
    case Kind::kIntImm:
      return Value::ofInt(e->dtype, e.as<IntImmNode>()->value);
    case Kind::kFloatImm:
      return Value::ofFloat(e->dtype, e.as<FloatImmNode>()->value);
    case Kind::kUnary:
      return interp::unary(e.as<UnaryNode>()->op, eval(e.as<UnaryNode>()->a));
    case Kind::kBinary:
      return evalBinary(*e.as<BinaryNode>(), e);
    case Kind::kSelect:
      return evalSelect(*e.as<SelectNode>());
    case Kind::kCast:
      return interp::castValue(e->dtype, eval(e.as<CastNode>()->value));
    case Kind::kLoad:
      return loadValue(*e.as<LoadNode>(), e);
    case Kind::kLet: {
      const auto* l = e.as<LetNode>();
      env_[l->var] = eval(l->value);
      return eval(l->body);
    }
    case Kind::kRamp:
    case Kind::kBroadcast:
    case Kind::kShuffle:
      return evalVector(e);
    case Kind::kCall:
      return evalCall(*e.as<CallNode>(), e);
    default:
      fault(std::string("cannot evaluate ") + e->kindName(), e);
    }
  }

  Value evalBinary(const BinaryNode& b, const Expr& e) {
    Value x = eval(b.a), y = eval(b.b);
    if (x.lanes.size() != y.lanes.size()) fault("operands of different lanes", e);
    auto r = interp::binary(b.op, x, y);
    if (!r) fault("integer division by zero", e);
    return *r;
  }

  Value evalSelect(const SelectNode& s) {
    Value c = eval(s.condition), a = eval(s.a), b = eval(s.b);
    Value out = a;
    for (size_t k = 0; k < out.lanes.size(); ++k)
      if (!c.isTrue(c.lanes.size() == 1 ? 0 : k)) out.lanes[k] = b.lanes[k];
    return out;
  }

  Value evalVector(const Expr& e) {
    Value out;
    out.dtype = e->dtype;
    if (const auto* r = e.as<RampNode>()) {
      Value base = eval(r->base), stride = eval(r->stride);
      int per = e->dtype.lanes / int(base.lanes.size());
      for (int k = 0; k < per; ++k)
        for (size_t w = 0; w < base.lanes.size(); ++w)
          out.lanes.push_back({base.lanes[w].i + k * stride.lanes[w].i, 0});
    } else if (const auto* b = e.as<BroadcastNode>()) {
      Value v = eval(b->value);
      while (out.lanes.size() < e->dtype.lanes)
        out.lanes.insert(out.lanes.end(), v.lanes.begin(), v.lanes.end());
    } else {
      const auto* s = e.as<ShuffleNode>();
      std::vector<Scalar> all;
      for (const Expr& v : s->vectors) {
        Value x = eval(v);
        all.insert(all.end(), x.lanes.begin(), x.lanes.end());
      }
      for (const Expr& i : s->indices) out.lanes.push_back(all.at(size_t(evalInt(i))));
    }
    return out;
  }

  Value evalCall(const CallNode& c, const Expr& e) {
    switch (c.op) {
    case Intrin::kIfThenElse:
      return eval(c.arg(eval(c.arg(0)).isTrue() ? 1 : 2));
    case Intrin::kUndef:
      return Value(c.dtype, Scalar{});
    case Intrin::kRet:
      throw Returned{};
    case Intrin::kPrefetch:
    case Intrin::kTypeAnnotation:
      return Value::ofInt(kInt32, 0);
    case Intrin::kFail:
      fault(c.args.empty() || !c.args[0].is<StringImmNode>() ? "the program failed"
                                                             : c.args[0].as<StringImmNode>()->value,
            e);
    case Intrin::kCallPacked:
    case Intrin::kCallExtern:
    case Intrin::kCallPureExtern:
      return callOut(c, e);
    case Intrin::kCallFunction:
      return callFunction(c, e);
    default:
      break;
    }
    std::vector<Value> args;
    for (size_t i = 0; i < c.args.size(); ++i) args.push_back(eval(c.arg(i)));
    auto r = interp::maths(c.op, c.dtype, args);
    if (!r)
      fault(std::string("the interpreter does not know T.") + intrinInfo(c.op).name, e,
            ErrorCode::kUnsupported);
    return *r;
  }

  Ref<TensorObject> tensorOf(const NodeRef& arg, const NodeRef& at) {
    if (const auto* b = arg.as<BufferNode>()) return memoryOf(Buffer(b)).tensor();
    if (const auto* v = arg.as<VarNode>())
      if (auto it = memory_.find(Var(v)); it != memory_.end()) return it->second->tensor();
    if (const auto* c = arg.as<CallNode>(); c && (c->op == Intrin::kAccessPtr) && c->args.size() > 1)
      return tensorOf(c->args[1], at);
    if (const auto* r = arg.as<BufferRegionNode>()) return memoryOf(r->buffer).tensor();
    fault("cannot pass this argument to a function outside the program", at, ErrorCode::kUnsupported);
  }

  /// What a call outside gets: a buffer's whole memory, or the part that a pointer with offset and extent shows. It may
  /// have written all that it may write.
  Ref<TensorObject> passed(const NodeRef& arg, const NodeRef& at) {
    const auto* pointer = arg.as<CallNode>();
    Ref<TensorObject> t = tensorOf(arg, at);
    auto it = std::find_if(memory_.begin(), memory_.end(), [&](auto& m) { return m.second->tensor() == t; });
    size_t width = size_t(t->dtype.bits) / 8, from = 0, size = size_t(t->size());
    int64_t mask = 3;
    if (pointer && pointer->op == Intrin::kAccessPtr && t->dtype.bits % 8 == 0) {
      int64_t offset = evalInt(pointer->arg(2)), extent = evalInt(pointer->arg(3));
      if (offset < 0 || extent < 0 || offset > t->size()) fault("a pointer leaves its buffer", at);
      from = size_t(offset), size = std::min(size_t(extent), size - from);
      mask = evalInt(pointer->arg(4));
      t = TensorObject::wrap(t->dtype, {int64_t(size)}, t->bytes() + from * width, nullptr);
    }
    if (it != memory_.end() && (mask & 2))
      it->second->setWritten(from * width, width ? (from + size) * width : SIZE_MAX);
    return t;
  }

  Value callOut(const CallNode& c, const Expr& e) {
    const auto* name = c.args.empty() ? nullptr : c.args[0].as<StringImmNode>();
    if (!name || !options_.callee)
      fault("a call outside the program, and no functions were given", e, ErrorCode::kUnsupported);
    std::vector<Ref<TensorObject>> tensors;
    for (size_t i = 1; i < c.args.size(); ++i) tensors.push_back(passed(c.args[i], e));
    if (auto s = (*options_.callee)(name->value, tensors); !s) throw Fault{std::move(s.error())};
    return Value(c.dtype.isVoid() ? kInt32 : c.dtype, Scalar{});
  }

  Value callFunction(const CallNode& c, const Expr& e) {
    const auto* g = c.args.empty() ? nullptr : c.args[0].as<GlobalVarNode>();
    GraphExpr callee = g && options_.module ? options_.module->find(g->name) : nullptr;
    if (!callee.is<PrimFuncNode>()) fault("call of an unknown tensor program", e);
    PrimFunc f = cast<PrimFuncNode>(callee);
    std::vector<Ref<TensorObject>> tensors;
    std::vector<InterpretScalar> scalars;
    for (size_t i = 1; i < c.args.size(); ++i) {
      if (const auto* x = c.args[i].as<ExprNode>(); x && !x->dtype.isHandle()) {
        Value v = eval(Expr(x));
        scalars.push_back(v.dtype.isFloat() ? InterpretScalar(v.lanes[0].f) : v.lanes[0].i);
      } else
        tensors.push_back(tensorOf(c.args[i], e));
    }
    Interpreter(options_).call(f, tensors, scalars);
    return Value(kInt32, Scalar{});
  }

  // --- statements ---

  void count(const Stmt& s) {
    if (options_.maxSteps && ++steps_ > options_.maxSteps)
      fault("gave up after " + std::to_string(options_.maxSteps) + " statements", s);
  }

  void run(const Stmt& s) {
    count(s);
    switch (s->kind) {
    case Kind::kStore:
      return storeValue(*s.as<StoreNode>(), s);
    case Kind::kSeq:
      for (const Stmt& x : s.as<SeqNode>()->stmts) run(x);
      return;
    case Kind::kIf: {
      const auto* n = s.as<IfNode>();
      if (eval(n->condition).isTrue()) return run(n->thenBody);
      if (n->elseBody) run(n->elseBody);
      return;
    }
    case Kind::kFor:
      return runLoop(*s.as<ForNode>());
    case Kind::kWhile:
      while (eval(s.as<WhileNode>()->condition).isTrue()) run(s.as<WhileNode>()->body);
      return;
    case Kind::kLetStmt: {
      const auto* n = s.as<LetStmtNode>();
      env_[n->var] = eval(n->value);
      return run(n->body);
    }
    case Kind::kEvaluate:
      eval(s.as<EvaluateNode>()->value);
      return;
    case Kind::kAlloc:
      allocate(s.as<AllocNode>()->buffer, true);
      return run(s.as<AllocNode>()->body);
    case Kind::kDeclBuffer:
    case Kind::kAttrStmt:
      return run(*bodyOf(s));
    case Kind::kAssert:
      if (!eval(s.as<AssertNode>()->condition).isTrue())
        fault("assertion failed: " + s.as<AssertNode>()->message, s);
      return;
    case Kind::kBlockRealize:
      return runBlock(*s.as<BlockRealizeNode>(), s);
    default:
      fault(std::string("cannot run ") + s->kindName(), s);
    }
  }

  void runLoop(const ForNode& f) {
    int64_t begin = evalInt(f.min), extent = evalInt(f.extent);
    if (extent <= 0) return runEmpty(f);
    bool anyOrder = f.forKind == ForKind::kParallel || f.forKind == ForKind::kVectorized ||
                    f.forKind == ForKind::kThreadBinding;
    bool outermost = f.forKind == ForKind::kParallel && !parallel_;
    if (outermost) iteration_.loop = ++parallelLoops_, parallel_ = f.var.get();
    iterate(f, begin, extent, anyOrder);
    if (outermost) iteration_ = {}, parallel_ = nullptr;
  }

  void iterate(const ForNode& f, int64_t begin, int64_t extent, bool anyOrder) {
    if (!anyOrder || !options_.shuffleSeed || extent > (1 << 20)) {
      for (int64_t i = 0; i < extent; ++i) iterate(f, begin + i);
      return;
    }
    std::vector<int64_t> order(size_t(std::max<int64_t>(extent, 0)));
    std::iota(order.begin(), order.end(), begin);
    for (size_t i = order.size(); i > 1; --i)
      std::swap(order[i - 1], order[hashCombine(options_.shuffleSeed, ++shuffles_) % i]);
    for (int64_t i : order) iterate(f, i);
  }

  void iterate(const ForNode& f, int64_t i) {
    env_[f.var] = Value::ofInt(f.var->dtype, i);
    if (parallel_ == f.var.get()) iteration_.index = i;
    run(f.body);
  }

  // A reduction over nothing gives its init: what the block would have run before its first step.
  void runEmpty(const ForNode& f) {
    Stmt inner = f.body;
    while (inner.is<ForNode>()) inner = inner.as<ForNode>()->body;
    const auto* block = inner.as<BlockRealizeNode>();
    if (block && block->block->init && drivenBy(*block, f.var).reduce) runInit(For(&f), *block);
  }

  void runInit(const Stmt& s, const BlockRealizeNode& block) {
    if (s.is<BlockRealizeNode>()) return runBlock(block, s, true);
    const auto& f = *s.as<ForNode>();
    int64_t begin = evalInt(f.min), extent = drivenBy(block, f.var).reduce ? 1 : evalInt(f.extent);
    for (int64_t i = 0; i < extent; ++i) {
      env_[f.var] = Value::ofInt(f.var->dtype, begin + i);
      runInit(f.body, block);
    }
  }

  void runBlock(const BlockRealizeNode& r, const NodeRef& node, bool initOnly = false) {
    const BlockNode& b = *r.block;
    std::vector<Value> values;
    for (const Expr& e : r.values) values.push_back(eval(e));
    if (!eval(r.predicate).isTrue()) return;
    bool first = true;
    for (size_t i = 0; i < b.iters.size(); ++i) {
      const IterVarNode& a = *b.iters[i];
      env_[a.var] = values[i];
      int64_t low = evalInt(a.domain->min), extent = evalInt(a.domain->extent), v = values[i].asInt();
      if (v < low || (v >= low + extent && !(initOnly && v == low)))
        fault(fmt::format("axis '{}' of block '{}' is {}, outside its domain", a.var->name, b.name, v), node);
      if (a.type == IterType::kReduce) first &= v == low;
    }
    for (const MatchBuffer& m : b.matches) matchBuffer(*m);
    for (const Buffer& a : b.allocs) allocate(a, false);
    if (b.init && first) run(b.init);
    if (!initOnly) run(b.body);
  }

  // Binds the view's data, offset and strides to the source region; free variables of its description get
  // values.
  void matchBuffer(const MatchBufferNode& m) {
    const BufferNode &source = *m.source->buffer, &view = *m.buffer;
    auto it = memory_.find(source.data);
    if (it == memory_.end()) fault("buffer '" + source.name + "' is used before it is allocated", m.source);
    memory_[view.data] = it->second;
    int64_t offset = source.elemOffset ? evalInt(source.elemOffset) : 0, stride = 1;
    std::vector<int64_t> strides(source.rank());
    for (size_t d = source.rank(); d-- > 0;) {
      strides[d] = source.strides.empty() ? stride : evalInt(source.strides[d]);
      stride *= evalInt(source.shape[d]);
    }
    for (size_t d = 0; d < source.rank(); ++d) offset += strides[d] * evalInt(m.source->region[d]->min);
    size_t lead = source.rank() - std::min(source.rank(), view.rank()); // leading unit dimensions are dropped
    auto bind = [&](const Expr& e, int64_t value, const char* what) {
      if (e.is<VarNode>())
        env_[cast<VarNode>(e)] = Value::ofInt(e->dtype, value);
      else if (evalInt(e) != value)
        fault(std::string("match_buffer: ") + what + " of '" + view.name + "' is " + std::to_string(value),
              m.buffer);
    };
    for (size_t d = 0; d < view.rank(); ++d) {
      bind(view.shape[d], evalInt(m.source->region[lead + d]->extent), "the shape");
      if (!view.strides.empty()) bind(view.strides[d], strides[lead + d], "a stride");
    }
    if (view.elemOffset)
      bind(view.elemOffset, offset, "the offset");
    else if (offset != 0)
      fault("match_buffer: '" + view.name + "' has an offset that it does not declare", m.buffer);
  }

  const InterpretOptions& options_;
  std::unordered_map<Var, Value, RefHash> env_;
  std::unordered_map<Var, std::shared_ptr<Memory>, RefHash> memory_;
  int64_t steps_ = 0;
  uint64_t shuffles_ = 0;
  const VarNode* parallel_ = nullptr; // the outermost parallel loop that runs
  interp::Iteration iteration_;       // of it
  int64_t parallelLoops_ = 0;         // executed
};

} // namespace

Status interpret(const PrimFunc& f, const std::vector<Ref<TensorObject>>& tensors,
                 const std::vector<InterpretScalar>& scalars, const InterpretOptions& options) {
  return onLargeStack([&]() -> Status {
    try {
      Interpreter(options).call(f, tensors, scalars);
    } catch (Fault& f) {
      return fail(std::move(f.error));
    }
    return {};
  });
}

} // namespace bevel
