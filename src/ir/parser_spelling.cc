// Other spellings of operators (spellings.def): a call becomes the expression that its row gives.
//
//   R.nn.linear(x, w, b)     →     R.add(R.matmul(x, R.permute_dims(w)), b)
#include "ir/parser_impl.h"

#include <algorithm>

namespace bevel::detail {
namespace {

constexpr Parser::Spelling kSpellings[] = {
#define SPELLING(names, parameters, meaning) {names, parameters, meaning},
#include "ir/spellings.def"
#undef SPELLING
};

bool hasWord(std::string_view words, std::string_view word) {
  for (size_t at = words.find(word); at != std::string_view::npos; at = words.find(word, at + 1)) {
    size_t end = at + word.size();
    if ((at == 0 || words[at - 1] == ' ') && (end == words.size() || words[end] == ' ')) return true;
  }
  return false;
}

/// Constants as Python's: R.prim_value(1) is 1.
Value plainValue(Value v) {
  if (auto* p = v.as<PrimValueNode>()) return capturedValue(p->value);
  for (Value& item : v.items) item = plainValue(std::move(item));
  return v;
}

bool sameValue(const Value& a, const Value& b) {
  bool same = a.tag == b.tag || (a.isSequence() && b.isSequence());
  same = same && a.number == b.number && a.real == b.real && a.text == b.text && !a.node && !b.node &&
         a.items.size() == b.items.size();
  for (size_t i = 0; same && i < a.items.size(); ++i) same = sameValue(a.items[i], b.items[i]);
  return same;
}

bool has(const OpSignature& signature, const std::string& argument) {
  bool found = argument == "attrs";
  for (const std::string& input : signature.inputs) found |= input == argument;
  for (const OpSignature::Attr& a : signature.attrs) found |= a.name == argument;
  return found;
}

/// Axes in order up to the last, counted from the end.
bool areLast(const Value& axes) {
  int64_t n = int64_t(axes.items.size());
  bool last = axes.isSequence() && n > 0;
  for (int64_t i = 0; last && i < n; ++i)
    last = axes.items[size_t(i)].tag == Value::kInt && axes.items[size_t(i)].number == i - n;
  return last;
}

} // namespace

/// Whether the condition of a parameter, which comes next, holds for its argument.
bool Parser::fitsCondition(Value& v) {
  if (accept("tuple")) return v.isSequence();
  if (accept("int")) return v.tag == Value::kInt;
  if (accept("last")) {
    if (v.tag == Value::kInt) v = Value::sequence(Value::kList, {v}); // one axis
    return areLast(v);
  }
  Value wanted = expr(kPrecCompare);
  if (wanted.tag != Value::kTuple) return sameValue(v, wanted);
  return std::ranges::any_of(wanted.items, [&](const Value& one) { return sameValue(v, one); });
}

/// Binds the parameters of a row to the arguments, in the innermost scope; false where the row does not take them.
bool Parser::bindSpelling(std::string_view parameters, const Args& args) {
  size_t position = 0, keywords = 0;
  bool ok = true;
  auto bindAll = [&] {
    do {
      std::string name(take().text);
      const Value* given = position < args.pos.size() ? &args.pos[position] : nullptr;
      ++position;
      for (const auto& [key, value] : args.kw)
        if (key == name) ok &= !given, given = &value, ++keywords;
      Value v = given ? plainValue(*given) : Value();
      if (accept(":")) ok &= fitsCondition(v) || !given;
      if (accept("=")) {
        Value otherwise = expr();
        if (!given) v = std::move(otherwise);
      } else
        ok &= given != nullptr;
      bind(name, std::move(v));
    } while (accept(","));
    return Value::none();
  };
  return evaluate(parameters, args.at, bindAll).ok() && ok && args.pos.size() <= position &&
         args.kw.size() == keywords;
}

/// The call under another spelling, as what it stands for; nothing where no row takes it.
std::optional<Value> Parser::spelled(const std::string& op, const Args& args) {
  std::string known;
  for (const Spelling& row : kSpellings) {
    if (expanding_ || !hasWord(row.names, op)) continue;
    known += (known.empty() ? "(" : " or (") + std::string(row.parameters) + ")";
    Scope scope(*this);
    Saved expanding(expanding_, true);
    if (bindSpelling(row.parameters, args)) return evaluate(row.meaning, args.at, [&] { return expr(); });
  }
  if (known.empty() || !options_.signatureOf) return std::nullopt;
  bool ours = true; // our operator of that name takes the keywords
  if (auto signature = options_.signatureOf(op))
    for (size_t k = 0; k < args.kw.size(); ++k)
      ours &= args.takenKeywords[k] || has(*signature, args.kw[k].first);
  else
    ours = false;
  if (ours) return std::nullopt;
  return Value(failed(args.at, args.name + " does not take these arguments", "it takes " + known));
}

} // namespace bevel::detail
