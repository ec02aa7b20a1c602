// protozero with its checks in every build. The library only asserts that a field has the wire type that its
// number says; model files are hostile, so a mismatch is thrown and becomes an error at the edge
// (onnx_proto.cc). Include this instead of protozero's headers, so that all users agree.
#pragma once

namespace bevel::onnx {
struct WrongWireType {};
[[noreturn]] inline void wrongWireType() {
  throw WrongWireType{};
}
} // namespace bevel::onnx

#define protozero_assert(condition) ((condition) ? (void)0 : ::bevel::onnx::wrongWireType())
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>
