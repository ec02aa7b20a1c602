// Naive host evaluation of the operators of src/ops/conv.cc.
#include "ops/oracle.h"

namespace bevel::test {
namespace {

// Attributes of a window: per spatial dimension.
struct Window {
  Ints kernel, strides, dilation, before, after;
  size_t rank() const { return kernel.size(); }
};

Result<Window> windowOf(const OpCall& call, const Ints& kernel) {
  size_t n = kernel.size();
  auto get = [&](const char* name, size_t size, int64_t otherwise) {
    Ints v = call.ints(name);
    return v.empty() ? Ints(size, otherwise) : v.size() == 1 && size > 1 ? Ints(size, v[0]) : v;
  };
  Ints pads = call.ints("padding");
  if (pads.size() == n && n > 0)
    pads.insert(pads.end(), pads.begin(), pads.begin() + ptrdiff_t(n)); // symmetric
  if (pads.empty()) pads.assign(2 * n, 0);
  Window w{kernel, get("strides", n, 1), get("dilation", n, 1), {}, {}};
  if (w.strides.size() != n || w.dilation.size() != n || pads.size() != 2 * n)
    return call.invalid(fmt::format("strides, dilation and padding must fit {} spatial dimensions", n));
  auto tooLarge = [](int64_t v) { return v > int64_t(1) << 31 || v < -(int64_t(1) << 31); };
  for (size_t d = 0; d < n; ++d) {
    if (kernel[d] < 1 || w.strides[d] < 1 || w.dilation[d] < 1)
      return call.invalid("kernel, strides and dilation must be positive");
    if (tooLarge(kernel[d]) || tooLarge(w.strides[d]) || tooLarge(w.dilation[d]) || tooLarge(pads[d]) ||
        tooLarge(pads[n + d]))
      return call.invalid("a window attribute is too large");
    w.before.push_back(pads[d]);
    w.after.push_back(pads[n + d]);
  }
  return w;
}

int64_t spatialRank(const OpCall& call) {
  return call.op.name[call.op.name.size() - 2] - '0';
} // …conv2d, …transpose2d

// Positions of the axes in the data.
struct Axes {
  size_t channel = 1, spatial = 2; // spatial: the first of them
};

Axes axesOf(const OpCall& call) {
  return call.s("data_layout") == "NHWC" ? Axes{size_t(spatialRank(call)) + 1, 1} : Axes{};
}

// A weight of one input channel a group, output channels last: [kernel…, O].
bool outputsLast(const OpCall& call) {
  return call.s("kernel_layout") == "HWO";
}

Result<Window> convWindow(const OpCall& call) {
  size_t n = size_t(spatialRank(call));
  bool hwo = outputsLast(call);
  if (std::string layout = call.s("data_layout"); layout != "NCHW" && layout != "NHWC")
    return call.invalid("unknown data_layout " + layout);
  if (std::string layout = call.s("kernel_layout"); call.hasAttr("kernel_layout") && layout != "OIHW" && !hwo)
    return call.invalid("unknown kernel_layout " + layout);
  if (call.rank(0) != n + 2 || call.rank(1) != n + (hwo ? 1 : 2))
    return call.invalid(fmt::format("input and weight must have rank {}", n + 2));
  Ints kernel;
  for (size_t d = 0; d < n; ++d) {
    auto k = asConst(call.shape(1)[hwo ? d : d + 2]);
    if (!k) return call.unsupported("a symbolic kernel size");
    kernel.push_back(*k);
  }
  return windowOf(call, kernel);
}

DType resultOf(const OpCall& call) {
  DType t = call.dtypeAttr("out_dtype");
  return t.isVoid() ? call.dtype(0) : t;
}

Result<HostTensors> convEval(const OpCall& call, const HostTensors& in) {
  BEVEL_TRY(Window w, convWindow(call));
  auto y = TensorObject::zeros(resultOf(call), hostShape(call));
  const Ints &xs = in[0]->shape, &ks = in[1]->shape;
  Ints xStrides = stridesOf(xs), kStrides = stridesOf(ks), taps = {1};
  Axes axis = axesOf(call);
  bool hwo = outputsLast(call);
  if (!hwo)
    taps[0] = ks[1];
  else
    kStrides.insert(kStrides.begin(), {1, 0}); // as strides of [O, 1, kernel…]
  taps.insert(taps.end(), w.kernel.begin(), w.kernel.end());
  int64_t perOut = (hwo ? ks.back() : ks[0]) / call.i("groups"), at = 0;
  forEachIndex(y->shape, [&](const Ints& i) {
    double real = 0;
    uint64_t integer = 0;
    forEachIndex(taps, [&](const Ints& t) {
      int64_t oc = i[axis.channel], ko = oc * kStrides[0] + t[0] * kStrides[1];
      int64_t xo = i[0] * xStrides[0] + (oc / perOut * taps[0] + t[0]) * xStrides[axis.channel];
      for (size_t d = 0; d < w.rank(); ++d) {
        int64_t p = i[axis.spatial + d] * w.strides[d] + t[d + 1] * w.dilation[d] - w.before[d];
        if (p < 0 || p >= xs[axis.spatial + d]) return;
        xo += p * xStrides[axis.spatial + d];
        ko += t[d + 1] * kStrides[d + 2];
      }
      if (y->dtype.isFloat())
        real += in[0]->asDouble(xo) * in[1]->asDouble(ko);
      else
        integer += uint64_t(in[0]->asInt(xo)) * uint64_t(in[1]->asInt(ko));
    });
    y->dtype.isFloat() ? y->setDouble(at++, real) : y->setInt(at++, int64_t(integer));
  });
  return HostTensors{y};
}

// Scatters each input element: another order of loops than compute.
Result<HostTensors> transposeEval(const OpCall& call, const HostTensors& in) {
  BEVEL_TRY(Window w, convWindow(call));
  auto y = TensorObject::zeros(in[0]->dtype, hostShape(call));
  std::vector<double> total(size_t(y->size()), 0);
  const Ints &ks = in[1]->shape, &ys = y->shape;
  Ints kStrides = stridesOf(ks), yStrides = stridesOf(ys), taps(ks.begin() + 1, ks.end());
  Axes axis = axesOf(call);
  int64_t perIn = ks[0] / call.i("groups"), at = 0;
  forEachIndex(in[0]->shape, [&](const Ints& i) {
    double value = in[0]->asDouble(at++);
    forEachIndex(taps, [&](const Ints& t) {
      int64_t ic = i[axis.channel], ko = ic * kStrides[0] + t[0] * kStrides[1];
      int64_t yo = i[0] * yStrides[0] + (ic / perIn * ks[1] + t[0]) * yStrides[axis.channel];
      for (size_t d = 0; d < w.rank(); ++d) {
        int64_t p = i[axis.spatial + d] * w.strides[d] + t[d + 1] * w.dilation[d] - w.before[d];
        if (p < 0 || p >= ys[axis.spatial + d]) return;
        yo += p * yStrides[axis.spatial + d];
        ko += t[d + 1] * kStrides[d + 2];
      }
      total[size_t(yo)] += value * in[1]->asDouble(ko);
    });
  });
  for (int64_t k = 0; k < y->size(); ++k) y->setDouble(k, total[size_t(k)]);
  return HostTensors{y};
}

} // namespace

void add_conv(Oracles& oracles) {
  oracles["nn.conv1d"] = convEval;
  oracles["nn.conv2d"] = convEval;
  oracles["nn.conv3d"] = convEval;
  oracles["nn.conv_transpose1d"] = transposeEval;
  oracles["nn.conv_transpose2d"] = transposeEval;
  oracles["nn.conv_transpose3d"] = transposeEval;
}

} // namespace bevel::test
