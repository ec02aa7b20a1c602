// See the header.
#include "loop/interpreter_memory.h"
#include <algorithm>
#include <array>
#include <cstring>

namespace bevel::interp {

Memory Memory::ofParameter(Ref<TensorObject> bytes) {
  Memory out;
  out.bytes_ = std::move(bytes);
  return out;
}

Memory Memory::allocated(DType t, int64_t count, bool filled, bool shared) {
  Memory out;
  out.shared_ = shared;
  out.bytes_ = TensorObject::zeros(t, {count});
  out.written_.assign(size_t(out.bytes_->byteSize()), filled);
  if (filled) std::memset(out.bytes_->mutableBytes(), 0x5a, size_t(out.bytes_->byteSize()));
  return out;
}

TensorObject& Memory::as(DType t) {
  if (bytes_->dtype == t) return *bytes_;
  for (auto& [type, view] : views_)
    if (type == t) return *view;
  int64_t n = t.bits ? bytes_->byteSize() * 8 / t.bits : 0;
  views_.emplace_back(t, TensorObject::wrap(t, {n}, bytes_->bytes(), nullptr));
  return *views_.back().second;
}

bool Memory::isWritten(size_t from, size_t to) const {
  for (size_t k = from; k < to && !written_.empty(); ++k)
    if (!written_[k]) return false;
  return true;
}

std::optional<Scalar> Memory::read(DType t, int64_t i) {
  auto [from, to] = span(t, i);
  if (!isWritten(from, to)) return std::nullopt;
  return t.isFloat() ? Scalar{0, as(t).asDouble(i)} : Scalar{as(t).asInt(i), 0};
}

void Memory::setWritten(size_t from, size_t to, bool value) {
  for (size_t k = from; k < std::min(to, written_.size()); ++k) written_[k] = value;
}

Memory::Touch& Memory::touch(const Iteration& now, size_t at) {
  if (at >= touched_.size()) touched_.resize(std::max(at + 1, touched_.size() * 2));
  Touch& t = touched_[at];
  if (t.loop != now.loop) t = {kNone, kNone, now.loop, t.open};
  return t;
}

bool Memory::readRaces(const Iteration& now, DType type, int64_t i) {
  bool races = false;
  auto [from, to] = span(type, i);
  for (size_t k = from; k < (now.loop ? to : std::min(to, touched_.size())); ++k) {
    Touch& t = touch(now, k);
    if (now.loop && t.writer == now.index) continue;
    races |= t.open || t.writer != kNone;
    t.reader = t.reader == kNone || t.reader == now.index ? now.index : kSeveral;
  }
  return races;
}

bool Memory::write(const Iteration& now, DType t, int64_t i, const Scalar& x) {
  auto [from, to] = span(t, i);
  std::array<std::byte, 16> before;
  std::copy(bytes_->bytes() + from, bytes_->bytes() + to, before.begin());
  if (t.isFloat())
    as(t).setDouble(i, x.f);
  else
    as(t).setInt(i, x.i);
  bool changes =
      !isWritten(from, to) || !std::equal(bytes_->bytes() + from, bytes_->bytes() + to, before.begin());
  setWritten(from, to);
  bool races = false;
  for (size_t k = from; k < (now.loop ? to : std::min(to, touched_.size())); ++k)
    races |= writeRaces(now, k, changes);
  return races;
}

bool Memory::writeRaces(const Iteration& now, size_t at, bool changes) {
  Touch& t = touch(now, at);
  if (!now.loop) return t = {}, false;
  bool another = changes && t.writer != kNone && t.writer != now.index;
  bool races = (another && shared_) || (changes && t.reader != kNone && t.reader != now.index);
  t.open = another || (t.open && t.writer != kNone);
  t.writer = now.index;
  return races;
}

} // namespace bevel::interp
