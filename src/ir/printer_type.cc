// Prints types of graph values.
#include "ir/printer_impl.h"

#include "ir/structural.h"

namespace bevel::detail {

void Printer::dim(const Expr& e) {
  if (!e) return put("None");
  bool symbolic = quoteSymbols_ && !e.is<IntImmNode>();
  if (!symbolic) return operand(e, kInt64);
  std::string text = capture([&] { operand(e, kInt64); });
  put(quoted(text));
}

void Printer::dims(const Array<Expr>& values) {
  tuple(values, [&](const Expr& e) { dim(e); });
}

void Printer::placement(const PlacementNode& n) {
  put("R.placement(");
  bool first = true;
  auto part = [&](const char* key, const std::string& value) {
    if (value.empty()) return;
    separator(first);
    put(std::string(key) + "=" + quoted(value));
  };
  part("device", n.device);
  part("scope", n.scope);
  part("sharding", n.sharding);
  put(")");
}

void Printer::tensorType(const TensorTypeNode& n) {
  put("R.Tensor(");
  bool first = true;
  if (n.known) separator(first), dims(n.shape);
  if (!n.dtype.isVoid()) separator(first), put("dtype=" + quoted(n.dtype.str()));
  if (!n.known && n.ndim >= 0) separator(first), put("ndim=" + std::to_string(n.ndim));
  if (n.placement) separator(first), put("placement="), placement(*n.placement);
  put(")");
}

void Printer::type(const Type& t) {
  if (!t) return put("None");
  Mark mark(*this, t);
  switch (t->kind) {
  case Kind::kTensorType:
    return tensorType(*t.as<TensorTypeNode>());
  case Kind::kPrimType: {
    auto& n = *t.as<PrimTypeNode>();
    put("R.Prim(");
    if (!n.value || n.value->dtype != n.dtype) put(quoted(n.dtype.str()));
    if (n.value) {
      if (n.value->dtype != n.dtype) put(", ");
      put("value="), dim(n.value);
    }
    return put(")");
  }
  case Kind::kShapeType: {
    auto& n = *t.as<ShapeTypeNode>();
    put("R.Shape(");
    if (n.known) {
      put("["), commaList(n.values, [&](const Expr& e) { dim(e); }), put("]");
    } else if (n.ndim >= 0)
      put("ndim=" + std::to_string(n.ndim));
    return put(")");
  }
  case Kind::kTupleType:
    put("R.Tuple(");
    commaList(t.as<TupleTypeNode>()->fields_, [&](const Type& f) { type(f); });
    return put(")");
  case Kind::kFuncType: {
    auto& n = *t.as<FuncTypeNode>();
    put("R.Callable(");
    bool saved = std::exchange(quoteSymbols_, true);
    if (n.opaque)
      put("None");
    else
      tuple(n.params, [&](const Type& p) { type(p); });
    put(", "), type(n.result);
    quoteSymbols_ = saved;
    return put(n.pure ? ", True)" : ", False)");
  }
  case Kind::kObjectType: {
    auto& n = *t.as<ObjectTypeNode>();
    put("R.Object");
    if (n.name.empty() && n.params.empty()) return;
    put("(" + quoted(n.name));
    for (const Type& p : n.params) put(", "), type(p);
    return put(")");
  }
  default:
    return put("<type>");
  }
}

} // namespace bevel::detail
