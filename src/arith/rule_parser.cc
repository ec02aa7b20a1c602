// A small precedence parser for rule text: or, and, not, comparisons, + -, * // %, calls.
#include "arith/rule_parser.h"

#include "arith/number.h"
#include "ir/evaluate.h"

#include <cctype>

namespace bevel::arith {

namespace {

class Parser {
public:
  Parser(std::string_view text, PatternArena& arena) : text_(text), arena_(arena) {}

  int parse() {
    int root = disjunction();
    skip();
    BEVEL_ASSERT(pos_ == text_.size(), text_);
    return root;
  }

private:
  void skip() {
    while (pos_ < text_.size() && text_[pos_] == ' ') ++pos_;
  }
  static bool isName(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }
  bool eat(std::string_view token) {
    skip();
    if (text_.substr(pos_, token.size()) != token) return false;
    bool word = isName(token.back());
    if (word && pos_ + token.size() < text_.size() && isName(text_[pos_ + token.size()])) return false;
    pos_ += token.size();
    return true;
  }
  void expect(std::string_view token) { BEVEL_ASSERT(eat(token), text_); }
  int add(Pattern p) {
    arena_.push_back(p);
    return int(arena_.size()) - 1;
  }
  int binary(BinaryOp op, int a, int b) {
    Pattern p{Pattern::kBinary, op};
    p.kids[0] = a;
    p.kids[1] = b;
    return add(p);
  }

  int disjunction() {
    int a = conjunction();
    while (eat("or")) a = binary(BinaryOp::kOr, a, conjunction());
    return a;
  }
  int conjunction() {
    int a = negation();
    while (eat("and")) a = binary(BinaryOp::kAnd, a, negation());
    return a;
  }
  int negation() {
    if (!eat("not")) return comparison();
    Pattern p{Pattern::kNot};
    p.kids[0] = negation();
    return add(p);
  }
  int comparison() {
    int a = sum();
    static constexpr std::pair<std::string_view, BinaryOp> kOps[] = {
        {"==", BinaryOp::kEq}, {"!=", BinaryOp::kNe}, {"<=", BinaryOp::kLe},
        {">=", BinaryOp::kGe}, {"<", BinaryOp::kLt},  {">", BinaryOp::kGt}};
    for (auto [token, op] : kOps)
      if (eat(token)) return binary(op, a, sum());
    return a;
  }
  int sum() {
    int a = product();
    while (true) {
      if (eat("+"))
        a = binary(BinaryOp::kAdd, a, product());
      else if (eat("-"))
        a = binary(BinaryOp::kSub, a, product());
      else
        return a;
    }
  }
  int product() {
    int a = primary();
    while (true) {
      if (eat("//"))
        a = binary(BinaryOp::kFloorDiv, a, primary());
      else if (eat("%"))
        a = binary(BinaryOp::kFloorMod, a, primary());
      else if (eat("*"))
        a = binary(BinaryOp::kMul, a, primary());
      else
        return a;
    }
  }
  int integer() {
    int64_t v = 0;
    while (pos_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[pos_])))
      v = v * 10 + (text_[pos_++] - '0');
    return add({Pattern::kInt, BinaryOp::kAdd, false, v});
  }
  int callOf(Pattern p, int arity, bool lanes) {
    expect("(");
    for (int i = 0; i < arity; ++i) {
      if (i) expect(",");
      p.kids[i] = disjunction();
    }
    if (lanes) {
      expect(",");
      expect("L");
    }
    expect(")");
    return add(p);
  }
  int primary() {
    skip();
    if (eat("(")) {
      int a = disjunction();
      expect(")");
      return a;
    }
    if (pos_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[pos_]))) return integer();
    static constexpr std::pair<std::string_view, BinaryOp> kCalls[] = {{"min", BinaryOp::kMin},
                                                                       {"max", BinaryOp::kMax},
                                                                       {"truncdiv", BinaryOp::kDiv},
                                                                       {"truncmod", BinaryOp::kMod}};
    for (auto [name, op] : kCalls)
      if (eat(name)) return callOf({Pattern::kBinary, op}, 2, false);
    if (eat("select")) return callOf({Pattern::kSelect}, 3, false);
    if (eat("if_then_else")) return callOf({Pattern::kIf}, 3, false);
    if (eat("ramp")) return callOf({Pattern::kRamp}, 2, true);
    if (eat("broadcast")) return callOf({Pattern::kBroadcast}, 1, true);
    if (eat("true")) return add({Pattern::kInt, BinaryOp::kAdd, true, 1});
    if (eat("false")) return add({Pattern::kInt, BinaryOp::kAdd, true, 0});
    if (eat("L")) return add({Pattern::kLanes});
    for (int i = 0; i < 3; ++i)
      if (eat(std::string_view("c1c2c3").substr(size_t(i) * 2, 2)))
        return add({Pattern::kConst, BinaryOp::kAdd, false, i});
    for (size_t i = 0; i < kWildcardNames.size(); ++i)
      if (eat(kWildcardNames.substr(i, 1))) return add({Pattern::kAny, BinaryOp::kAdd, i >= 4, int64_t(i)});
    internalFault(__FILE__, __LINE__, text_);
  }

  std::string_view text_;
  size_t pos_ = 0;
  PatternArena& arena_;
};

} // namespace

int parsePattern(std::string_view text, PatternArena& arena) {
  return Parser(text, arena).parse();
}

bool hasWildcard(const PatternArena& arena, int index) {
  if (index < 0) return false;
  const Pattern& p = arena[size_t(index)];
  return p.kind == Pattern::kAny || hasWildcard(arena, p.kids[0]) || hasWildcard(arena, p.kids[1]) ||
         hasWildcard(arena, p.kids[2]);
}

std::optional<int64_t> foldPattern(const PatternArena& arena, int index, const Bindings& binds) {
  const Pattern& p = arena[size_t(index)];
  switch (p.kind) {
  case Pattern::kInt:
    return p.value;
  case Pattern::kLanes:
    return binds.lanes;
  case Pattern::kConst:
    return binds.constants[size_t(p.value)];
  case Pattern::kBinary: {
    auto a = foldPattern(arena, p.kids[0], binds);
    // Conditions are read left to right: a guard before a division protects it.
    if (a && p.op == BinaryOp::kAnd && !*a) return 0;
    auto b = a ? foldPattern(arena, p.kids[1], binds) : std::nullopt;
    bool logical = p.op == BinaryOp::kAnd || p.op == BinaryOp::kOr;
    return a && b ? exactInt(p.op, *a, *b, logical ? kBool : kInt64) : std::nullopt;
  }
  case Pattern::kNot: {
    auto a = foldPattern(arena, p.kids[0], binds);
    return a ? std::optional<int64_t>(!*a) : std::nullopt;
  }
  default:
    return std::nullopt;
  }
}

Expr Builder::build(int index) {
  const Pattern& p = arena_[size_t(index)];
  if (p.kind == Pattern::kAny) return binds_.any[size_t(p.value)];
  if (p.kind == Pattern::kInt && p.boolean) return constant(DType::Bool(binds_.rootType.lanes), p.value);
  if (!hasWildcard(arena_, index) && p.kind <= Pattern::kBinary) {
    auto v = foldPattern(arena_, index, binds_);
    bool condition = p.kind == Pattern::kBinary && p.op >= BinaryOp::kEq && p.op <= BinaryOp::kOr;
    if (condition) return v ? constant(DType::Bool(binds_.rootType.lanes), *v) : nullptr;
    DType t = binds_.valueType.isVoid() ? binds_.rootType : binds_.valueType;
    return v && t.isInteger() && fitsDType(*v, t) ? constant(t, *v) : nullptr;
  }
  Expr kids[3];
  for (int i = 0; i < 3; ++i)
    if (p.kids[i] >= 0 && !(kids[i] = build(p.kids[i]))) return nullptr;
  switch (p.kind) {
  case Pattern::kBinary:
    if (kids[0]->dtype != kids[1]->dtype) return nullptr;
    return make<const BinaryNode>(p.op, kids[0], kids[1]);
  case Pattern::kNot:
    return make<const UnaryNode>(UnaryOp::kNot, kids[0]);
  case Pattern::kSelect:
    return make<const SelectNode>(kids[0], kids[1], kids[2]);
  case Pattern::kIf:
    return make<const CallNode>(kids[1]->dtype, Intrin::kIfThenElse,
                                Array<NodeRef>{kids[0], kids[1], kids[2]});
  case Pattern::kRamp:
    return make<const RampNode>(kids[0], kids[1], binds_.lanes);
  case Pattern::kBroadcast:
    return make<const BroadcastNode>(kids[0], binds_.lanes);
  default:
    return nullptr;
  }
}

} // namespace bevel::arith
