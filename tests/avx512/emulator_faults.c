/* Makes up for two faults of the emulator, Bochs 2.7.
 *
 * 1. It refuses gathers and scatters whose index lies in zmm16 to zmm31: its decoder takes the bit that names the upper half
 *    of the registers for a use of the field vvvv, which these instructions have not. The signal of the invalid opcode runs
 *    the instruction with the index in another register,
 *
 *      vscatterqps %ymm18, (%rcx,%zmm17,4) {%k1}    ->    zmm0 = zmm17 (in the saved state), then one step of
 *                                                         vscatterqps %ymm18, (%rcx,%zmm0,4) {%k1}
 *
 *    and after that step gives the register and the code back.
 * 2. Shifts of a 16-bit mask by 15 give zero. They are made invalid where they stand, and the signal computes them:
 *
 *      c4 e3 f9 32 c9 0f  kshiftlw $15, %k1, %k1    ->    0f 0b  ud2, then f9 32 c9 0f as they were
 *
 * Any other invalid opcode stays one. */
#define _GNU_SOURCE
#include "emulator_faults.h"

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

/* Where the saved state holds each part of the registers: bits 0 to 127, 128 to 255, 256 to 511, zmm16 to zmm31, masks. */
enum {
  kStateMask = 512,
  kLow = 160,
  kMiddle = 576,
  kHigh = 1152,
  kUpperHalf = 1664,
  kMasks = 1088,
  kVectors = 0xe6
};
enum { kTrapFlag = 0x100, kCodeBytes = 7, kShiftBytes = 6, kPage = 4096 };

static struct {
  uint8_t* code;
  uint8_t original[kCodeBytes];
  uint8_t saved[64];
  int reg;
} step; /* the one under way */

static uint8_t* stateOf(void* context) {
  return (uint8_t*)((ucontext_t*)context)->uc_mcontext.fpregs;
}

/* Copies a register of the lower half between the saved state and 64 bytes. */
static void copyLower(uint8_t* state, int reg, uint8_t* bytes, int write) {
  uint8_t* parts[] = {state + kLow + 16 * reg, state + kMiddle + 16 * reg, state + kHigh + 32 * reg};
  for (int i = 0, place = 0; i < 3; ++i) {
    int size = i < 2 ? 16 : 32;
    memcpy(write ? parts[i] : bytes + place, write ? bytes + place : parts[i], (size_t)size);
    place += size;
  }
}

/* An EVEX gather or scatter whose index has its upper bit set (stored inverted). */
static int isRefused(const uint8_t* code) {
  int operation = code[4] & 0xfc;
  return code[0] == 0x62 && (code[1] & 0x07) == 2 && (operation == 0x90 || operation == 0xa0) &&
         (code[5] & 0xc0) != 0xc0 && (code[5] & 0x07) == 4 && !(code[3] & 0x08);
}

/* Puts the index into another register, for one step. */
static int runGather(uint8_t* code, uint8_t* state, greg_t* flags) {
  uint8_t* page = (uint8_t*)((uintptr_t)code & ~(uintptr_t)(kPage - 1));
  size_t size = code + kCodeBytes > page + kPage ? 2 * kPage : kPage;
  if (!isRefused(code) || mprotect(page, size, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) return 0;
  int index = (code[6] >> 3 & 7) | (code[1] & 0x40 ? 0 : 8);
  int data = (code[5] >> 3 & 7) | (code[1] & 0x80 ? 0 : 8) | (code[1] & 0x10 ? 0 : 16);
  step.code = code;
  step.reg = data == 0 ? 1 : 0;
  memcpy(step.original, code, kCodeBytes);
  copyLower(state, step.reg, step.saved, 0);
  copyLower(state, step.reg, state + kUpperHalf + 64 * index, 1);
  uint8_t changed[kCodeBytes];
  memcpy(changed, code, kCodeBytes);
  changed[1] |= 0x40;
  changed[3] |= 0x08;
  changed[6] = (uint8_t)((changed[6] & ~0x38) | step.reg << 3);
  memcpy(code, changed, kCodeBytes); /* all of it: the emulator looks only at the page of the first byte */
  *flags |= kTrapFlag;
  return 1;
}

/* A shift of a mask by 15 without its first two bytes. */
static int isShift(const uint8_t* rest) {
  return rest[0] == 0xf9 && (rest[1] == 0x30 || rest[1] == 0x32) && rest[2] >= 0xc0 && rest[3] == 15;
}

static int runShift(const uint8_t* code, uint8_t* state, greg_t* place) {
  if (code[0] != 0x0f || code[1] != 0x0b || !isShift(code + 2)) return 0;
  uint64_t* masks = (uint64_t*)(state + kMasks);
  uint16_t source = (uint16_t)masks[code[4] & 7];
  masks[code[4] >> 3 & 7] = (uint16_t)(code[3] == 0x32 ? source << 15 : source >> 15);
  *place += kShiftBytes;
  return 1;
}

static void onInvalidOpcode(int number, siginfo_t* info, void* context) {
  (void)info;
  greg_t* registers = ((ucontext_t*)context)->uc_mcontext.gregs;
  uint8_t *code = (uint8_t*)registers[REG_RIP], *state = stateOf(context);
  if (runShift(code, state, &registers[REG_RIP]) || runGather(code, state, &registers[REG_EFL]))
    *(uint64_t*)(state + kStateMask) |= kVectors;
  else
    signal(number, SIG_DFL); /* the instruction runs again and ends the process */
}

static void onStep(int number, siginfo_t* info, void* context) {
  (void)number, (void)info;
  memcpy(step.code, step.original, kCodeBytes);
  copyLower(stateOf(context), step.reg, step.saved, 1);
  ((ucontext_t*)context)->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)kTrapFlag;
}

/* Makes the shifts of a piece of code invalid. */
static void markShifts(uint8_t* begin, uint8_t* end) {
  if (mprotect(begin, (size_t)(end - begin), PROT_READ | PROT_WRITE | PROT_EXEC) != 0) return;
  for (uint8_t* code = begin; code + kShiftBytes <= end; ++code)
    if (code[0] == 0xc4 && code[1] == 0xe3 && isShift(code + 2)) {
      code[0] = 0x0f;
      code[1] = 0x0b;
    }
}

void repairEmulator(const char* library) {
  char line[1024], rights[8];
  unsigned long begin, end;
  FILE* maps = fopen("/proc/self/maps", "r");
  while (maps && fgets(line, sizeof line, maps))
    if (strstr(line, library) && sscanf(line, "%lx-%lx %7s", &begin, &end, rights) == 3 && rights[2] == 'x')
      markShifts((uint8_t*)begin, (uint8_t*)end);
  if (maps) fclose(maps);
  struct sigaction action = {.sa_flags = SA_SIGINFO};
  action.sa_sigaction = onInvalidOpcode;
  sigaction(SIGILL, &action, NULL);
  action.sa_sigaction = onStep;
  sigaction(SIGTRAP, &action, NULL);
}
