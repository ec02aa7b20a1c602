// See session.h.
#include "driver/session.h"

#include "driver/commands.h"

#include <fmt/format.h>

namespace bevel {
namespace {

SessionParam paramOf(const bevel_param& p) {
  SessionParam out;
  out.name = p.name ? p.name : "";
  out.kind = p.kind;
  out.dtype = fromRuntimeDtype(p.dtype);
  out.rank = p.rank;
  out.hasDefault = p.has_default;
  for (int32_t i = 0; i < p.rank; ++i) {
    out.dims.push_back(p.dims[i]);
    out.dimNames.push_back(p.dim_names && p.dim_names[i] ? p.dim_names[i] : "");
  }
  return out;
}

} // namespace

std::string SessionParam::str() const {
  static const char* const kinds[] = {"tensor", "list", "optional", "any"};
  if (kind != BEVEL_PARAM_TENSOR) return kinds[kind];
  if (rank < 0) return dtype.str() + "[…]";
  std::string out;
  for (size_t i = 0; i < dims.size(); ++i) {
    out += out.empty() ? "" : ", ";
    out += dims[i] >= 0 ? std::to_string(dims[i]) : dimNames[i].empty() ? "?" : dimNames[i];
  }
  return dtype.str() + "[" + out + "]";
}

Result<std::unique_ptr<Session>> Session::create(std::shared_ptr<Executable> program, int threads,
                                                 bool profile) {
  std::unique_ptr<Session> out(new Session());
  out->program_ = std::move(program);
  bevel_model* model = out->program_->model();
  bevel_options options = {};
  options.size = sizeof options;
  options.num_threads = threads;
  options.profile = profile;
  BEVEL_CHECK(runtimeStatus(bevel_instance_create(model, &options, &out->instance_)));
  for (bool input : {true, false})
    for (int32_t i = 0; i < (input ? bevel_model_num_inputs : bevel_model_num_outputs)(model, 0); ++i) {
      bevel_param p = {};
      BEVEL_CHECK(runtimeStatus((input ? bevel_model_input : bevel_model_output)(model, 0, i, &p)));
      (input ? out->inputs_ : out->outputs_).push_back(paramOf(p));
    }
  out->set_.resize(out->inputs_.size());
  return out;
}

Session::~Session() {
  if (instance_) bevel_instance_release(instance_);
}

Result<size_t> Session::inputIndex(const std::string& name) const {
  std::string known;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].name == name) return i;
    known += (i ? ", " : "") + inputs_[i].name;
  }
  return fail(ErrorCode::kUsage, fmt::format("there is no input '{}'; inputs are: {}", name, known));
}

Status Session::setInput(size_t index, const HostValue& value) {
  BEVEL_TRY(bevel_value v, toRuntime(value));
  int32_t status = bevel_set_input_value(instance_, int32_t(index), &v);
  bevel_release(&v);
  BEVEL_CHECK(runtimeStatus(status));
  set_[index] = true;
  const SessionParam& p = inputs_[index];
  if (value.tensor && value.tensor->shape.size() == p.dimNames.size())
    for (size_t d = 0; d < p.dimNames.size(); ++d)
      if (!p.dimNames[d].empty()) known_.emplace(p.dimNames[d], value.tensor->shape[d]);
  return {};
}

Status Session::setFiles(const std::vector<std::string>& named) {
  for (const std::string& text : named) {
    BEVEL_TRY(auto pair, keyValue(text, "--input"));
    BEVEL_TRY(size_t index, inputIndex(pair.first));
    BEVEL_TRY(HostValue value, readValue(pair.second, inputs_[index].kind));
    BEVEL_CHECK(setInput(index, value));
  }
  return {};
}

Status Session::setRandom(uint64_t seed, std::map<std::string, int64_t> dims) {
  for (const auto& [name, extent] : known_) dims[name] = extent;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const SessionParam& p = inputs_[i];
    if (set_[i] || p.hasDefault) continue;
    if (p.kind != BEVEL_PARAM_TENSOR || p.rank < 0 || p.dtype.isString())
      return fail(ErrorCode::kUsage,
                  fmt::format("no random values can be made for input '{}' ({})", p.name, p.str()));
    std::vector<int64_t> shape;
    for (size_t d = 0; d < p.dims.size(); ++d) {
      auto it = dims.find(p.dimNames[d]);
      shape.push_back(p.dims[d] >= 0 ? p.dims[d] : it != dims.end() ? it->second : 1);
    }
    uint64_t state = seed * 1000003 + i;
    auto tensor = randomTensor(p.dtype, shape, state);
    if (!tensor) return fail(std::move(tensor.error()).note(fmt::format("for input '{}'", p.name)));
    BEVEL_CHECK(setInput(i, {*tensor, false, {}}));
  }
  return {};
}

Status Session::run() {
  return runtimeStatus(bevel_run(instance_));
}

Result<HostValue> Session::output(size_t index) const {
  bevel_value value = {};
  BEVEL_CHECK(runtimeStatus(bevel_output_value(instance_, int32_t(index), &value)));
  auto out = fromRuntime(value);
  bevel_release(&value);
  return out;
}

Status Session::callInPlace(int32_t function, const std::vector<Tensor>& buffers,
                            const std::vector<int64_t>& scalars) {
  const int64_t numScalars = int64_t(scalars.size());
  std::vector<DLTensor> views; // borrowed, not copied: what the call writes is in the buffers
  auto add = [&](const void* data, DType dtype, const int64_t* shape, int32_t rank) {
    views.push_back({const_cast<void*>(data),
                     {kDLCPU, 0},
                     rank,
                     toRuntimeDtype(dtype),
                     const_cast<int64_t*>(shape),
                     nullptr,
                     0});
  };
  for (const Tensor& t : buffers) add(t->bytes(), t->dtype, t->shape.data(), int32_t(t->shape.size()));
  if (numScalars) add(scalars.data(), kInt64, &numScalars, 1);
  std::vector<bevel_value> args;
  for (const DLTensor& view : views) {
    args.push_back({BEVEL_VIEW, 0, {}});
    args.back().v.view = &view;
  }
  return runtimeStatus(bevel_call(instance_, function, args.data(), int32_t(args.size()), nullptr, 0));
}

} // namespace bevel
