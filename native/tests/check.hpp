// All that the native tests share: a check that counts failures, numbers that are the same everywhere, and the
// instruction set under test.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <vector>

#include "hinge/kernels.hpp"

namespace check {

inline int failures = 0;

// Prints the first failures, counts all.
#define CHECK(condition, ...)                                             \
  do {                                                                    \
    if (!(condition) && ++check::failures <= 20) {                        \
      std::printf("%s:%d: %s\n    ", __FILE__, __LINE__, #condition);     \
      std::printf(__VA_ARGS__);                                           \
      std::printf("\n");                                                  \
    }                                                                     \
  } while (false)

inline int result() {
  if (failures != 0) std::printf("%d checks failed\n", failures);
  return failures == 0 ? 0 : 1;
}

// What HINGE_ISA names. A processor that lacks it ends the test as skipped (77), an unknown name as failed.
inline hinge::Isa isa() {
  const char* name = std::getenv("HINGE_ISA");
  for (hinge::Isa isa : {hinge::Isa::baseline, hinge::Isa::avx2, hinge::Isa::avx512})
    if (name != nullptr && hinge::isa_name(isa) == name && !hinge::isa_supported(isa)) std::exit(77);
  try {
    return hinge::active_isa();
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
    std::exit(1);
  }
}

// Steele, Lea & Flood 2014 (SplitMix64): the same numbers with every compiler and library.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t bits() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  // lowest … highest, both included.
  std::int64_t integer(std::int64_t lowest, std::int64_t highest) {
    return lowest + (std::int64_t)(bits() % (std::uint64_t)(highest - lowest + 1));
  }
  double uniform(double lowest, double highest) {
    return lowest + (highest - lowest) * ((double)(bits() >> 11) * 0x1p-53);
  }
  bool coin() { return (bits() >> 33) & 1; }

 private:
  std::uint64_t state_;
};

}  // namespace check
