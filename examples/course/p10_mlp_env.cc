// Course program 10 (3): p10_mlp_env.py calls `env.linear` and `env.relu`, which only this program knows.
// Registering again with override puts other functions in their place, for models that run already too.
#include "env.h"

namespace bevel::course {
namespace {

int32_t refuse(const bevel_ctx*, void*, const bevel_value*, int32_t, bevel_value*) {
  return bevel_fail(BEVEL_ERROR_REFUSED, "not this one");
}

} // namespace

Status mlpEnv() {
  BEVEL_TRY(Data d, readData());
  BEVEL_TRY(Module module, readExample("p10_mlp_env.py"));
  BEVEL_TRY(Machine machine, Machine::create(module));
  auto predict = [&](const HostArray& x) { return machine({x, d.w0, d.b0, d.w1, d.b1}); };

  if (int32_t status = bevel_register_packed("env.linear", refuse, nullptr, nullptr, 1))
    return fail(runtimeError(status));
  if (predict(d.pictures[0])) return fail(ErrorCode::kInternal, "the function that refuses was not called");
  BEVEL_CHECK(registerEnv());
  BEVEL_CHECK(expectHostMlp(d, predict));
  if (linearCalls() != 2 * int(d.pictures.size()) || reluCalls() != int(d.pictures.size()))
    return fail(ErrorCode::kInternal, "the user's functions were not called as often as the module says");
  return {};
}

} // namespace bevel::course
