// Dual coordinate ascent for the multiclass losses: one epoch of visits, each of which solves one row's dual problem
// exactly.
//
// Problem   max D(α) = mean −loss*(u_i) − λ/2·‖W‖²  with  W = −1/(λV)·Σ_i v_i u_i (x_i − m)ᵀ,  u_i = u_i(α_i) in R^C.
// Visit     s = W (x_i − m) + b';  α_i ← the row's best, given all others (kernels/dual_coordinate_ascent.inl), with
//           q_i = v_i·(‖x_i − m‖² + κ²)/(λV);   W ← W + r (x_i − m)ᵀ,   b' ← b' + κ²·r,   r = −v_i/(λV)·Δu_i.
// Centring  With intercepts, m is the mean row: the steps are longer for it and the fits alike. Zeros stay zeros, because
//           only A = Σ r x_iᵀ is kept, and σ = Σ r: W = A − σ mᵀ, and s = A x_i + b − (m·x_i)·σ with b the intercepts for
//           rows as they are. An update moves b by (κ² + ‖m‖² − m·x_i)·r.
// Resting   A row found at its best k times in a row is visited every 2^min(k, deepest_rest) epochs only.
// Groups    In one-vs-rest the classes know nothing of each other: they go in groups of `width`, which threads share out.
//           The other losses have one group and one thread. Either way the result does not depend on the threads.
// Cost      4·nnz·C flops an epoch at most; α is N×C.
#pragma once

#include <algorithm>
#include <type_traits>
#include <vector>

#include "hinge/kernels.hpp"
#include "hinge/parallel.hpp"
#include "hinge/rows.hpp"

namespace hinge {

template <class T>
struct DualAscent {
  Loss loss;
  ptrdiff_t rows, features, groups, width;
  const T* mean_product;     // m·x_i; null without intercepts
  const T* intercept_step;   // κ² + ‖m‖² − m·x_i; null without intercepts
  const std::int32_t* y;
  const T* rate;             // v_i/(λV); rows of rate 0 are never visited
  const T* curvature;        // q_i > 0
  T* alpha;                  // groups × rows × width; softmax: logarithms of probabilities
  T* weights;                // A; sparse rows: groups × features × width; dense rows: classes × padded features
  T* bias;                   // b: groups × width, −1e30 in lanes without a class
  T* drift;                  // σ: groups × width
  std::uint8_t* idle;        // groups × rows: visits in a row that changed nothing
};

// Which rows an epoch visits, and in which order.
struct Visits {
  const std::int64_t* order;
  ptrdiff_t count;
  std::uint64_t epoch;
};

constexpr int deepest_rest = 5;

namespace detail {

// Rows come in random order, which no processor foresees; beyond the first 2 KB it notices the run by itself.
template <class T>
void fetch_run(const T* data, ptrdiff_t count) {
  const char* first = reinterpret_cast<const char*>(data);
  const ptrdiff_t bytes = std::min<ptrdiff_t>(count * (ptrdiff_t)sizeof(T), 2048);
  for (ptrdiff_t at = 0; at < bytes; at += 64) __builtin_prefetch(first + at);
}

}  // namespace detail

template <class T, class I>
struct PackedRows {
  static constexpr ptrdiff_t longest_fetched = 64;
  SparseRows<T, I> rows;

  void fetch_start(ptrdiff_t i) const { __builtin_prefetch(rows.row_start + i); }
  void fetch(ptrdiff_t i) const {
    const I begin = rows.row_start[i], count = rows.row_start[i + 1] - begin;
    detail::fetch_run(rows.index + begin, (ptrdiff_t)count);
    detail::fetch_run(rows.value + begin, (ptrdiff_t)count);
  }
  // The weights that a short row meets lie anywhere; a long row's own visit leaves the time to find them.
  void fetch_weights(const DualAscent<T>& a, ptrdiff_t i, ptrdiff_t group) const {
    const I begin = rows.row_start[i], end = rows.row_start[i + 1];
    if (end - begin > longest_fetched) return;
    const T* w = a.weights + group * a.features * a.width;
    for (I k = begin; k < end; ++k) detail::fetch_run(w + (ptrdiff_t)rows.index[k] * a.width, a.width);
  }
  void scores(const Kernels<T>& k, const DualAscent<T>& a, ptrdiff_t i, ptrdiff_t group, T* s) const {
    const I begin = rows.row_start[i];
    const ptrdiff_t count = (ptrdiff_t)(rows.row_start[i + 1] - begin);
    const T* w = a.weights + group * a.features * a.width;
    if constexpr (std::is_same_v<I, std::int32_t>)
      k.packed_scores_32(rows.index + begin, rows.value + begin, count, w, a.width, s);
    else
      k.packed_scores_64(rows.index + begin, rows.value + begin, count, w, a.width, s);
  }
  void update(const Kernels<T>& k, const DualAscent<T>& a, ptrdiff_t i, ptrdiff_t group, const T* r) const {
    const I begin = rows.row_start[i];
    const ptrdiff_t count = (ptrdiff_t)(rows.row_start[i + 1] - begin);
    T* w = a.weights + group * a.features * a.width;
    if constexpr (std::is_same_v<I, std::int32_t>)
      k.packed_update_32(rows.index + begin, rows.value + begin, count, r, w, a.width);
    else
      k.packed_update_64(rows.index + begin, rows.value + begin, count, r, w, a.width);
  }
};

// Rows whose features are neighbours in memory, against class-major weights.
template <class T>
struct WholeRows {
  DenseRows<T> rows;
  ptrdiff_t classes;

  void fetch_start(ptrdiff_t) const {}
  void fetch_weights(const DualAscent<T>&, ptrdiff_t, ptrdiff_t) const {}
  void fetch(ptrdiff_t i) const { detail::fetch_run(rows.data + i * rows.row_stride, rows.features); }
  void scores(const Kernels<T>& k, const DualAscent<T>& a, ptrdiff_t i, ptrdiff_t group, T* s) const {
    const ptrdiff_t padded = round_up(a.features, feature_padding), first = group * a.width;
    k.dense_scores(rows.data + i * rows.row_stride, rows.row_stride, 1, a.features, a.weights + first * padded, padded,
                   s, std::min(a.width, classes - first), s, 1);
  }
  void update(const Kernels<T>& k, const DualAscent<T>& a, ptrdiff_t i, ptrdiff_t group, const T* r) const {
    const ptrdiff_t padded = round_up(a.features, feature_padding), first = group * a.width;
    k.row_update(rows.data + i * rows.row_stride, a.features, r, std::min(a.width, classes - first),
                 a.weights + first * padded, padded);
  }
};

namespace detail {

// One group's visits; returns how many there were.
template <class T, class Rows>
ptrdiff_t visit_group(const DualAscent<T>& a, const Rows& rows, const Visits& visits, ptrdiff_t group, T* buffer,
                      std::int64_t* awake, const Kernels<T>& kernels, bool caller, Interrupt& interrupt) {
  constexpr ptrdiff_t between_checks = 64, ahead = 4;
  T* const s = buffer;
  T* const delta = buffer + a.width;
  T* const scratch = buffer + 2 * a.width;
  T* const bias = a.bias + group * a.width;
  T* const drift = a.drift + group * a.width;
  std::uint8_t* const idle = a.idle + group * a.rows;
  const ptrdiff_t first_class = group * a.width;
  ptrdiff_t count = 0;
  for (ptrdiff_t t = 0; t < visits.count; ++t) {
    const std::int64_t i = visits.order[t];
    const std::uint64_t period = std::uint64_t(1) << std::min<int>(idle[i], deepest_rest);
    awake[count] = i;
    count += a.rate[i] > 0 && ((visits.epoch + (std::uint64_t)i) & (period - 1)) == 0;
  }
  for (ptrdiff_t t = 0; t < count; ++t) {
    if (t % between_checks == 0 && interrupt.check(caller)) break;
    if (t + 2 * ahead < count) rows.fetch_start(awake[t + 2 * ahead]);
    if (t + ahead < count) {
      rows.fetch(awake[t + ahead]);
      detail::fetch_run(a.alpha + (group * a.rows + awake[t + ahead]) * a.width, a.width);
    }
    if (t + 2 < count) rows.fetch_weights(a, awake[t + 2], group);
    const ptrdiff_t i = awake[t];
    const T along_mean = a.mean_product == nullptr ? T(0) : a.mean_product[i];
    for (ptrdiff_t c = 0; c < a.width; ++c) s[c] = bias[c] - along_mean * drift[c];
    rows.scores(kernels, a, i, group, s);
    T* const alpha = a.alpha + (group * a.rows + i) * a.width;
    if (!kernels.dual_step(a.loss, a.curvature[i], a.y[i] - first_class, s, alpha, delta, scratch, a.width)) {
      idle[i] = (std::uint8_t)std::min(idle[i] + 1, 255);
      continue;
    }
    idle[i] = 0;
    for (ptrdiff_t c = 0; c < a.width; ++c) delta[c] *= -a.rate[i];
    rows.update(kernels, a, i, group, delta);
    if (a.mean_product == nullptr) continue;
    const T step = a.intercept_step[i];
    for (ptrdiff_t c = 0; c < a.width; ++c) bias[c] += step * delta[c], drift[c] += delta[c];
  }
  return count;
}

}  // namespace detail

// Visits the rows in the given order; returns how many visits there were, over all groups.
template <class T, class Rows>
ptrdiff_t dual_coordinate_ascent(const DualAscent<T>& a, const Rows& rows, const Visits& visits, int threads,
                                 const Kernels<T>& kernels, Interrupt& interrupt) {
  const int parts = (int)std::min<ptrdiff_t>(threads, a.groups);
  const ptrdiff_t buffer_size = round_up(5 * a.width, 64);
  AlignedArray<T> buffers(parts * buffer_size);
  std::vector<std::int64_t> awake(parts * (visits.count + 1));
  std::vector<ptrdiff_t> visited(parts);
  run_parts(parts, [&](int part) {
    for (ptrdiff_t group = part; group < a.groups; group += parts)
      visited[part] += detail::visit_group(a, rows, visits, group, buffers.data() + part * buffer_size,
                                           awake.data() + part * (visits.count + 1), kernels, part == 0, interrupt);
  });
  ptrdiff_t total = 0;
  for (ptrdiff_t part : visited) total += part;
  return total;
}

}  // namespace hinge
