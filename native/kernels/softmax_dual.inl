// One row's visit in dual coordinate ascent for softmax: the exact solution of its own small problem.
//
// The row's dual variables are probabilities p, kept as logarithms l, and stand for u = p − e_y. With a = s + q·p_now its
// problem is  max H(p) + ⟨a, p⟩ − q/2·‖p‖²  over the simplex, solved where
//
//   l_c + q·p_c = a_c − ν     for all c, with ν such that Σ p_c = 1
//
// Newton's method on l and ν, with log Σ p as the residual of the sum: where q is small its first step is softmax itself.
// Papers: Yu, Huang & Lin, Machine Learning 85 (2011), whose method goes pair by pair; ours takes all classes at once.

template <class T>
struct SoftmaxDual;
template <>
struct SoftmaxDual<float> {
  static constexpr float lowest = -87.0f, settled = 1e-3f, least = 1e-7f, negligible = -18.0f;
};
template <>
struct SoftmaxDual<double> {
  static constexpr double lowest = -700.0, settled = 1e-7, least = 1e-16, negligible = -40.0;
};

// One step of Newton's method from l and p = exp(l), in place; returns the largest change of any l that counts.
template <class T, int L>
HINGE_INLINE T softmax_newton_step(T q, const T* a, T* l, const T* p, int registers) {
  using V = Classes<T, L>;
  using K = SoftmaxDual<T>;
  typename V::Vector total = {}, weight = {}, weighted = {};
  const typename V::Vector zero = {}, floor = zero + 2 * K::lowest;
  for (int k = 0; k < registers; ++k) {
    const typename V::Vector pk = V::load(p + k * L);
    typename V::Vector r = V::load(a + k * L) - V::load(l + k * L) - q * pk;
    r = r > floor ? r : floor;  // idle lanes
    const typename V::Vector w = pk / (T(1) + q * pk);
    total += pk;
    weight += w;
    weighted += w * r;
  }
  const T sum = V::sum(total);
  const T nu = (V::sum(weighted) + sum * (T)__builtin_log((double)sum)) / V::sum(weight);
  typename V::Vector largest = {};
  for (int k = 0; k < registers; ++k) {
    const typename V::Vector lk = V::load(l + k * L), pk = V::load(p + k * L);
    typename V::Vector next = lk + (V::load(a + k * L) - lk - q * pk - nu) / (T(1) + q * pk);
    next = next < zero ? next : zero;
    next = next > K::lowest ? next : zero + K::lowest;
    V::store(l + k * L, next);
    typename V::Vector change = next > lk ? next - lk : lk - next;
    change = next > K::negligible ? change : zero;
    largest = change > largest ? change : largest;
  }
  T most = 0;
  for (int c = 0; c < L; ++c) most = largest[c] > most ? largest[c] : most;
  return most;
}

// l of a row given its scores; delta receives the change of p. Returns whether anything changed. `m` has 3·width values.
template <class T, int L>
HINGE_INLINE bool step_softmax(T q, const T* s, T* l, T* delta, T* m, int registers) {
  using V = Classes<T, L>;
  const ptrdiff_t width = registers * L;
  T *const a = m, *const before = m + width, *const next = m + 2 * width, *const p = delta;
  exp_array(l, before, width);
  for (int k = 0; k < registers; ++k) {
    const typename V::Vector pk = V::load(before + k * L);
    V::store(a + k * L, V::load(s + k * L) + q * pk);
    V::store(p + k * L, pk);
    V::store(next + k * L, V::load(l + k * L));
  }
  for (int look = 0; look < 50; ++look) {
    const T most = softmax_newton_step<T, L>(q, a, next, p, registers);
    exp_array(next, p, width);
    if (!(most > SoftmaxDual<T>::settled)) break;
  }
  typename V::Vector total = {}, moved = {};
  for (int k = 0; k < registers; ++k) total += V::load(p + k * L);
  const T sum = V::sum(total), scale = 1 / sum, shift = (T)__builtin_log((double)sum);
  for (int k = 0; k < registers; ++k) {
    const typename V::Vector nk = V::load(next + k * L), floor = typename V::Vector{} + SoftmaxDual<T>::lowest;
    const auto held = nk > floor;
    const typename V::Vector d = held ? V::load(p + k * L) * scale - V::load(before + k * L)
                                      : V::load(p + k * L) - V::load(before + k * L);
    V::store(next + k * L, held ? nk - shift : nk);
    V::store(delta + k * L, d);
    moved += d * d;
  }
  if (!(V::sum(moved) > SoftmaxDual<T>::least * SoftmaxDual<T>::least)) return false;
  for (int k = 0; k < registers; ++k) V::store(l + k * L, V::load(next + k * L));
  return true;
}
