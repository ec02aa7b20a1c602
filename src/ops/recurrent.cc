// Recurrent layers over one direction: the input projections of all steps come as one product from outside,
// the recurrence is a scan over time whose step is a product with the recurrent weights and the gates.
//
//   nn.lstm: xp [T, B, 4H] in gate order i, o, f, c;  r [4H, H];  h0, c0 [B, H];  peepholes [3H] i, o, f;
//            lengths [B] int64
//   results: y [T, B, H], last h [B, H], last c [B, H] (not for gru and rnn)
//
// Steps beyond a sequence's length keep the state and give zeros. reverse: time runs from each sequence's
// end.
#include "ops/common.h"

namespace bevel::ops {

namespace {

// One kind of layer: gates, states (the first is the output), and vectors [n * H] behind the initial states.
struct Layer {
  int64_t gates, states;
  int64_t vector = 0; // n; 0: there is none
  const char* misfit = "";
};
// Sequence lengths are the last input.
size_t lengthsInput(const OpCall& call) {
  return call.op.inputs.size() - 1;
}

Result<Type> recurrentInfer(const Layer& layer, const OpCall& call, InferContext& context) {
  size_t n = lengthsInput(call);
  for (size_t i = 1; i < n; ++i)
    if (call.has(i) && call.dtype(i) != call.dtype(0)) return call.invalid("inputs have different dtypes");
  Expr h = call.shape(1)[1], b = call.shape(0)[1];
  auto vector = [&](size_t i, const Expr& length, const char* what) -> Status {
    return call.has(i) ? context.require(eq(call.shape(i)[0], length), call, what) : Status();
  };
  BEVEL_CHECK(context.require(eq(call.shape(0)[2], h * layer.gates), call,
                              "the projections do not fit the hidden size"));
  BEVEL_CHECK(context.require(eq(call.shape(1)[0], h * layer.gates), call,
                              "the recurrent weights do not fit the hidden size"));
  size_t behind = 2 + size_t(layer.states);
  for (size_t i = 2; i < behind; ++i)
    BEVEL_CHECK(context.require(logicalAnd(eq(call.shape(i)[0], b), eq(call.shape(i)[1], h)), call,
                                "the initial state does not fit"));
  if (layer.vector) BEVEL_CHECK(vector(behind, h * layer.vector, layer.misfit));
  BEVEL_CHECK(vector(n, b, "there is not one length for each sequence"));
  Type state = tensorOf(call.dtype(0), {b, h});
  Array<Type> results = {tensorOf(call.dtype(0), {call.shape(0)[0], b, h})};
  for (int64_t i = 0; i < layer.states; ++i) results.push_back(state);
  return tupleOf(results);
}

// Activation `k` of attribute "activations", clipped argument included.
Expr activate(const OpCall& call, size_t k, Expr x) {
  std::string names = call.s("activations");
  std::string name;
  for (size_t i = 0, at = 0; i <= k; ++i) {
    size_t comma = names.find(',', at);
    name = names.substr(at, comma - at);
    at = comma == std::string::npos ? names.size() : comma + 1;
  }
  double clip = call.f("clip");
  if (clip > 0) x = min(max(x, real(x, -clip)), real(x, clip));
  std::vector<double> alphas = call.floats("alpha"), betas = call.floats("beta");
  auto at = [&](const std::vector<double>& v, double otherwise) { return k < v.size() ? v[k] : otherwise; };
  Expr zero = real(x, 0);
  if (name == "Sigmoid") return callIntrin(Intrin::kSigmoid, x);
  if (name == "Relu") return max(x, zero);
  if (name == "Affine") return real(x, at(alphas, 1)) * x + real(x, at(betas, 0));
  if (name == "LeakyRelu") return select(x < zero, real(x, at(alphas, 0.01)) * x, x);
  if (name == "ThresholdedRelu") return select(x > real(x, at(alphas, 1)), x, zero);
  if (name == "ScaledTanh")
    return real(x, at(alphas, 1)) * callIntrin(Intrin::kTanh, real(x, at(betas, 1)) * x);
  if (name == "HardSigmoid")
    return min(max(real(x, at(alphas, 0.2)) * x + real(x, at(betas, 0.5)), zero), real(x, 1));
  if (name == "Elu") return select(x > zero, x, real(x, at(alphas, 1)) * callIntrin(Intrin::kExpm1, x));
  if (name == "Softsign") return fdiv(x, real(x, 1) + callIntrin(Intrin::kAbs, x));
  if (name == "Softplus")
    return max(x, zero) +
           callIntrin(Intrin::kLog1p, callIntrin(Intrin::kExp, negate(callIntrin(Intrin::kAbs, x))));
  return callIntrin(Intrin::kTanh, x);
}

// What all three layers share: shapes with one step before the first, and the position in time of scan step s
// (from 1).
struct Layout {
  const OpCall& call;
  const TeTensors& in;
  Expr steps, batch, hidden;
  Array<Expr> stateShape;
  DType t;
  explicit Layout(const OpCall& c, const TeTensors& i)
      : call(c), in(i), steps(c.shape(0)[0]), batch(c.shape(0)[1]), hidden(c.shape(1)[1]),
        stateShape{steps + 1, batch, hidden}, t(computeType(c.dtype(0))) {}
  bool reverse() const { return call.i("reverse") != 0; }
  bool hasLengths() const { return call.has(lengthsInput(call)); }
  Expr length(const Expr& b) const { return castTo(kInt64, in[lengthsInput(call)]({b})); }
  // Index into xp of step s; steps beyond the length read step 0 of the data and are dropped by the caller.
  Expr time(const Expr& s, const Expr& b) const {
    if (!reverse()) return s - 1;
    if (!hasLengths()) return steps - s;
    return max(length(b) - s, intImm(0));
  }
  Expr valid(const Expr& s, const Expr& b) const { return hasLengths() ? s <= length(b) : boolImm(true); }
  // Projection of gate g.
  Expr projected(const Array<Var>& i, int64_t g) const {
    return castTo(t, in[0]({time(i[0], i[1]), i[1], Expr(i[2]) + hidden * g}));
  }
  te::Tensor initial(size_t input, const std::string& name) const {
    return te::compute({intImm(1), batch, hidden}, name,
                       [&](const Array<Var>& i) { return castTo(t, in[input]({i[1], i[2]})); });
  }
  // sum_k state[s-1, b, k] * r[g*H + j, k] for all gates in [first, first + count): [T+1, B, count*H].
  te::Tensor recurrent(const te::Tensor& state, int64_t first, int64_t count, const std::string& name,
                       bool previous = true) const {
    return te::compute({steps + 1, batch, hidden * count}, name, [&](const Array<Var>& i) {
      IterVar k = te::reduceAxis(hidden, "k");
      Expr h = castTo(t, state({previous ? Expr(i[0]) - 1 : Expr(i[0]), i[1], k->var}));
      return te::sum(h * castTo(t, in[1]({Expr(i[2]) + hidden * first, k->var})), {k});
    });
  }
  Expr gate(const te::Tensor& dot, const Array<Var>& i, int64_t g) const {
    return dot({i[0], i[1], Expr(i[2]) + hidden * g});
  }
  te::Tensor outputs(const te::Tensor& states) const {
    return te::compute({steps, batch, hidden}, "y", [&](const Array<Var>& i) {
      Expr s = Expr(i[0]) + 1;
      if (reverse()) s = hasLengths() ? length(i[1]) - Expr(i[0]) : steps - Expr(i[0]);
      if (!hasLengths()) return castTo(call.dtype(0), states({s, i[1], i[2]}));
      Expr inside = logicalAnd(s >= intImm(1), Expr(i[0]) < length(i[1]));
      Expr safe = min(max(s, intImm(0)), steps);
      return castTo(call.dtype(0), select(inside, states({safe, i[1], i[2]}), constant(t, 0)));
    });
  }
  te::Tensor last(const te::Tensor& states, const std::string& name) const {
    return te::compute({batch, hidden}, name, [&](const Array<Var>& i) {
      return castTo(call.dtype(0), states({steps, i[0], i[1]}));
    });
  }
};

Result<TeTensors> lstmCompute(const OpCall& call, const TeTensors& in) {
  Layout l(call, in);
  te::Tensor h = te::placeholder(l.stateShape, l.t, "h"), c = te::placeholder(l.stateShape, l.t, "c");
  te::Tensor dot = l.recurrent(h, 0, 4, "lstm_gates");
  bool peep = call.has(4), coupled = call.i("input_forget") != 0;
  auto peephole = [&](const Array<Var>& i, int64_t g, const Expr& cell) {
    return castTo(l.t, in[4]({Expr(i[2]) + l.hidden * g})) * cell;
  };
  auto previous = [&](const te::Tensor& s, const Array<Var>& i) { return s({Expr(i[0]) - 1, i[1], i[2]}); };
  te::Tensor newC = te::compute(l.stateShape, "lstm_c", [&](const Array<Var>& i) {
    Expr old = previous(c, i);
    Expr gi = l.projected(i, 0) + l.gate(dot, i, 0), gf = l.projected(i, 2) + l.gate(dot, i, 2);
    if (peep) {
      gi = gi + peephole(i, 0, old);
      gf = gf + peephole(i, 2, old);
    }
    Expr input = activate(call, 0, gi), forget = coupled ? real(gi, 1) - input : activate(call, 0, gf);
    Expr value = forget * old + input * activate(call, 1, l.projected(i, 3) + l.gate(dot, i, 3));
    return l.hasLengths() ? select(l.valid(i[0], i[1]), value, old) : value;
  });
  te::Tensor newH = te::compute(l.stateShape, "lstm_h", [&](const Array<Var>& i) {
    Expr cell = newC(exprs(i)), go = l.projected(i, 1) + l.gate(dot, i, 1);
    if (peep) go = go + peephole(i, 1, cell);
    Expr value = activate(call, 0, go) * activate(call, 2, cell);
    return l.hasLengths() ? select(l.valid(i[0], i[1]), value, previous(h, i)) : value;
  });
  auto states = te::scan({l.initial(2, "h0"), l.initial(3, "c0")}, {newH, newC}, {h, c}, "lstm");
  return TeTensors{l.outputs(states[0]), l.last(states[0], "y_h"), l.last(states[1], "y_c")};
}

// Gates z, r, h. recurrent_bias [H] of the h gate is inside the reset product with linear_before_reset.
Result<TeTensors> gruCompute(const OpCall& call, const TeTensors& in) {
  Layout l(call, in);
  bool linear = call.i("linear_before_reset") != 0;
  te::Tensor h = te::placeholder(l.stateShape, l.t, "h");
  te::Tensor dot = l.recurrent(h, 0, linear ? 3 : 2, "gru_gates");
  auto bias = [&](const Array<Var>& i) {
    return call.has(3) ? castTo(l.t, in[3]({i[2]})) : constant(l.t, 0);
  };
  te::Tensor inner = dot;
  if (!linear) {
    te::Tensor reset = te::compute(l.stateShape, "gru_reset", [&](const Array<Var>& i) {
      return activate(call, 0, l.projected(i, 1) + l.gate(dot, i, 1)) * h({Expr(i[0]) - 1, i[1], i[2]});
    });
    inner = l.recurrent(reset, 2, 1, "gru_inner", false);
  }
  te::Tensor newH = te::compute(l.stateShape, "gru_h", [&](const Array<Var>& i) {
    Expr old = h({Expr(i[0]) - 1, i[1], i[2]});
    Expr z = activate(call, 0, l.projected(i, 0) + l.gate(dot, i, 0));
    Expr n;
    if (linear) {
      Expr r = activate(call, 0, l.projected(i, 1) + l.gate(dot, i, 1));
      n = activate(call, 1, l.projected(i, 2) + r * (l.gate(dot, i, 2) + bias(i)));
    } else
      n = activate(call, 1, l.projected(i, 2) + (l.gate(inner, i, 0) + bias(i)));
    Expr value = (real(z, 1) - z) * n + z * old;
    return l.hasLengths() ? select(l.valid(i[0], i[1]), value, old) : value;
  });
  auto states = te::scan({l.initial(2, "h0")}, {newH}, {h}, "gru");
  return TeTensors{l.outputs(states[0]), l.last(states[0], "y_h")};
}

Result<TeTensors> rnnCompute(const OpCall& call, const TeTensors& in) {
  Layout l(call, in);
  te::Tensor h = te::placeholder(l.stateShape, l.t, "h");
  te::Tensor dot = l.recurrent(h, 0, 1, "rnn_gate");
  te::Tensor newH = te::compute(l.stateShape, "rnn_h", [&](const Array<Var>& i) {
    Expr value = activate(call, 0, l.projected(i, 0) + l.gate(dot, i, 0));
    return l.hasLengths() ? select(l.valid(i[0], i[1]), value, h({Expr(i[0]) - 1, i[1], i[2]})) : value;
  });
  auto states = te::scan({l.initial(2, "h0")}, {newH}, {h}, "rnn");
  return TeTensors{l.outputs(states[0]), l.last(states[0], "y_h")};
}

} // namespace

void register_recurrent(OpRegistry& r) {
  auto attrs = [](const char* activations) {
    return std::vector<OpAttr>{
        strAttr("activations", activations, "ONNX names, by commas"), floatsAttr("alpha"), floatsAttr("beta"),
        floatAttr("clip", 0, "bound of the activations' arguments; 0: none"), intAttr("reverse", 0)};
  };
  auto lstm = attrs("Sigmoid,Tanh,Tanh"), gru = attrs("Sigmoid,Tanh");
  lstm.push_back(intAttr("input_forget", 0));
  gru.push_back(intAttr("linear_before_reset", 0));
  OpInput lengths = OpInput("lengths", InputKind::kOptional).of(Elements::kInts).rank(1);
  OpInput xp = OpInput("xp").of(Elements::kFloats).rank(3), r2 = OpInput("r").of(Elements::kFloats).rank(2),
          h0 = OpInput("h0").of(Elements::kFloats).rank(2), c0 = OpInput("c0").of(Elements::kFloats).rank(2);
  auto vector = [](const char* name) {
    return OpInput(name, InputKind::kOptional).of(Elements::kFloats).rank(1);
  };
  r.add({.name = "nn.lstm",
         .doc = "Long short-term memory, one direction, input projections given. ONNX LSTM.",
         .inputs = {xp, r2, h0, c0, vector("peepholes"), lengths},
         .attrs = lstm,
         .infer = std::bind_front(recurrentInfer, Layer{4, 2, 3, "the peepholes do not fit the hidden size"}),
         .compute = lstmCompute,
         .tests = {"float32[4,2,12] float32[12,3] float32[2,3] float32[2,3]",
                   "float32[4,2,12] float32[12,3] float32[2,3] float32[2,3] reverse=1",
                   "float32[0,2,4] float32[4,1] float32[2,1] float32[2,1]"}});
  r.add({.name = "nn.gru",
         .doc = "Gated recurrent unit, one direction, input projections given. ONNX GRU.",
         .inputs = {xp, r2, h0, vector("recurrent_bias"), lengths},
         .attrs = gru,
         .infer = std::bind_front(recurrentInfer,
                                  Layer{3, 1, 1, "the recurrent bias does not fit the hidden size"}),
         .compute = gruCompute,
         .tests = {"float32[4,2,9] float32[9,3] float32[2,3]",
                   "float32[4,2,9] float32[9,3] float32[2,3] float32[3] linear_before_reset=1"}});
  r.add({.name = "nn.rnn",
         .doc = "Simple recurrence, one direction, input projections given. ONNX RNN.",
         .inputs = {xp, r2, h0, lengths},
         .attrs = attrs("Tanh"),
         .infer = std::bind_front(recurrentInfer, Layer{1, 1}),
         .compute = rnnCompute,
         .tests = {"float32[4,2,3] float32[3,3] float32[2,3]"}});
}

} // namespace bevel::ops
