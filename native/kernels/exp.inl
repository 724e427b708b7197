// eˣ for a register of x.
//
//   x = k·ln2 + r, |r| ≤ ln2/2        Cody–Waite: ln2 in two parts, so that r is exact to the last bit
//   eʳ = 1 + r + r²·q(r)              Taylor; the first omitted term is below a tenth of an ulp
//   eˣ = 2^⌊k/2⌋ · (2^(k−⌊k/2⌋) · eʳ)  in two steps, so that subnormal results and overflow come out right
//
// Beyond `highest` the result is ∞, below `lowest` it is 0, and NaN stays NaN. Accuracy: docs/algorithms/exp.md.

template <class T>
struct ExpConstants;

template <>
struct ExpConstants<float> {
  static constexpr float lowest = -104.0f, highest = 89.0f;
  static constexpr float round_shift = 12582912.0f;  // 1.5·2²³: adding it rounds to an integer
  static constexpr float log2_e = 1.44269504088896341f;
  static constexpr float ln2_high = 0.693359375f, ln2_low = -2.12194440e-4f;
  static constexpr int mantissa_bits = 23, exponent_bias = 127, highest_power = 7;
};

template <>
struct ExpConstants<double> {
  static constexpr double lowest = -746.0, highest = 710.0;
  static constexpr double round_shift = 6755399441055744.0;  // 1.5·2⁵²
  static constexpr double log2_e = 1.44269504088896340736;
  static constexpr double ln2_high = 6.93145751953125e-1, ln2_low = 1.42860682030941723212e-6;
  static constexpr int mantissa_bits = 52, exponent_bias = 1023, highest_power = 13;
};

// 1/k! for k = 0 … 13.
constexpr double inverse_factorial[14] = {1.0,           1.0,           1.0 / 2,        1.0 / 6,         1.0 / 24,
                                          1.0 / 120,     1.0 / 720,     1.0 / 5040,     1.0 / 40320,     1.0 / 362880,
                                          1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800};

template <class T>
HINGE_INLINE Vector<T> exp_lanes(Vector<T> x) {
  using K = ExpConstants<T>;
  using Integers = typename Lanes<T>::Integers;
  x = x < K::lowest ? broadcast<T>(K::lowest) : x;
  x = x > K::highest ? broadcast<T>(K::highest) : x;

  const Vector<T> shifted = x * K::log2_e + K::round_shift;
  const Vector<T> k_real = shifted - K::round_shift;
  const Integers k = (Integers)shifted - (Integers)broadcast<T>(K::round_shift);
  const Vector<T> r = (x - k_real * K::ln2_high) - k_real * K::ln2_low;

  Vector<T> q = broadcast<T>((T)inverse_factorial[K::highest_power]);
  for (int power = K::highest_power - 1; power >= 2; --power) q = q * r + (T)inverse_factorial[power];
  const Vector<T> exp_r = (q * (r * r) + r) + (T)1;

  const Integers half = k >> 1;
  const Integers rest = k - half;
  const Vector<T> scale_half = (Vector<T>)((half + K::exponent_bias) << K::mantissa_bits);
  const Vector<T> scale_rest = (Vector<T>)((rest + K::exponent_bias) << K::mantissa_bits);
  return (exp_r * scale_rest) * scale_half;
}

template <class T>
void exp_array(const T* x, T* out, ptrdiff_t n) {
  constexpr int L = Lanes<T>::count;
  ptrdiff_t i = 0;
  for (; i + L <= n; i += L) store(out + i, exp_lanes<T>(load(x + i)));
  if (i < n) {
    const Vector<T> last = exp_lanes<T>(load_partial(x + i, n - i));
    for (ptrdiff_t k = 0; i + k < n; ++k) out[i + k] = last[k];
  }
}
