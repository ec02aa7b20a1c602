// LSTM, GRU and RNN: per direction one product for the input projections of all steps, then the recurrence.
#include "import/onnx_helpers.h"

namespace bevel::onnx {

namespace {

struct Layer {
  const char* op;
  int64_t gates;
  size_t functions; // activations a direction
  std::vector<std::string> defaults;
};

// The sizes of the layer, and its values of all directions.
struct Inputs {
  int64_t directions, hidden;
  Expr steps, batch;
  Term x;
  std::optional<Term> bias = {}, h0 = {}, c0 = {}, peepholes = {};
};

// Direction d of a tensor with directions in front.
Term ofDirection(const Term& e, int64_t d) {
  return e.slice(0, intImm(d), intImm(d + 1)).squeeze({0});
}

Result<Inputs> readInputs(Node& n, const Layer& layer) {
  auto directions = asConst(n.shape(2)[0]), hidden = asConst(n.shape(2)[2]);
  if (!directions || !hidden) return n.unsupported("weights whose shape only the run knows");
  size_t batch = n.attrInt("layout", 0) != 0 ? 0 : 1; // axis of x and of the states that counts sequences
  auto given = [&](size_t i, bool state) -> std::optional<Term> {
    if (!n.has(i) || (i > 5 && layer.gates != 4)) return {};
    return state && batch == 0 ? n.x(i).permute({1, 0, 2}) : n.x(i);
  };
  Inputs in{*directions, *hidden, n.shape(0)[1 - batch], n.shape(0)[batch], *given(0, true)};
  in.bias = given(3, false);
  in.h0 = given(5, true);
  in.c0 = given(6, true);
  in.peepholes = given(7, false);
  for (std::optional<Term>* term : {&in.bias, &in.h0, &in.c0, &in.peepholes})
    if (*term) {
      BEVEL_TRY(GraphExpr e, **term);
      BEVEL_CHECK(n.check(eq(shapeOfExpr(e)[0], intImm(in.directions)),
                          "a parameter has another number of directions"));
    }
  if (in.bias)
    BEVEL_CHECK(n.check(eq(n.shape(3)[1], intImm(2 * layer.gates * in.hidden)),
                        "the bias does not fit the hidden size"));
  if (n.has(4)) BEVEL_CHECK(checkElements(n, n.x(4), intImm(0), in.steps, "a length lies beyond the time"));
  std::string direction = n.attrStr("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    return n.invalid("unknown direction " + direction);
  if (in.directions != (direction == "bidirectional" ? 2 : 1))
    return n.invalid("the weights have another number of directions");
  if (n.hasAttr("hidden_size") && n.attrInt("hidden_size", 0) != in.hidden)
    return n.invalid("hidden_size differs from the weights' shape");
  return in;
}

// x Wᵀ + Wb (+ Rb where the recurrence adds nothing else): [T, B, gates*H].
Term projections(Node& n, const Inputs& in, int64_t d, int64_t gates, bool innerBias, Term& recurrentBias) {
  Term xp = n.emit("matmul", {in.x, ofDirection(n.x(1), d).permute({1, 0})});
  if (!in.bias) return xp;
  Term b = ofDirection(*in.bias, d);
  Expr size = intImm(gates * in.hidden), twice = intImm(2 * gates * in.hidden), inner = intImm(2 * in.hidden);
  Term wb = b.slice(0, intImm(0), size), rb = b.slice(0, size, twice);
  if (innerBias) { // the last gate's recurrent bias goes inside
    recurrentBias = rb.slice(0, inner, size);
    Term front = rb.slice(0, intImm(0), inner);
    Term zeros = n.emit("broadcast_to", {Node::scalarConstant(n.dtype(3), 0), dims({in.hidden})});
    rb = n.emit("concat", {front, zeros}, {{"axis", 0}});
  }
  b = wb + rb;
  return xp + b;
}

Term initialState(Node& n, const Inputs& in, const std::optional<Term>& given, int64_t d) {
  if (given) return ofDirection(*given, d);
  return n.emit("broadcast_to",
                {Node::scalarConstant(n.dtype(0), 0), Array<Expr>{in.batch, intImm(in.hidden)}});
}

Attrs recurrentAttrs(Node& n, const Layer& layer, int64_t d, bool reverse) {
  const AttributeProto* a = n.attr("activations");
  std::string names;
  for (size_t k = 0; k < layer.functions; ++k) {
    size_t at = size_t(d) * layer.functions + k;
    names += (k ? "," : "") + (a && at < a->strings.size() ? a->strings[at] : layer.defaults[k]);
  }
  auto part = [&](const char* name) {
    Array<NodeRef> items;
    std::vector<double> all = n.attrFloats(name);
    for (size_t k = 0; k < layer.functions && size_t(d) * layer.functions + k < all.size(); ++k)
      items.push_back(constantFloat(DType::Float(64), all[size_t(d) * layer.functions + k]));
    return items.empty() ? NodeRef() : NodeRef(list(items));
  };
  auto flag = [&](const char* name, int64_t gates) {
    return layer.gates == gates && n.attrInt(name, 0) ? NodeRef(intImm(1)) : NodeRef();
  };
  return {{"activations", names},
          {"reverse", reverse},
          {"alpha", part("activation_alpha")},
          {"beta", part("activation_beta")},
          {"clip",
           n.hasAttr("clip") ? NodeRef(constantFloat(DType::Float(64), n.attrFloat("clip", 0))) : NodeRef()},
          {"input_forget", flag("input_forget", 4)},
          {"linear_before_reset", flag("linear_before_reset", 3)}};
}

Status checkActivations(Node& n, const Layer& layer, int64_t directions) {
  const AttributeProto* a = n.attr("activations");
  if (!a) return {};
  if (a->strings.size() != layer.functions * size_t(directions))
    return n.invalid("wrong number of activations");
  for (const std::string& s : a->strings) {
    bool known = false;
    for (const char* name : {"Sigmoid", "Tanh", "Relu", "Affine", "LeakyRelu", "ThresholdedRelu",
                             "ScaledTanh", "HardSigmoid", "Elu", "Softsign", "Softplus"})
      known |= s == name;
    if (!known) return n.unsupported("activation " + s);
  }
  return {};
}

// Results of all directions, stacked: Y [T, D, B, H], then states [D, B, H].
Result<Values> stacked(Node& n, const std::vector<Values>& perDirection) {
  bool batchFirst = n.attrInt("layout", 0) != 0;
  Values out;
  for (size_t k = 0; k < perDirection[0].size(); ++k) {
    int64_t axis = k == 0 ? 1 : 0;
    Array<GraphExpr> parts;
    for (const Values& results : perDirection) {
      BEVEL_TRY(GraphExpr e, Term(n, results[k]->expr).unsqueeze({axis}));
      parts.push_back(e);
    }
    Term e = parts.size() > 1 ? n.emit("concat", parts, {{"axis", axis}}) : Term(n, parts[0]);
    BEVEL_TRY(GraphExpr result, batchFirst ? e.permute(k == 0 ? Ints{2, 0, 1, 3} : Ints{1, 0, 2}) : e);
    out.push_back(n.value(result));
  }
  return out;
}

Result<Values> recurrent(const Layer& layer, Node& n) {
  BEVEL_TRY(Inputs in, readInputs(n, layer));
  BEVEL_CHECK(checkActivations(n, layer, in.directions));
  std::vector<Values> results;
  std::string direction = n.attrStr("direction", "forward");
  bool innerBias = layer.gates == 3 && n.attrInt("linear_before_reset", 0) != 0;
  for (int64_t d = 0; d < in.directions; ++d) {
    Term recurrentBias = absent(), xp = projections(n, in, d, layer.gates, innerBias, recurrentBias);
    Terms args = {xp, ofDirection(n.x(2), d), initialState(n, in, in.h0, d)};
    if (layer.gates == 4) {
      args.items.push_back(initialState(n, in, in.c0, d));
      args.items.push_back(in.peepholes ? ofDirection(*in.peepholes, d) : absent());
    }
    if (layer.gates == 3) args.items.push_back(recurrentBias);
    args.items.push_back(n.has(4) ? n.x(4).cast(kInt64) : absent());
    bool reverse = direction == "reverse" || d == 1;
    BEVEL_TRY(Values fields, n.fields(n.emit(layer.op, args, recurrentAttrs(n, layer, d, reverse))));
    results.push_back(std::move(fields));
  }
  return stacked(n, results);
}

} // namespace

std::vector<Conversion> recurrentConversions() {
  auto some = [](const char* name, Elements e, int rank) {
    return OpInput(name, InputKind::kOptional).of(e).rank(rank);
  };
  auto cube = [](const char* name) { return OpInput(name).of(Elements::kFloats).rank(3); };
  std::vector<OpInput> inputs = {cube("X"),
                                 cube("W"),
                                 cube("R"),
                                 some("B", Elements::kFloats, 2),
                                 some("sequence_lens", Elements::kInts, 1),
                                 some("initial_h", Elements::kFloats, 3)};
  std::vector<OpInput> withCell = inputs;
  withCell.push_back(some("initial_c", Elements::kFloats, 3));
  withCell.push_back(some("P", Elements::kFloats, 2));
  Layer lstm{"nn.lstm", 4, 3, {"Sigmoid", "Tanh", "Tanh"}}, gru{"nn.gru", 3, 2, {"Sigmoid", "Tanh"}},
      rnn{"nn.rnn", 1, 1, {"Tanh"}};
  return {{"LSTM", 1, std::bind_front(recurrent, lstm), 0, "", withCell},
          {"GRU", 1, std::bind_front(recurrent, gru), 0, "", inputs},
          {"RNN", 1, std::bind_front(recurrent, rnn), 0, "", inputs}};
}

} // namespace bevel::onnx
