// What code is generated for: instruction set, registers, caches, cores. A target is plain data with a text
// form.
#pragma once

#include "base/dtype.h"
#include "base/result.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace bevel {

/// What holds for every target of one instruction set: an ARCHITECTURE row of target/targets.def.
struct Architecture {
  const char* name;          // first part of a triple
  const char* kind;          // of device: "cpu". Passes and storage scopes are listed by it
  int pointerBits;           // kernels need 64
  uint16_t elfMachine;       // e_machine of its ELF objects; 0: it has no ELF objects, so no libraries
  uint32_t elfFlags;         // e_flags that its linker wants in objects of data
  const char* linkEmulation; // lld's -m; null: no shared libraries
  bool maxKeepsNaN;          // one instruction each gives maximum and minimum with NaN propagated
};

/// How much there is of what schedules and allocations share.
struct Limits {
  int vectorBits = 128; // preferred vector register width
  int vectorRegs = 16;
  int64_t l1 = 32 << 10, l2 = 512 << 10,
          l3 = 8 << 20; // data cache bytes; l1, l2 per core, l3 shared; 0: none
  int cores = 1;
  int cacheLine = 64;
  friend bool operator==(const Limits&, const Limits&) = default;
};

/// What a program is compiled for. Made from a row of target/targets.def, from the machine we run on, or from text.
struct Target {
  std::string name;   // row of the table it derives from: "x86-64-v3"
  std::string triple; // "x86_64-unknown-linux-gnu"
  std::string cpu;    // LLVM's -mcpu: which instructions exist
  std::string tune;   // LLVM's -mtune: which are fast; empty: as cpu
  std::vector<std::string>
      features;        // LLVM's feature names beyond those of the cpu, "+f16c" or "-avx512f"; sorted
  bool fma = false;    // fused multiply-add in vector registers
  bool f16c = false;   // vector conversion fp16 <-> fp32
  bool avx512 = false; // AVX-512 F, BW, DQ, VL: 32 registers and masked instructions
  Limits limits;

  /// The machine we run on, caches and cores included. Detected once.
  static const Target& host();
  /// "host", a name of targets.def, or one of these followed by changes: "x86-64-v3,cores=4,l2=1048576,
  /// features=+avxvnni". kInvalid names the unknown part and lists what is known.
  static Result<Target> parse(std::string_view text);
  /// All names of targets.def.
  static std::vector<std::string> names();
  /// The text that parse() reads back to an equal target: the name, then what differs from its row.
  std::string str() const;
  /// The same, or "host" for the machine we run on: what programs carry and people read.
  std::string brief() const;
  /// The part of str() that machine code depends on (not caches and cores): the key of compiled code.
  std::string codeKey() const;

  /// The row of the triple's instruction set. A triple without a row has one that allows nothing.
  const Architecture& architecture() const;
  std::string_view kind() const { return architecture().kind; }
  /// Elements of a type in one vector register; at least 1.
  int lanes(DType dtype) const { return dtype.bits ? std::max(1, limits.vectorBits / dtype.bits) : 1; }
  /// Whether this machine can execute code made for `this`.
  bool runsOn(const Target& machine) const;

  friend bool operator==(const Target&, const Target&) = default;
};

} // namespace bevel
