// Random small tensor programs and random schedule steps, for the fuzzer.
#pragma once

#include "sched/steps/blocks.h"
#include "sched/steps/buffers.h"
#include "sched/steps/get.h"
#include "sched/steps/loops.h"
#include "sched/steps/place.h"
#include "tests/dice.h"
#include "tests/sched/support.h"

namespace bevel::testing {

using namespace steps;

/// One to four stages over a matrix of odd sizes: elementwise, broadcast, shifted, transposed, windows with
/// padding, row sums, products.
class RandomProgram {
public:
  explicit RandomProgram(uint64_t seed) : dice_(seed) {
    static const std::vector<int64_t> kSizes = {1, 2, 3, 4, 5, 7, 8};
    rows_ = dice_.pick(kSizes);
    columns_ = dice_.pick(kSizes);
  }

  PrimFunc make() {
    tensors_.push_back(te::placeholder(dims({rows_, columns_}), kFloat32, "A"));
    te::Tensor input = tensors_[0];
    int stages = 1 + int(dice_.upTo(4));
    for (int s = 0; s < stages; ++s) tensors_.push_back(stage("S" + std::to_string(s)));
    return te::createPrimFunc({input, tensors_.back()});
  }

private:
  te::Tensor stage(const std::string& name) {
    const te::Tensor& x = tensors_.back();
    const te::Tensor& y = dice_.pick(tensors_);
    Expr two = constantFloat(kFloat32, 2), zero = constantFloat(kFloat32, 0);
    Array<Expr> shape = dims({rows_, columns_});
    using Axes = const Array<Var>&;
    switch (dice_.upTo(6)) {
    case 0:
      return te::compute(shape, name, [&](Axes i) { return x({i[0], i[1]}) * two + y({i[0], i[1]}); });
    case 1: // window down the rows, zero outside
      return te::compute(shape, name, [&](Axes i) {
        Expr above = ifThenElse(i[0] >= intImm(1), x({i[0] - 1, i[1]}), zero);
        return above + x({i[0], i[1]});
      });
    case 2: // mirrored columns
      return te::compute(shape, name,
                         [&](Axes i) { return x({i[0], intImm(columns_ - 1) - i[1]}) + y({i[0], i[1]}); });
    case 3: { // sum of a row, taken from every element
      IterVar k = te::reduceAxis(intImm(columns_), "k");
      auto sum =
          te::compute(dims({rows_}), name + "_sum", [&](Axes i) { return te::sum(x({i[0], k->var}), {k}); });
      return te::compute(shape, name, [&](Axes i) { return y({i[0], i[1]}) - sum({i[0]}); });
    }
    case 4: { // X times its transpose of Y
      IterVar k = te::reduceAxis(intImm(columns_), "k");
      auto p = te::compute(dims({rows_, rows_}), name + "_prod",
                           [&](Axes i) { return te::sum(x({i[0], k->var}) * y({i[1], k->var}), {k}); });
      return te::compute(shape, name, [&](Axes i) { return p({i[0], i[0]}) + y({i[0], i[1]}); });
    }
    default: { // largest of a column
      IterVar k = te::reduceAxis(intImm(rows_), "k");
      auto m = te::compute(dims({columns_}), name + "_max",
                           [&](Axes i) { return te::max(x({k->var, i[0]}), {k}); });
      return te::compute(shape, name, [&](Axes i) { return max(y({i[0], i[1]}), m({i[1]}) - two); });
    }
    }
  }

  Dice dice_;
  int64_t rows_, columns_;
  std::vector<te::Tensor> tensors_;
};

/// Tries one random step; most are refused. Values stay small: sums of products of small integers are exact
/// in fp32.
class RandomStep {
public:
  RandomStep(Schedule& sch, Dice& dice) : sch_(sch), dice_(dice) {}

  Status take() {
    BEVEL_TRY(BlockRV root, sch_.run(GetSblock{"root"}));
    BEVEL_TRY(std::vector<BlockRV> blocks, sch_.run(GetChildBlocks{root}));
    BlockRV block = dice_.pick(blocks), other = dice_.pick(blocks);
    BEVEL_TRY(std::vector<LoopRV> loops, sch_.run(GetLoops{block}));
    BEVEL_TRY(std::vector<LoopRV> otherLoops, sch_.run(GetLoops{other}));
    static const std::vector<std::string> kScopes = {"local", "global", "shared"};
    switch (dice_.upTo(19)) {
    case 0:
      return asStatus(sch_.run(ComputeInline{block}));
    case 1:
      return asStatus(sch_.run(ReverseComputeInline{block}));
    case 2:
    case 3:
      return otherLoops.empty() ? Status()
                                : sch_.run(ComputeAt{block, dice_.pick(otherLoops), dice_.upTo(2) == 0});
    case 4:
    case 5:
      return otherLoops.empty()
                 ? Status()
                 : sch_.run(ReverseComputeAt{block, dice_.pick(otherLoops), dice_.upTo(2) == 0});
    case 6:
      return asStatus(sch_.run(CacheRead{block, dice_.upTo(2), dice_.pick(kScopes)}));
    case 7:
      return asStatus(sch_.run(CacheWrite{block, 0, dice_.pick(kScopes)}));
    case 8:
      return loops.empty() ? Status() : asStatus(sch_.run(DecomposeReduction{block, dice_.pick(loops)}));
    case 9:
      return asStatus(
          sch_.run(TransformLayout{block, dice_.upTo(2) ? writeBuffer(0) : readBuffer(0), map()}));
    case 10:
      return asStatus(sch_.run(TransformBlockLayout{block, map()}));
    case 11:
      return loops.empty() ? Status() : asStatus(sch_.run(Rfactor{dice_.pick(loops), 0}));
    default:
      return loops.empty() ? Status() : loopStep(loops);
    }
  }

private:
  Status loopStep(std::vector<LoopRV> loops) {
    size_t at = size_t(dice_.upTo(int64_t(loops.size())));
    LoopRV loop = loops[at];
    switch (dice_.upTo(8)) {
    case 0:
    case 1:
    case 2: {
      int64_t f = 1 + dice_.upTo(5);
      Factors factors = {std::nullopt, f};
      if (dice_.upTo(3) == 0) factors = {f, std::nullopt, 2};
      return asStatus(sch_.run(Split{loop, factors, dice_.upTo(2) == 0}));
    }
    case 3:
      return at + 1 < loops.size() ? asStatus(sch_.run(Fuse{{loop, loops[at + 1]}, dice_.upTo(2) == 0}))
                                   : Status();
    case 4:
    case 5: {
      for (size_t i = loops.size(); i > 1; --i)
        std::swap(loops[i - 1], loops[size_t(dice_.upTo(int64_t(i)))]);
      loops.resize(size_t(1 + dice_.upTo(int64_t(loops.size()))));
      return sch_.run(Reorder{loops});
    }
    case 6:
      return dice_.upTo(2) ? sch_.run(Parallel{loop}) : sch_.run(Vectorize{loop});
    default:
      return dice_.upTo(2) ? sch_.run(Unroll{loop}) : asStatus(sch_.run(AddUnitLoop{loop}));
    }
  }

  IndexMap map() {
    int64_t f = 1 + dice_.upTo(4);
    switch (dice_.upTo(3)) {
    case 0:
      return IndexMap::of(2, [](const std::vector<Var>& i) { return Array<Expr>{i[1], i[0]}; });
    case 1:
      return IndexMap::of(2, [&](const std::vector<Var>& i) {
        return Array<Expr>{floordiv(i[1], f), i[0], floormod(i[1], f)};
      });
    default:
      return IndexMap::of(
          1, [&](const std::vector<Var>& i) { return Array<Expr>{floordiv(i[0], f), floormod(i[0], f)}; });
    }
  }

  template <class T> static Status asStatus(Result<T> r) {
    if (!r) return fail(std::move(r.error()));
    return {};
  }
  static Status asStatus(Status s) { return s; }

  Schedule& sch_;
  Dice& dice_;
};

} // namespace bevel::testing
