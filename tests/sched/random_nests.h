// Random programs as text, with what makes schedules hard to prove: conditions and ranges of loops that read data,
// triangles and bands, updates in place, pointers, several blocks in one nest, symbolic sizes, leading dimensions of one.
#pragma once

#include "tests/dice.h"
#include "tests/sched/support.h"

#include <fmt/format.h>

namespace bevel::testing {

class RandomNests {
public:
  explicit RandomNests(uint64_t seed) : dice_(seed) {
    static const std::vector<int64_t> kSizes = {1, 2, 3, 4, 5, 7, 8};
    int64_t rows = dice_.pick(kSizes), columns = dice_.pick(kSizes);
    rows_ = std::to_string(rows), columns_ = std::to_string(columns);
    if (dice_.oneIn(4)) rows_ = "n", sizes["n"] = rows;
    if (dice_.oneIn(4)) columns_ = "m", sizes["m"] = columns;
    lead_ = dice_.oneIn(5);
  }

  Sizes sizes;

  std::string make() {
    text_ = "@T.prim_func\ndef main(a: T.handle, c: T.handle, o: T.handle, e: T.handle):\n";
    if (sizes.contains("n")) line("n = T.int32()");
    if (sizes.contains("m")) line("m = T.int32()");
    line(fmt::format("A = T.match_buffer(a, {}, \"int32\")", shape()));
    line(fmt::format("N = T.match_buffer(c, ({},), \"int32\")", rows_));
    line(fmt::format("O = T.match_buffer(o, {}, \"int32\")", shape()));
    line(fmt::format("E = T.match_buffer(e, {}, \"int32\")", shape()));
    buffers_ = {"A"};
    int stages = 2 + int(dice_.upTo(4));
    std::string allocations = text_;
    text_.clear();
    for (int s = 0; s < stages; ++s) stage();
    grid("ij");
    std::string folded = fmt::format("T.max(vi, {} - 1 - vi)", rows_); // several instances write an element
    statement(fmt::format("O{} = {}", at(dice_.oneIn(4) ? folded : "vi", "vj"), sum()));
    for (int b = 0; b < count_; ++b)
      allocations += fmt::format("    S{} = T.sblock_alloc_buffer({}, \"int32\")\n", b, shape());
    return allocations + text_;
  }

private:
  void line(const std::string& s) { text_ += std::string(size_t(indent_) * 4, ' ') + s + "\n"; }
  std::string shape() const { return fmt::format("({}{}, {})", lead_ ? "1, " : "", rows_, columns_); }
  std::string at(const std::string& i, const std::string& j) const {
    return fmt::format("[{}{}, {}]", lead_ ? "0, " : "", i, j);
  }
  /// Some element, by loops or axes of the given names.
  std::string someElement(const std::string& i, const std::string& j) {
    std::string row = dice_.oneIn(4) ? fmt::format("{} - 1 - {}", rows_, i) : i;
    std::string column = dice_.oneIn(4) ? fmt::format("{} - 1 - {}", columns_, j) : j;
    return dice_.pick(buffers_) + at(row, column);
  }
  std::string sum() {
    return fmt::format("{} + {} + {}", someElement("vi", "vj"), someElement("vi", "vj"), dice_.upTo(3));
  }
  std::string fresh() { return "S" + std::to_string(count_++); }

  void open(const std::string& header) { line(header), ++indent_; }
  void loop(const std::string& v, const std::string& range) {
    open(fmt::format("for {} in range({}):", v, range));
  }
  void block(const std::string& axes) {
    open(fmt::format("with T.sblock(\"b{}\"):", blocks_++));
    for (char c : axes) {
      const std::string& size = c == 'i' ? rows_ : columns_;
      line(fmt::format("v{} = T.axis.{}({}, {})", c, c == 'k' ? "reduce" : "spatial", size, c));
    }
  }
  void grid(const std::string& axes) {
    for (char c : axes) loop(std::string(1, c), c == 'i' ? rows_ : columns_);
    block(axes);
  }
  void statement(const std::string& s) { line(s), indent_ = 1; }
  std::string update() { // of one that is written already
    return buffers_.size() > 1 ? buffers_[1 + size_t(dice_.upTo(int64_t(buffers_.size()) - 1))] : "";
  }

  void stage() {
    std::string target = update();
    if (target.empty() || dice_.oneIn(3)) return whole();
    switch (dice_.upTo(8)) {
    case 0: // a condition that reads data
      grid("ij");
      line(fmt::format("T.where({} < {})", someElement("i", "j"), dice_.upTo(5)));
      return statement(fmt::format("{}{} = {}", target, at("vi", "vj"), sum()));
    case 1: // a triangle
      loop("i", rows_), loop("j", fmt::format("T.min(i + 1, {})", columns_)), block("ij");
      return statement(fmt::format("{}{} = {}", target, at("vi", "vj"), sum()));
    case 2: // a band
      loop("i", rows_), loop("j", "i, i + 3"), block("ij");
      line(fmt::format("T.where(j < {})", columns_));
      return statement(fmt::format("{}{} = {}", target, at("vi", "vj"), sum()));
    case 3: // as many as the data say
      loop("i", rows_);
      loop("j",
           fmt::format("T.min(T.max({}, 0), {})", dice_.oneIn(2) ? "N[i]" : someElement("i", "0"), columns_));
      block("ij");
      return statement(fmt::format("{}{} = {}", target, at("vi", "vj"), sum()));
    case 4: // accumulates into what is there
      grid("ijk");
      return statement(fmt::format("{0}{1} = {0}{1} + A{2}", target, at("vi", "vj"), at("vi", "vk")));
    case 5: // under a condition on its own value
      grid("ij");
      open(fmt::format("if {} > {}:", someElement("vi", "vj"), dice_.upTo(3)));
      return statement(fmt::format("{}{} = {}", target, at("vi", "vj"), sum()));
    case 6:
      return call(target);
    default: // in place, whatever it reads
      grid("ij");
      return statement(fmt::format("{}{} = {}", target, at("vi", "vj"), sum()));
    }
  }

  /// A new buffer, all of it.
  void whole() {
    std::string name = fresh();
    switch (dice_.upTo(6)) {
    case 4:
      nest(name);
      break;
    case 0: // sums from the start of each row
      grid("ijk");
      line("T.where(k <= j)");
      reduce(name, fmt::format("A{}", at("vi", "vk")));
      break;
    case 1:
      grid("ijk");
      reduce(name, fmt::format("{}{}", dice_.pick(buffers_), at("vi", "vk")));
      break;
    case 2:
      call(name);
      break;
    default:
      grid("ij");
      statement(fmt::format("{}{} = {}", name, at("vi", "vj"), sum()));
    }
    buffers_.push_back(name);
  }
  void reduce(const std::string& name, const std::string& value) {
    line("with T.init():");
    line(fmt::format("    {}{} = 0", name, at("vi", "vj")));
    statement(fmt::format("{0}{1} = {0}{1} + {2}", name, at("vi", "vj"), value));
  }
  /// Several blocks in one nest: what one leaves, the next takes, of this iteration or of others.
  void nest(const std::string& name) {
    std::string cell = fresh(), place = at("vi", dice_.oneIn(2) ? "0" : "vj");
    for (char c : {'i', 'j'}) loop(std::string(1, c), c == 'i' ? rows_ : columns_);
    auto item = [&](const std::string& s) { block("ij"), line(s), --indent_; };
    item(fmt::format("{}{} = {}", cell, place, sum()));
    if (dice_.oneIn(2)) item(fmt::format("E{} = {}", at("vi", "vj"), sum()));
    std::string early = fmt::format("E{}", at("vi", columns_ + " - 1 - vj"));
    item(fmt::format("{}{} = {}{} + {}", name, at("vi", "vj"), cell, place, dice_.oneIn(2) ? early : sum()));
    if (dice_.oneIn(2)) item(fmt::format("E{} = {}{}", at("vi", "vj"), name, at("vi", "vj")));
    indent_ = 1;
  }
  /// Rows by a call that gets pointers.
  void call(const std::string& target) {
    std::string source = dice_.pick(buffers_), where = fmt::format("offset=vi * {0}, extent={0}", columns_);
    loop("i", rows_), block("i");
    statement(fmt::format(
        "T.evaluate(T.call_extern(\"int32\", \"twice\", {}.access_ptr(\"r\", {}), {}.access_ptr(\"w\", {})))",
        source, where, target, where));
  }

  Dice dice_;
  std::string rows_, columns_, text_;
  bool lead_ = false;
  int indent_ = 1, count_ = 0, blocks_ = 0;
  std::vector<std::string> buffers_; // written so far; the first is the input
};

} // namespace bevel::testing
