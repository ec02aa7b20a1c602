// What the interpreter knows of the memory behind a data variable.
#pragma once

#include "base/tensor.h"
#include "ir/evaluate.h"

#include <optional>
#include <utility>
#include <vector>

namespace bevel::interp {

/// The iteration of a parallel loop that runs now. `loop` counts executions of such loops, from 1; 0: none runs.
struct Iteration {
  int64_t loop = 0, index = 0;
};

/// Bytes behind a data variable. Views of other element types share them.
///
/// Memory notes which iterations of a parallel loop touched each byte. An iteration may use what a block allocates as
/// its own when it writes before it reads: each thread gets a copy. What one iteration reads of another, and what
/// depends on which iteration comes last, is a race.
class Memory {
public:
  static Memory ofParameter(Ref<TensorObject> bytes);
  /// `filled`: with arbitrary values, which may be read. `shared`: by all iterations of the loops inside.
  static Memory allocated(DType t, int64_t count, bool filled, bool shared);

  const Ref<TensorObject>& tensor() const { return bytes_; } // as the first buffer declared it
  bool holds(DType t, int64_t i) { return i >= 0 && i < as(t).size(); }
  bool isParameter() const { return written_.empty(); }
  /// Null when the element was never written.
  std::optional<Scalar> read(DType t, int64_t i);
  void setWritten(size_t from, size_t to, bool value = true);

  /// Whether it is a race that the element was read.
  bool readRaces(const Iteration& now, DType t, int64_t i);
  /// Whether it is a race to write it.
  bool write(const Iteration& now, DType t, int64_t i, const Scalar& x);

  static std::pair<size_t, size_t> span(DType t, int64_t i) {
    return {size_t(i * t.bits / 8), size_t((i * t.bits + t.bits + 7) / 8)};
  }

private:
  static constexpr int64_t kNone = INT64_MIN, kSeveral = INT64_MIN + 1;
  struct Touch {
    int64_t writer = kNone, reader = kNone; // who wrote it last; who read what it had not written
    int64_t loop : 63 = 0;                  // whose iterations these are
    bool open : 1 = false;                  // iterations left different values
  };
  TensorObject& as(DType t);
  bool isWritten(size_t from, size_t to) const;
  Touch& touch(const Iteration& now, size_t at);
  bool writeRaces(const Iteration& now, size_t at, bool changes);

  Ref<TensorObject> bytes_;
  bool shared_ = true;
  std::vector<bool> written_; // a flag a byte; empty: all written (parameters)
  std::vector<std::pair<DType, Ref<TensorObject>>> views_;
  std::vector<Touch> touched_; // a byte each, as far as parallel loops came
};

} // namespace bevel::interp
