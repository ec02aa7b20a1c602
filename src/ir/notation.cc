// Words of the notation.
#include "ir/notation.h"

#include "ir/stmt.h"

namespace bevel::detail {

bool isReservedKeyword(std::string_view key) {
  for (std::string_view word : {"out_sinfo", "out_ty", "sinfo_args", "ty_args", "tir_vars", "attrs"})
    if (key == word) return true;
  return false;
}

namespace {

constexpr Operator kOperators[] = {
#define OPERATOR(text, precedence, op) {text, precedence, op},
#include "ir/notation.def"
};

constexpr std::pair<int, std::string_view> kFunctions[] = {
#define CODED(handler, code, spellings, arguments) {#handler[0] == 'b' ? int(code) : -1, spellings},
#include "ir/notation.def"
};

} // namespace

const Operator* operatorOf(std::string_view text) {
  for (const Operator& row : kOperators)
    if (row.text[0] == text[0] && row.text == text) return &row;
  return nullptr;
}

const Operator* operatorOf(BinaryOp op) {
  for (const Operator& row : kOperators)
    if (row.op == op) return &row;
  return nullptr;
}

std::string_view functionOf(BinaryOp op) {
  for (const auto& [code, spellings] : kFunctions)
    if (code == int(op)) return spellings.substr(0, spellings.find(' '));
  return "";
}

bool isScriptMark(std::string_view name) {
#define SCRIPT_MARK(call)                                                                                    \
  if (name == call) return true;
#include "ir/notation.def"
  return false;
}

std::string_view adviceFor(std::string_view word, bool script) {
#define SCRIPT_HABIT(habit, advice)                                                                          \
  if (script && word == habit) return advice;
#include "ir/notation.def"
#define HABIT(habit, advice)                                                                                 \
  if (word == habit) return advice;
#include "ir/notation.def"
  return "";
}

} // namespace bevel::detail
