// Decodes and checks the code of a function: afterwards every register, slot, constant, callee and jump is in
// range.
#include "runtime/image_reader.h"

#include <algorithm>
#include <cstring>

namespace bevel::rt {

namespace {

class Decoder {
public:
  Decoder(const ImageView& image, std::span<const uint64_t> words, Program& program, Function& function)
      : image_(image), words_(words), program_(program), f_(function) {}

  Status run() {
    while (next_ < words_.size()) BEVEL_RT_TRY(instruction());
    if (f_.code.empty()) return malformed("a function without code");
    uint8_t last = f_.code.back().op;
    if (last != BEVEL_OP_JUMP && last != BEVEL_OP_RETURN)
      return malformed("code does not end with a jump or a return");
    for (const Instruction& in : f_.code)
      if ((in.op == BEVEL_OP_JUMP || in.op == BEVEL_OP_BRANCH) && in.index >= f_.code.size())
        return malformed("a jump to nowhere");
    return BEVEL_OK;
  }

private:
  Status word(uint64_t* w) {
    if (next_ >= words_.size()) return malformed("code is truncated");
    *w = words_[next_++];
    return BEVEL_OK;
  }

  Status instruction() {
    uint64_t head, second = 0;
    BEVEL_RT_TRY(word(&head));
    Instruction in;
    in.op = uint8_t(head);
    in.numArgs = uint32_t(head >> 8) & 0xffffff;
    in.reg = uint32_t(head >> 32);
    in.firstArg = uint32_t(f_.args.size());
    bool jumps = in.op == BEVEL_OP_BRANCH || in.op == BEVEL_OP_JUMP;
    if (in.op < BEVEL_OP_CALL || in.op > BEVEL_OP_RETURN) return malformed("an unknown instruction");
    if (jumps && in.numArgs) return malformed("a jump with arguments");
    if (in.op != BEVEL_OP_RETURN) BEVEL_RT_TRY(word(&second));
    if (jumps) in.index = second > UINT32_MAX ? UINT32_MAX : uint32_t(second);
    if (in.op == BEVEL_OP_BRANCH && in.reg >= f_.numRegisters) return malformed("a register out of range");
    if (in.op == BEVEL_OP_CALL && in.reg != BEVEL_NO_REGISTER && in.reg >= f_.numRegisters)
      return malformed("a register out of range");
    if (in.numArgs > words_.size() - next_) return malformed("code is truncated");
    in.constantArgs = true;
    for (uint32_t i = 0; i < in.numArgs; ++i) BEVEL_RT_TRY(argument(words_[next_++], in));
    if (in.op == BEVEL_OP_CALL) BEVEL_RT_TRY(call(in, second));
    if (in.op == BEVEL_OP_RETURN && in.numArgs != f_.results.size())
      return malformed("a return of other results");
    f_.code.push_back(in);
    return BEVEL_OK;
  }

  Status argument(uint64_t w, Instruction& in) {
    Arg arg;
    arg.kind = uint8_t(w);
    arg.integer = int64_t(w) >> 8;
    auto below = [&](uint64_t limit) { return arg.integer >= 0 && uint64_t(arg.integer) < limit; };
    switch (arg.kind) {
    case BEVEL_ARG_NONE:
    case BEVEL_ARG_INT:
    case BEVEL_ARG_HEAP:
      break;
    case BEVEL_ARG_REGISTER:
      if (!below(f_.numRegisters)) return malformed("a register out of range");
      break;
    case BEVEL_ARG_SLOT:
      if (!below(f_.numSlots)) return malformed("a slot out of range");
      in.constantArgs = false;
      break;
    case BEVEL_ARG_CONST:
      if (!below(image_.constants.size())) return malformed("a constant out of range");
      break;
    case BEVEL_ARG_WIDE:
    case BEVEL_ARG_FLOAT: {
      if (!below(image_.ints.size())) return malformed("an integer out of range");
      int64_t bits = image_.ints[size_t(arg.integer)];
      if (arg.kind == BEVEL_ARG_WIDE)
        arg.integer = bits, arg.kind = BEVEL_ARG_INT;
      else
        memcpy(&arg.number, &bits, 8);
      break;
    }
    case BEVEL_ARG_STRING: {
      const char* text;
      if (!below(BEVEL_NO_STRING)) return malformed("text out of range");
      BEVEL_RT_TRY(image_.string(uint32_t(arg.integer), &text));
      Ref<String>& string = program_.strings[uint32_t(arg.integer)];
      if (!string) string = Ref<String>::adopt(new String(text));
      arg.string = string.get();
      break;
    }
    default:
      return malformed("an unknown kind of argument");
    }
    f_.args.push_back(arg);
    return BEVEL_OK;
  }

  Status call(Instruction& in, uint64_t w) {
    in.callee = uint8_t(w);
    in.index = uint32_t(w >> 8) & 0xffffff;
    BEVEL_RT_TRY(image_.string(uint32_t(w >> 32), &in.origins));
    in.site = program_.numSites++;
    if (in.callee == BEVEL_CALLEE_KERNEL) return kernelCall(in);
    if (in.callee == BEVEL_CALLEE_FUNCTION) return BEVEL_OK; // checked when all functions are known
    if (in.callee != BEVEL_CALLEE_PACKED || in.index >= program_.packed.size())
      return malformed("a call of nothing");
    in.builtin = findBuiltin(program_.packed[in.index]);
    in.cache = f_.numCaches++;
    return BEVEL_OK;
  }

  Status kernelCall(Instruction& in) {
    if (in.index >= program_.kernels.size()) return malformed("a call of a kernel out of range");
    const KernelInfo& k = program_.kernels[in.index];
    const TargetInfo& target = program_.targets[k.target];
    if (!target.refusal.empty())
      return fail(BEVEL_ERROR_REFUSED, "kernel '%s' is for %s and needs %s", k.name, target.name,
                  target.refusal.c_str());
    if (!*in.origins) in.origins = k.origins;
    uint64_t integers = uint64_t(k.numDims) + (k.dynamicWorkspace ? 2 : 0);
    if (uint64_t(k.numBuffers) + integers != in.numArgs)
      return malformed("a kernel call with other arguments");
    for (uint32_t i = 0; i < in.numArgs; ++i) {
      uint8_t kind = f_.args[in.firstArg + i].kind;
      bool fits = i < k.numBuffers
                      ? kind == BEVEL_ARG_REGISTER || kind == BEVEL_ARG_CONST || kind == BEVEL_ARG_HEAP
                      : kind == BEVEL_ARG_INT || kind == BEVEL_ARG_SLOT;
      if (!fits) return malformed("a kernel argument of a wrong kind");
    }
    program_.maxBuffers = std::max(program_.maxBuffers, k.numBuffers);
    program_.maxDims = std::max(program_.maxDims, k.numDims);
    return BEVEL_OK;
  }

  const ImageView& image_;
  std::span<const uint64_t> words_;
  Program& program_;
  Function& f_;
  size_t next_ = 0;
};

} // namespace

Status decodeCode(const ImageView& image, std::span<const uint64_t> words, Program& program,
                  Function& function) {
  return Decoder(image, words, program, function).run();
}

} // namespace bevel::rt
