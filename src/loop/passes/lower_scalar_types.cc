// Small float formats compute in float32; elements of less than a byte are read and written as parts of
// bytes.
//
// before:  C[i] = A[i] * B[i]     (float16)       after:  C[i] = T.float16(T.float32(A[i]) * T.float32(B[i]))
// before:  x = Q[i]               (int4)          after:  x = sign_extend(Q_bytes[i >> 1] >> ((i & 1) * 4))
//
// An expression keeps float32 between its operations and is rounded once, where it is stored or cast. Copies
// and selections move the bits unchanged. int4, uint4, int2 and uint2 values are int8 and uint8 in
// expressions, wrapped to their width after each operation; the code of a float4 is uint8 in memory only.
// Parameters of such a type are viewed as bytes (low bits first, as ONNX stores them); allocated buffers hold
// one byte an element. A parallel loop that stores parts of bytes runs serially: two iterations may share a
// byte.
#include "loop/passes/context.h"
#include "loop/passes/passes.h"
#include "loop/passes/vector_util.h"

#include <fmt/format.h>
#include <optional>

namespace bevel {
namespace {

bool isSmallFloat(DType t) {
  return t.isFloat() && t.bits < 32;
}
bool isSubByte(DType t) {
  return t.isInteger() && t.bits < 8;
}
/// float4_e2m1fn: sign, two bits of exponent, one of mantissa.
bool isFloat4(DType t) {
  return t.isFloat() && t.bits == 4;
}
/// Elements that share bytes in memory.
bool isPart(DType t) {
  return isSubByte(t) || isFloat4(t);
}
DType wideFloat(DType t) {
  return DType::Float(32, t.lanes);
}
DType byteType(DType t) {
  return t.isUInt() || t.isFloat() ? DType::UInt(8, t.lanes) : DType::Int(8, t.lanes);
}
DType computeType(DType t) {
  return isSmallFloat(t) ? wideFloat(t) : isSubByte(t) ? byteType(t) : t;
}

Expr raw(BinaryOp op, const Expr& a, const Expr& b) {
  return make<const BinaryNode>(op, a, broadcastTo(b, a->dtype.lanes));
}

/// The value of a float4 code: its bits at their places of a float32, the exponent's bias by a product.
Expr decodeFloat4(const Expr& code) {
  int lanes = code->dtype.lanes;
  DType u32 = DType::UInt(32, lanes), f32 = DType::Float(32, lanes);
  Expr bits = castTo(u32, code), magnitude = raw(BinaryOp::kBitAnd, bits, constant(u32, 7));
  Expr moved = make<const CallNode>(f32, Intrin::kReinterpret,
                                    Array<NodeRef>{raw(BinaryOp::kShl, magnitude, constant(u32, 22))});
  Expr value = moved * constantFloat(f32, 0x1p126);
  return select(raw(BinaryOp::kBitAnd, bits, constant(u32, 8)) > constant(u32, 7), negate(value), value);
}

/// The code nearest to a float32, ties to even codes, beyond the largest the largest: how many midpoints lie
/// below.
Expr encodeFloat4(const Expr& x) {
  DType t = x->dtype, u8 = DType::UInt(8, t.lanes), i32 = kInt32.withLanes(t.lanes);
  Expr magnitude = call(Intrin::kFabs, {x}), code = constant(u8, 0);
  for (double last : {0.25, 1.25, 2.5, 5.0})
    code = code + castTo(u8, logicalNot(magnitude <= constantFloat(t, last))); // NaN counts
  for (double first : {0.75, 1.75, 3.5})
    code = code + castTo(u8, logicalNot(magnitude < constantFloat(t, first)));
  Expr bits = make<const CallNode>(i32, Intrin::kReinterpret, Array<NodeRef>{x});
  return code + select(bits < constant(i32, 0), constant(u8, 8), constant(u8, 0));
}

/// An 8-bit value wrapped to the width of `type`.
Expr wrapTo(DType type, const Expr& e) {
  if (type.isUInt()) return raw(BinaryOp::kBitAnd, e, constant(e->dtype, (1 << type.bits) - 1));
  Expr shift = constant(e->dtype, 8 - type.bits);
  return raw(BinaryOp::kShr, raw(BinaryOp::kShl, e, shift), shift);
}

class ScalarTypes : public Rewriter {
public:
  ScalarTypes() { memoise = false; }
  std::optional<Error> refused; // why the program has no such form

private:
  NodeRef visit(const NodeRef& node) override {
    switch (node->kind) {
    case Kind::kStore:
      return visitStore(cast<StoreNode>(node));
    case Kind::kAlloc:
      return visitAlloc(cast<AllocNode>(node));
    case Kind::kDeclBuffer:
      return visitDecl(cast<DeclBufferNode>(node));
    case Kind::kFor:
      return visitFor(cast<ForNode>(node));
    case Kind::kLetStmt:
      return visitLet(cast<LetStmtNode>(node));
    case Kind::kBuffer:
    case Kind::kDict:
      return node;
    default:
      return node.is<ExprNode>() ? NodeRef(value(cast<ExprNode>(node))) : visitChildren(node);
    }
  }

  Var retyped(const Var& v) {
    DType t = computeType(v->dtype);
    if (t == v->dtype) return v;
    return vars_[v] = with(v, &VarNode::dtype, t);
  }

  template <class L> Ref<const L> visitLet(const Ref<const L>& let) {
    Expr held = value(let->value);
    Var bound = retyped(let->var);
    return withOrigin(make<const L>(bound, held, (*this)(let->body)), let->origin);
  }

  // --- values ---

  /// e in its computing type.
  Expr value(const Expr& e) {
    DType t = e->dtype, wide = computeType(t);
    switch (e->kind) {
    case Kind::kVar: {
      auto it = vars_.find(cast<VarNode>(e));
      if (it != vars_.end()) return it->second;
      return wide == t ? e : castTo(wide, e); // a scalar parameter
    }
    case Kind::kIntImm:
      return wide == t ? e : constant(wide, static_cast<const IntImmNode&>(*e).value);
    case Kind::kFloatImm:
      return wide == t ? e : rounded(static_cast<const FloatImmNode&>(*e));
    case Kind::kLoad:
      return loadValue(cast<LoadNode>(e));
    case Kind::kCast:
      return castValue(static_cast<const CastNode&>(*e));
    case Kind::kLet:
      return visitLet(cast<LetNode>(e));
    case Kind::kCall: {
      const auto& c = static_cast<const CallNode&>(*e);
      if (c.op == Intrin::kReinterpret) return reinterpretValue(c);
      return with(cast<CallNode>(visitChildren(e)), &CallNode::dtype, wide);
    }
    default:
      break;
    }
    Expr out = cast<ExprNode>(visitChildren(e));
    return isSubByte(t) && changesWidth(e) ? wrapTo(t, out) : out;
  }
  static bool changesWidth(const Expr& e) { return e.is<BinaryNode>() || e.is<UnaryNode>(); }

  static Expr rounded(const FloatImmNode& f) {
    return constantFloat(DType::Float(32), decodeFloat(f.dtype, encodeFloat(f.dtype, f.value, false)));
  }

  Expr castValue(const CastNode& c) {
    DType to = c.dtype;
    Expr v = value(c.value);
    if (c.value->dtype == to)
      return v; // rounding again would make the infinity of a float8 its largest value
    if (isFloat4(to)) return decodeFloat4(encodeFloat4(castTo(wideFloat(to), v)));
    if (isSmallFloat(to)) return castTo(wideFloat(to), castTo(to, castTo(wideFloat(to), v))); // rounds
    if (isSubByte(to))
      return wrapTo(to, castTo(byteType(to), v->dtype.isFloat() ? castTo(kInt32.withLanes(to.lanes), v) : v));
    return castTo(to, v);
  }

  Expr reinterpretValue(const CallNode& c) {
    Expr arg = c.arg(0);
    Expr bits = isSmallFloat(arg->dtype) ? stored(arg) : value(arg);
    Expr out = make<const CallNode>(c.dtype, c.op, Array<NodeRef>{bits}, c.attrs);
    return isSmallFloat(c.dtype) ? castTo(wideFloat(c.dtype), out) : out;
  }

  /// A value of a small float type in that type (a float4: its code), for storing: bits move unchanged where
  /// nothing is computed.
  Expr stored(const Expr& e) {
    if (!isSmallFloat(e->dtype)) return value(e);
    if (const auto* c = e.as<CastNode>(); c && c->value->dtype == e->dtype) return stored(c->value);
    if (const auto* l = e.as<LoadNode>()) return isFloat4(e->dtype) ? loadPart(Load(l)) : rawLoad(Load(l));
    if (const auto* f = e.as<FloatImmNode>())
      return isFloat4(e->dtype) ? constant(DType::UInt(8), int64_t(encodeFloat(e->dtype, f->value))) : e;
    if (const auto* b = e.as<BroadcastNode>())
      return make<const BroadcastNode>(stored(b->value), b->dtype.lanes);
    if (const auto* s = e.as<SelectNode>()) return select(value(s->condition), stored(s->a), stored(s->b));
    if (isFloat4(e->dtype))
      return encodeFloat4(value(e.is<CastNode>() ? castTo(wideFloat(e->dtype), e.as<CastNode>()->value) : e));
    if (const auto* c = e.as<CastNode>()) {
      Expr v = value(c->value);
      return castTo(e->dtype, v->dtype.isFloat() && v->dtype.bits == 64 ? v : castTo(wideFloat(e->dtype), v));
    }
    return castTo(e->dtype, value(e));
  }

  // --- memory ---

  Expr rawLoad(const Load& l) { return cast<ExprNode>(visitChildren(l)); }

  Expr loadValue(const Load& l) {
    if (isFloat4(l->dtype)) return decodeFloat4(loadPart(l));
    if (isSmallFloat(l->dtype)) return castTo(wideFloat(l->dtype), rawLoad(l));
    return isSubByte(l->buffer->dtype) ? loadPart(l) : rawLoad(l);
  }

  /// An element of less than a byte in a byte.
  Expr loadPart(const Load& l) {
    auto bytes = bytes_.find(l->buffer->data);
    if (bytes == bytes_.end()) return rawLoad(l);
    const Bytes& b = bytes->second;
    Expr at = value(l->indices[0]), predicate = l->predicate ? value(l->predicate) : nullptr;
    if (!b.packed) return make<const LoadNode>(b.buffer, Array<Expr>{at}, predicate);
    Expr byte = make<const LoadNode>(b.buffer, Array<Expr>{byteIndex(at, l->buffer->dtype)}, predicate);
    Expr field = raw(BinaryOp::kShr, byte, bitShift(at, l->buffer->dtype));
    return wrapTo(isFloat4(l->dtype) ? DType::UInt(4) : l->buffer->dtype, castTo(byteType(l->dtype), field));
  }

  static Expr byteIndex(const Expr& at, DType t) {
    int shift = t.bits == 4 ? 1 : t.bits == 2 ? 2 : 3;
    return raw(BinaryOp::kShr, at, constant(at->dtype, shift));
  }
  /// (index % perByte) * bits, as uint8.
  static Expr bitShift(const Expr& at, DType t) {
    Expr within = raw(BinaryOp::kBitAnd, at, constant(at->dtype, 8 / t.bits - 1));
    return castTo(DType::UInt(8, at->dtype.lanes), raw(BinaryOp::kMul, within, constant(at->dtype, t.bits)));
  }

  NodeRef visitStore(const Store& s) {
    DType t = s->buffer->dtype;
    auto copy = mutableCopy(cast<StoreNode>(visitChildren(s)));
    if (isSmallFloat(t)) copy->value = stored(s->value);
    auto bytes = bytes_.find(s->buffer->data);
    if (!isPart(t) || bytes == bytes_.end()) return Store(copy);
    copy->buffer = bytes->second.buffer;
    if (!bytes->second.packed) return Store(copy);
    if (!copy->indices[0]->dtype.isVector()) return storeField(*copy, t, copy->indices[0], copy->value);
    return storeLanes(*copy, t);
  }

  /// byte = byte & ~mask | (value << shift) & mask.
  static Stmt storeField(const StoreNode& s, DType t, const Expr& at, const Expr& value) {
    Expr where = byteIndex(at, t), shift = bitShift(at, t);
    DType u8 = DType::UInt(8);
    Expr ones = constant(u8, (1 << t.bits) - 1);
    Expr mask = raw(BinaryOp::kShl, ones, shift);
    Expr old = make<const LoadNode>(s.buffer, Array<Expr>{where});
    Expr kept = raw(BinaryOp::kBitAnd, old, raw(BinaryOp::kBitXor, mask, constant(u8, 255)));
    Expr field = raw(BinaryOp::kShl, raw(BinaryOp::kBitAnd, castTo(u8, value), ones), shift);
    return make<const StoreNode>(s.buffer, raw(BinaryOp::kBitOr, kept, field), Array<Expr>{where});
  }

  /// Lanes one after the other: neighbours share bytes.
  Stmt storeLanes(const StoreNode& s, DType t) {
    int lanes = s.indices[0]->dtype.lanes;
    Var whole = var("lanes", s.value->dtype);
    std::vector<Stmt> out;
    for (int i = 0; i < lanes; ++i) {
      Expr lane = make<const ShuffleNode>(Array<Expr>{whole}, Array<Expr>{constant(kInt32, i)});
      Expr at = laneOf(s.indices[0], i);
      BEVEL_ASSERT(at, "a vector store's index is a Ramp");
      Stmt one = storeField(s, t, at, lane);
      if (s.predicate) {
        Expr on = make<const ShuffleNode>(Array<Expr>{s.predicate}, Array<Expr>{constant(kInt32, i)});
        one = make<const IfNode>(on, one);
      }
      out.push_back(one);
    }
    return make<const LetStmtNode>(whole, s.value, seq(out));
  }

  // --- declarations ---

  struct Bytes {
    Buffer buffer;
    bool packed;   // several elements a byte; else one: an allocated buffer's
    DType element; // as declared first
  };

  NodeRef visitAlloc(const Alloc& a) {
    const Buffer& b = a->buffer;
    Buffer made = isPart(b->dtype) ? asBytes(*b, b->shape[0], false) : b;
    return with(a, &AllocNode::buffer, made, &AllocNode::body, (*this)(a->body));
  }
  NodeRef visitDecl(const DeclBuffer& d) {
    const BufferNode& b = *d->buffer;
    Buffer bytes = d->buffer;
    auto made = bytes_.find(b.data);
    if (made != bytes_.end() && !made->second.packed && made->second.element != b.dtype && !refused)
      refused = Error(ErrorCode::kUnsupported,
                      fmt::format(
                          "buffer '{}' views an allocated {} buffer as {}: allocated elements of less than a "
                          "byte take a byte each, which no view of another type can show",
                          b.name, made->second.element.str(), b.dtype.str()))
                    .at(d);
    if (isPart(b.dtype) && made == bytes_.end()) {
      int64_t perByte = 8 / b.dtype.bits;
      bytes = asBytes(b, floordiv(b.shape[0] + (perByte - 1), perByte), true);
    } else if (isPart(b.dtype)) {
      bytes = made->second.buffer;
    }
    return with(d, &DeclBufferNode::buffer, bytes, &DeclBufferNode::body, (*this)(d->body));
  }
  Buffer asBytes(const BufferNode& b, const Expr& size, bool packed) {
    auto made = make<BufferNode>(b);
    made->dtype = packed ? DType::UInt(8) : byteType(b.dtype);
    made->shape = {size};
    bytes_[b.data] = {Buffer(made), packed, b.dtype};
    return Buffer(made);
  }

  NodeRef visitFor(const For& loop) {
    For out = cast<ForNode>(visitChildren(loop));
    bool shares = out->forKind == ForKind::kParallel && storesParts(loop);
    return shares ? with(out, &ForNode::forKind, ForKind::kSerial) : out;
  }
  bool storesParts(const For& loop) {
    return anyNode<StoreNode>(loop->body, [&](const StoreNode& s) {
      auto it = isPart(s.buffer->dtype) ? bytes_.find(s.buffer->data) : bytes_.end();
      return it != bytes_.end() && it->second.packed;
    });
  }

  std::unordered_map<Var, Var, RefHash> vars_;
  std::unordered_map<Var, Bytes, RefHash> bytes_;
};

} // namespace

Result<PrimFunc> lowerScalarTypes(const PrimFunc& f, const Target&) {
  bool any = anyNode(f->body, [](const NodeRef& n) {
    const auto* e = n.as<ExprNode>();
    const auto* s = n.as<StoreNode>();
    DType t = e ? e->dtype : s ? s->buffer->dtype : kBool;
    return isSmallFloat(t) || isSubByte(t);
  });
  if (!any) return f;
  ScalarTypes lowering;
  Stmt body = lowering(f->body);
  if (lowering.refused) return fail(std::move(*lowering.refused));
  return withBody(f, body);
}

} // namespace bevel
