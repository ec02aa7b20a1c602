// A loaded program with its inputs and outputs, as `run` and `bench` use it.
#pragma once

#include "driver/compile.h"
#include "driver/values.h"

namespace bevel {

struct SessionParam {
  std::string name;
  int32_t kind = 0; // BEVEL_PARAM_*
  DType dtype;
  int32_t rank = -1;
  std::vector<int64_t> dims; // -1: not constant
  std::vector<std::string> dimNames;
  bool hasDefault = false;
  std::string str() const; // "float32[batch, 3, 224, 224]"
};

class Session {
public:
  /// `threads`: at run time; 0: all processors.
  static Result<std::unique_ptr<Session>> create(std::shared_ptr<Executable> program, int threads,
                                                 bool profile = false);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const std::vector<SessionParam>& inputs() const { return inputs_; }
  const std::vector<SessionParam>& outputs() const { return outputs_; }
  /// Index of an input by name; kUsage lists the names.
  Result<size_t> inputIndex(const std::string& name) const;
  Status setInput(size_t index, const HostValue& value);
  /// Values of NAME=FILE, as options give them.
  Status setFiles(const std::vector<std::string>& named);
  /// Random tensors for inputs that are not set and have no default. Dimensions that are not constant take
  /// their value from those of the same name in tensors set before, from `dims`, else 1.
  Status setRandom(uint64_t seed, std::map<std::string, int64_t> dims);
  Status run();
  Result<HostValue> output(size_t index) const;
  /// Calls a function that writes into its arguments (callInPlace): its buffers, then the values of its scalars.
  Status callInPlace(int32_t function, const std::vector<Tensor>& buffers,
                     const std::vector<int64_t>& scalars = {});
  bevel_instance* instance() const { return instance_; }

private:
  Session() = default;
  std::shared_ptr<Executable> program_;
  bevel_instance* instance_ = nullptr;
  std::vector<SessionParam> inputs_, outputs_;
  std::vector<bool> set_;
  std::map<std::string, int64_t> known_; // extents of named dimensions in inputs that are set
};

} // namespace bevel
