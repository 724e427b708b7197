// One CSR row against feature-major weights w[d·C + c]: all classes of a feature are neighbours in memory.

template <class T, class I>
void sparse_scores(const I* index, const T* value, ptrdiff_t count, const T* w, ptrdiff_t C, T* s) {
  for (ptrdiff_t k = 0; k < count; ++k) {
    const T* HINGE_RESTRICT row = w + (ptrdiff_t)index[k] * C;
    T* HINGE_RESTRICT out = s;
    const T v = value[k];
    for (ptrdiff_t c = 0; c < C; ++c) out[c] += v * row[c];
  }
}

template <class T, class I>
void sparse_accumulate(const I* index, const T* value, ptrdiff_t count, const T* r, ptrdiff_t C, T* g) {
  for (ptrdiff_t k = 0; k < count; ++k) {
    T* HINGE_RESTRICT row = g + (ptrdiff_t)index[k] * C;
    const T* HINGE_RESTRICT in = r;
    const T v = value[k];
    for (ptrdiff_t c = 0; c < C; ++c) row[c] += v * in[c];
  }
}
