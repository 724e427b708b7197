// The fused linear pass: over rows x_i with labels y_i and weights v_i, in one reading of X,
//
//   gradient:   L = Σ_i v_i·loss(W x_i, y_i)       and   G = Σ_i v_i·∂loss/∂s(W x_i, y_i) x_iᵀ
//   curvature:  G = Σ_i v_i·[∂²loss/∂s²(W x_i, y_i)·V x_i] x_iᵀ       for a direction V
//
// Blocks of rows small enough for the cache go through scores → residuals → gradient before the next one is read. Sums
// over any partition of the rows add up to the sums over all of them; nothing of size N×C is ever stored.
//
// Cost: 4·N·D·C flops (6 for the curvature) and N·D values read. Threads take contiguous runs of whole blocks and are
// summed in order, so that the same number of threads gives the same bits.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "hinge/dense_engine.hpp"
#include "hinge/kernels.hpp"
#include "hinge/parallel.hpp"
#include "hinge/rows.hpp"
#include "hinge/sparse_engine.hpp"

namespace hinge {

enum class Product { gradient, curvature };

template <class T>
struct LinearPass {
  Loss loss;
  Product product;
  const T* weights;    // C×(D + intercept); class-major for dense rows, feature-major for sparse ones
  const T* direction;  // the same shape, for the curvature
  ptrdiff_t C;
  bool intercept;
  Targets<T> targets;
  int threads;
  T* row_curvature = nullptr;  // for a gradient: v_i·trace(∂²loss_i/∂s²) of each row, by its number; null: not wanted
  const T* alpha = nullptr;  // for a gradient: dual variables, rows × C, whose u_i then take the place of ∂loss/∂s in G
  ptrdiff_t alpha_stride = 0;
  double* dual_gain = nullptr;  // Σ_i v_i·(−loss*(u_i)), with alpha
};

// More classes than this are left to GEMM: register tiles would read the weights from outer caches over and over.
constexpr ptrdiff_t most_tiled_columns = 32;

namespace detail {

// One thread more for each of these many multiply–adds: below, starting a thread costs more than it saves.
constexpr double work_per_thread = 2e6;

// What one block holds: scores (and direction scores), labels and weights; idle lanes of a last block stay harmless.
template <class T>
struct BlockBuffers {
  AlignedArray<T> s, weight;
  AlignedArray<std::int32_t> y;
  BlockBuffers(ptrdiff_t columns, ptrdiff_t ld) : s(columns * ld), weight(ld), y(ld) {}
};

// v_i·trace(∂²loss_i/∂s²) of a block's rows, from their residuals: softmax has v·(1 − Σp²) with r = v·(p − e_y), a squared
// hinge 2 for each class that pulls, and 2 more for the true class that it pulls against. Plain hinges are flat.
template <class T>
void add_row_curvature(const LinearPass<T>& pass, const T* r, ptrdiff_t ld, ptrdiff_t start, ptrdiff_t n,
                       const std::int32_t* y, const T* weight) {
  const bool softmax = pass.loss.kind == LossKind::softmax;
  const T per_pull = pass.loss.squared ? (pass.loss.kind == LossKind::one_vs_rest ? T(2) : T(4)) : T(0);
  for (ptrdiff_t i = 0; i < n; ++i) {
    T sum = 0;
    for (ptrdiff_t c = 0; c < pass.C; ++c) {
      const T slope = r[c * ld + i];
      if (softmax)
        sum += slope * slope;
      else
        sum += slope != 0 && (c != y[i] || pass.loss.kind == LossKind::one_vs_rest) ? per_pull * weight[i] : T(0);
    }
    if (softmax) sum = weight[i] > 0 ? std::max(T(0), -sum / weight[i] - 2 * r[y[i] * ld + i]) : T(0);
    pass.row_curvature[pass.targets.row(start + i)] = sum;
  }
}

// Writes v·(p − e_y) over one row's residuals and returns v·H(p).
template <class T>
double softmax_slopes(const LinearPass<T>& pass, T* r, ptrdiff_t ld, ptrdiff_t i, const T* p, std::int32_t y, double v) {
  double sum = 0, entropy = 0;
  for (ptrdiff_t c = 0; c < pass.C; ++c) sum += (double)p[c];
  for (ptrdiff_t c = 0; c < pass.C; ++c) {
    const double share = (double)p[c] / sum;
    r[c * ld + i] = (T)(v * (share - (c == y)));
    if (share > 0) entropy -= share * std::log(share);
  }
  return v * entropy;
}

// Writes v_i·u_i(α_i) over a block's residuals and returns Σ_i v_i·(−loss*(u_i)). In Crammer and Singer's plain hinge α may
// add up to 1 and a rounding error more; the point that is used and valued is then α scaled back. So are the probabilities
// of softmax, whose sum is 1 but for rounding.
template <class T>
double dual_slopes(const LinearPass<T>& pass, T* r, ptrdiff_t ld, ptrdiff_t start, ptrdiff_t n, const std::int32_t* y,
                   const T* weight) {
  const bool coupled = pass.loss.kind != LossKind::one_vs_rest, by_sum = pass.loss.kind == LossKind::crammer_singer;
  double gain = 0;
  for (ptrdiff_t i = 0; i < n; ++i) {
    const T* alpha = pass.alpha + pass.targets.row(start + i) * pass.alpha_stride;
    const double v = (double)weight[i];
    double sum = 0, squares = 0;
    if (pass.loss.kind == LossKind::softmax) {
      gain += softmax_slopes(pass, r, ld, i, alpha, y[i], v);
      continue;
    }
    for (ptrdiff_t c = 0; c < pass.C; ++c) sum += (double)alpha[c], squares += (double)alpha[c] * (double)alpha[c];
    const double scale = by_sum && !pass.loss.squared && sum > 1 ? 1 / sum : 1;
    for (ptrdiff_t c = 0; c < pass.C; ++c) r[c * ld + i] = (T)(v * scale * (double)alpha[c]);
    r[y[i] * ld + i] = (T)(coupled ? -v * scale * sum : -v * (double)alpha[y[i]]);
    if (by_sum) squares = sum * sum;
    gain += v * (pass.loss.margin * scale * sum - (pass.loss.squared ? squares / 4 : 0));
  }
  return gain;
}

// The rows of one thread, block by block.
template <class T, class Worker>
double run_worker(const LinearPass<T>& pass, const Kernels<T>& kernels, Worker& worker, BlockBuffers<T>& buffers,
                  ptrdiff_t first, ptrdiff_t last, bool caller, Interrupt& interrupt, double* bias_sum,
                  double* dual_gain) {
  const ptrdiff_t ld = Worker::block_rows(), C = pass.C;
  const bool curved = pass.product == Product::curvature;
  auto& [s, weight, y] = buffers;
  T* const r = curved ? s.data() + C * ld : s.data();
  double loss = 0;
  for (ptrdiff_t start = first; start < last && !interrupt.check(caller); start += ld) {
    const ptrdiff_t n = std::min(ld, last - start);
    for (ptrdiff_t i = 0; i < n; ++i) {
      const ptrdiff_t row = pass.targets.row(start + i);
      y[i] = pass.targets.y[row];
      weight[i] = pass.targets.weight == nullptr ? T(1) : pass.targets.weight[row];
    }
    if (n < ld) {
      std::fill(s.data(), s.data() + (curved ? 2 : 1) * C * ld, T(0));
      std::fill(y.data() + n, y.data() + ld, 0);
      std::fill(weight.data() + n, weight.data() + ld, T(0));
    }
    worker.scores(start, n, s.data(), ld);
    if (curved)
      kernels.curvature(pass.loss, s.data(), r, ld, n, C, y.data(), weight.data());
    else
      loss += kernels.residual(pass.loss, r, ld, n, C, y.data(), weight.data());
    if (!curved && pass.row_curvature != nullptr)
      add_row_curvature(pass, r, ld, start, n, y.data(), weight.data());
    if (!curved && pass.alpha != nullptr) *dual_gain += dual_slopes(pass, r, ld, start, n, y.data(), weight.data());
    worker.accumulate(n, r, ld);
    if (pass.intercept)
      for (ptrdiff_t c = 0; c < C; ++c)
        for (ptrdiff_t i = 0; i < n; ++i) bias_sum[c] += (double)r[c * ld + i];
  }
  return loss;
}

template <class T, class Engine, class MakeWorker>
double run_engine(const LinearPass<T>& pass, const Kernels<T>& kernels, const Engine& engine, int threads,
                  Interrupt& interrupt, T* out, ptrdiff_t bias_start, ptrdiff_t bias_stride,
                  MakeWorker&& make_worker) {
  using Worker = typename Engine::Worker;
  const ptrdiff_t block = Worker::block_rows(), count = pass.targets.count, C = pass.C;
  const ptrdiff_t blocks = (count + block - 1) / block;
  std::vector<Worker> workers;  // all memory is taken here: the threads themselves cannot fail
  std::vector<BlockBuffers<T>> buffers;
  workers.reserve(threads);
  buffers.reserve(threads);
  for (int k = 0; k < threads; ++k) {
    workers.push_back(make_worker(k));
    buffers.emplace_back((pass.product == Product::curvature ? 2 : 1) * C, block);
  }
  std::vector<double> losses(threads), gains(threads), bias(threads * C);
  run_parts(threads, [&](int k) {
    const ptrdiff_t first = blocks * k / threads * block, last = std::min(count, blocks * (k + 1) / threads * block);
    losses[k] = run_worker(pass, kernels, workers[k], buffers[k], first, last, k == 0, interrupt, bias.data() + k * C,
                           gains.data() + k);
  });
  engine.collect(workers, out);
  if (pass.intercept)
    for (ptrdiff_t c = 0; c < C; ++c) {
      double sum = 0;
      for (int k = 0; k < threads; ++k) sum += bias[k * C + c];
      out[bias_start + c * bias_stride] = (T)sum;
    }
  if (pass.dual_gain != nullptr)
    for (double part : gains) *pass.dual_gain += part;
  double loss = 0;
  for (double part : losses) loss += part;
  return loss;
}

inline int useful_threads(int threads, double multiply_adds, ptrdiff_t blocks) {
  const double by_work = std::max(1.0, multiply_adds / work_per_thread);
  return (int)std::max(1.0, std::min({(double)threads, by_work, (double)blocks}));
}

template <class T>
PackedWeights<T> pack(const LinearPass<T>& pass, ptrdiff_t D) {
  if (pass.product == Product::curvature) return {{pass.weights, pass.direction}, pass.C, D, pass.intercept};
  return {{pass.weights}, pass.C, D, pass.intercept};
}

template <template <class> class Engine, class T>
double run_dense(const LinearPass<T>& pass, const Kernels<T>& kernels, const Engine<T>& engine, Interrupt& interrupt,
                 T* out) {
  using Worker = typename Engine<T>::Worker;
  const ptrdiff_t D = engine.rows.features, count = pass.targets.count;
  const double work = 2.0 * (double)count * (double)D * (double)pass.C;
  const int threads = useful_threads(pass.threads, work, (count + Worker::block_rows() - 1) / Worker::block_rows());
  return run_engine(pass, kernels, engine, threads, interrupt, out, D, D + 1,
                    [&](int) { return Worker(engine, pass.targets, count / threads); });
}

}  // namespace detail

// Returns L (0 for a curvature product) and writes G to `out`, shaped as the weights. `blas` may be null: then register
// tiles serve any number of classes.
template <class T>
double linear_pass(const LinearPass<T>& pass, const DenseRows<T>& rows, const Kernels<T>& kernels, const Blas* blas,
                   Interrupt& interrupt, T* out) {
  const bool curved = pass.product == Product::curvature;
  if (blas != nullptr && (curved ? 2 : 1) * pass.C > most_tiled_columns) {
    const GemmEngine<T> engine{kernels, *blas, rows, detail::pack(pass, rows.features), pass.C, pass.intercept};
    return detail::run_dense(pass, kernels, engine, interrupt, out);
  }
  const TiledEngine<T> engine{kernels, rows, detail::pack(pass, rows.features), pass.C, pass.intercept};
  return detail::run_dense(pass, kernels, engine, interrupt, out);
}

template <class T, class I>
double linear_pass(const LinearPass<T>& pass, const SparseRows<T, I>& rows, const Kernels<T>& kernels,
                   Interrupt& interrupt, T* out) {
  using Engine = SparseEngine<T, I>;
  std::vector<const T*> matrices{pass.weights};
  if (pass.product == Product::curvature) matrices.push_back(pass.direction);
  const Engine engine{kernels, rows, matrices, pass.C, pass.intercept, out};
  const ptrdiff_t D = rows.features, count = pass.targets.count;
  double values = 0;
  for (ptrdiff_t p = 0; p < count; ++p) {
    const ptrdiff_t i = pass.targets.row(p);
    values += (double)(rows.row_start[i + 1] - rows.row_start[i]);
  }
  // Each thread sums into D×C of its own: worth it only if it meets more values than there are features.
  const int by_values = (int)std::min(1e6, std::max(1.0, values / (double)std::max<ptrdiff_t>(D, 1)));
  const ptrdiff_t blocks = (count + Engine::Worker::block_rows() - 1) / Engine::Worker::block_rows();
  const int threads =
      detail::useful_threads(std::min(pass.threads, by_values), 2.0 * values * (double)pass.C, blocks);
  return detail::run_engine(pass, kernels, engine, threads, interrupt, out, D * pass.C, 1,
                            [&](int k) { return typename Engine::Worker(engine, pass.targets, k == 0); });
}

}  // namespace hinge
