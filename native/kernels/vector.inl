// Vectors of one register, by the compiler's own vector types: arithmetic, comparison and selection are operators.
// Everything here has internal linkage, so that no wide-vector code can be shared with the portable build.

template <class T>
struct Lanes;

template <>
struct Lanes<float> {
  using Integer = std::int32_t;
  static constexpr int count = HINGE_VECTOR_BYTES / 4;
  typedef float Vector __attribute__((vector_size(HINGE_VECTOR_BYTES)));
  typedef float Unaligned __attribute__((vector_size(HINGE_VECTOR_BYTES), aligned(4), may_alias));
  typedef std::int32_t Integers __attribute__((vector_size(HINGE_VECTOR_BYTES)));
};

template <>
struct Lanes<double> {
  using Integer = std::int64_t;
  static constexpr int count = HINGE_VECTOR_BYTES / 8;
  typedef double Vector __attribute__((vector_size(HINGE_VECTOR_BYTES)));
  typedef double Unaligned __attribute__((vector_size(HINGE_VECTOR_BYTES), aligned(8), may_alias));
  typedef std::int64_t Integers __attribute__((vector_size(HINGE_VECTOR_BYTES)));
};

template <int... lane>
struct LaneList {};
template <int n, int... lane>
struct CountLanes : CountLanes<n - 1, n - 1, lane...> {};
template <int... lane>
struct CountLanes<0, lane...> {
  using List = LaneList<lane...>;
};
template <int n>
using AllLanes = typename CountLanes<n>::List;

template <class T>
using Vector = typename Lanes<T>::Vector;

template <class T>
HINGE_INLINE Vector<T> load(const T* p) {
  return *reinterpret_cast<const typename Lanes<T>::Unaligned*>(p);
}

template <class T>
HINGE_INLINE void store(T* p, Vector<T> v) {
  *reinterpret_cast<typename Lanes<T>::Unaligned*>(p) = v;
}

template <class T>
HINGE_INLINE Vector<T> broadcast(T value) {
  return value - Vector<T>{};
}

// The first `n` lanes from memory, zeros above: reads nothing past p[n - 1].
template <class T>
HINGE_INLINE Vector<T> load_partial(const T* p, ptrdiff_t n) {
  alignas(HINGE_VECTOR_BYTES) T lanes[Lanes<T>::count] = {};
  for (ptrdiff_t i = 0; i < n; ++i) lanes[i] = p[i];
  return load(lanes);
}

// Pairwise, in a fixed order.
template <class T>
HINGE_INLINE T sum_lanes(Vector<T> v) {
  alignas(HINGE_VECTOR_BYTES) T lanes[Lanes<T>::count];
  store(lanes, v);
  for (int half = Lanes<T>::count / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  return lanes[0];
}

// One step of the transposition: of rows a and b, the blocks of `half` lanes off the diagonal change places.
template <int half, class T, int... lane>
HINGE_INLINE void exchange_blocks(Vector<T>& a, Vector<T>& b, LaneList<lane...>) {
  constexpr int L = Lanes<T>::count;
  const Vector<T> first = __builtin_shufflevector(a, b, ((lane & half) ? L + lane - half : lane)...);
  b = __builtin_shufflevector(a, b, ((lane & half) ? L + lane : lane + half)...);
  a = first;
}

// Transposes the L×L matrix whose rows are the vectors v[0] … v[L − 1], in log₂ L rounds of shuffles.
template <class T, int half = Lanes<T>::count / 2>
HINGE_INLINE void transpose_lanes(Vector<T>* v) {
  constexpr int L = Lanes<T>::count;
  for (int i = 0; i < L; ++i)
    if ((i & half) == 0) exchange_blocks<half, T>(v[i], v[i + half], AllLanes<L>{});
  if constexpr (half > 1) transpose_lanes<T, half / 2>(v);
}
