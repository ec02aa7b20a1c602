// Calls: the table of forms (notation.def) and the binding of arguments to their names.
#include "ir/parser_impl.h"

#include <algorithm>

namespace bevel::detail {
namespace {

/// Calls f(word) for each word of a text.
template <class F> void forEachWord(std::string_view text, F&& f) {
  while (!text.empty()) {
    size_t end = std::min(text.find(' '), text.size());
    if (end) f(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

} // namespace

std::optional<Intrin> intrinOf(std::string_view name) {
  for (int i = 0; i < numIntrins(); ++i)
    if (name == intrinInfo(Intrin(i)).name) return Intrin(i);
  return std::nullopt;
}

const Value* Args::find(std::string_view key) const {
  for (const Bound& b : bound)
    if (b.name == key) return b.value;
  return nullptr;
}

const Token& Args::where(std::string_view key) const {
  for (const Bound& b : bound)
    if (b.name == key && b.value) return b.where;
  return at;
}

const std::vector<std::pair<std::string_view, Parser::Form>>& Parser::forms() {
  static const auto table = [] {
    std::vector<std::pair<std::string_view, Form>> t;
    auto add = [&](Form form, std::string_view spellings) {
      forEachWord(spellings, [&](std::string_view s) { t.emplace_back(s, form); });
    };
#define FORM(handler, spellings, arguments) add({&Parser::handler, 0, arguments}, spellings);
#define CODED(handler, code, spellings, arguments) add({&Parser::handler, int(code), arguments}, spellings);
#include "ir/notation.def"
    std::sort(t.begin(), t.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    return t;
  }();
  return table;
}

const Parser::Form* Parser::findForm(std::string_view name) {
  auto it = std::lower_bound(forms().begin(), forms().end(), name,
                             [](const auto& row, std::string_view n) { return row.first < n; });
  return it != forms().end() && it->first == name ? &it->second : nullptr;
}

/// Gives the arguments of a call the names that a row of notation.def lists.
bool Parser::bindArguments(Args& args, std::string_view arguments) {
  bool ok = true, keywordsOnly = false, anyPosition = false, anyKeyword = false;
  args.bound.clear(), args.rest = 0;
  args.takenKeywords.assign(args.kw.size(), false);
  auto bindOne = [&](std::string_view word) {
    bool optional = word.ends_with('?');
    if (optional) word.remove_suffix(1);
    size_t colon = std::min(word.find(':'), word.size());
    std::string_view type = word.substr(std::min(colon + 1, word.size()));
    word = word.substr(0, colon);
    Args::Bound b{word.substr(0, word.find('|')), nullptr, args.at};
    if (!keywordsOnly && args.rest < args.pos.size()) {
      b.value = &args.pos[args.rest], b.where = args.posAt[args.rest];
      ++args.rest;
    } else
      for (size_t k = 0; k < args.kw.size(); ++k) {
        std::string_view names = word;
        bool named = false;
        for (size_t end; !named && !names.empty(); names.remove_prefix(std::min(end + 1, names.size())))
          end = std::min(names.find('|'), names.size()), named = names.substr(0, end) == args.kw[k].first;
        if (!named) continue;
        args.takenKeywords[k] = true;
        if (!b.value) b.value = &args.kw[k].second, b.where = args.kwAt[k];
      }
    if (ok && !b.value && !optional)
      ok = failed(args.at, args.name + " needs the argument '" + std::string(b.name) + "'");
    ok = ok && (!b.value || hasType(*b.value, type, b.where));
    args.bound.push_back(b);
  };
  forEachWord(arguments, [&](std::string_view word) {
    if (word == "&" || word == ";" || word == ":") return;
    if (word == "*" || word == "=")
      keywordsOnly = true, anyPosition |= word == "*";
    else if (word == "**")
      anyKeyword = true;
    else
      bindOne(word);
  });
  if (!ok) return false;
  size_t n = args.rest;
  if (!anyPosition && n < args.pos.size())
    return failed(args.posAt[n],
                  args.name + " takes " +
                      (n ? "at most " + std::to_string(n) + " positional argument" + (n > 1 ? "s" : "")
                         : "no positional arguments") +
                      ", but " + std::to_string(args.pos.size()) + " are given");
  for (size_t k = 0; k < args.kw.size() && !anyKeyword; ++k)
    if (!args.takenKeywords[k])
      return failed(args.kwAt[k], args.name + " has no argument '" + args.kw[k].first + "'");
  return true;
}

/// T.exp, T.float32, R.add: names of tables of their own, or unknown.
Value Parser::callUnlisted(Args& args) {
  std::string_view name = std::string_view(args.name).substr(std::min<size_t>(2, args.name.size()));
  if (args.name.starts_with("R.")) return relaxOp(std::string(name), args);
  if (args.name.starts_with("T.")) {
    if (auto dtype = DType::parse(name)) return dtypeCall(*dtype, args);
    if (auto op = intrinOf(name)) return intrinsic(*op, args);
  } else if (!args.name.starts_with("I."))
    return failed(args.at, "'" + args.name + "' cannot be called here");
  return unknownForm(args);
}

Value Parser::unknownForm(const Args& args) {
  std::string prefix = args.name.substr(0, 2);
  std::vector<std::string> candidates;
  if (prefix == "T.")
    for (int i = 0; i < numIntrins(); ++i) candidates.push_back(prefix + intrinInfo(Intrin(i)).name);
  for (const auto& row : forms())
    if (row.first.starts_with(prefix)) candidates.emplace_back(row.first);
  if (std::find(candidates.begin(), candidates.end(), args.name) != candidates.end())
    return failed(args.at, "'" + args.name + "' has no meaning here");
  return failed(args.at, "unknown function '" + args.name + "'", didYouMean(args.name, candidates));
}

} // namespace bevel::detail
