// Naive host evaluation of the operators of src/ops/pool.cc.
#include "ops/oracle.h"

namespace bevel::test {
namespace {

struct Window {
  Ints kernel, strides, dilation, before, after;
  size_t channel = 1, spatial = 2; // axes of the data; spatial: the first of them
  size_t rank() const { return kernel.size(); }
};

Result<Window> windowOf(const OpCall& call) {
  Window w;
  w.kernel = call.ints("kernel");
  size_t n = w.kernel.size();
  if (call.rank(0) != n + 2 || n == 0)
    return call.invalid(fmt::format("a kernel of {} dimensions for rank {}", n, call.rank(0)));
  if (std::string layout = call.s("data_layout"); layout == "NHWC")
    w.channel = n + 1, w.spatial = 1;
  else if (call.hasAttr("data_layout") && layout != "NCHW")
    return call.invalid("unknown data_layout " + layout);
  auto get = [&](const char* name, size_t size, int64_t otherwise) {
    Ints v = call.ints(name);
    return v.empty() ? Ints(size, otherwise) : v;
  };
  w.strides = get("strides", n, 1);
  w.dilation = get("dilation", n, 1);
  Ints pads = get("padding", 2 * n, 0);
  if (w.strides.size() != n || w.dilation.size() != n || pads.size() != 2 * n)
    return call.invalid("strides, dilation or padding do not fit the kernel");
  constexpr int64_t kMost = int64_t(1) << 31;
  for (size_t d = 0; d < n; ++d) {
    if (w.kernel[d] < 1 || w.strides[d] < 1 || w.dilation[d] < 1 || pads[d] < 0 || pads[n + d] < 0)
      return call.invalid("kernel, strides and dilation must be positive, padding not negative");
    if (w.kernel[d] > kMost || w.strides[d] > kMost || w.dilation[d] > kMost || pads[d] > kMost ||
        pads[n + d] > kMost)
      return call.invalid("a window attribute is too large");
    w.before.push_back(pads[d]);
    w.after.push_back(pads[n + d]);
  }
  return w;
}

// Calls f(offset, spatial position) for the cells of a window inside the input.
void forEachTap(const Window& w, const Ints& shape, const Ints& i,
                FunctionRef<void(int64_t, const Ints&)> f) {
  Ints strides = stridesOf(shape), at(w.rank());
  forEachIndex(w.kernel, [&](const Ints& t) {
    int64_t o = i[0] * strides[0] + i[w.channel] * strides[w.channel];
    for (size_t d = 0; d < w.rank(); ++d) {
      at[d] = i[w.spatial + d] * w.strides[d] + t[d] * w.dilation[d] - w.before[d];
      if (at[d] < 0 || at[d] >= shape[w.spatial + d]) return;
      o += at[d] * strides[w.spatial + d];
    }
    f(o, at);
  });
}

Result<HostTensors> poolEval(const OpCall& call, const HostTensors& in) {
  BEVEL_TRY(Window w, windowOf(call));
  bool average = call.op.name == "nn.avg_pool", include = average && call.i("count_include_pad") != 0;
  auto y = TensorObject::zeros(in[0]->dtype, hostShape(call)), where = TensorObject::zeros(kInt64, y->shape);
  const Ints& shape = in[0]->shape;
  int64_t k = 0;
  forEachIndex(y->shape, [&](const Ints& i) {
    double total = 0, best = -INFINITY;
    int64_t cells = 0, bestAt = -1;
    forEachTap(w, shape, i, [&](int64_t o, const Ints&) {
      double v = in[0]->asDouble(o);
      total += v;
      ++cells;
      if (bestAt < 0 || v > best || (std::isnan(v) && !std::isnan(best))) best = v, bestAt = o;
    });
    if (include) {
      cells = 1;
      for (size_t d = 0; d < w.rank(); ++d) {
        int64_t inRange = 0;
        for (int64_t t = 0; t < w.kernel[d]; ++t)
          inRange += i[w.spatial + d] * w.strides[d] + t * w.dilation[d] - w.before[d] <
                     shape[w.spatial + d] + w.after[d];
        cells *= inRange;
      }
    }
    if (average)
      y->setDouble(k, total / double(cells));
    else if (bestAt >= 0)
      copyElement(*y, k, *in[0], bestAt);
    else
      y->dtype.isFloat() ? y->setDouble(k, -INFINITY) : y->setInt(k, minValue(y->dtype));
    where->setInt(k++, bestAt < 0 ? INT64_MAX : bestAt);
  });
  if (call.op.name != "nn.max_pool_with_indices") return HostTensors{y};
  if (call.i("storage_order") != 0)
    return call.unsupported("column-major indices are computed by compiled code only");
  return HostTensors{y, where};
}

} // namespace

void add_pool(Oracles& oracles) {
  oracles["nn.max_pool"] = poolEval;
  oracles["nn.avg_pool"] = poolEval;
  oracles["nn.max_pool_with_indices"] = poolEval;
}

} // namespace bevel::test
