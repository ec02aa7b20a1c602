/* Tells what a file holds, with the Magika model compiled by Bevel: `magika FILE`.
 *
 * Built by `./dev run` from this file, the compiled model (magika.so, magika.h) and the run time, nothing
 * else:
 *
 *   bevel compile models/magika/model.onnx -o magika.so
 *   cc main.c -I . -I models/magika -I include -L . -l:magika.so -L build -lbevel_runtime -o magika
 *
 * The model sees 2,048 tokens: 1,024 bytes from the beginning of the file, leading white space left out, and
 * 1,024 from its end, trailing white space left out; where there are fewer, the token 256 pads the far side.
 * As in the package magika 1.0.3, at most 4,096 bytes are looked at on each side, files with fewer than 8
 * bytes to show are judged by their encoding alone, and a label below its threshold becomes "txt" or
 * "unknown". */
#include "magika.h"

#include <bevel/runtime.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kBlock = 4096, kSide = 1024, kTokens = 2 * kSide, kPadding = 256, kLeastBytes = 8 };

typedef struct Label {
  const char* name;
  const char* description;
  const char* mime;
  int isText;
  float threshold;
} Label;

static const Label kLabels[] = {
#define MAGIKA_LABEL(name, description, mime, isText, threshold) {name, description, mime, isText, threshold},
#include "labels.inc"
#undef MAGIKA_LABEL
};
enum { kNumLabels = sizeof(kLabels) / sizeof(kLabels[0]) };

/* The first and the last bytes of a file; they overlap where it is short. */
typedef struct Ends {
  unsigned char begin[kBlock], end[kBlock];
  size_t size; /* of each */
} Ends;

static int readEnds(const char* path, Ends* ends) {
  FILE* file = fopen(path, "rb");
  if (!file) return 0;
  ends->size = fread(ends->begin, 1, kBlock, file);
  memcpy(ends->end, ends->begin, ends->size);
  int fine = !ferror(file);
  if (fine && ends->size == kBlock && fseek(file, -(long)kBlock, SEEK_END) == 0)
    fine = fread(ends->end, 1, kBlock, file) == kBlock;
  fclose(file);
  return fine;
}

static int isSpace(unsigned char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Fills the tokens; gives how many bytes the first half holds. */
static size_t makeTokens(const Ends* ends, int32_t tokens[kTokens]) {
  size_t first = 0, last = ends->size;
  while (first < ends->size && isSpace(ends->begin[first])) ++first;
  while (last > 0 && isSpace(ends->end[last - 1])) --last;
  size_t head = ends->size - first < kSide ? ends->size - first : kSide;
  size_t tail = last < kSide ? last : kSide;
  for (size_t i = 0; i < kSide; ++i) {
    tokens[i] = i < head ? ends->begin[first + i] : kPadding;
    tokens[kTokens - 1 - i] = i < tail ? ends->end[last - 1 - i] : kPadding;
  }
  return head;
}

/* Whether the bytes are UTF-8 (overlong forms, surrogates and values beyond U+10FFFF are not). */
static int isUtf8(const unsigned char* text, size_t size) {
  for (size_t i = 0; i < size;) {
    unsigned c = text[i++], more = c < 0x80 ? 0 : c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;
    if ((c >= 0x80 && c < 0xc2) || c > 0xf4 || size - i < more) return 0;
    for (unsigned k = 0; k < more; ++k) {
      unsigned low = 0x80, high = 0xbf;
      if (k == 0 && c == 0xe0) low = 0xa0;
      if (k == 0 && c == 0xed) high = 0x9f;
      if (k == 0 && c == 0xf0) low = 0x90;
      if (k == 0 && c == 0xf4) high = 0x8f;
      if (text[i] < low || text[i] > high) return 0;
      ++i;
    }
  }
  return 1;
}

static void check(int32_t status, const char* what) {
  if (status == BEVEL_OK) return;
  fprintf(stderr, "%s: %s\n", what, bevel_last_error());
  exit(1);
}

/* Runs the model; copies the probability of every label. */
static void classify(int32_t tokens[kTokens], float scores[kNumLabels]) {
  bevel_model* model;
  bevel_instance* instance;
  check(magika_load(&model), "cannot load the model");
  check(bevel_instance_create(model, NULL, &instance), "cannot make an instance");

  int64_t shape[2] = {1, kTokens};
  DLTensor input = {.data = tokens,
                    .device = {kDLCPU, 0},
                    .ndim = 2,
                    .dtype = {kDLInt, 32, 1},
                    .shape = shape,
                    .strides = NULL,
                    .byte_offset = 0};
  check(bevel_set_input(instance, 0, &input), "cannot set the input");
  check(bevel_run(instance), "cannot run the model");
  const DLTensor* output = bevel_output(instance, 0);
  if (!output || output->ndim != 2 || output->shape[1] != kNumLabels) {
    fprintf(stderr, "the model does not fit its labels\n");
    exit(1);
  }
  memcpy(scores, (const char*)output->data + output->byte_offset, kNumLabels * sizeof(float));
  bevel_instance_release(instance);
  bevel_model_release(model);
}

int main(int argc, char** argv) {
  static Ends ends;
  static int32_t tokens[kTokens];
  float scores[kNumLabels];
  if (argc != 2) {
    fprintf(stderr, "usage: %s FILE\n", argv[0]);
    return 2;
  }
  if (!readEnds(argv[1], &ends)) {
    perror(argv[1]);
    return 1;
  }
  if (makeTokens(&ends, tokens) < kLeastBytes) {
    const char* name = ends.size == 0 ? "empty" : isUtf8(ends.begin, ends.size) ? "txt" : "unknown";
    printf("%s: %s (too little to ask the model)\n", argv[1], name);
    return 0;
  }
  classify(tokens, scores);
  int best = 0;
  for (int i = 1; i < kNumLabels; ++i)
    if (scores[i] > scores[best]) best = i;
  const Label* label = &kLabels[best];
  if (scores[best] >= label->threshold)
    printf("%s: %s, %s, %s (score %.3f)\n", argv[1], label->name, label->description, label->mime,
           scores[best]);
  else
    printf("%s: %s (perhaps %s, score %.3f)\n", argv[1], label->isText ? "txt" : "unknown", label->name,
           scores[best]);
  return 0;
}
