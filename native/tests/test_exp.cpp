// The exponential against expl, in units in the last place of the exact result.
//
// `test_exp STRIDE` visits every STRIDE-th float32 (1: all of them); the table of docs/algorithms/exp.md comes from it.
#include <cmath>
#include <cstring>
#include <limits>

#include "check.hpp"

using hinge::ptrdiff_t;

namespace {

// What docs/algorithms/exp.md promises; a fused multiply–add changes the rounding, a wider vector does not.
template <class T>
double promised(hinge::Isa isa) {
  const bool fused = isa != hinge::Isa::baseline;
  return sizeof(T) == 4 ? (fused ? 1.06 : 1.03) : (fused ? 1.01 : 0.98);
}

// Subnormal results round twice, but the first time by a small part of their own spacing.
constexpr double promised_subnormal = 0.80;

// The distance between floating numbers around a positive exact value.
template <class T>
long double spacing(long double exact) {
  int exponent;
  std::frexp(exact, &exponent);
  const int lowest = std::numeric_limits<T>::min_exponent;
  return std::ldexp(1.0L, (exponent > lowest ? exponent : lowest) - std::numeric_limits<T>::digits);
}

template <class T>
struct Worst {
  double normal = 0, subnormal = 0;
  T normal_at = 0, subnormal_at = 0;

  void see(T x, T result) {
    const long double exact = std::exp((long double)x);
    const bool tiny = exact < (long double)std::numeric_limits<T>::min();
    // An exact value that rounds to infinity has no error in ULPs.
    const long double largest = std::numeric_limits<T>::max(), limit = largest + spacing<T>(largest) / 2;
    if (exact >= limit || !std::isfinite(result)) {
      CHECK(exact >= limit && std::isinf(result) && result > 0, "x = %a: %a", (double)x, (double)result);
      return;
    }
    const double error = (double)(std::fabs((long double)result - exact) / spacing<T>(exact));
    double& worst = tiny ? subnormal : normal;
    if (error > worst) worst = error, (tiny ? subnormal_at : normal_at) = x;
  }
};

// Feeds values to the kernel in batches.
template <class T>
class Sweep {
 public:
  explicit Sweep(const hinge::Kernels<T>& kernels) : kernels_(kernels) { x_.reserve(batch); }
  ~Sweep() { flush(); }

  void add(T x) {
    x_.push_back(x);
    if (x_.size() == batch) flush();
  }

  const Worst<T>& worst() {
    flush();
    return worst_;
  }

 private:
  static constexpr std::size_t batch = 4096;

  void flush() {
    std::vector<T> out(x_.size());
    kernels_.exp(x_.data(), out.data(), (ptrdiff_t)x_.size());
    for (std::size_t i = 0; i < x_.size(); ++i) worst_.see(x_[i], out[i]);
    x_.clear();
  }

  const hinge::Kernels<T>& kernels_;
  std::vector<T> x_;
  Worst<T> worst_;
};

template <class T, class Bits>
T from_bits(Bits bits) {
  T value;
  static_assert(sizeof(value) == sizeof(bits));
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

template <class T>
void report(const char* type, const Worst<T>& worst, hinge::Isa isa) {
  std::printf("%s: %.4f ulp at %a; subnormal results %.4f ulp at %a\n", type, worst.normal, (double)worst.normal_at,
              worst.subnormal, (double)worst.subnormal_at);
  CHECK(worst.normal <= promised<T>(isa), "%s at %a", type, (double)worst.normal_at);
  CHECK(worst.subnormal <= promised_subnormal, "%s at %a", type, (double)worst.subnormal_at);
}

// Where rounding to a multiple of ln 2 changes sides, and its neighbours: the largest remainders.
template <class T>
void add_boundaries(Sweep<T>& sweep, double lowest, double highest) {
  for (double half = std::ceil(2 * lowest / M_LN2); half * M_LN2 / 2 < highest; ++half) {
    T x = (T)(half * M_LN2 / 2);
    for (int k = 0; k < 16; ++k) x = std::nextafter(x, -std::numeric_limits<T>::infinity());
    for (int k = 0; k < 32; ++k, x = std::nextafter(x, std::numeric_limits<T>::infinity())) sweep.add(x);
  }
}

void test_float32(hinge::Isa isa, std::uint64_t stride) {
  Sweep<float> sweep(hinge::kernels<float>(isa));
  const float ends[2] = {90.0f, -105.0f};
  for (float end : ends) {
    std::uint32_t first = end < 0 ? 0x80000000u : 0u, last;
    std::memcpy(&last, &end, sizeof(last));
    for (std::uint64_t bits = first; bits <= last; bits += stride) sweep.add(from_bits<float>((std::uint32_t)bits));
  }
  add_boundaries(sweep, -104, 89);
  report("float32", sweep.worst(), isa);
}

void test_float64(hinge::Isa isa, std::uint64_t draws) {
  Sweep<double> sweep(hinge::kernels<double>(isa));
  check::Random random(1);
  for (std::uint64_t k = 0; k < draws; ++k) {
    sweep.add(random.uniform(-746, 711));
    sweep.add(random.uniform(-1, 1));
    sweep.add(random.uniform(-746, -708));
  }
  // Numbers of every size, evenly by their bits.
  const double ends[2] = {711.0, -746.0};
  for (double end : ends) {
    std::uint64_t first = end < 0 ? std::uint64_t(1) << 63 : 0, last;
    std::memcpy(&last, &end, sizeof(last));
    const std::uint64_t stride = (last - first) / draws;
    for (std::uint64_t bits = first; bits <= last; bits += stride) sweep.add(from_bits<double>(bits));
  }
  add_boundaries(sweep, -745, 710);
  report("float64", sweep.worst(), isa);
}

template <class T>
T at(const hinge::Kernels<T>& kernels, T x) {
  T out;
  kernels.exp(&x, &out, 1);
  return out;
}

template <class T>
void test_special_values(const hinge::Kernels<T>& kernels, T last_finite, T first_zero) {
  using Limits = std::numeric_limits<T>;
  const T infinity = Limits::infinity();
  CHECK(at(kernels, T(0)) == 1 && at(kernels, T(-0.0)) == 1, "exp(0)");
  CHECK(at(kernels, Limits::denorm_min()) == 1 && at(kernels, -Limits::min()) == 1, "exp(tiny)");
  CHECK(at(kernels, infinity) == infinity, "%g", (double)at(kernels, infinity));
  const T zero = at(kernels, -infinity);
  CHECK(zero == 0 && !std::signbit(zero), "%g", (double)zero);
  for (T nan : {Limits::quiet_NaN(), -Limits::quiet_NaN()}) CHECK(std::isnan(at(kernels, nan)), "NaN");
  for (T x = last_finite; std::isfinite(x); x *= 2) {
    const T beyond = std::nextafter(x, infinity);
    CHECK(at(kernels, beyond) == infinity, "%a: %a", (double)beyond, (double)at(kernels, beyond));
  }
  CHECK(std::isfinite(at(kernels, last_finite)), "%a", (double)at(kernels, last_finite));
  for (T x = first_zero; std::isfinite(x); x *= 2)
    CHECK(at(kernels, x) == 0, "%a: %a", (double)x, (double)at(kernels, x));
  CHECK(at(kernels, std::nextafter(first_zero, T(0))) == Limits::denorm_min(), "at the edge of zero");
}

// Every length has the same values as one alone, whatever shares its register, and nothing beyond the end is touched.
template <class T>
void test_lengths(const hinge::Kernels<T>& kernels) {
  check::Random random(2);
  for (int n = 0; n <= 40; ++n) {
    std::vector<T> x(n), out(n);
    for (int i = 0; i < n; ++i) x[i] = i % 11 == 5 ? std::numeric_limits<T>::quiet_NaN() : (T)random.uniform(-80, 80);
    kernels.exp(x.data(), out.data(), n);
    for (int i = 0; i < n; ++i) {
      const T alone = at(kernels, x[i]);
      CHECK(out[i] == alone || (std::isnan(out[i]) && std::isnan(x[i])), "length %d, place %d", n, i);
    }
    std::vector<T> from(n + 1), to(n + 1);  // neither aligned to more than a number
    for (int i = 0; i < n; ++i) from[i + 1] = x[i];
    kernels.exp(from.data() + 1, to.data() + 1, n);
    for (int i = 0; i < n; ++i) CHECK(to[i + 1] == out[i] || std::isnan(x[i]), "shifted, length %d, place %d", n, i);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const hinge::Isa isa = check::isa();
  const std::uint64_t stride = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1499;
  const auto& single = hinge::kernels<float>(isa);
  const auto& real = hinge::kernels<double>(isa);
  test_float32(isa, stride);
  test_float64(isa, argc > 1 ? 100'000'000 / stride : 200'000);
  test_special_values(single, 0x1.62e42ep+6f, -0x1.9fe36ap+6f);
  test_special_values(real, 0x1.62e42fefa39efp+9, -0x1.74910d52d3052p+9);
  test_lengths(single);
  test_lengths(real);
  return check::result();
}
