// Course program 9 (3): p09_mlp_symbolic.py, a module of tensor programs of symbolic shape that a graph
// function calls. It is built, given to the virtual machine, and called; n, m and k follow from the arrays.
#include "support.h"

namespace bevel::course {

Status mlpSymbolic() {
  BEVEL_TRY(Data d, readData());
  BEVEL_TRY(Module module, readExample("p09_mlp_symbolic.py"));
  BEVEL_TRY(Machine machine, Machine::create(module));
  return expectHostMlp(d, [&](const HostArray& x) { return machine({x, d.w0, d.b0, d.w1, d.b1}); });
}

} // namespace bevel::course
