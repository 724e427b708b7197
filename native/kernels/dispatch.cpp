// Which instruction set runs: the widest that processor and build share, unless HINGE_ISA says otherwise.
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "hinge/kernels.hpp"

namespace hinge {

namespace baseline {
extern const Kernels<float> float32;
extern const Kernels<double> float64;
}  // namespace baseline
#if defined(HINGE_X86)
namespace avx2 {
extern const Kernels<float> float32;
extern const Kernels<double> float64;
}  // namespace avx2
namespace avx512 {
extern const Kernels<float> float32;
extern const Kernels<double> float64;
}  // namespace avx512
#endif

std::string_view isa_name(Isa isa) {
  switch (isa) {
    case Isa::avx512: return "avx512";
    case Isa::avx2: return "avx2";
    default: return "baseline";
  }
}

bool isa_supported(Isa isa) {
  if (isa == Isa::baseline) return true;
#if defined(HINGE_X86)
  __builtin_cpu_init();
  if (isa == Isa::avx2) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512cd");
#else
  return false;
#endif
}

Isa best_isa() {
  for (Isa isa : {Isa::avx512, Isa::avx2})
    if (isa_supported(isa)) return isa;
  return Isa::baseline;
}

Isa active_isa() {
  const char* forced = std::getenv("HINGE_ISA");
  if (forced == nullptr || *forced == '\0') return best_isa();
  for (Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512}) {
    if (isa_name(isa) != forced) continue;
    if (!isa_supported(isa)) throw std::runtime_error("HINGE_ISA=" + std::string(forced) + ": this processor lacks it");
    return isa;
  }
  throw std::runtime_error("HINGE_ISA=" + std::string(forced) + ": unknown; use baseline, avx2 or avx512");
}

template <>
const Kernels<float>& kernels<float>(Isa isa) {
#if defined(HINGE_X86)
  if (isa == Isa::avx512) return avx512::float32;
  if (isa == Isa::avx2) return avx2::float32;
#endif
  return baseline::float32;
}

template <>
const Kernels<double>& kernels<double>(Isa isa) {
#if defined(HINGE_X86)
  if (isa == Isa::avx512) return avx512::float64;
  if (isa == Isa::avx2) return avx2::float64;
#endif
  return baseline::float64;
}

}  // namespace hinge
