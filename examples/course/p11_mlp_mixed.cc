// Course program 11 (3): p11_mlp_mixed.py, one layer a tensor program, the rest packed functions of the
// user's. The parameters are bound to the trained ones first, so that the compiler knows them as constants
// and what is left is main(x).
#include "env.h"

#include "graph/block_builder.h"

namespace bevel::course {

Status mlpMixed() {
  BEVEL_TRY(Data d, readData());
  BEVEL_CHECK(registerEnv());
  BEVEL_TRY(Module module, readExample("p11_mlp_mixed.py"));
  BEVEL_TRY(module, bindParams(module, "main", {{"w0", d.w0}, {"b0", d.b0}, {"w1", d.w1}, {"b1", d.b1}}));
  BEVEL_TRY(Machine machine, Machine::create(module));
  BEVEL_CHECK(expectHostMlp(d, [&](const HostArray& x) { return machine({x}); }));
  if (linearCalls() != int(d.pictures.size()) || reluCalls() != int(d.pictures.size()))
    return fail(ErrorCode::kInternal, "the user's functions were not called as often as the module says");
  return {};
}

} // namespace bevel::course
