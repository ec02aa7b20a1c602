// The table of named targets and the text form: "name" or "name,key=value,…".
#include "target/target.h"

#include <charconv>
#include <limits>

namespace bevel {
namespace {

struct Row {
  const char* name;
  int level;
  Target target;
};

std::vector<std::string> splitText(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    size_t end = text.find(separator);
    parts.emplace_back(text.substr(0, end));
    text = end == text.npos ? std::string_view() : text.substr(end + 1);
  }
  return parts;
}

/// Sorts the features and lets them switch the flags that scheduling looks at.
void settle(Target& t) {
  std::sort(t.features.begin(), t.features.end());
  t.features.erase(std::unique(t.features.begin(), t.features.end()), t.features.end());
  for (const std::string& f : t.features) {
    if (f == "+fma") t.fma = true;
    if (f == "-fma") t.fma = false;
    if (f == "+f16c") t.f16c = true;
    if (f == "-f16c") t.f16c = false;
    if (f == "-avx512f") t.avx512 = false;
  }
}

Row makeRow(const char* name, int level, const char* triple, const char* cpu, const char* tune,
            const char* features, int vectorBits, int regs, bool fma, bool f16c, bool avx512, int64_t l1,
            int64_t l2, int64_t l3) {
  Row row{name, level, {}};
  Target& t = row.target;
  t.name = name, t.triple = triple, t.cpu = cpu, t.tune = tune;
  t.features = splitText(features, ':');
  t.limits = {.vectorBits = vectorBits, .vectorRegs = regs, .l1 = l1 << 10, .l2 = l2 << 10, .l3 = l3 << 10};
  t.fma = fma, t.f16c = f16c, t.avx512 = avx512;
  settle(t);
  return row;
}

const std::vector<Row>& rows() {
  static const std::vector<Row> table = {
#define TARGET(...) makeRow(__VA_ARGS__),
#include "target/targets.def"
#undef TARGET
  };
  return table;
}

constexpr Architecture kArchitectures[] = {
#define ARCHITECTURE(...) {__VA_ARGS__},
#include "target/targets.def"
#undef ARCHITECTURE
};

const Row* findRow(std::string_view name) {
  for (const Row& row : rows())
    if (name == row.name) return &row;
  return nullptr;
}

/// A key of the text form with its field: exactly one pointer is set.
struct Key {
  const char* name;
  std::string Target::* text = nullptr;
  int64_t Limits::* large = nullptr;
  int Limits::* number = nullptr;
};

const Key kKeys[] = {
    {"triple", &Target::triple, nullptr, nullptr},   {"cpu", &Target::cpu, nullptr, nullptr},
    {"tune", &Target::tune, nullptr, nullptr},       {"vector", nullptr, nullptr, &Limits::vectorBits},
    {"regs", nullptr, nullptr, &Limits::vectorRegs}, {"l1", nullptr, &Limits::l1, nullptr},
    {"l2", nullptr, &Limits::l2, nullptr},           {"l3", nullptr, &Limits::l3, nullptr},
    {"cores", nullptr, nullptr, &Limits::cores},     {"line", nullptr, nullptr, &Limits::cacheLine},
};
constexpr size_t kCodeKeys = 4; // the first ones change machine code

std::string joined(const std::vector<std::string>& parts, const char* separator) {
  std::string out;
  for (const std::string& p : parts) out += (out.empty() ? "" : separator) + p;
  return out;
}

Status badText(std::string_view text, const std::string& why, const std::string& hint) {
  return fail(Error(ErrorCode::kInvalid, "target \"" + std::string(text) + "\": " + why).help(hint));
}

Status setKey(Target& t, std::string_view text, std::string_view key, std::string_view value) {
  if (key == "features") {
    for (std::string& f : splitText(value, ':')) {
      if (f.size() < 2 || (f[0] != '+' && f[0] != '-'))
        return badText(text, "feature \"" + f + "\" has no sign", "write +name or -name, separated by ':'");
      t.features.push_back(std::move(f));
    }
    return {};
  }
  for (const Key& k : kKeys) {
    if (key != k.name) continue;
    if (k.text) {
      t.*k.text = value;
      return {};
    }
    int64_t number = 0;
    auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    bool inRange = k.large || number <= std::numeric_limits<int>::max();
    if (error != std::errc() || end != value.data() + value.size() || number < 0 || !inRange)
      return badText(text, std::string(key) + " needs a number, not \"" + std::string(value) + "\"", "");
    if (k.large)
      t.limits.*k.large = number;
    else
      t.limits.*k.number = int(number);
    return {};
  }
  std::vector<std::string> known = {"features"};
  for (const Key& k : kKeys) known.push_back(k.name);
  return badText(text, "unknown key \"" + std::string(key) + "\"", "known keys: " + joined(known, ", "));
}

Status checkRanges(const Target& t, std::string_view text) {
  const Limits& l = t.limits;
  bool vectorOk = l.vectorBits >= 64 && l.vectorBits <= 2048 && (l.vectorBits & (l.vectorBits - 1)) == 0;
  if (!vectorOk) return badText(text, "vector must be a power of two from 64 to 2048", "");
  if (l.vectorRegs < 4) return badText(text, "regs must be at least 4", "");
  if (l.cores < 1 || l.cacheLine < 1) return badText(text, "cores and line must be at least 1", "");
  return {};
}

std::string textOf(const Target& t, size_t keys) {
  const Row* row = findRow(t.name);
  Target base = row ? row->target : Target();
  std::string out = t.name;
  for (size_t i = 0; i < keys; ++i) {
    const Key& k = kKeys[i];
    if (k.text && t.*k.text != base.*k.text) out += "," + std::string(k.name) + "=" + t.*k.text;
    if (k.large && t.limits.*k.large != base.limits.*k.large)
      out += "," + std::string(k.name) + "=" + std::to_string(t.limits.*k.large);
    if (k.number && t.limits.*k.number != base.limits.*k.number)
      out += "," + std::string(k.name) + "=" + std::to_string(t.limits.*k.number);
  }
  std::vector<std::string> extra;
  for (const std::string& f : t.features)
    if (std::find(base.features.begin(), base.features.end(), f) == base.features.end()) extra.push_back(f);
  if (!extra.empty()) out += ",features=" + joined(extra, ":");
  return out;
}

} // namespace

std::vector<std::string> Target::names() {
  std::vector<std::string> out;
  for (const Row& row : rows()) out.push_back(row.name);
  return out;
}

Result<Target> Target::parse(std::string_view text) {
  std::vector<std::string> parts = splitText(text, ',');
  std::string name = parts.empty() ? "" : parts[0];
  const Row* row = findRow(name);
  if (!row && name != "host") {
    return fail(Error(ErrorCode::kInvalid, "unknown target \"" + name + "\"")
                    .help("known targets: host, " + joined(names(), ", ")));
  }
  Target t = row ? row->target : host();
  for (size_t i = 1; i < parts.size(); ++i) {
    size_t equals = parts[i].find('=');
    if (equals == std::string::npos) {
      BEVEL_CHECK(badText(text, "\"" + parts[i] + "\" is not key=value", ""));
    }
    BEVEL_CHECK(setKey(t, text, parts[i].substr(0, equals), parts[i].substr(equals + 1)));
  }
  settle(t);
  BEVEL_CHECK(checkRanges(t, text));
  return t;
}

std::string Target::str() const {
  return textOf(*this, std::size(kKeys));
}

std::string Target::brief() const {
  return *this == host() ? "host" : str();
}

std::string Target::codeKey() const {
  return textOf(*this, kCodeKeys);
}

const Architecture& Target::architecture() const {
  static constexpr Architecture kNone = {"", "cpu", 0, 0, 0, nullptr, false};
  std::string_view first = std::string_view(triple).substr(0, triple.find('-'));
  for (const Architecture& row : kArchitectures)
    if (first == row.name) return row;
  return kNone;
}

bool Target::runsOn(const Target& machine) const {
  auto instructionSet = [](const Target& t) { return t.triple.substr(0, t.triple.find('-')); };
  if (instructionSet(*this) != instructionSet(machine)) return false;
  const Row* mine = findRow(name);
  const Row* theirs = findRow(machine.name);
  if (mine && theirs && mine->level > theirs->level) return false;
  return std::all_of(features.begin(), features.end(), [&](const std::string& f) {
    bool inherited = mine && std::find(mine->target.features.begin(), mine->target.features.end(), f) !=
                                 mine->target.features.end();
    bool present = std::find(machine.features.begin(), machine.features.end(), f) != machine.features.end();
    bool impliedFlag = (f == "+fma" && machine.fma) || (f == "+f16c" && machine.f16c);
    return f[0] == '-' || inherited || present || impliedFlag;
  });
}

} // namespace bevel
