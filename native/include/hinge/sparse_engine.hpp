// Sparse rows in the linear pass: weights and gradient lie feature-major, (D + intercept)×C, so that each stored value
// meets all classes at once. Same interface as the engines of dense_engine.hpp.
#pragma once

#include <algorithm>
#include <type_traits>
#include <vector>

#include "hinge/kernels.hpp"
#include "hinge/rows.hpp"

namespace hinge {

template <class T, class I>
struct SparseEngine {
  const Kernels<T>& kernels;
  SparseRows<T, I> rows;
  std::vector<const T*> matrices;  // weights, and the direction of a curvature product
  ptrdiff_t C;
  bool intercept;
  T* out;  // the first worker's gradient is the result itself

  struct Worker {
    const SparseEngine& engine;
    Targets<T> targets;
    AlignedArray<T> own_gradient, row;
    T* gradient;
    ptrdiff_t start = 0;

    Worker(const SparseEngine& e, const Targets<T>& t, bool first)
        : engine(e), targets(t), own_gradient(first ? 0 : e.rows.features * e.C), row(e.C),
          gradient(first ? e.out : own_gradient.data()) {
      if (first) std::fill(e.out, e.out + (e.rows.features + e.intercept) * e.C, T(0));
    }

    static constexpr ptrdiff_t block_rows() { return 256; }

    void scores(ptrdiff_t first, ptrdiff_t n, T* s, ptrdiff_t ld) {
      start = first;
      const ptrdiff_t C = engine.C;
      for (ptrdiff_t i = 0; i < n; ++i) {
        ptrdiff_t column = 0;
        for (const T* w : engine.matrices) {
          const T* bias = w + engine.rows.features * C;
          for (ptrdiff_t c = 0; c < C; ++c) row[c] = engine.intercept ? bias[c] : T(0);
          each_row(first + i, [&](const I* index, const T* value, ptrdiff_t count) {
            score_kernel()(index, value, count, w, C, row.data());
          });
          for (ptrdiff_t c = 0; c < C; ++c, ++column) s[column * ld + i] = row[c];
        }
      }
    }

    void accumulate(ptrdiff_t n, const T* r, ptrdiff_t ld) {
      const ptrdiff_t C = engine.C;
      for (ptrdiff_t i = 0; i < n; ++i) {
        for (ptrdiff_t c = 0; c < C; ++c) row[c] = r[c * ld + i];
        each_row(start + i, [&](const I* index, const T* value, ptrdiff_t count) {
          gradient_kernel()(index, value, count, row.data(), C, gradient);
        });
      }
    }

   private:
    template <class F>
    void each_row(ptrdiff_t position, F&& f) const {
      const ptrdiff_t i = targets.row(position);
      const I begin = engine.rows.row_start[i], end = engine.rows.row_start[i + 1];
      f(engine.rows.index + begin, engine.rows.value + begin, (ptrdiff_t)(end - begin));
    }
    auto score_kernel() const {
      if constexpr (std::is_same_v<I, std::int32_t>) return engine.kernels.sparse_scores_32;
      else return engine.kernels.sparse_scores_64;
    }
    auto gradient_kernel() const {
      if constexpr (std::is_same_v<I, std::int32_t>) return engine.kernels.sparse_accumulate_32;
      else return engine.kernels.sparse_accumulate_64;
    }
  };

  void collect(std::vector<Worker>& workers, T*) const {
    const ptrdiff_t size = rows.features * C;
    for (std::size_t k = 1; k < workers.size(); ++k)
      for (ptrdiff_t i = 0; i < size; ++i) out[i] += workers[k].gradient[i];
  }
};

}  // namespace hinge
