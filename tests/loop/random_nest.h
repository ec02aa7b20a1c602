// Random tensor programs as text: what schedules and te never write. Buffers that are read and written,
// several writers, loops shared by blocks, statements without blocks, loops that do not start at zero, whose
// range moves with another loop or depends on data, predicates and conditions on what the body writes or that
// cut triangles and bands, temporaries, views of one memory, several symbolic sizes that are 0 or 1, dimensions
// of one, floats, axes that run backwards or do not start at zero, reductions with init, calls that get pointers to parts
// of buffers, expressions that both sides of a condition and what follows compute, or that only a condition makes safe.
//
// Indices stay in bounds. Loops marked parallel or vectorised are independent: what they write, they access
// at their own variable only. A program may read an element that nothing wrote; the interpreter refuses it.
#pragma once

#include "loop/interpreter.h"
#include "tests/dice.h"

#include <fmt/format.h>

#include <set>
#include <string>
#include <vector>

/// What programs call: two elements from two. Machine code finds it in the test program by its name.
extern "C" [[gnu::used]] inline int32_t bevel_test_mix(const int32_t* from, int32_t* to) {
  int32_t sum = int32_t(uint32_t(from[0]) + uint32_t(from[1]));
  to[1] = from[0];
  to[0] = sum;
  return 0;
}

namespace bevel::testing {

/// Interprets a program that may call it.
inline Status interpretNest(const PrimFunc& f, const std::vector<Ref<TensorObject>>& tensors,
                            bool filled = false) {
  auto callee = [](std::string_view, const std::vector<Ref<TensorObject>>& t) -> Status {
    bevel_test_mix(reinterpret_cast<const int32_t*>(t[0]->bytes()),
                   reinterpret_cast<int32_t*>(t[1]->mutableBytes()));
    return {};
  };
  FunctionRef<Status(std::string_view, const std::vector<Ref<TensorObject>>&)> functions = callee;
  InterpretOptions options;
  options.callee = &functions;
  options.filled = filled;
  return interpret(f, tensors, {}, options);
}

class RandomNest {
public:
  explicit RandomNest(uint64_t seed) : dice_(seed) {}

  std::string make() {
    buffers_ = {{"A", {8}},
                {"B", {8}},
                {"M", {4, 3}},
                {"P", {kSymbolic}},
                {"Q", {kSymbolic}},
                {"S", {8}},
                {"T1", {4, 2}},
                {"U", {1, 5}},
                {"K", {kSymbolic, 3}},
                {"F", {6}, true},
                {"G", {1, 1, 4}, true}};
    text_ =
        "@T.prim_func\n"
        "def main(a: T.handle, b: T.handle, m: T.handle, p: T.handle, q: T.handle, u: T.handle, k: T.handle,"
        " f: T.handle, g: T.handle, r: T.handle):\n";
    indent_ = 1;
    line("n = T.int32()");
    line("l = T.int32()");
    for (const char* x : {"a 8,", "b 8,", "m 4, 3", "p n,", "q n,", "u 1, 5", "k n, 3", "r l,"})
      line(fmt::format("{} = T.match_buffer({}, ({}), \"int32\")", char(x[0] - 'a' + 'A'), x[0], x + 2));
    line("F = T.match_buffer(f, (6,), \"float32\")");
    line("G = T.match_buffer(g, (1, 1, 4), \"float32\")");
    line("with T.sblock(\"root\"):");
    ++indent_;
    line("S = T.sblock_alloc_buffer((8,), \"int32\")");
    line("T1 = T.sblock_alloc_buffer((4, 2), \"int32\")");
    line("N = T.sblock_alloc_buffer((4,), \"int32\")");
    if (dice_.oneIn(6)) {
      line("V = T.decl_buffer((2, 4), \"int32\", data=S.data)");
      buffers_.push_back({"V", {2, 4}});
    }
    if (!dice_.oneIn(3)) {
      std::string i = fresh("i"), j = fresh("i");
      line(fmt::format("for {} in range(8):", i));
      line(fmt::format("    S[{}] = A[{}] + 1", i, i));
      line(fmt::format("for {}, {} in T.grid(4, 2):", i = fresh("i"), j));
      line(fmt::format("    T1[{}, {}] = {}", i, j, i));
    }
    body(0, 2 + int(dice_.upTo(3)));
    return text_;
  }

private:
  static constexpr int64_t kSymbolic = -1;

  struct Scalar {
    std::string name;
    int64_t lo, hi; // inclusive; of a loaded value: lo > hi
    bool overN;     // in [0, n)
  };
  struct Memory {
    std::string name;
    std::vector<int64_t> shape;
    bool isFloat = false;
  };

  // --- statements ---

  void body(int depth, int count) {
    size_t visible = scalars_.size();
    for (int i = 0; i < count; ++i) statement(depth);
    scalars_.resize(visible);
  }
  void nested(int depth) {
    ++indent_;
    body(depth + 1, 1 + int(dice_.upTo(3)));
    --indent_;
  }

  void statement(int depth) {
    int64_t kind = depth >= 4 ? dice_.upTo(3) : dice_.upTo(14);
    switch (kind) {
    case 0:
    case 1:
      return store(false);
    case 2:
      return store(true);
    case 3: {
      std::string x = fresh("x");
      line(fmt::format("{}: T.int32 = {}", x, value(2)));
      scalars_.push_back({x, 1, 0, false});
      return;
    }
    case 4:
      return conditional(depth);
    case 5:
    case 6:
      return block(depth);
    case 7:
      return pinned_.empty() ? independent(depth) : loop(depth);
    case 8:
      return pinned_.empty() && depth > 0 ? whileLoop(depth) : conditional(depth);
    case 9:
      return reduction(depth);
    case 10:
      return common(depth);
    case 11:
      return pinned_.empty() ? call() : common(depth);
    default:
      return loop(depth);
    }
  }

  void store(bool accumulate) {
    const Memory* m = target();
    if (!m) return line("T.evaluate(0)");
    std::string place = access(*m);
    if (m->isFloat)
      return line(fmt::format("{} = {}T.Cast(\"float32\", {}){}", place,
                              accumulate ? place + " * T.float32(0.5) + " : "", value(2),
                              dice_.oneIn(3) ? " * T.float32(0.25)" : ""));
    static const std::vector<const char*> ops = {"+", "-", "*"};
    if (accumulate && dice_.oneIn(3)) return line(fmt::format("{} = T.max({}, {})", place, place, value(2)));
    if (accumulate) return line(fmt::format("{} = {} {} ({})", place, place, dice_.pick(ops), value(2)));
    line(fmt::format("{} = {}", place, value(3)));
  }

  void conditional(int depth) {
    line(fmt::format("if {}:", condition()));
    nested(depth);
    if (dice_.upTo(2)) return;
    line("else:");
    nested(depth);
  }

  void use(const std::string& e) {
    const Memory* m = target();
    if (!m || m->isFloat) return line(fmt::format("T.evaluate({})", e));
    line(fmt::format("{} = {} + {}", access(*m), e, dice_.upTo(3)));
  }

  /// One expression on several ways: both sides and what follows, or where a condition makes it safe alone.
  void common(int depth) {
    bool guarded = dice_.oneIn(2);
    int64_t last = dice_.upTo(3);
    std::string first = guarded ? fmt::format("R[{}]", last) : load();
    std::string e = fmt::format("({} * {} + {})", first, load(), value(1));
    line(fmt::format("if {}:", guarded ? fmt::format("{} < l", last) : condition()));
    ++indent_;
    use(e);
    if (dice_.oneIn(2)) body(depth + 1, 1);
    use(e);
    --indent_;
    if (dice_.oneIn(2)) {
      line("else:");
      ++indent_;
      use(guarded ? value(2) : e);
      --indent_;
    }
    if (!guarded) use(e);
  }

  /// Two elements of a buffer from two of a parameter, through pointers.
  void call() {
    std::vector<const Memory*> from, to;
    for (const Memory& m : buffers_) {
      if (m.isFloat || m.shape[0] == kSymbolic) continue;
      to.push_back(&m);
      if (std::string("ABMU").find(m.name) != std::string::npos)
        from.push_back(&m); // nothing else is sure to be written
    }
    auto pointer = [&](const std::vector<const Memory*>& fit, const char* mode) {
      const Memory& m = *dice_.pick(fit);
      int64_t size = 1;
      for (int64_t d : m.shape) size *= d;
      return fmt::format("{}.access_ptr(\"{}\", offset={}, extent=2)", m.name, mode, index(size - 1, false));
    };
    std::string source = pointer(from, "r");
    line(fmt::format("T.evaluate(T.call_extern(\"int32\", \"bevel_test_mix\", {}, {}))", source,
                     pointer(to, "w")));
  }

  /// A loop header; its variable becomes visible.
  void header(const char* kind, bool mayBeSymbolic) {
    Scalar v{fresh("i"), 0, 0, false};
    if (mayBeSymbolic && dice_.oneIn(4)) {
      v.overN = true;
      v.hi = 1 << 20;
      line(fmt::format("for {} in {}(n):", v.name, kind));
    } else {
      v.lo = dice_.oneIn(3) ? 1 + dice_.upTo(3) : 0;
      v.hi = v.lo + dice_.upTo(5 - v.lo);
      line(v.lo ? fmt::format("for {} in {}({}, {}):", v.name, kind, v.lo, v.hi + 1)
                : fmt::format("for {} in {}({}):", v.name, kind, v.hi + 1));
    }
    scalars_.push_back(v);
  }

  /// A range that moves with a loop around, ends at another size, or is read from memory.
  bool movingLoop() {
    Scalar v{fresh("i"), 0, 0, false};
    std::vector<Scalar> fit;
    for (const Scalar& s : scalars_)
      if (s.lo <= s.hi && !s.overN) fit.push_back(s);
    if (dice_.oneIn(3) || fit.empty()) {
      v.hi = dice_.upTo(5);
      line(fmt::format("for {} in range(T.max(T.min({}, {}), 0)):", v.name, dice_.upTo(2) ? load() : "l",
                       v.hi + 1));
    } else {
      const Scalar& s = dice_.pick(fit);
      v.hi = 4;
      switch (dice_.upTo(4)) {
      case 0:
        v.hi = s.hi;
        line(fmt::format("for {} in range({} + 1):", v.name, s.name));
        break;
      case 1:
        line(fmt::format("for {} in range(T.min({}, 4), 5):", v.name, s.name));
        break;
      case 2:
        line(fmt::format("for {} in range(T.max(4 - {}, 0)):", v.name, s.name));
        break;
      default:
        v.hi = s.hi + 1;
        line(fmt::format("for {} in range({}, {} + 2):", v.name, s.name, s.name));
      }
    }
    scalars_.push_back(v);
    return true;
  }

  void loop(int depth) {
    if (dice_.oneIn(4) && movingLoop()) {
      nested(depth);
      scalars_.pop_back();
      return;
    }
    header(dice_.oneIn(5) ? "T.unroll" : dice_.oneIn(3) ? "T.serial" : "range", true);
    nested(depth);
    scalars_.pop_back();
  }

  void independent(int depth) {
    header(dice_.upTo(3) ? "T.vectorized" : "T.parallel", true);
    const Scalar v = scalars_.back();
    pinned_ = v.name;
    local_.clear();
    for (const Memory& m : buffers_)
      if (m.name != "V" && m.name != "S" && m.name[0] != 'W' && m.name != viewed_ &&
          (v.overN ? m.shape[0] == kSymbolic : m.shape[0] > v.hi) && dice_.upTo(3))
        owned_.insert(m.name);
    nested(depth);
    pinned_.clear();
    owned_.clear();
    scalars_.pop_back();
  }

  void whileLoop(int depth) {
    int64_t slot = whiles_++;
    if (slot >= 4) return store(false);
    line(fmt::format("N[{}] = 0", slot));
    line(fmt::format("while N[{}] < {}:", slot, 1 + dice_.upTo(3)));
    ++indent_;
    line(fmt::format("N[{}] = N[{}] + 1", slot, slot));
    body(depth + 1, 1 + int(dice_.upTo(2)));
    --indent_;
    --whiles_;
  }

  /// The head of a block: inside, every loop variable goes by the name of an axis.
  void enterBlock() {
    line(fmt::format("with T.sblock(\"{}\"):", fresh("B")));
    ++indent_;
    std::vector<Scalar> inside;
    std::string pin = pinned_, where = dice_.oneIn(3) ? condition() : "";
    for (Scalar s : scalars_) {
      if (s.lo <= s.hi) {
        std::string axis = fresh("v");
        bool backwards = s.name != pinned_ && dice_.oneIn(4);
        line(fmt::format("{} = T.axis.spatial({}, {}{})", axis, s.overN ? "n" : std::to_string(s.hi + 1),
                         !backwards ? ""
                         : s.overN  ? "n - 1 - "
                                    : std::to_string(s.hi) + " - ",
                         s.name));
        if (backwards && !s.overN) s.lo = 0;
        if (s.name == pinned_) pin = axis;
        s.name = axis;
      }
      inside.push_back(s);
    }
    if (!where.empty()) line(fmt::format("T.where({})", where));
    scalars_ = inside;
    pinned_ = pin;
  }

  void block(int depth) {
    std::vector<Scalar> outside = scalars_;
    std::string pin = pinned_;
    enterBlock();
    size_t buffers = buffers_.size();
    std::string seen = viewed_;
    if (pinned_.empty() && viewed_.empty() && dice_.oneIn(5)) view();
    if (dice_.oneIn(3)) {
      std::string name = fresh("L");
      line(fmt::format("{} = T.sblock_alloc_buffer((3,), \"int32\")", name));
      std::string i = fresh("i");
      line(fmt::format("for {} in range(3):", i));
      line(fmt::format("    {}[{}] = {}", name, i, value(1)));
      buffers_.push_back({name, {3}});
      local_.insert(name);
    }
    body(depth + 1, 1 + int(dice_.upTo(3)));
    buffers_.resize(buffers);
    viewed_ = seen;
    scalars_ = outside;
    pinned_ = pin;
    --indent_;
  }

  /// A part of A or B by another name.
  void view() {
    viewed_ = dice_.oneIn(2) ? "A" : "B";
    std::string name = fresh("W"), first = std::to_string(dice_.upTo(4));
    for (const Scalar& s : scalars_)
      if (s.lo <= s.hi && !s.overN && s.hi <= 4 && dice_.oneIn(2)) first = s.name;
    line(fmt::format("{} = T.match_buffer({}[{}:{} + 4], (4,), \"int32\")", name, viewed_, first, first));
    buffers_.push_back({name, {4}});
  }

  void reduction(int depth) {
    if (!target() || depth > 3) return store(true);
    std::vector<Scalar> outside = scalars_;
    std::string pin = pinned_, k = fresh("i"), axis = fresh("v");
    int64_t extent = 1 + dice_.upTo(4);
    line(fmt::format("for {} in range({}):", k, extent));
    ++indent_;
    enterBlock();
    int64_t first = dice_.oneIn(4) ? 1 : 0;
    if (first)
      line(fmt::format("{} = T.axis.reduce((1, {}), {} + 1)", axis, extent + 1, k));
    else
      line(fmt::format("{} = T.axis.reduce({}, {})", axis, extent,
                       dice_.oneIn(4) ? fmt::format("{} - {}", extent - 1, k) : k));
    // The element stays one while the reduction runs.
    const Memory* m = target();
    std::string place = access(*m, false);
    line("with T.init():");
    auto typed = [&](const std::string& v) {
      return m->isFloat ? fmt::format("T.Cast(\"float32\", {})", v) : v;
    };
    line(fmt::format("    {} = {}", place, typed(std::to_string(dice_.upTo(3)))));
    scalars_.push_back({axis, first, first + extent - 1, false});
    line(fmt::format("{} = {} + {}", place, place, typed(value(2))));
    scalars_ = outside;
    pinned_ = pin;
    indent_ -= 2;
  }

  // --- expressions ---

  /// A buffer that may be stored to here; null when there is none.
  const Memory* target() {
    std::vector<const Memory*> fit;
    for (const Memory& m : buffers_)
      if (reachable(m) && (pinned_.empty() || owned_.contains(m.name) || local_.contains(m.name)))
        fit.push_back(&m);
    return fit.empty() ? nullptr : dice_.pick(fit);
  }
  bool reachable(const Memory& m) const {
    bool overN = false;
    for (const Scalar& s : scalars_) overN |= s.overN;
    return m.shape[0] != kSymbolic || overN;
  }

  std::string access(const Memory& m, bool mayLoad = true) {
    std::string out = m.name + "[";
    for (size_t d = 0; d < m.shape.size(); ++d) {
      if (d) out += ", ";
      if (d == 0 && owned_.contains(m.name))
        out += pinned_;
      else
        out += m.shape[d] == kSymbolic ? symbolicIndex() : index(m.shape[d], mayLoad);
    }
    return out + "]";
  }

  std::string index(int64_t size, bool mayLoad) {
    std::vector<Scalar> fit;
    for (const Scalar& s : scalars_)
      if (s.lo <= s.hi && (mayLoad || !s.overN)) fit.push_back(s);
    if (fit.empty() || dice_.oneIn(6)) {
      if (!mayLoad || dice_.upTo(3)) return std::to_string(dice_.upTo(size));
      return fmt::format("T.max(T.min({}, {}), 0)", value(1), size - 1);
    }
    const Scalar& s = dice_.pick(fit);
    int64_t choice = dice_.upTo(6);
    if (s.overN) return fmt::format("T.min({}, {})", s.name, size - 1);
    if (choice < 3 && s.hi < size) return s.name;
    if (choice == 3 && s.hi < size) return fmt::format("{} - {}", size - 1, s.name);
    if (choice == 4 && s.hi * 2 < size) return fmt::format("{} * 2", s.name);
    if (mayLoad && choice == 5) return fmt::format("({}) % {}", value(1), size);
    return fmt::format("({} + {}) % {}", s.name, dice_.upTo(3), size);
  }

  std::string symbolicIndex() {
    std::vector<std::string> fit;
    for (const Scalar& s : scalars_)
      if (s.overN) fit.push_back(s.name);
    std::string v = dice_.pick(fit);
    switch (dice_.upTo(6)) {
    case 0:
      return fmt::format("n - 1 - {}", v);
    case 1:
      return fmt::format("T.min({} + 1, n - 1)", v);
    case 2:
      return fmt::format("T.max({} - 1, 0)", v);
    default:
      return v;
    }
  }

  std::string load() {
    std::vector<const Memory*> fit;
    for (const Memory& m : buffers_)
      if (reachable(m)) fit.push_back(&m);
    const Memory& m = *dice_.pick(fit);
    std::string place = access(m, dice_.oneIn(3));
    if (!m.isFloat) return place;
    return fmt::format("T.Cast(\"int32\", T.max(T.min({}, T.float32(1000)), T.float32(-1000)))", place);
  }

  std::string value(int depth) {
    int64_t choice = depth <= 0 ? dice_.upTo(3) : dice_.upTo(10);
    switch (choice) {
    case 0:
      return std::to_string(dice_.oneIn(8) ? 65536 : dice_.upTo(5));
    case 1:
      if (!scalars_.empty()) return dice_.pick(scalars_).name;
      return "3";
    case 2:
    case 3:
      return load();
    case 4:
      return fmt::format("({} - {})", value(depth - 1), value(depth - 1));
    case 5:
      return fmt::format("({} * {})", load(), value(depth - 1)); // constants alone may not fit their type
    case 6:
      return fmt::format("T.{}({}, {})", dice_.upTo(2) ? "min" : "max", value(depth - 1), value(depth - 1));
    case 7:
      return fmt::format("({} {} {})", value(depth - 1), dice_.upTo(2) ? "//" : "%", 1 + dice_.upTo(4));
    case 8:
      return fmt::format("T.{}({}, {}, {})", dice_.upTo(2) ? "if_then_else" : "Select", condition(1),
                         value(depth - 1), value(depth - 1));
    default:
      return fmt::format("({} + {})", value(depth - 1), value(depth - 1));
    }
  }

  std::string condition(int depth = 2) {
    static const std::vector<const char*> ops = {"<", "<=", ">", ">=", "==", "!="};
    if (depth > 1 && dice_.oneIn(4))
      return fmt::format("{} {} {}", condition(1), dice_.upTo(2) ? "and" : "or", condition(1));
    if (depth > 1 && dice_.oneIn(8)) return fmt::format("not {}", condition(1));
    if (scalars_.size() > 1 && dice_.oneIn(4)) // a triangle, or one side of a band
      return fmt::format("({} {} {} + {})", dice_.pick(scalars_).name, dice_.pick(ops),
                         dice_.pick(scalars_).name, dice_.upTo(3));
    std::string left = scalars_.empty() || dice_.upTo(2) ? load() : dice_.pick(scalars_).name;
    return fmt::format("({} {} {})", left, dice_.pick(ops),
                       dice_.upTo(2) ? std::to_string(dice_.upTo(4)) : value(0));
  }

  // --- text ---

  void line(const std::string& s) { text_ += std::string(size_t(indent_) * 4, ' ') + s + "\n"; }
  std::string fresh(const char* base) { return base + std::to_string(names_++); }

  Dice dice_;
  std::string text_;
  int indent_ = 0, names_ = 0;
  int64_t whiles_ = 0;
  std::vector<Scalar> scalars_;
  std::vector<Memory> buffers_;
  std::string viewed_;                  // the parameter that a view shows a part of
  std::string pinned_;                  // the variable of the independent loop around, or the axis it is
  std::set<std::string> owned_, local_; // what the independent loop writes; what blocks allocate
};

} // namespace bevel::testing
