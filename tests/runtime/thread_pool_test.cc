// The pool and parallel_for: every element once, on its own thread number, nested, from many threads, on the
// caller's.
#include "runtime/instance.h"
#include "tests/runtime/support.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace bevel;
using namespace bevel::image;

TEST(ThreadPool, RunsEachPartOnce) {
  for (int threads = 1; threads <= 8; ++threads) {
    auto pool = rt::Ref<rt::ThreadPool>::adopt(new rt::ThreadPool(threads));
    ASSERT_EQ(pool->size(), threads);
    std::vector<std::atomic<int>> counts(8);
    pool->beginRun();
    int rounds = 120;
    for (int round = 0; round < rounds; ++round) {
      int parts = 1 + round % threads;
      ASSERT_TRUE(pool->run(
          parts,
          [](void* arg, int32_t part) {
            ++(*static_cast<std::vector<std::atomic<int>>*>(arg))[size_t(part)];
          },
          &counts));
    }
    pool->endRun();
    for (int part = 0; part < 8; ++part) {
      int expected = 0;
      for (int round = 0; round < rounds; ++round) expected += part < 1 + round % threads;
      EXPECT_EQ(counts[size_t(part)], expected) << threads << " threads, part " << part;
    }
  }
}

TEST(ThreadPool, WakesParkedWorkers) {
  auto pool = rt::Ref<rt::ThreadPool>::adopt(new rt::ThreadPool(4));
  std::atomic<int> sum = 0;
  for (int i = 0; i < 30; ++i) { // outside of a run, workers park at once
    std::this_thread::sleep_for(std::chrono::microseconds(300));
    ASSERT_TRUE(
        pool->run(4, [](void* arg, int32_t part) { *static_cast<std::atomic<int>*>(arg) += part; }, &sum));
  }
  EXPECT_EQ(sum, 30 * 6);
}

TEST(ThreadPool, RefusesASecondLoopAtOnce) {
  auto pool = rt::Ref<rt::ThreadPool>::adopt(new rt::ThreadPool(2));
  bool inner = true;
  struct Env {
    rt::ThreadPool* pool;
    bool* inner;
  } env = {pool.get(), &inner};
  pool->run(
      1,
      [](void* arg, int32_t) {
        auto& e = *static_cast<Env*>(arg);
        *e.inner = e.pool->run(2, [](void*, int32_t) {}, nullptr);
      },
      &env);
  EXPECT_FALSE(inner);
}

namespace {
/// marks[i] = 1 + the number of the thread that did i; nested loops must stay on their thread.
int32_t markKernel(const bevel_ctx* ctx, void* const* buffers, const int64_t* dims, void*) {
  return ctx->parallel_for(
      ctx,
      [](const bevel_ctx* own, void* env, int64_t begin, int64_t end) -> int32_t {
        auto* marks = static_cast<int64_t*>(env);
        for (int64_t i = begin; i < end; ++i) {
          struct Inner {
            int64_t* mark;
            int thread;
          } inner = {marks + i, own->thread_id};
          int32_t status = own->parallel_for(
              own,
              [](const bevel_ctx* deep, void* e, int64_t b, int64_t n) -> int32_t {
                auto& in = *static_cast<Inner*>(e);
                if (deep->thread_id != in.thread) return BEVEL_ERROR_INTERNAL;
                *in.mark += (n - b) * (1 + in.thread);
                return BEVEL_OK;
              },
              &inner, 1);
          if (status) return status;
        }
        return BEVEL_OK;
      },
      buffers[0], dims[0]);
}

void buildMark(TestModel& m) {
  uint32_t k = m.addKernel({.name = "mark", .numBuffers = 1, .numDims = 1}, markKernel);
  uint32_t zero =
      m.addKernel({.name = "zero", .numBuffers = 1, .numDims = 1},
                  [](const bevel_ctx*, void* const* buffers, const int64_t* dims, void*) -> int32_t {
                    std::fill_n(static_cast<int64_t*>(buffers[0]), dims[0], 0);
                    return BEVEL_OK;
                  });
  FunctionBuilder& f = m.image.addFunction("main");
  uint32_t n = f.addParam({.name = "n", .dtype = kI64, .dims = {1}});
  f.addResult({.name = "marks", .dtype = kI64, .dims = {"n"}});
  uint32_t s = f.newSlot();
  f.builtin("vm.load_slots", {reg(n), imm(s), imm(1)});
  uint32_t out = f.builtinTo("vm.alloc_output", {imm(0), imm(kI64), slot(s)});
  f.kernel(zero, {reg(out), slot(s)});
  f.kernel(k, {reg(out), slot(s)});
  f.ret({reg(out)});
}

std::vector<int64_t> schedule(int64_t n, int64_t threads) {
  std::vector<int64_t> marks;
  int64_t parts = std::min(n, threads);
  for (int64_t t = 0; t < parts; ++t)
    for (int64_t i = n * t / parts; i < n * (t + 1) / parts; ++i) marks.push_back(1 + t);
  return marks;
}
} // namespace

TEST(ParallelFor, FollowsTheStaticSchedule) {
  TestModel m;
  buildMark(m);
  bevel_model* model = m.load();
  for (int threads : {1, 2, 3, 7, 8}) {
    TestInstance run(model, threads);
    for (int64_t n : {0, 1, 2, 5, 7, 8, 9, 64, 1001}) {
      View<int64_t> in({n});
      bevel_set_input(run, 0, in);
      ASSERT_EQ(bevel_run(run), BEVEL_OK) << bevel_last_error();
      EXPECT_EQ(elements<int64_t>(bevel_output(run, 0)), schedule(n, threads)) << n << " on " << threads;
    }
  }
}

TEST(ParallelFor, RunsOnThreadsOfTheCallers) {
  TestModel m;
  buildMark(m);
  bevel_options options = {};
  options.size = sizeof options, options.num_threads = 3;
  int calls = 0;
  options.parallel_user = &calls;
  options.parallel = [](void* user, int32_t n, void (*run)(void*, int32_t), void* arg) {
    ++*static_cast<int*>(user);
    for (int32_t i = n; i-- > 0;) std::thread(run, arg, i).join(); // any order, one at a time
  };
  bevel_instance* run;
  ASSERT_EQ(bevel_instance_create(m.load(), &options, &run), BEVEL_OK);
  View<int64_t> in({10});
  bevel_set_input(run, 0, in);
  ASSERT_EQ(bevel_run(run), BEVEL_OK) << bevel_last_error();
  EXPECT_EQ(elements<int64_t>(bevel_output(run, 0)), schedule(10, 3));
  EXPECT_EQ(calls, 1);
  bevel_instance_release(run);
}

TEST(ParallelFor, OnePoolServesManyInstances) {
  TestModel m;
  buildMark(m);
  bevel_model* model = m.load();
  bevel_pool* pool;
  ASSERT_EQ(bevel_pool_create(3, &pool), BEVEL_OK);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      bevel_options options = {};
      options.size = sizeof options, options.pool = pool;
      bevel_instance* run;
      if (bevel_instance_create(model, &options, &run)) return void(++wrong);
      for (int64_t n = 1; n < 200; ++n) {
        View<int64_t> in({n});
        bevel_set_input(run, 0, in);
        if (bevel_run(run)) ++wrong;
        auto marks =
            elements<int64_t>(bevel_output(run, 0)); // by the pool, or all on thread 0 where it was busy
        if (marks != schedule(n, 3) && marks != std::vector<int64_t>(size_t(n), 1)) ++wrong;
      }
      bevel_instance_release(run);
    });
  for (auto& t : threads) t.join();
  bevel_pool_release(pool);
  EXPECT_EQ(wrong, 0);
}

TEST(ParallelFor, ReportsAFailureFromAnyThread) {
  TestModel m;
  uint32_t k =
      m.addKernel({.name = "k"}, [](const bevel_ctx* ctx, void* const*, const int64_t*, void*) -> int32_t {
        return ctx->parallel_for(
            ctx,
            [](const bevel_ctx* own, void*, int64_t begin, int64_t end) -> int32_t {
              if (begin <= 5 && 5 < end) {
                own->fail(own, "five");
                return BEVEL_ERROR_REFUSED;
              }
              return BEVEL_OK;
            },
            nullptr, 8);
      });
  FunctionBuilder& f = m.image.addFunction("main");
  f.kernel(k, {});
  f.ret({});
  TestInstance run(m.load(), 4);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(bevel_run(run), BEVEL_ERROR_REFUSED);
    EXPECT_STREQ(bevel_last_error(), "'main', kernel 'k': five");
  }
}

// Threads do not exist in a forked child: its loops run on the thread that calls, and the pool can be released.
TEST(ThreadPoolFork, ChildRunsInline) {
  bevel_pool* pool = nullptr;
  ASSERT_EQ(bevel_pool_create(3, &pool), BEVEL_OK);
  pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(20); // a hang ends the child
    auto* threads = static_cast<rt::ThreadPool*>(pool);
    bool ran = threads->run(3, [](void*, int32_t) {}, nullptr);
    bevel_pool_release(pool);
    _exit(ran ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  bevel_pool_release(pool);
}
