// Losses, their slopes and their curvature, for a block of scores.
//
// Per row, with s_c the scores, y the true class, Δ the margin and φ(m) = max(0, m), or its square:
//   softmax         log Σ_c exp(s_c) − s_y
//   Weston–Watkins  Σ_{c≠y} φ(Δ + s_c − s_y)                     (Weston & Watkins 1999)
//   Crammer–Singer  φ(Δ + max_{c≠y} s_c − s_y)                   (Crammer & Singer 2001)
//   one-vs-rest     φ(Δ − s_y) + Σ_{c≠y} φ(Δ + s_c)
// A hinge of margin exactly 0 counts as met, and the first of equal rivals is the rival: slope 0 and a fixed choice.
// NaN is never counted as met, so that a fit which left the finite numbers shows it in its loss.
// Loops run over classes outside and over `Lanes` rows inside, where they become single instructions.

template <bool squared, class T>
HINGE_INLINE T hinge_value(T m) {
  return m <= 0 ? T(0) : (squared ? m * m : m);
}

template <bool squared, class T>
HINGE_INLINE T hinge_slope(T m) {
  return m <= 0 ? T(0) : (squared ? 2 * m : T(1));
}

template <class T>
struct Block {
  T* s;                    // scores, replaced by residuals
  ptrdiff_t ld, C;
  const std::int32_t* y;   // of these lanes
  const T* weight;         // of these lanes, 0 past the last row
  ptrdiff_t rows;          // lanes in use
};

// The score of each row's own class.
template <class T>
HINGE_INLINE void own_scores(const Block<T>& b, T* own) {
  for (int i = 0; i < Lanes<T>::count; ++i) own[i] = b.s[b.y[i] * b.ld + i];
}

// Writes exp(s_c − max) over s and returns the maxima and the sums.
template <class T>
HINGE_INLINE void exp_shifted(const Block<T>& b, Vector<T>& largest, Vector<T>& total) {
  largest = load(b.s);
  for (ptrdiff_t c = 1; c < b.C; ++c) {
    const Vector<T> s = load(b.s + c * b.ld);
    largest = s > largest ? s : largest;
  }
  total = Vector<T>{};
  for (ptrdiff_t c = 0; c < b.C; ++c) {
    const Vector<T> e = exp_lanes<T>(load(b.s + c * b.ld) - largest);
    total += e;
    store(b.s + c * b.ld, e);
  }
}

template <class T>
double softmax_residual(const Block<T>& b) {
  T own[Lanes<T>::count];
  own_scores(b, own);
  Vector<T> largest, total;
  exp_shifted(b, largest, total);
  const Vector<T> scale = load(b.weight) / total;
  for (ptrdiff_t c = 0; c < b.C; ++c) store(b.s + c * b.ld, load(b.s + c * b.ld) * scale);
  double loss = 0;
  for (ptrdiff_t i = 0; i < b.rows; ++i) {
    b.s[b.y[i] * b.ld + i] -= b.weight[i];
    loss += (double)b.weight[i] * (__builtin_log((double)total[i]) + ((double)largest[i] - (double)own[i]));
  }
  return loss;
}

template <bool squared, class T>
double weston_watkins_residual(const Block<T>& b, T margin) {
  constexpr int L = Lanes<T>::count;
  T own[L], loss[L] = {}, slopes[L] = {};
  own_scores(b, own);
  for (ptrdiff_t c = 0; c < b.C; ++c) {
    T* s = b.s + c * b.ld;
    for (int i = 0; i < L; ++i) {
      const T m = b.y[i] == c ? T(0) : margin + s[i] - own[i];
      const T slope = hinge_slope<squared>(m);
      loss[i] += hinge_value<squared>(m);
      slopes[i] += slope;
      s[i] = b.weight[i] * slope;
    }
  }
  double sum = 0;
  for (ptrdiff_t i = 0; i < b.rows; ++i) {
    b.s[b.y[i] * b.ld + i] = -b.weight[i] * slopes[i];
    sum += (double)b.weight[i] * (double)loss[i];
  }
  return sum;
}

// The best-scoring wrong class of each row, the first one where several are equal; NaN scores above all.
template <class T>
HINGE_INLINE void strongest_rival(const Block<T>& b, T* best, typename Lanes<T>::Integer* rival) {
  constexpr int L = Lanes<T>::count;
  for (int i = 0; i < L; ++i) best[i] = -__builtin_inf(), rival[i] = 0;
  for (ptrdiff_t c = 0; c < b.C; ++c) {
    const T* s = b.s + c * b.ld;
    for (int i = 0; i < L; ++i) {
      const bool better = b.y[i] != c && !(s[i] <= best[i]) && best[i] == best[i];
      best[i] = better ? s[i] : best[i];
      rival[i] = better ? (typename Lanes<T>::Integer)c : rival[i];
    }
  }
}

template <bool squared, class T>
double crammer_singer_residual(const Block<T>& b, T margin) {
  constexpr int L = Lanes<T>::count;
  T own[L], best[L];
  typename Lanes<T>::Integer rival[L];
  own_scores(b, own);
  strongest_rival(b, best, rival);
  for (ptrdiff_t c = 0; c < b.C; ++c)
    for (int i = 0; i < L; ++i) b.s[c * b.ld + i] = 0;
  double sum = 0;
  for (ptrdiff_t i = 0; i < b.rows; ++i) {
    const T m = margin + best[i] - own[i];
    const T slope = b.weight[i] * hinge_slope<squared>(m);
    b.s[rival[i] * b.ld + i] = slope;
    b.s[b.y[i] * b.ld + i] = -slope;
    sum += (double)b.weight[i] * (double)hinge_value<squared>(m);
  }
  return sum;
}

template <bool squared, class T>
double one_vs_rest_residual(const Block<T>& b, T margin) {
  constexpr int L = Lanes<T>::count;
  T loss[L] = {};
  for (ptrdiff_t c = 0; c < b.C; ++c) {
    T* s = b.s + c * b.ld;
    for (int i = 0; i < L; ++i) {
      const T sign = b.y[i] == c ? T(-1) : T(1);
      const T m = margin + sign * s[i];
      loss[i] += hinge_value<squared>(m);
      s[i] = b.weight[i] * sign * hinge_slope<squared>(m);
    }
  }
  double sum = 0;
  for (ptrdiff_t i = 0; i < b.rows; ++i) sum += (double)b.weight[i] * (double)loss[i];
  return sum;
}

// (diag p − p pᵀ) u
template <class T>
void softmax_curvature(const Block<T>& b, T* u) {
  Vector<T> largest, total, mean = {};
  exp_shifted(b, largest, total);
  for (ptrdiff_t c = 0; c < b.C; ++c) {
    const Vector<T> p = load(b.s + c * b.ld) / total;
    store(b.s + c * b.ld, p);
    mean += p * load(u + c * b.ld);
  }
  const Vector<T> weight = load(b.weight);
  for (ptrdiff_t c = 0; c < b.C; ++c)
    store(u + c * b.ld, weight * load(b.s + c * b.ld) * (load(u + c * b.ld) - mean));
}

// Σ over active pairs of 2 (e_c − e_y)(e_c − e_y)ᵀ u
template <class T>
void weston_watkins_curvature(const Block<T>& b, T* u, T margin) {
  constexpr int L = Lanes<T>::count;
  T own[L], own_u[L], total[L] = {};
  own_scores(b, own);
  for (int i = 0; i < L; ++i) own_u[i] = u[b.y[i] * b.ld + i];
  for (ptrdiff_t c = 0; c < b.C; ++c)
    for (int i = 0; i < L; ++i) {
      const bool active = b.y[i] != c && margin + b.s[c * b.ld + i] - own[i] > 0;
      const T pull = active ? 2 * (u[c * b.ld + i] - own_u[i]) : T(0);
      total[i] += pull;
      u[c * b.ld + i] = b.weight[i] * pull;
    }
  for (ptrdiff_t i = 0; i < b.rows; ++i) u[b.y[i] * b.ld + i] = -b.weight[i] * total[i];
}

template <class T>
void crammer_singer_curvature(const Block<T>& b, T* u, T margin) {
  constexpr int L = Lanes<T>::count;
  T own[L], best[L], pull[L];
  typename Lanes<T>::Integer rival[L];
  own_scores(b, own);
  strongest_rival(b, best, rival);
  for (int i = 0; i < L; ++i) {
    const T difference = u[rival[i] * b.ld + i] - u[b.y[i] * b.ld + i];
    pull[i] = margin + best[i] - own[i] > 0 ? 2 * b.weight[i] * difference : T(0);
  }
  for (ptrdiff_t c = 0; c < b.C; ++c)
    for (int i = 0; i < L; ++i) u[c * b.ld + i] = 0;
  for (ptrdiff_t i = 0; i < b.rows; ++i) {
    u[rival[i] * b.ld + i] = pull[i];
    u[b.y[i] * b.ld + i] = -pull[i];
  }
}

template <class T>
void one_vs_rest_curvature(const Block<T>& b, T* u, T margin) {
  for (ptrdiff_t c = 0; c < b.C; ++c)
    for (int i = 0; i < Lanes<T>::count; ++i) {
      const T sign = b.y[i] == c ? T(-1) : T(1);
      const bool active = margin + sign * b.s[c * b.ld + i] > 0;
      u[c * b.ld + i] = active ? 2 * b.weight[i] * u[c * b.ld + i] : T(0);
    }
}

template <class T, class F>
HINGE_INLINE void for_lanes(T* s, ptrdiff_t ld, ptrdiff_t n, ptrdiff_t C, const std::int32_t* y, const T* weight,
                            F&& lanes) {
  constexpr ptrdiff_t L = Lanes<T>::count;
  for (ptrdiff_t i = 0; i < n; i += L)
    lanes(Block<T>{s + i, ld, C, y + i, weight + i, n - i < L ? n - i : L}, i);
}

template <class T>
double residual(const Loss& loss, T* s, ptrdiff_t ld, ptrdiff_t n, ptrdiff_t C, const std::int32_t* y,
                const T* weight) {
  const T margin = (T)loss.margin;
  const bool squared = loss.squared;
  double sum = 0;
  for_lanes(s, ld, n, C, y, weight, [&](const Block<T>& b, ptrdiff_t) {
    switch (loss.kind) {
      case LossKind::softmax: sum += softmax_residual(b); break;
      case LossKind::weston_watkins:
        sum += squared ? weston_watkins_residual<true>(b, margin) : weston_watkins_residual<false>(b, margin);
        break;
      case LossKind::crammer_singer:
        sum += squared ? crammer_singer_residual<true>(b, margin) : crammer_singer_residual<false>(b, margin);
        break;
      case LossKind::one_vs_rest:
        sum += squared ? one_vs_rest_residual<true>(b, margin) : one_vs_rest_residual<false>(b, margin);
        break;
    }
  });
  return sum;
}

template <class T>
void curvature(const Loss& loss, T* s, T* u, ptrdiff_t ld, ptrdiff_t n, ptrdiff_t C, const std::int32_t* y,
               const T* weight) {
  const T margin = (T)loss.margin;
  for_lanes(s, ld, n, C, y, weight, [&](const Block<T>& b, ptrdiff_t i) {
    switch (loss.kind) {
      case LossKind::softmax: softmax_curvature(b, u + i); break;
      case LossKind::weston_watkins: weston_watkins_curvature(b, u + i, margin); break;
      case LossKind::crammer_singer: crammer_singer_curvature(b, u + i, margin); break;
      case LossKind::one_vs_rest: one_vs_rest_curvature(b, u + i, margin); break;
    }
  });
}
