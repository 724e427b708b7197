// Threads and interruption: every part runs once, and a pass that is asked to stop does so soon.
#include <mutex>
#include <set>

#if defined(__GLIBC__)
#include <pthread.h>
#endif

#include "check.hpp"
#include "hinge/linear_pass.hpp"

using namespace hinge;
using Clock = std::chrono::steady_clock;

namespace {

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// The threads that ran each part.
std::vector<std::vector<std::thread::id>> runs_of_parts(int parts) {
  std::vector<std::vector<std::thread::id>> runs(parts);
  std::mutex mutex;
  run_parts(parts, [&](int k) {
    const std::lock_guard<std::mutex> lock(mutex);
    runs.at(k).push_back(std::this_thread::get_id());
  });
  return runs;
}

void test_each_part_once() {
  for (int parts = 1; parts <= 9; ++parts)
    for (int repeat = 0; repeat < 20; ++repeat) {
      const auto runs = runs_of_parts(parts);
      std::set<std::thread::id> threads;
      for (int k = 0; k < parts; ++k) {
        CHECK(runs[k].size() == 1, "part %d of %d ran %zu times", k, parts, runs[k].size());
        threads.insert(runs[k].begin(), runs[k].end());
      }
      CHECK(runs[0][0] == std::this_thread::get_id(), "part 0 of %d left its caller", parts);
      CHECK((int)threads.size() <= parts, "%zu threads for %d parts", threads.size(), parts);
    }
}

void test_parts_run_side_by_side() {
  std::atomic<int> arrived{0};
  run_parts(3, [&](int) {  // each waits for the others: in turn they would wait for ever
    ++arrived;
    const auto start = Clock::now();
    while (arrived < 3 && seconds_since(start) < 20) std::this_thread::yield();
  });
  CHECK(arrived == 3, "%d", arrived.load());
}

// A stack that no machine has: no thread can be had, so all parts run on the caller.
void test_no_threads_to_be_had() {
#if defined(__GLIBC__)
  pthread_attr_t usual, greedy;
  pthread_getattr_default_np(&usual);
  pthread_attr_init(&greedy);
  pthread_attr_setstacksize(&greedy, std::size_t(1) << 62);
  pthread_setattr_default_np(&greedy);
  const auto runs = runs_of_parts(4);
  pthread_setattr_default_np(&usual);
  pthread_attr_destroy(&greedy);
  pthread_attr_destroy(&usual);
  for (int k = 0; k < 4; ++k) {
    CHECK(runs[k].size() == 1, "part %d ran %zu times", k, runs[k].size());
    for (const auto thread : runs[k]) CHECK(thread == std::this_thread::get_id(), "part %d", k);
  }
#endif
}

std::atomic<int> polls;
std::thread::id polled_from;

template <int stop_at>
bool poll() {
  polled_from = std::this_thread::get_id();
  return ++polls == stop_at;
}

void test_interrupt() {
  polls = 0;
  const auto start = Clock::now();
  Interrupt stopping(poll<2>);
  const bool stopped = stopping.check(true);
  CHECK(!stopped && (polls == 0 || seconds_since(start) > 0.05), "asked at once");
  while (!stopping.check(true) && seconds_since(start) < 20) CHECK(!stopping.requested(), "too early");
  CHECK(stopping.requested() && stopping.check(false) && polls == 2, "%d polls", polls.load());
  CHECK(seconds_since(start) >= 0.1, "two polls within %g s", seconds_since(start));
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  CHECK(stopping.check(true) && polls == 2, "asked again after the answer was yes");

  polls = 0;
  Interrupt elsewhere(poll<1>);
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  CHECK(!elsewhere.check(false) && polls == 0, "asked from a thread that is not the caller");

  Interrupt nobody(nullptr);
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  CHECK(!nobody.check(true), "stopped without anybody to ask");
}

// Twenty million visits of one row: many seconds of work, of which only a few hundredths are done.
template <class T>
void test_pass_stops(const Kernels<T>& kernels, int threads) {
  const ptrdiff_t count = 20'000'000, C = 12, D = 100;
  static const std::vector<std::int32_t> y(count);
  const std::vector<T> x(D, T(1)), weights(C * D);
  std::vector<T> out(C * D);
  const LinearPass<T> pass{{LossKind::one_vs_rest, false, 1}, Product::gradient, weights.data(), nullptr, C, false,
                           {y.data(), nullptr, nullptr, count}, threads};
  polls = 0;
  polled_from = {};
  Interrupt interrupt(poll<2>);
  const auto start = Clock::now();
  const double loss = linear_pass(pass, DenseRows<T>{x.data(), 0, 1, D}, kernels, nullptr, interrupt, out.data());
  const double took = seconds_since(start);
  CHECK(interrupt.requested() && polls == 2, "%d polls", polls.load());
  CHECK(polled_from == std::this_thread::get_id(), "asked from another thread than the caller's");
  CHECK(loss > 0 && loss < (double)(C * count), "loss %g: nothing or everything was done", loss);
  CHECK(took < 1, "%g s to stop with %d threads", took, threads);
}

}  // namespace

int main() {
  const Isa isa = check::isa();
  test_each_part_once();
  test_parts_run_side_by_side();
  test_no_threads_to_be_had();
  test_interrupt();
  for (int threads = 1; threads <= 3; ++threads) {
    test_pass_stops(kernels<float>(isa), threads);
    test_pass_stops(kernels<double>(isa), threads);
  }
  return check::result();
}
