// Course program 8 (3): the network by plain loops on the host; then in the way in which graph functions call
// tensor programs: the caller makes the array for the result and passes it last. Here the functions are
// packed ones, found by name, and the arrays go to them by DLPack, without copies. p08_mlp.py is the same
// network in operators.
#include "env.h"

#include <fmt/format.h>

namespace bevel::course {
namespace {

// The array as a value of the run time. It stays the host's: the deleter gives the reference back.
struct Shared {
  HostArray array;
  DLManagedTensor managed;
};

Result<bevel_value> share(const HostArray& a) {
  auto* shared = new Shared{a, {}};
  shared->managed = {view(shared->array), shared,
                     [](DLManagedTensor* m) { delete static_cast<Shared*>(m->manager_ctx); }};
  bevel_value out = {};
  out.kind = BEVEL_TENSOR;
  if (int32_t status = bevel_tensor_from_dlpack(&shared->managed, &out.v.tensor)) {
    delete shared;
    return fail(runtimeError(status));
  }
  return out;
}

/// call_tir of the course: makes the result, passes it as last argument.
Result<HostArray> callDps(const char* name, std::vector<HostArray> arrays, std::vector<int64_t> shape) {
  HostArray result = zeros(std::move(shape));
  arrays.push_back(result);
  std::vector<bevel_value> args;
  int32_t status = BEVEL_OK;
  for (const HostArray& a : arrays) {
    BEVEL_TRY(bevel_value v, share(a));
    args.push_back(v);
  }
  bevel_value nothing = {};
  status = bevel_call_packed(name, args.data(), int32_t(args.size()), &nothing);
  for (bevel_value& v : args) bevel_release(&v);
  if (status) return fail(runtimeError(status));
  return result;
}

} // namespace

Status mlp() {
  BEVEL_TRY(Data d, readData());
  BEVEL_CHECK(registerEnv());
  BEVEL_CHECK(expectHostMlp(d, [&](const HostArray& x) -> Result<HostArray> {
    BEVEL_TRY(HostArray lv0, callDps("env.linear", {x, d.w0, d.b0}, {1, 128}));
    BEVEL_TRY(HostArray lv1, callDps("env.relu", {lv0}, {1, 128}));
    return callDps("env.linear", {lv1, d.w1, d.b1}, {1, 10});
  }));
  BEVEL_TRY(Module module, readExample("p08_mlp.py"));
  BEVEL_TRY(Machine machine, Machine::create(module));
  fmt::print("  in operators:\n");
  return expectHostMlp(d, [&](const HostArray& x) { return machine({x, d.w0, d.b0, d.w1, d.b1}); });
}

} // namespace bevel::course
