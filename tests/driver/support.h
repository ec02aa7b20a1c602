// Text modules compiled and run in this process.
#pragma once

#include "driver/compile.h"
#include "driver/session.h"

#include "base/file.h"

#include <cmath>
#include <filesystem>
#include <gtest/gtest.h>
#include <unistd.h>

namespace bevel {

struct Ran {
  std::vector<HostValue> outputs;
  std::string error;
  Module module;   // as compiled
  Trace decisions; // of the passes over the module
};

/// Runs the function "main".
inline Ran runText(const std::string& text, const std::vector<HostValue>& inputs, BuildOptions options) {
  std::string path =
      (std::filesystem::temp_directory_path() / ("bevel_compile_test_" + std::to_string(getpid()) + ".py"))
          .string();
  Ran out;
  auto failed = [&](const Error& e) {
    out.error = e.str();
    return out;
  };
  if (auto ok = writeFile(path, std::string_view(text)); !ok) return failed(ok.error());
  options.useCache = false;
  auto compiled = compileFile(path, options);
  std::filesystem::remove(path);
  if (!compiled) return failed(compiled.error());
  out.module = compiled->module;
  out.decisions = compiled->decisions;
  auto program = load(*compiled);
  if (!program) return failed(program.error());
  auto session = Session::create(*program, 2);
  if (!session) return failed(session.error());
  for (size_t i = 0; i < inputs.size(); ++i)
    if (auto ok = (*session)->setInput(i, inputs[i]); !ok) return failed(ok.error());
  for (int repeat = 0; repeat < 2; ++repeat) // memory kept between runs must not change results
    if (auto ok = (*session)->run(); !ok) return failed(ok.error());
  for (size_t i = 0; i < (*session)->outputs().size(); ++i) {
    auto value = (*session)->output(i);
    if (!value) return failed(value.error());
    out.outputs.push_back(*value);
  }
  return out;
}

inline HostValue floats(std::vector<int64_t> shape, double first = 0, double step = 1) {
  auto t = TensorObject::zeros(kFloat32, std::move(shape));
  for (int64_t i = 0; i < t->size(); ++i) t->setDouble(i, first + step * double(i));
  return {t, false, {}};
}

} // namespace bevel
