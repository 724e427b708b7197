// Threads for one call: spawned, joined, gone. Nothing outlives the call, so a process may fork at any time between
// calls, and nested callers (joblib, Dask) only have to pass the number of threads they grant.
// Spawning costs some 20 µs a thread; callers keep short work on one thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <system_error>
#include <thread>
#include <vector>

namespace hinge {

// Asks the outside, at most every 50 ms and from the calling thread only, whether to stop.
class Interrupt {
 public:
  using Poll = bool (*)();  // true: stop
  explicit Interrupt(Poll poll) : poll_(poll) {}

  bool requested() const { return stop_.load(std::memory_order_relaxed); }

  // To be called between blocks; `caller` is true on the thread that called the native function.
  bool check(bool caller) {
    if (caller && poll_ != nullptr && !requested()) {
      const auto now = std::chrono::steady_clock::now();
      if (now - last_ > std::chrono::milliseconds(50)) {
        last_ = now;
        if (poll_()) stop_.store(true, std::memory_order_relaxed);
      }
    }
    return requested();
  }

 private:
  Poll poll_;
  std::atomic<bool> stop_{false};
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

// Runs part(0) … part(parts − 1), part 0 on the calling thread. A part whose thread cannot be had runs there too.
// `part` must not throw.
template <class F>
void run_parts(int parts, F&& part) {
  std::vector<std::thread> threads;
  threads.reserve(parts > 1 ? parts - 1 : 0);
  int started = 1;
  try {
    for (; started < parts; ++started) threads.emplace_back(part, started);
  } catch (const std::system_error&) {
  }
  part(0);
  for (int k = started; k < parts; ++k) part(k);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace hinge
