// Prints types of graph values.
#include "ir/printer_impl.h"

#include "ir/structural.h"

namespace bevel::detail {

void Printer::dim(const Expr& e) {
  if (!e) return put("None");
  if (!quoteSymbols_ || e.is<IntImmNode>()) return operand(e, kInt64);
  put(quoted(capture([&] { operand(e, kInt64); })));
}

void Printer::dims(const Array<Expr>& values) {
  tuple(values, [&](const Expr& e) { dim(e); });
}

void Printer::placement(const PlacementNode& n) {
  put("R.placement(");
  bool first = true;
  auto part = [&](const char* key, const std::string& value) {
    if (value.empty()) return;
    separator(first), put(key, "=", quoted(value));
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
  if (!n.dtype.isVoid()) separator(first), put("dtype=", n.dtype);
  if (!n.known && n.ndim >= 0) separator(first), put("ndim=", n.ndim);
  if (n.placement) separator(first), put("placement="), placement(*n.placement);
  put(")");
}

void Printer::type(const Type& t) {
  if (!t) return put("None");
  Mark mark(*this, t);
  if (auto* n = t.as<TensorTypeNode>()) return tensorType(*n);
  if (auto* n = t.as<PrimTypeNode>()) {
    bool told = n->value && n->value->dtype == n->dtype;
    put("R.Prim(");
    if (!told) put(n->dtype);
    if (n->value) put(told ? "value=" : ", value="), dim(n->value);
    return put(")");
  }
  if (auto* n = t.as<ShapeTypeNode>()) {
    put("R.Shape(");
    if (n->known)
      put("["), commaList(n->values, [&](const Expr& e) { dim(e); }), put("]");
    else if (n->ndim >= 0)
      put("ndim=", n->ndim);
    return put(")");
  }
  if (auto* n = t.as<TupleTypeNode>()) return put("R.Tuple(", n->fields_, ")");
  if (auto* n = t.as<FuncTypeNode>()) {
    put("R.Callable(");
    bool saved = std::exchange(quoteSymbols_, true);
    n->opaque ? put("None") : tuple(n->params, [&](const Type& p) { type(p); });
    put(", ", n->result);
    quoteSymbols_ = saved;
    return put(n->pure ? ", True)" : ", False)");
  }
  const auto* n = t.as<ObjectTypeNode>();
  if (!n) return put("<type>");
  put("R.Object");
  if (n->name.empty() && n->params.empty()) return;
  put("(", quoted(n->name));
  for (const Type& p : n->params) put(", ", p);
  put(")");
}

} // namespace bevel::detail
