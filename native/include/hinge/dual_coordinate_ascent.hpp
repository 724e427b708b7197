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
// Blocks    Dense rows are visited four or eight at a time: scores and inner products of all of them by register tiles, then
//           their steps in turn, each corrected for those before it. It is the same sequence of steps.
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
  static constexpr bool visited_in_blocks = false;
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
  static constexpr bool visited_in_blocks = true;
  DenseRows<T> rows;
  ptrdiff_t classes;
};

namespace detail {

// Rows that dense data are visited by at a time: A x of all of them and their inner products first, by register tiles
// that read A once; then their steps one after the other, each aware of those before; then one update of A.
template <class T>
struct RowBlock {
  static constexpr ptrdiff_t most = 8;
  ptrdiff_t features, padded, classes;
  AlignedArray<T> x, scores, products, steps, no_bias;

  RowBlock(ptrdiff_t D, ptrdiff_t width)
      : features(D), padded(round_up(D, feature_padding)), classes(width), x(most * padded), scores(width * row_lanes),
        products(most * row_lanes), steps(width * row_lanes), no_bias(std::max(width, most)) {}

  // Inner products with the block's other rows cost as much as so many classes more.
  ptrdiff_t rows_at_once() const { return classes >= 4 * most ? most : most / 2; }

  void load(const DenseRows<T>& rows, const std::int64_t* which, ptrdiff_t n, const T* weights, const Kernels<T>& k) {
    for (ptrdiff_t i = 0; i < n; ++i) {
      const T* from = rows.data + which[i] * rows.row_stride;
      std::copy(from, from + features, x.data() + i * padded);
    }
    k.dense_scores(x.data(), padded, n, features, weights, padded, no_bias.data(), classes, scores.data(), row_lanes);
    if (n > 1)
      k.dense_scores(x.data(), padded, n, features, x.data(), padded, no_bias.data(), n, products.data(), row_lanes);
    std::fill(steps.data(), steps.data() + classes * row_lanes, T(0));
  }

  void scores_of(ptrdiff_t i, T* s) const {
    for (ptrdiff_t c = 0; c < classes; ++c) {
      T sum = scores.data()[c * row_lanes + i];
      for (ptrdiff_t j = 0; j < i; ++j) sum += steps.data()[c * row_lanes + j] * products.data()[j * row_lanes + i];
      s[c] = sum;
    }
  }

  // Classes that no row moves, most of them as a rule, cost nothing.
  void update(ptrdiff_t n, T* weights, const Kernels<T>& k) const {
    const auto moves = [&](ptrdiff_t c) {
      for (ptrdiff_t i = 0; i < n; ++i)
        if (steps.data()[c * row_lanes + i] != 0) return true;
      return false;
    };
    for (ptrdiff_t c = 0; c < classes; ++c) {
      if (!moves(c)) continue;
      const ptrdiff_t begin = c;
      while (c + 1 < classes && moves(c + 1)) ++c;
      k.dense_accumulate(x.data(), padded, n, features, steps.data() + begin * row_lanes, row_lanes, c + 1 - begin,
                         weights + begin * padded, padded, nullptr);
    }
  }
};

// What one thread visits with: vectors of classes, the rows that are awake, and a block of them for dense data.
template <class T>
struct VisitBuffers {
  AlignedArray<T> s, delta, scratch;
  std::vector<std::int64_t> awake;
  RowBlock<T> block;
  VisitBuffers(ptrdiff_t width, ptrdiff_t visits, ptrdiff_t D)
      : s(width), delta(width), scratch(3 * width), awake(visits + 1), block(D, width) {}
};

// Lists the rows of a group that are not at rest in this epoch.
template <class T>
ptrdiff_t list_awake(const DualAscent<T>& a, const Visits& visits, ptrdiff_t group, std::int64_t* awake) {
  const std::uint8_t* const idle = a.idle + group * a.rows;
  ptrdiff_t count = 0;
  for (ptrdiff_t t = 0; t < visits.count; ++t) {
    const std::int64_t i = visits.order[t];
    const std::uint64_t period = std::uint64_t(1) << std::min<int>(idle[i], deepest_rest);
    awake[count] = i;
    count += a.rate[i] > 0 && ((visits.epoch + (std::uint64_t)i) & (period - 1)) == 0;
  }
  return count;
}

// One row's step at scores A x_i, which buffers.s holds: adds the intercepts, solves, and leaves r in buffers.delta, with
// b and σ following. Returns whether anything changed.
template <class T>
bool visit_row(const DualAscent<T>& a, ptrdiff_t i, ptrdiff_t group, VisitBuffers<T>& buffers, const Kernels<T>& kernels) {
  T *const s = buffers.s.data(), *const delta = buffers.delta.data();
  T *const bias = a.bias + group * a.width, *const drift = a.drift + group * a.width;
  const T along_mean = a.mean_product == nullptr ? T(0) : a.mean_product[i];
  for (ptrdiff_t c = 0; c < a.width; ++c) s[c] += bias[c] - along_mean * drift[c];
  T* const alpha = a.alpha + (group * a.rows + i) * a.width;
  std::uint8_t& idle = a.idle[group * a.rows + i];
  const ptrdiff_t own = a.y[i] - group * a.width;
  if (!kernels.dual_step(a.loss, a.curvature[i], own, s, alpha, delta, buffers.scratch.data(), a.width)) {
    idle = (std::uint8_t)std::min(idle + 1, 255);
    return false;
  }
  idle = 0;
  for (ptrdiff_t c = 0; c < a.width; ++c) delta[c] *= -a.rate[i];
  if (a.mean_product == nullptr) return true;
  const T step = a.intercept_step[i];
  for (ptrdiff_t c = 0; c < a.width; ++c) bias[c] += step * delta[c], drift[c] += delta[c];
  return true;
}

constexpr ptrdiff_t between_checks = 64;

// One group's visits; returns how many there were.
template <class T, class I>
ptrdiff_t visit_group(const DualAscent<T>& a, const PackedRows<T, I>& rows, const Visits& visits, ptrdiff_t group,
                      VisitBuffers<T>& buffers, const Kernels<T>& kernels, bool caller, Interrupt& interrupt) {
  constexpr ptrdiff_t ahead = 4;
  const std::int64_t* const awake = buffers.awake.data();
  const ptrdiff_t count = list_awake(a, visits, group, buffers.awake.data());
  for (ptrdiff_t t = 0; t < count; ++t) {
    if (t % between_checks == 0 && interrupt.check(caller)) break;
    if (t + 2 * ahead < count) rows.fetch_start(awake[t + 2 * ahead]);
    if (t + ahead < count) {
      rows.fetch(awake[t + ahead]);
      fetch_run(a.alpha + (group * a.rows + awake[t + ahead]) * a.width, a.width);
    }
    if (t + 2 < count) rows.fetch_weights(a, awake[t + 2], group);
    std::fill(buffers.s.data(), buffers.s.data() + a.width, T(0));
    rows.scores(kernels, a, awake[t], group, buffers.s.data());
    if (visit_row(a, awake[t], group, buffers, kernels)) rows.update(kernels, a, awake[t], group, buffers.delta.data());
  }
  return count;
}

template <class T>
ptrdiff_t visit_group(const DualAscent<T>& a, const WholeRows<T>& rows, const Visits& visits, ptrdiff_t group,
                      VisitBuffers<T>& buffers, const Kernels<T>& kernels, bool caller, Interrupt& interrupt) {
  RowBlock<T>& block = buffers.block;
  block.classes = std::min(a.width, rows.classes - group * a.width);
  T* const weights = a.weights + group * a.width * block.padded;
  const std::int64_t* const awake = buffers.awake.data();
  const ptrdiff_t count = list_awake(a, visits, group, buffers.awake.data()), B = block.rows_at_once();
  for (ptrdiff_t t = 0; t < count; t += B) {
    if (t % between_checks == 0 && interrupt.check(caller)) break;
    const ptrdiff_t n = std::min(B, count - t);
    for (ptrdiff_t k = t + B; k < std::min(t + 2 * B, count); ++k)
      fetch_run(rows.rows.data + awake[k] * rows.rows.row_stride, a.features);
    block.load(rows.rows, awake + t, n, weights, kernels);
    bool moved = false;
    for (ptrdiff_t i = 0; i < n; ++i) {
      std::fill(buffers.s.data() + block.classes, buffers.s.data() + a.width, T(0));
      block.scores_of(i, buffers.s.data());
      if (!visit_row(a, awake[t + i], group, buffers, kernels)) continue;
      moved = true;
      for (ptrdiff_t c = 0; c < block.classes; ++c) block.steps.data()[c * row_lanes + i] = buffers.delta.data()[c];
    }
    if (moved) block.update(n, weights, kernels);
  }
  return count;
}

}  // namespace detail

// Visits the rows in the given order; returns how many visits there were, over all groups.
template <class T, class Rows>
ptrdiff_t dual_coordinate_ascent(const DualAscent<T>& a, const Rows& rows, const Visits& visits, int threads,
                                 const Kernels<T>& kernels, Interrupt& interrupt) {
  const int parts = (int)std::min<ptrdiff_t>(threads, a.groups);
  std::vector<detail::VisitBuffers<T>> buffers;
  for (int part = 0; part < parts; ++part) buffers.emplace_back(a.width, visits.count, Rows::visited_in_blocks ? a.features : 0);
  std::vector<ptrdiff_t> visited(parts);
  run_parts(parts, [&](int part) {
    for (ptrdiff_t group = part; group < a.groups; group += parts)
      visited[part] += detail::visit_group(a, rows, visits, group, buffers[part], kernels, part == 0, interrupt);
  });
  ptrdiff_t total = 0;
  for (ptrdiff_t part : visited) total += part;
  return total;
}

}  // namespace hinge
