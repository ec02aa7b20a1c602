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

// x, w, r, b, lengths, h0, c0, p of all directions.
struct Inputs {
  GraphExpr x, w, r, b, lengths, h0, c0, p;
  Expr steps, batch;
  int64_t hidden, directions;
};

// Direction d of a tensor with directions in front.
Result<GraphExpr> ofDirection(Node& n, const GraphExpr& e, int64_t d) {
  BEVEL_TRY(GraphExpr s, sliceAxis(n, e, 0, intImm(d), intImm(d + 1)));
  return n.emit("squeeze", {s}, {{"axis", intList({0})}});
}

Result<Inputs> readInputs(Node& n, const Layer& layer) {
  auto directions = asConst(n.shape(2)[0]), hidden = asConst(n.shape(2)[2]);
  if (!directions || !hidden) return n.unsupported("weights whose shape only the run knows");
  Inputs in{n.x(0),
            n.x(1),
            n.x(2),
            n.has(3) ? n.x(3) : nullptr,
            n.has(4) ? n.x(4) : nullptr,
            n.has(5) ? n.x(5) : nullptr,
            nullptr,
            nullptr,
            nullptr,
            nullptr,
            *hidden,
            *directions};
  bool batchFirst = n.attrInt("layout", 0) != 0;
  if (batchFirst) {
    BEVEL_TRY(in.x, permute(n, in.x, {1, 0, 2}));
    if (in.h0) {
      BEVEL_TRY(in.h0, permute(n, in.h0, {1, 0, 2}));
    }
  }
  in.steps = shapeOfExpr(in.x)[0];
  in.batch = shapeOfExpr(in.x)[1];
  if (layer.gates == 4) {
    if (n.has(6)) in.c0 = n.x(6);
    if (n.has(7)) in.p = n.x(7);
    if (batchFirst && in.c0) {
      BEVEL_TRY(in.c0, permute(n, in.c0, {1, 0, 2}));
    }
  }
  for (const GraphExpr& e : {in.b, in.h0, in.c0, in.p})
    if (e)
      BEVEL_CHECK(n.check(eq(shapeOfExpr(e)[0], intImm(in.directions)),
                          "a parameter has another number of directions"));
  if (in.b)
    BEVEL_CHECK(n.check(eq(n.shape(3)[1], intImm(2 * layer.gates * in.hidden)),
                        "the bias does not fit the hidden size"));
  if (in.lengths)
    BEVEL_CHECK(checkElements(n, in.lengths, intImm(0), in.steps, "a length lies beyond the time"));
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
Result<GraphExpr> projections(Node& n, const Inputs& in, int64_t d, int64_t gates, bool innerBias,
                              GraphExpr& recurrentBias) {
  BEVEL_TRY(GraphExpr w, ofDirection(n, in.w, d));
  BEVEL_TRY(w, permute(n, w, {1, 0}));
  BEVEL_TRY(GraphExpr xp, binaryOp(n, "matmul", in.x, w));
  if (!in.b) return xp;
  BEVEL_TRY(GraphExpr b, ofDirection(n, in.b, d));
  int64_t size = gates * in.hidden;
  BEVEL_TRY(GraphExpr wb, sliceAxis(n, b, 0, intImm(0), intImm(size)));
  BEVEL_TRY(GraphExpr rb, sliceAxis(n, b, 0, intImm(size), intImm(2 * size)));
  if (innerBias) { // the last gate's recurrent bias goes inside
    BEVEL_TRY(recurrentBias, sliceAxis(n, rb, 0, intImm(2 * in.hidden), intImm(size)));
    BEVEL_TRY(GraphExpr front, sliceAxis(n, rb, 0, intImm(0), intImm(2 * in.hidden)));
    BEVEL_TRY(GraphExpr zeros, n.emit("broadcast_to", {Node::scalarConstant(dtypeOfExpr(rb), 0),
                                                       Node::shapeArg(dims({in.hidden}))}));
    BEVEL_TRY(rb, n.emit("concat", {front, zeros}, {{"axis", intImm(0)}}));
  }
  BEVEL_TRY(b, binaryOp(n, "add", wb, rb));
  return binaryOp(n, "add", xp, b);
}

Result<GraphExpr> initialState(Node& n, const Inputs& in, const GraphExpr& given, int64_t d) {
  if (given) return ofDirection(n, given, d);
  return n.emit("broadcast_to",
                {Node::scalarConstant(dtypeOfExpr(in.x), 0), Node::shapeArg({in.batch, intImm(in.hidden)})});
}

std::vector<std::pair<std::string, NodeRef>> recurrentAttrs(Node& n, const Layer& layer, int64_t d,
                                                            bool reverse) {
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
      items.push_back(floatNode(all[size_t(d) * layer.functions + k]));
    return items;
  };
  std::vector<std::pair<std::string, NodeRef>> attrs = {{"activations", str(names)},
                                                        {"reverse", intImm(reverse)}};
  if (auto alpha = part("activation_alpha"); !alpha.empty()) attrs.emplace_back("alpha", list(alpha));
  if (auto beta = part("activation_beta"); !beta.empty()) attrs.emplace_back("beta", list(beta));
  if (n.hasAttr("clip")) attrs.emplace_back("clip", floatNode(n.attrFloat("clip", 0)));
  if (layer.gates == 4 && n.attrInt("input_forget", 0)) attrs.emplace_back("input_forget", intImm(1));
  if (layer.gates == 3 && n.attrInt("linear_before_reset", 0))
    attrs.emplace_back("linear_before_reset", intImm(1));
  return attrs;
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
    Array<GraphExpr> parts;
    for (const Values& results : perDirection) {
      BEVEL_TRY(GraphExpr e, unsqueeze(n, results[k]->expr, {k == 0 ? 1 : 0}));
      parts.push_back(e);
    }
    GraphExpr e = parts[0];
    if (parts.size() > 1) {
      BEVEL_TRY(e, n.emit("concat", parts, {{"axis", intImm(k == 0 ? 1 : 0)}}));
    }
    if (batchFirst) {
      BEVEL_TRY(e, permute(n, e, k == 0 ? Ints{2, 0, 1, 3} : Ints{1, 0, 2}));
    }
    out.push_back(n.value(e));
  }
  return out;
}

Result<Values> recurrent(const Layer& layer, Node& n) {
  BEVEL_TRY(Inputs in, readInputs(n, layer));
  BEVEL_CHECK(checkActivations(n, layer, in.directions));
  std::vector<Values> results;
  std::string direction = n.attrStr("direction", "forward");
  for (int64_t d = 0; d < in.directions; ++d) {
    bool reverse = direction == "reverse" || d == 1,
         innerBias = layer.gates == 3 && n.attrInt("linear_before_reset", 0) != 0;
    GraphExpr recurrentBias = absent(), lengths = absent();
    BEVEL_TRY(GraphExpr xp, projections(n, in, d, layer.gates, innerBias, recurrentBias));
    BEVEL_TRY(GraphExpr r, ofDirection(n, in.r, d));
    BEVEL_TRY(GraphExpr h0, initialState(n, in, in.h0, d));
    Array<GraphExpr> args = {xp, r, h0};
    if (layer.gates == 4) {
      BEVEL_TRY(GraphExpr c0, initialState(n, in, in.c0, d));
      GraphExpr p = absent();
      if (in.p) {
        BEVEL_TRY(p, ofDirection(n, in.p, d));
      }
      args.push_back(c0);
      args.push_back(p);
    }
    if (layer.gates == 3) args.push_back(recurrentBias);
    if (in.lengths) {
      BEVEL_TRY(lengths, n.castTo(in.lengths, kInt64));
    }
    args.push_back(lengths);
    BEVEL_TRY(GraphExpr tuple, n.emit(layer.op, args, dict(recurrentAttrs(n, layer, d, reverse))));
    BEVEL_TRY(Values fields, n.fields(tuple));
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
  return {{"LSTM", 1, std::bind_front(recurrent, lstm), "", withCell},
          {"GRU", 1, std::bind_front(recurrent, gru), "", inputs},
          {"RNN", 1, std::bind_front(recurrent, rnn), "", inputs}};
}

} // namespace bevel::onnx
