// The course's programs in C++: `course [NUMBER…]` runs those with these numbers, all of them without one.
#include "support.h"

#include "ir/render.h"

#include <cstdlib>
#include <fmt/format.h>

namespace {

struct Entry {
  int number;
  const char* title;
  bevel::Status (*run)();
};

const Entry kPrograms[] = {
    {2, "mm_relu in five forms", bevel::course::mmRelu},
    {3, "transform(jfactor)", bevel::course::transform},
    {7, "bmm_relu scheduled step by step to a target", bevel::course::bmmRelu},
    {8, "the network on the host, and by destination-passing calls", bevel::course::mlp},
    {9, "the network by tensor programs of symbolic shape", bevel::course::mlpSymbolic},
    {10, "the network by registered packed functions", bevel::course::mlpEnv},
    {11, "a mixture of both, with bound parameters", bevel::course::mlpMixed},
};

} // namespace

int main(int argc, char** argv) {
  int failed = 0, ran = 0;
  for (const Entry& e : kPrograms) {
    bool wanted = argc == 1;
    for (int i = 1; i < argc; ++i) wanted |= std::atoi(argv[i]) == e.number;
    if (!wanted) continue;
    fmt::print("{}. {}\n", e.number, e.title);
    ++ran;
    if (bevel::Status status = e.run(); !status) {
      fmt::print("{}\n", render(status.error()));
      ++failed;
    }
  }
  if (!ran) fmt::print("usage: course [NUMBER…]\n");
  return failed || !ran;
}
