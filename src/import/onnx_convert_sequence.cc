// Sequences and optional values whose length the model tells: a sequence is a tuple while importing, so that
// its operators only pick and arrange values. Those that only the run knows (inputs of these types, sequences
// that loops grow) are refused.
#include "import/onnx_helpers.h"

namespace bevel::onnx {

namespace {

using Items = std::vector<GraphExpr>;

Value sequenceOf(Node& n, const Items& items) {
  Array<Type> types;
  for (const GraphExpr& e : items) types.push_back(e->type);
  auto tuple = make<TupleNode>(Array<GraphExpr>(items));
  tuple->type = make<const TupleTypeNode>(types);
  return n.value(GraphExpr(tuple));
}

Result<Items> itemsOf(Node& n, size_t input) {
  if (!n.has(input)) return n.invalid(fmt::format("input {} is missing", input));
  const auto* type = n.in(input)->type.as<TupleTypeNode>();
  if (!type)
    return n.in(input)->type.is<TensorTypeNode>()
               ? Result<Items>(n.invalid("a sequence is expected"))
               : n.unsupported("a sequence whose length only the run knows");
  BEVEL_TRY(Values fields, n.fields({n, n.in(input)->expr}));
  Items items;
  for (const Value& field : fields) items.push_back(field->expr);
  return items;
}

/// The position that input `input` gives; `otherwise` where it is absent.
Result<size_t> positionOf(Node& n, size_t input, size_t length, size_t end, int64_t otherwise) {
  int64_t at = otherwise;
  if (n.has(input)) {
    auto given = n.constInts(input);
    if (!given || given->size() != 1)
      return n.unsupported("a position in a sequence that only the run knows");
    at = (*given)[0];
    if (at < 0) at += int64_t(length);
  }
  if (at < 0 || at >= int64_t(end))
    return n.invalid(fmt::format("position {} is outside of the sequence", at));
  return size_t(at);
}

Result<Values> construct(Node& n) {
  BEVEL_CHECK(n.require(n.size()));
  Items items;
  for (size_t i = 0; i < n.size(); ++i) items.push_back(*n.x(i));
  return Values{sequenceOf(n, items)};
}
Result<Values> empty(Node& n) {
  return Values{sequenceOf(n, {})};
}

Result<Values> insert(Node& n) { // sequence, tensor, position
  BEVEL_TRY(Items items, itemsOf(n, 0));
  if (!n.has(1) || !n.in(1)->type.is<TensorTypeNode>()) return n.invalid("a tensor is expected");
  BEVEL_TRY(size_t at, positionOf(n, 2, items.size(), items.size() + 1, int64_t(items.size())));
  items.insert(items.begin() + ptrdiff_t(at), *n.x(1));
  return Values{sequenceOf(n, items)};
}

Result<Values> erase(Node& n) {
  BEVEL_TRY(Items items, itemsOf(n, 0));
  BEVEL_TRY(size_t at, positionOf(n, 1, items.size(), items.size(), int64_t(items.size()) - 1));
  items.erase(items.begin() + ptrdiff_t(at));
  return Values{sequenceOf(n, items)};
}

Result<Values> element(Node& n) {
  BEVEL_TRY(Items items, itemsOf(n, 0));
  BEVEL_TRY(size_t at, positionOf(n, 1, items.size(), items.size(), -1));
  return Values{n.value(items[at])};
}

Result<Values> length(Node& n) {
  BEVEL_TRY(Items items, itemsOf(n, 0));
  return Values{knownInts({intImm(int64_t(items.size()))}, {})};
}

// Parts of given sizes, of one size (the last may be smaller), or of size one without their axis.
Result<Values> split(Node& n) {
  BEVEL_CHECK(n.require(1));
  BEVEL_TRY(int64_t axis, axisOf(n, n.attrInt("axis", 0), n.rank(0)));
  auto total = asConst(n.shape(0)[size_t(axis)]);
  if (!total) return n.unsupported("a split into a number of parts that only the run knows");
  Ints sizes;
  bool single = !n.has(1);
  if (n.has(1)) {
    auto given = n.constInts(1);
    if (!given || !n.in(1)->type.as<TensorTypeNode>())
      return n.unsupported("sizes of parts that only the run knows");
    if (n.rank(1) == 0 && ((*given)[0] < 1 || *total / (*given)[0] > 65536))
      return n.invalid("the size of the parts is out of range");
    if (n.rank(1) != 0)
      sizes = *given;
    else
      for (int64_t rest = *total; rest > 0; rest -= (*given)[0]) sizes.push_back(std::min(rest, (*given)[0]));
  } else if (*total > 65536)
    return n.unsupported("a split into so many parts");
  else
    sizes.assign(size_t(*total), 1);
  Items items;
  int64_t start = 0;
  for (int64_t size : sizes) {
    if (size < 0 || size > *total - start) return n.invalid("the sizes do not add up to the axis");
    Term part = n.x(0).slice(axis, intImm(start), intImm(start + size));
    BEVEL_TRY(GraphExpr e, single && n.attrInt("keepdims", 1) == 0 ? part.squeeze({axis}) : part);
    items.push_back(e);
    start += size;
  }
  if (start != *total) return n.invalid("the sizes do not add up to the axis");
  return Values{sequenceOf(n, items)};
}

Result<Values> concat(Node& n) {
  BEVEL_TRY(Items items, itemsOf(n, 0));
  if (items.empty()) return n.invalid("the sequence is empty");
  const auto* first = items[0]->type.as<TensorTypeNode>();
  if (!n.hasAttr("axis") || !first || first->ndim < 0)
    return n.invalid("an axis, and tensors of known rank are expected");
  bool fresh = n.attrInt("new_axis", 0) != 0;
  BEVEL_TRY(int64_t axis, axisOf(n, n.attrInt("axis", 0), size_t(first->ndim) + (fresh ? 1 : 0)));
  Array<GraphExpr> parts;
  for (const GraphExpr& item : items) {
    BEVEL_TRY(GraphExpr e, fresh ? Term(n, item).unsqueeze({axis}) : Term(n, item));
    parts.push_back(e);
  }
  return n.emit("concat", parts, {{"axis", axis}});
}

bool isPresent(const Value& v) {
  return v->type.is<TensorTypeNode>() || v->type.is<TupleTypeNode>();
}

Result<Values> optional(Node& n) {
  if (n.inputs.empty()) return n.unsupported("an optional value without content");
  return Values{n.in(0)};
}
Result<Values> hasElement(Node& n) {
  if (n.has(0) && !isPresent(n.in(0)))
    return n.unsupported("an optional value of which only the run knows whether it is there");
  return Values{knownInts({intImm(n.has(0) ? 1 : 0)}, {}, kBool)};
}
Result<Values> getElement(Node& n) {
  if (!n.has(0)) return n.invalid("the optional value is absent");
  if (!isPresent(n.in(0)))
    return n.unsupported("an optional value of which only the run knows whether it is there");
  return Values{n.in(0)};
}

} // namespace

std::vector<Conversion> sequenceConversions() {
  return {{"SequenceConstruct", 11, construct},
          {"SequenceEmpty", 11, empty},
          {"SequenceInsert", 11, insert},
          {"SequenceErase", 11, erase},
          {"SequenceAt", 11, element},
          {"SequenceLength", 11, length},
          {"SplitToSequence", 11, split},
          {"ConcatFromSequence", 11, concat},
          {"Optional", 15, optional},
          {"OptionalHasElement", 15, hasElement},
          {"OptionalGetElement", 15, getElement}};
}

} // namespace bevel::onnx
