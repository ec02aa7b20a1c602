/* Runs compiled models inside the emulated machine: `guest LIST`.
 *
 * LIST holds, for every case, lines of words:
 *
 *   case NAME LIBRARY
 *   input NAME DTYPE-CODE BITS RANK DIMS... BYTES FILE      any number of these
 *   run
 *
 * What comes out leaves the machine through its parallel port, which the emulator writes to a file: the text of
 * /proc/cpuinfo, then for every case `case NAME`, one line `output DTYPE-CODE BITS RANK DIMS... BYTES` before the
 * bytes of each output, and `end` or `fault REASON`; `done` closes it. Every case has a process of its own, so one
 * that crashes is a fault and the others run on. */
#include "emulator_faults.h"

#include <bevel/runtime.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/io.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
  kParallelData = 0x378,
  kParallelControl = 0x37a,
  kIdle = 0x0c,
  kStrobe = 0x0d,
  kShutdownPort = 0x8900
};
enum { kMaxInputs = 32, kMaxRank = 16, kName = 512 };

typedef struct Input {
  char name[kName], file[kName];
  DLTensor tensor;
  int64_t shape[kMaxRank];
  long bytes;
} Input;

typedef struct Case {
  char name[kName], library[kName];
  Input inputs[kMaxInputs];
  int numInputs;
} Case;

static void send(const void* data, size_t size) {
  for (const unsigned char* byte = data; size > 0; ++byte, --size) {
    outb(*byte, kParallelData);
    outb(kStrobe, kParallelControl);
    outb(kIdle, kParallelControl);
  }
}

static void sendText(const char* format, ...) {
  char text[2048];
  va_list arguments;
  va_start(arguments, format);
  int size = vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  send(text, size < (int)sizeof text ? (size_t)size : sizeof text - 1);
}

static void sendCpuInfo(void) {
  char text[4096];
  FILE* file = fopen("/proc/cpuinfo", "r");
  for (size_t size; file && (size = fread(text, 1, sizeof text, file)) > 0;) send(text, size);
  if (file) fclose(file);
}

/* Ends the process of a case. The reason stays on one line. */
static void fault(const char* what, const char* reason) {
  char line[1024];
  snprintf(line, sizeof line, "%s: %s", what, reason);
  for (char* c = line; *c; ++c)
    if (*c == '\n') *c = ' ';
  sendText("fault %s\n", line);
  _exit(0);
}

static void check(int32_t status, const char* what) {
  if (status != BEVEL_OK) fault(what, bevel_last_error());
}

static int findInput(const bevel_model* model, const char* name) {
  bevel_param param;
  for (int i = 0; i < bevel_model_num_inputs(model, 0); ++i)
    if (bevel_model_input(model, 0, i, &param) == BEVEL_OK && strcmp(param.name, name) == 0) return i;
  return -1;
}

static void readData(Input* input) {
  FILE* file = fopen(input->file, "rb");
  size_t room = input->bytes > 0 ? (size_t)input->bytes : 1;
  input->tensor.data = aligned_alloc(64, (room + 63) / 64 * 64);
  if (!file || !input->tensor.data ||
      fread(input->tensor.data, 1, (size_t)input->bytes, file) != (size_t)input->bytes)
    fault(input->file, "cannot be read");
  fclose(file);
}

static int isCompact(const DLTensor* tensor) {
  int64_t step = 1;
  for (int i = tensor->ndim - 1; tensor->strides && i >= 0; step *= tensor->shape[i--])
    if (tensor->shape[i] > 1 && tensor->strides[i] != step) return 0;
  return 1;
}

static void sendOutput(const DLTensor* tensor) {
  if (!tensor || (bevel_tensor_bytes(tensor) != 0 && !isCompact(tensor)))
    fault("output", "is no compact tensor");
  int64_t bytes = bevel_tensor_bytes(tensor);
  sendText("output %d %d %d", tensor->dtype.code, tensor->dtype.bits, tensor->ndim);
  for (int i = 0; i < tensor->ndim; ++i) sendText(" %lld", (long long)tensor->shape[i]);
  sendText(" %lld\n", (long long)bytes);
  send((const char*)tensor->data + tensor->byte_offset, (size_t)bytes);
}

static void runCase(Case* task) {
  bevel_model* model;
  bevel_instance* instance;
  bevel_options options = {.size = sizeof(bevel_options), .num_threads = 1};
  check(bevel_model_load(task->library, &model), "load");
  repairEmulator(task->library);
  check(bevel_instance_create(model, &options, &instance), "instance");
  for (int i = 0; i < task->numInputs; ++i) {
    Input* input = &task->inputs[i];
    readData(input);
    input->tensor.shape = input->shape;
    int index = findInput(model, input->name);
    if (index < 0) fault(input->name, "the model has no such input");
    check(bevel_set_input(instance, index, &input->tensor), "input");
  }
  check(bevel_run(instance), "run");
  int count = bevel_model_num_outputs(model, 0);
  for (int i = 0; i < count; ++i) sendOutput(bevel_output(instance, i));
  sendText("end\n");
  _exit(0);
}

static void runApart(Case* task) {
  printf("%s\n", task->name);
  fflush(stdout);
  sendText("case %s\n", task->name);
  pid_t child = fork();
  if (child == 0) runCase(task);
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) < 0)
    sendText("fault no process\n");
  else if (WIFSIGNALED(status))
    sendText("fault signal %d\n", WTERMSIG(status));
}

/* The words of a line after `input`; gives 0 where it is malformed. */
static int parseInput(Input* input) {
  const char* words[kMaxRank + 8];
  int count = 0;
  for (char* word; count < kMaxRank + 8 && (word = strtok(NULL, " \n"));) words[count++] = word;
  if (count < 6) return 0;
  memset(input, 0, sizeof *input);
  int rank = atoi(words[3]);
  if (rank < 0 || rank > kMaxRank || count != rank + 6) return 0;
  snprintf(input->name, kName, "%s", words[0]);
  input->tensor.device = (DLDevice){kDLCPU, 0};
  input->tensor.dtype = (DLDataType){(uint8_t)atoi(words[1]), (uint8_t)atoi(words[2]), 1};
  input->tensor.ndim = rank;
  for (int i = 0; i < rank; ++i) input->shape[i] = atoll(words[4 + i]);
  input->bytes = atol(words[4 + rank]);
  snprintf(input->file, kName, "%s", words[5 + rank]);
  return 1;
}

static int parseLine(char* line, Case* task) {
  const char* verb = strtok(line, " \n");
  if (!verb) return 1;
  if (strcmp(verb, "input") == 0)
    return task->numInputs < kMaxInputs && parseInput(&task->inputs[task->numInputs++]);
  if (strcmp(verb, "case") == 0) {
    const char *name = strtok(NULL, " \n"), *library = strtok(NULL, " \n");
    if (!name || !library) return 0;
    task->numInputs = 0;
    snprintf(task->name, kName, "%s", name);
    snprintf(task->library, kName, "%s", library);
    return 1;
  }
  if (strcmp(verb, "run") != 0) return 0;
  runApart(task);
  return 1;
}

int main(int argc, char** argv) {
  static Case task;
  static char line[4096];
  FILE* list = argc == 2 ? fopen(argv[1], "r") : NULL;
  if (!list || iopl(3) != 0) {
    perror("guest");
    return 1;
  }
  sendCpuInfo();
  while (fgets(line, sizeof line, list))
    if (!parseLine(line, &task)) {
      fprintf(stderr, "guest: a line of the list is malformed\n");
      return 1;
    }
  sendText("done\n");
  for (const char* c = "Shutdown"; *c; ++c) outb((unsigned char)*c, kShutdownPort);
  return 0;
}
