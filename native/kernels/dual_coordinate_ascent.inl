// One row's visit in dual coordinate ascent: its scores, the exact solution of its own small problem, the weights' update.
//
// Notation: classes lie in registers of L lanes; `width`, 4, 8 or a multiple of 16, is at least C and the same for all arrays
// of a row. Idle lanes have a score of −huge, which no rival can have: their α stays 0 and nothing has to be masked.
//
// The row's problem, all other rows held fixed, is  max −loss*(u) + ⟨z, u⟩ − q/2·‖u‖²  with z the scores without the row's
// own share. For a hinge of differences of scores, with m_c = Δ + z_c − z_y and S = Σ_c α_c, it is solved by
//
//   α_c = clip((m_c − θ)/h, 0, U),   θ the root of   F(θ) = Σ_c α_c(θ) − min(θ/p, 1 if capped)
//
//   Weston–Watkins   h = p = q        U = 1        its square   h = q + ½, p = q        U = ∞
//   Crammer–Singer   h = p = q        capped       its square   h = q,     p = q + ½    U = ∞
//
// F falls, in at most 2C + 1 straight pieces. Newton's method inside a shrinking bracket meets each piece at most once and
// so ends at the root: after two or three looks at all classes as a rule, without the branches of sorting.
// One-vs-rest needs no root: α_c = clip(m_c/h, 0, U) with h and U as for Weston–Watkins and m_c = Δ ± z_c.

template <class T, int L>
struct Classes {
  typedef T Vector __attribute__((vector_size(L * sizeof(T))));
  typedef T Unaligned __attribute__((vector_size(L * sizeof(T)), aligned(sizeof(T)), may_alias));

  HINGE_INLINE Vector load(const T* p) { return *reinterpret_cast<const Unaligned*>(p); }
  HINGE_INLINE void store(T* p, Vector v) { *reinterpret_cast<Unaligned*>(p) = v; }
  template <int... lane>
  HINGE_INLINE Vector count_from(T first, LaneList<lane...>) {
    return first + Vector{(T)lane...};
  }
  // Pairwise, in a fixed order.
  HINGE_INLINE T sum(Vector v) {
    if constexpr (L == 2) return v[0] + v[1];
    else return sum_halves(v, AllLanes<L / 2>{});
  }

 private:
  template <int... lane>
  HINGE_INLINE T sum_halves(Vector v, LaneList<lane...>) {
    return Classes<T, L / 2>::sum(__builtin_shufflevector(v, v, lane...) +
                                  __builtin_shufflevector(v, v, (lane + L / 2)...));
  }
};

#include "softmax_dual.inl"

constexpr double huge = 1e30;

template <class T>
struct RowEquation {
  T h, p, U;
  bool capped;
};

template <class T>
HINGE_INLINE RowEquation<T> row_equation(const Loss& loss, T q) {
  const T bent = q + (loss.squared ? T(0.5) : T(0));
  if (loss.kind == LossKind::crammer_singer) return {q, bent, (T)huge, !loss.squared};
  return {bent, q, loss.squared ? (T)huge : T(1), false};
}

template <class T>
HINGE_INLINE T magnitude(T x) {
  return x < 0 ? -x : x;
}

// Writes α(θ) at the root; m holds the margins, −huge where α must stay 0.
template <class T, int L>
HINGE_INLINE void solve_row(const RowEquation<T>& e, const T* m, T* alpha, T start, T accuracy, int registers) {
  using V = Classes<T, L>;
  const T inverse_h = 1 / e.h, inverse_p = 1 / e.p;
  const typename V::Vector zero = {}, one = zero + T(1), upper = zero + e.U;
  T theta = start, low = -1, high = (T)huge;
  for (int look = 0; look < 100; ++look) {
    typename V::Vector sum = zero, free = zero;
    for (int k = 0; k < registers; ++k) {
      typename V::Vector a = (V::load(m + k * L) - theta) * inverse_h;
      free += a > zero ? (a < upper ? one : zero) : zero;
      a = a < upper ? a : upper;
      a = a > zero ? a : zero;
      V::store(alpha + k * L, a);
      sum += a;
    }
    const bool full = e.capped && theta >= e.p;
    const T F = V::sum(sum) - (full ? T(1) : theta * inverse_p);
    const T steepness = V::sum(free) * inverse_h + (full ? T(0) : inverse_p);
    T next = steepness > 0 ? theta + F / steepness : T(0);
    if (magnitude(next - theta) <= accuracy) break;
    if (F > 0) low = theta;
    else high = theta;
    if (!(next > low && next < high)) next = (low + high) / 2;
    theta = next;
  }
}

// α of a row given its scores; delta receives the change of u. Returns whether anything changed.
template <class T, int L>
HINGE_INLINE bool step_coupled(const Loss& loss, T q, ptrdiff_t own, const T* s, T* alpha, T* delta, T* m, int registers) {
  using V = Classes<T, L>;
  const RowEquation<T> e = row_equation(loss, q);
  const T margin = (T)loss.margin;
  typename V::Vector sum = {};
  for (int k = 0; k < registers; ++k) sum += V::load(alpha + k * L);
  const T before = V::sum(sum), own_score = s[own] - q * before;
  for (int k = 0; k < registers; ++k) {
    const typename V::Vector a = V::load(alpha + k * L);
    const typename V::Vector score = V::load(s + k * L) + q * a;
    V::store(delta + k * L, a);
    V::store(m + k * L, V::count_from((T)(k * L), AllLanes<L>{}) == (T)own ? (T)-huge - typename V::Vector{}
                                                                           : score + (margin - own_score));
  }
  const T start = e.p * before;
  const T rounding = sizeof(T) == 4 ? (T)2.4e-7 : (T)4.4e-16;
  solve_row<T, L>(e, m, alpha, start, rounding * (margin + magnitude(own_score) + start), registers);
  typename V::Vector moved = {}, change = {};
  for (int k = 0; k < registers; ++k) {
    const typename V::Vector d = V::load(alpha + k * L) - V::load(delta + k * L);
    V::store(delta + k * L, d);
    change += d;
    moved += d * d;
  }
  delta[own] = -V::sum(change);
  return V::sum(moved) != 0;
}

template <class T, int L>
HINGE_INLINE bool step_one_vs_rest(const Loss& loss, T q, ptrdiff_t own, const T* s, T* alpha, T* delta, int registers) {
  using V = Classes<T, L>;
  const RowEquation<T> e = row_equation(loss, q);
  const T inverse_h = 1 / e.h;
  const typename V::Vector zero = {}, one = zero + T(1), upper = zero + e.U;
  typename V::Vector moved = zero;
  for (int k = 0; k < registers; ++k) {
    const typename V::Vector sign = V::count_from((T)(k * L), AllLanes<L>{}) == (T)own ? -one : one;
    const typename V::Vector before = V::load(alpha + k * L);
    typename V::Vector a = ((T)loss.margin + sign * V::load(s + k * L) + q * before) * inverse_h;
    a = a < upper ? a : upper;
    a = a > zero ? a : zero;
    V::store(alpha + k * L, a);
    V::store(delta + k * L, sign * (a - before));
    moved += (a - before) * (a - before);
  }
  return V::sum(moved) != 0;
}

template <class T, int L>
bool dual_step_of(const Loss& loss, T q, ptrdiff_t own, const T* s, T* alpha, T* delta, T* m, ptrdiff_t width) {
  if (loss.kind == LossKind::softmax) return step_softmax<T, L>(q, s, alpha, delta, m, (int)(width / L));
  if (loss.kind == LossKind::one_vs_rest)
    return step_one_vs_rest<T, L>(loss, q, own, s, alpha, delta, (int)(width / L));
  if (width == L) return step_coupled<T, L>(loss, q, own, s, alpha, delta, m, 1);
  return step_coupled<T, L>(loss, q, own, s, alpha, delta, m, (int)(width / L));
}

// The widest register that `width` fills.
template <class T, class F>
HINGE_INLINE auto with_lanes(ptrdiff_t width, F&& f) {
  constexpr int widest = Lanes<T>::count;
  if constexpr (widest > 8)
    if (width == 8) return f(Classes<T, 8>{});
  if constexpr (widest > 4)
    if (width == 4) return f(Classes<T, 4>{});
  return f(Classes<T, widest>{});
}

template <class T>
bool dual_step(const Loss& loss, T q, ptrdiff_t own, const T* s, T* alpha, T* delta, T* m, ptrdiff_t width) {
  return with_lanes<T>(width, [&]<int L>(Classes<T, L>) {
    return dual_step_of<T, L>(loss, q, own, s, alpha, delta, m, width);
  });
}

// s += Σ_k value[k]·w[index[k]], R registers of classes at a time; `chains` sums side by side hide the multipliers' latency.
template <class T, int L, int R, int chains, class I>
HINGE_INLINE void packed_scores_tile(const I* index, const T* value, ptrdiff_t count, const T* w, ptrdiff_t width, T* s) {
  using V = Classes<T, L>;
  typename V::Vector sum[chains][R] = {};
  ptrdiff_t k = 0;
  for (; k + chains <= count; k += chains)
#pragma GCC unroll 8
    for (int j = 0; j < chains; ++j) {
      const T* row = w + (ptrdiff_t)index[k + j] * width;
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) sum[j][r] += value[k + j] * V::load(row + r * L);
    }
  for (; k < count; ++k) {
    const T* row = w + (ptrdiff_t)index[k] * width;
    for (int r = 0; r < R; ++r) sum[0][r] += value[k] * V::load(row + r * L);
  }
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int j = 1; j < chains; ++j) sum[0][r] += sum[j][r];
    V::store(s + r * L, V::load(s + r * L) + sum[0][r]);
  }
}

template <class T, class I>
void packed_scores(const I* index, const T* value, ptrdiff_t count, const T* w, ptrdiff_t width, T* s) {
  with_lanes<T>(width, [&]<int L>(Classes<T, L>) {
    ptrdiff_t c = 0;
    for (; c + 4 * L <= width; c += 4 * L) packed_scores_tile<T, L, 4, 2>(index, value, count, w + c, width, s + c);
    for (; c + 2 * L <= width; c += 2 * L) packed_scores_tile<T, L, 2, 4>(index, value, count, w + c, width, s + c);
    for (; c + L <= width; c += L) packed_scores_tile<T, L, 1, 8>(index, value, count, w + c, width, s + c);
  });
}

template <class T, int L, int R, class I>
HINGE_INLINE void packed_update_tile(const I* index, const T* value, ptrdiff_t count, const T* r, T* w, ptrdiff_t width) {
  using V = Classes<T, L>;
  typename V::Vector step[R];
  for (int j = 0; j < R; ++j) step[j] = V::load(r + j * L);
  for (ptrdiff_t k = 0; k < count; ++k) {
    T* row = w + (ptrdiff_t)index[k] * width;
    for (int j = 0; j < R; ++j) V::store(row + j * L, V::load(row + j * L) + value[k] * step[j]);
  }
}

// w[index[k]] += value[k]·r.
template <class T, class I>
void packed_update(const I* index, const T* value, ptrdiff_t count, const T* r, T* w, ptrdiff_t width) {
  with_lanes<T>(width, [&]<int L>(Classes<T, L>) {
    ptrdiff_t c = 0;
    for (; c + 4 * L <= width; c += 4 * L) packed_update_tile<T, L, 4>(index, value, count, r + c, w + c, width);
    for (; c + L <= width; c += L) packed_update_tile<T, L, 1>(index, value, count, r + c, w + c, width);
  });
}
