// Scores and gradient of a block of dense rows, in register tiles.
//
// A block of 32 rows is read twice, the second time from cache: `dense_scores` keeps R×K dot products in registers,
// `dense_accumulate` keeps K×U vectors of the gradient there while all rows of the block pass by. While it computes,
// it fetches the next block, so that memory and arithmetic overlap. Sizes: 32 vector registers with AVX-512, else 16.

#if HINGE_VECTOR_BYTES == 64
constexpr int score_rows = 4, score_classes = 5, gradient_classes = 12, gradient_vectors = 2;
#else
constexpr int score_rows = 2, score_classes = 5, gradient_classes = 5, gradient_vectors = 2;
#endif

template <class T, int R, int K>
void score_tile(const T* x, ptrdiff_t ldx, ptrdiff_t D, const T* w, ptrdiff_t ldw, const T* bias, T* s, ptrdiff_t ld) {
  constexpr int L = Lanes<T>::count;
  Vector<T> sum[R][K] = {};
  Vector<T> xr[R];
  ptrdiff_t d = 0;
  for (; d + L <= D; d += L) {
    for (int r = 0; r < R; ++r) xr[r] = load(x + r * ldx + d);
    for (int k = 0; k < K; ++k) {
      const Vector<T> wk = load(w + k * ldw + d);
      for (int r = 0; r < R; ++r) sum[r][k] += xr[r] * wk;
    }
  }
  if (d < D) {
    for (int r = 0; r < R; ++r) xr[r] = load_partial(x + r * ldx + d, D - d);
    for (int k = 0; k < K; ++k) {
      const Vector<T> wk = load(w + k * ldw + d);
      for (int r = 0; r < R; ++r) sum[r][k] += xr[r] * wk;
    }
  }
  for (int k = 0; k < K; ++k)
    for (int r = 0; r < R; ++r) s[k * ld + r] = sum_lanes<T>(sum[r][k]) + bias[k];
}

template <class T, int K>
void score_classes_tile(const T* x, ptrdiff_t ldx, ptrdiff_t n, ptrdiff_t D, const T* w, ptrdiff_t ldw, const T* bias,
                        T* s, ptrdiff_t ld) {
  ptrdiff_t i = 0;
  for (; i + score_rows <= n; i += score_rows)
    score_tile<T, score_rows, K>(x + i * ldx, ldx, D, w, ldw, bias, s + i, ld);
  for (; i < n; ++i) score_tile<T, 1, K>(x + i * ldx, ldx, D, w, ldw, bias, s + i, ld);
}

// Classes in tiles of nearly equal width: 11 become 4 + 4 + 3 rather than 5 + 5 + 1.
template <int widest, class F>
HINGE_INLINE void for_class_tiles(ptrdiff_t C, F&& tile) {
  const ptrdiff_t tiles = (C + widest - 1) / widest;
  for (ptrdiff_t t = 0, first = 0; t < tiles; ++t) {
    const ptrdiff_t width = C / tiles + (t < C % tiles ? 1 : 0);
    tile(first, width);
    first += width;
  }
}

template <class T>
void dense_scores(const T* x, ptrdiff_t ldx, ptrdiff_t n, ptrdiff_t D, const T* w, ptrdiff_t ldw, const T* bias,
                  ptrdiff_t C, T* s, ptrdiff_t ld) {
  for_class_tiles<score_classes>(C, [&](ptrdiff_t c, ptrdiff_t width) {
    const T* wc = w + c * ldw;
    T* sc = s + c * ld;
    switch (width) {
      case 1: score_classes_tile<T, 1>(x, ldx, n, D, wc, ldw, bias + c, sc, ld); break;
      case 2: score_classes_tile<T, 2>(x, ldx, n, D, wc, ldw, bias + c, sc, ld); break;
      case 3: score_classes_tile<T, 3>(x, ldx, n, D, wc, ldw, bias + c, sc, ld); break;
      case 4: score_classes_tile<T, 4>(x, ldx, n, D, wc, ldw, bias + c, sc, ld); break;
      default: score_classes_tile<T, 5>(x, ldx, n, D, wc, ldw, bias + c, sc, ld); break;
    }
  });
}

template <class T>
HINGE_INLINE void fetch(const T* next, ptrdiff_t offset) {
  __builtin_prefetch(reinterpret_cast<const char*>(next) + offset * (ptrdiff_t)sizeof(T), 0, 3);
}

// K classes × U vectors of features, all rows of the block. `partial` > 0: the single vector has that many features.
template <class T, int K, int U>
void gradient_tile(const T* x, ptrdiff_t ldx, ptrdiff_t n, ptrdiff_t partial, const T* r, ptrdiff_t ld, T* g,
                   ptrdiff_t ldg, const T* next) {
  constexpr int L = Lanes<T>::count;
  Vector<T> sum[K][U];
  for (int k = 0; k < K; ++k)
    for (int u = 0; u < U; ++u) sum[k][u] = load(g + k * ldg + u * L);
  for (ptrdiff_t i = 0; i < n; ++i) {
    Vector<T> xi[U];
    for (int u = 0; u < U; ++u) {
      xi[u] = partial ? load_partial(x + i * ldx, partial) : load(x + i * ldx + u * L);
      if (next != nullptr && (u * HINGE_VECTOR_BYTES) % 64 == 0) fetch(next, i * ldx + u * L);
    }
    for (int k = 0; k < K; ++k) {
      const Vector<T> rk = broadcast(r[k * ld + i]);
      for (int u = 0; u < U; ++u) sum[k][u] += rk * xi[u];
    }
  }
  for (int k = 0; k < K; ++k)
    for (int u = 0; u < U; ++u) store(g + k * ldg + u * L, sum[k][u]);
}

template <class T, int K>
void gradient_classes_tile(const T* x, ptrdiff_t ldx, ptrdiff_t n, ptrdiff_t D, const T* r, ptrdiff_t ld, T* g,
                           ptrdiff_t ldg, const T* next) {
  constexpr int L = Lanes<T>::count, U = gradient_vectors;
  const auto next_at = [next](ptrdiff_t d) { return next == nullptr ? nullptr : next + d; };
  ptrdiff_t d = 0;
  for (; d + U * L <= D; d += U * L) gradient_tile<T, K, U>(x + d, ldx, n, 0, r, ld, g + d, ldg, next_at(d));
  for (; d + L <= D; d += L) gradient_tile<T, K, 1>(x + d, ldx, n, 0, r, ld, g + d, ldg, next_at(d));
  if (d < D) gradient_tile<T, K, 1>(x + d, ldx, n, D - d, r, ld, g + d, ldg, next_at(d));
}

template <class T>
void dense_accumulate(const T* x, ptrdiff_t ldx, ptrdiff_t n, ptrdiff_t D, const T* r, ptrdiff_t ld, ptrdiff_t C, T* g,
                      ptrdiff_t ldg, const T* next) {
  for_class_tiles<gradient_classes>(C, [&](ptrdiff_t c, ptrdiff_t width) {
    const T* rc = r + c * ld;
    T* gc = g + c * ldg;
    const T* fetch_once = c == 0 ? next : nullptr;
    switch (width) {
#define HINGE_WIDTH(K) \
  case K: gradient_classes_tile<T, K>(x, ldx, n, D, rc, ld, gc, ldg, fetch_once); break;
      HINGE_WIDTH(1) HINGE_WIDTH(2) HINGE_WIDTH(3) HINGE_WIDTH(4) HINGE_WIDTH(5)
#if HINGE_VECTOR_BYTES == 64
      HINGE_WIDTH(6) HINGE_WIDTH(7) HINGE_WIDTH(8) HINGE_WIDTH(9) HINGE_WIDTH(10) HINGE_WIDTH(11) HINGE_WIDTH(12)
#endif
#undef HINGE_WIDTH
    }
  });
}

// Square tiles of one register a side; what is left at the edges goes one by one.
template <class T>
void transpose(const T* x, ptrdiff_t stride, ptrdiff_t n, ptrdiff_t D, T* packed, ptrdiff_t ldp) {
  constexpr int L = Lanes<T>::count;
  const ptrdiff_t whole_rows = n / L * L, whole_columns = D / L * L;
  for (ptrdiff_t d = 0; d < whole_columns; d += L)
    for (ptrdiff_t i = 0; i < whole_rows; i += L) {
      Vector<T> tile[L];
      for (int k = 0; k < L; ++k) tile[k] = load(x + (d + k) * stride + i);
      transpose_lanes<T>(tile);
      for (int k = 0; k < L; ++k) store(packed + (i + k) * ldp + d, tile[k]);
    }
  for (ptrdiff_t d = 0; d < D; ++d)
    for (ptrdiff_t i = d < whole_columns ? whole_rows : 0; i < n; ++i) packed[i * ldp + d] = x[d * stride + i];
}
