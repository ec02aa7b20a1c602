// See support.h.
#include "support.h"

#include "driver/bench.h"
#include "driver/values.h"
#include "graph/passes/passes.h"
#include "ir/structural.h"
#include "loop/lower.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace bevel::course {
namespace {

Result<HostArray> readArray(const std::string& name) {
  BEVEL_TRY(Tensor t, readNpy(file("data/" + name + ".npy")));
  HostArray out = TensorObject::zeros(t->dtype, t->shape);
  std::copy(t->bytes(), t->bytes() + t->byteSize(), out->mutableBytes());
  return out;
}

// z = x w' + b for x of 1xm and w of nxm.
HostArray linear(const HostArray& x, const HostArray& w, const HostArray& b) {
  int64_t n = w->shape[0], m = w->shape[1];
  HostArray z = zeros({1, n});
  for (int64_t j = 0; j < n; ++j) {
    float sum = 0;
    for (int64_t k = 0; k < m; ++k) sum += data(x)[k] * data(w)[j * m + k];
    data(z)[j] = sum + data(b)[j];
  }
  return z;
}

} // namespace

HostArray zeros(std::vector<int64_t> shape) {
  return TensorObject::zeros(kFloat32, std::move(shape));
}

HostArray randomArray(std::vector<int64_t> shape, uint64_t seed) {
  HostArray out = zeros(shape);
  Tensor values = *randomTensor(kFloat32, shape, seed); // these shapes are small
  std::copy(values->bytes(), values->bytes() + values->byteSize(), out->mutableBytes());
  return out;
}

Status expectClose(const std::string& what, const HostArray& got, const HostArray& want) {
  if (got->shape != want->shape) return fail(ErrorCode::kInvalid, what + ": another shape");
  double worst = 0, scale = 0;
  for (int64_t i = 0; i < want->size(); ++i) {
    double difference = std::abs(got->asDouble(i) - want->asDouble(i));
    if (!(difference <= worst)) worst = difference; // also a NaN
    scale = std::max(scale, std::abs(want->asDouble(i)));
  }
  fmt::print("  {:44} largest difference {:.1e}\n", what, worst);
  if (!(worst <= 1e-5 * (1 + scale))) return fail(ErrorCode::kInvalid, what + ": the results differ");
  return {};
}

Status expectEqual(const std::string& what, const NodeRef& got, const NodeRef& want) {
  if (!structuralEqual(got, want))
    return fail(Error(ErrorCode::kInvalid, what + ": not equal").note(firstDifference(got, want)));
  fmt::print("  {:44} structurally equal\n", what);
  return {};
}

std::string file(const std::string& name) {
  return std::string(BEVEL_SOURCE_DIR) + "/examples/course/" + name;
}

Result<Module> readExample(const std::string& name) {
  return readModel(file(name), BuildOptions());
}

PrimFunc program(const Module& module, const std::string& name) {
  return cast<PrimFuncNode>(module->find(name));
}

Result<Kernel> Kernel::build(const PrimFunc& program) {
  BuildOptions options;
  BEVEL_TRY(Module module, callInPlace(withFunction(make<const ModuleNode>(), "program", program)));
  BEVEL_TRY(module, runPasses(lowerPasses(options.target), module));
  BEVEL_TRY(Compiled compiled, emitModule(module, options));
  BEVEL_TRY(auto loaded, load(compiled));
  Kernel out;
  BEVEL_TRY(out.session_, Session::create(loaded, 0));
  return out;
}

Status Kernel::operator()(const std::vector<HostArray>& arguments) const {
  return session_->callInPlace(0, {arguments.begin(), arguments.end()});
}

Result<double> Kernel::time(const std::vector<HostArray>& arguments) const {
  BEVEL_TRY(auto times, timeRuns([&] { return (*this)(arguments); }, 0.05));
  return times[times.size() / 2];
}

Result<Data> readData() {
  Data d;
  BEVEL_TRY(d.w0, readArray("w0"));
  BEVEL_TRY(d.b0, readArray("b0"));
  BEVEL_TRY(d.w1, readArray("w1"));
  BEVEL_TRY(d.b1, readArray("b1"));
  BEVEL_TRY(HostArray images, readArray("images"));
  BEVEL_TRY(HostArray labels, readArray("labels"));
  int64_t pixels = images->shape[1] * images->shape[2];
  for (int64_t i = 0; i < images->shape[0]; ++i) {
    HostArray x = zeros({1, pixels});
    for (int64_t k = 0; k < pixels; ++k) data(x)[k] = float(images->asInt(i * pixels + k)) / 255;
    d.pictures.push_back(x);
    d.labels.push_back(labels->asInt(i));
  }
  return d;
}

HostArray hostMlp(const Data& d, const HostArray& x) {
  HostArray hidden = linear(x, d.w0, d.b0);
  for (int64_t i = 0; i < hidden->size(); ++i) data(hidden)[i] = std::max(data(hidden)[i], 0.0f);
  return linear(hidden, d.w1, d.b1);
}

int64_t argmax(const HostArray& scores) {
  auto values = scores->view<float>();
  return std::max_element(values.begin(), values.end()) - values.begin();
}

Result<Machine> Machine::create(const Module& module) {
  Machine out;
  BEVEL_TRY(Compiled compiled, compileModule(module, BuildOptions(), "main"));
  BEVEL_TRY(out.program_, load(compiled));
  if (int32_t status = bevel_instance_create(out.program_->model(), nullptr, &out.instance_))
    return fail(runtimeError(status));
  return out;
}

Machine::Machine(Machine&& other) noexcept
    : program_(std::move(other.program_)), instance_(std::exchange(other.instance_, nullptr)) {}

Machine::~Machine() {
  if (instance_) bevel_instance_release(instance_);
}

Result<HostArray> Machine::operator()(const std::vector<HostArray>& inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    DLTensor in = view(inputs[i]);
    if (int32_t status = bevel_set_input(instance_, int32_t(i), &in)) return fail(runtimeError(status));
  }
  if (int32_t status = bevel_run(instance_)) return fail(runtimeError(status));
  const DLTensor* y = bevel_output(instance_, 0);
  HostArray out = zeros({y->shape, y->shape + y->ndim});
  std::copy_n(static_cast<const float*>(y->data), out->size(), data(out));
  return out;
}

DLTensor view(const HostArray& a) {
  return {a->mutableBytes(),
          {kDLCPU, 0},
          int32_t(a->shape.size()),
          {kDLFloat, 32, 1},
          a->shape.data(),
          nullptr,
          0};
}

Status expectHostMlp(const Data& d, const std::function<Result<HostArray>(const HostArray& x)>& predict) {
  size_t right = 0;
  HostArray got = zeros({int64_t(d.pictures.size()), d.b1->shape[0]}), want = zeros(got->shape);
  for (size_t i = 0; i < d.pictures.size(); ++i) {
    BEVEL_TRY(HostArray scores, predict(d.pictures[i]));
    HostArray host = hostMlp(d, d.pictures[i]);
    std::copy_n(data(scores), scores->size(), data(got) + int64_t(i) * scores->size());
    std::copy_n(data(host), host->size(), data(want) + int64_t(i) * host->size());
    right += argmax(scores) == d.labels[i];
  }
  BEVEL_CHECK(expectClose("scores against the host's", got, want));
  fmt::print("  {:44} {} of {} pictures\n", "recognised", right, d.pictures.size());
  return {};
}

} // namespace bevel::course
