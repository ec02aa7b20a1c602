// What the course's programs share: arrays, comparing, timing, the data, and the examples' text modules.
#pragma once

#include "driver/compile.h"
#include "driver/session.h"

#include <string>
#include <vector>

namespace bevel::course {

using HostArray = Ref<TensorObject>; // float32, row-major

HostArray zeros(std::vector<int64_t> shape);
/// Values in [-1, 1) from a seed.
HostArray randomArray(std::vector<int64_t> shape, uint64_t seed);
/// Element i, to be read or written.
inline float* data(const HostArray& a) {
  return a->mutableView<float>().data();
}

/// Fails unless the arrays agree: |a - b| <= 1e-5 * (1 + max |b|). Prints the largest difference.
Status expectClose(const std::string& what, const HostArray& got, const HostArray& want);
/// Fails with the first difference unless two modules or programs are the same up to names.
Status expectEqual(const std::string& what, const NodeRef& got, const NodeRef& want);

/// Path of a file of this folder.
std::string file(const std::string& name);
/// A text module of this folder, and a tensor program of it.
Result<Module> readExample(const std::string& name);
PrimFunc program(const Module& module, const std::string& name);

/// Machine code of a tensor program as it is: no schedule is added. It writes into its arguments.
class Kernel {
public:
  static Result<Kernel> build(const PrimFunc& program);
  Status operator()(const std::vector<HostArray>& arguments) const;
  /// Median time of a call, in milliseconds.
  Result<double> time(const std::vector<HostArray>& arguments) const;

private:
  std::shared_ptr<Session> session_;
};

/// The trained network and the pictures of data/ (make_data.py).
struct Data {
  HostArray w0, b0, w1, b1;
  std::vector<HostArray> pictures; // 1x784 each
  std::vector<int64_t> labels;
};
Result<Data> readData();

/// relu(x w0' + b0) w1' + b1 by plain loops on the host: what every other form is compared with.
HostArray hostMlp(const Data& d, const HostArray& x);
/// Index of the largest element.
int64_t argmax(const HostArray& scores);

/// Compiles `main` of a module, and calls it with arrays by DLPack, without copying.
class Machine {
public:
  static Result<Machine> create(const Module& module);
  Result<HostArray> operator()(const std::vector<HostArray>& inputs);
  Machine(Machine&& other) noexcept;
  ~Machine();

private:
  Machine() = default;
  std::shared_ptr<Executable> program_;
  bevel_instance* instance_ = nullptr;
};
/// The array as DLPack's borrowed view; `a` must outlive it.
DLTensor view(const HostArray& a);

/// Runs the network on all pictures, expects the host's scores, and prints the accuracy.
Status expectHostMlp(const Data& d, const std::function<Result<HostArray>(const HostArray& x)>& predict);

// The programs, one file each.
Status mmRelu();      // p02_mm_relu.cc
Status transform();   // p03_transform.cc
Status bmmRelu();     // p07_bmm_relu.cc
Status mlp();         // p08_mlp.cc
Status mlpSymbolic(); // p09_mlp_symbolic.cc
Status mlpEnv();      // p10_mlp_env.cc
Status mlpMixed();    // p11_mlp_mixed.cc

} // namespace bevel::course
