// Dense rows in the linear pass: by register tiles while classes are few, by GEMM when they are many.
//
// Both engines offer what linear_pass.hpp asks of an engine:
//   Worker(engine)                 one thread's buffers
//   worker.block_rows()            rows that it takes at once
//   worker.scores(t, first, n, s)  scores of rows first … first + n − 1 of the targets' order, class-major
//   worker.accumulate(n, r)        adds residuals times these same rows to the worker's gradient
//   engine.collect(workers, out)   sums the workers' gradients
#pragma once

#include <algorithm>
#include <vector>

#include "hinge/blas.hpp"
#include "hinge/kernels.hpp"
#include "hinge/rows.hpp"

namespace hinge {

// K stacked C×D weight matrices (one for a gradient, weights and direction for a curvature product), each row followed
// by its intercept if there is one, copied to zero-padded rows.
template <class T>
struct PackedWeights {
  ptrdiff_t columns, features, padded;  // columns = K·C
  AlignedArray<T> rows, bias;

  PackedWeights(std::initializer_list<const T*> matrices, ptrdiff_t C, ptrdiff_t D, bool intercept)
      : columns((ptrdiff_t)matrices.size() * C), features(D), padded(round_up(D, feature_padding)),
        rows(columns * padded), bias(columns) {
    ptrdiff_t column = 0;
    for (const T* matrix : matrices)
      for (ptrdiff_t c = 0; c < C; ++c, ++column) {
        const T* row = matrix + c * (D + intercept);
        std::copy(row, row + D, rows.data() + column * padded);
        bias[column] = intercept ? row[D] : T(0);
      }
  }
};

// A gradient summed in T over short runs of rows, and in float64 over the runs, so that a float32 pass over millions of
// rows loses no more than one over thousands.
template <class T>
class GradientSum {
 public:
  static constexpr ptrdiff_t run = 4096;

  GradientSum(ptrdiff_t size, ptrdiff_t rows_expected)
      : size_(size), sum_(size), total_(sizeof(T) < sizeof(double) && rows_expected > run ? size : 0),
        in_runs_(sizeof(T) < sizeof(double) && rows_expected > run) {}

  T* data() { return sum_.data(); }

  void rows_added(ptrdiff_t rows) {
    pending_ += rows;
    if (in_runs_ && pending_ >= run) flush();
  }

  double at(ptrdiff_t i) { return in_runs_ ? total_[i] + (double)sum_[i] : (double)sum_[i]; }

 private:
  void flush() {
    for (ptrdiff_t i = 0; i < size_; ++i) total_[i] += (double)sum_[i];
    std::fill(sum_.data(), sum_.data() + size_, T(0));
    pending_ = 0;
  }

  ptrdiff_t size_, pending_ = 0;
  AlignedArray<T> sum_;
  AlignedArray<double> total_;
  bool in_runs_;
};

// Hands out blocks of rows as contiguous rows: in place where they are, else copied once into a buffer that fits the cache.
// Column-major data are turned into rows several blocks at a time, so that each column is read in runs worth a page.
template <class T>
class RowBlocks {
 public:
  RowBlocks(const Kernels<T>& kernels, const DenseRows<T>& rows, const Targets<T>& targets, ptrdiff_t block_rows)
      : kernels_(kernels), rows_(rows), targets_(targets), in_place_(rows.column_stride == 1 && rows.row_stride >= rows.features && targets.subset == nullptr),
        by_columns_(!in_place_ && targets.subset == nullptr && rows.row_stride == 1),
        padded_(round_up(rows.features, feature_padding)),
        held_rows_(by_columns_ ? std::max(block_rows, column_run) : block_rows),
        buffer_(in_place_ ? 0 : held_rows_ * padded_) {}

  ptrdiff_t stride() const { return in_place_ ? rows_.row_stride : padded_; }
  const T* next(ptrdiff_t first) const { return in_place_ && first < targets_.count ? at(first) : nullptr; }

  const T* get(ptrdiff_t first, ptrdiff_t n) {
    if (in_place_) return at(first);
    if (by_columns_) {
      if (first < held_ || first + n > held_ + held_count_) {
        held_ = first;
        held_count_ = std::min(held_rows_, targets_.count - first);
        kernels_.transpose(at(first), rows_.column_stride, held_count_, rows_.features, buffer_.data(), padded_);
      }
      return buffer_.data() + (first - held_) * padded_;
    }
    for (ptrdiff_t i = 0; i < n; ++i) copy_row(at(targets_.row(first + i)), buffer_.data() + i * padded_);
    return buffer_.data();
  }

 private:
  static constexpr ptrdiff_t column_run = 256;

  const T* at(ptrdiff_t row) const { return rows_.data + row * rows_.row_stride; }

  void copy_row(const T* from, T* to) const {
    if (rows_.column_stride == 1) {
      std::copy(from, from + rows_.features, to);
    } else {
      for (ptrdiff_t d = 0; d < rows_.features; ++d) to[d] = from[d * rows_.column_stride];
    }
  }

  const Kernels<T>& kernels_;
  DenseRows<T> rows_;
  Targets<T> targets_;
  bool in_place_, by_columns_;
  ptrdiff_t padded_, held_rows_, held_ = 0, held_count_ = 0;
  AlignedArray<T> buffer_;
};

// Writes D gradients and, with an intercept, its sum after them, for each class.
template <class T, class Workers>
void collect_dense(Workers& workers, ptrdiff_t C, ptrdiff_t D, ptrdiff_t ldg, bool intercept, T* out) {
  for (ptrdiff_t c = 0; c < C; ++c)
    for (ptrdiff_t d = 0; d < D; ++d) {
      double sum = 0;
      for (auto& worker : workers) sum += worker.gradient.at(c * ldg + d);
      out[c * (D + intercept) + d] = (T)sum;
    }
}

template <class T>
struct TiledEngine {
  const Kernels<T>& kernels;
  DenseRows<T> rows;
  PackedWeights<T> weights;
  ptrdiff_t C;
  bool intercept;

  struct Worker {
    const TiledEngine& engine;
    RowBlocks<T> blocks;
    GradientSum<T> gradient;
    const T* x = nullptr;
    ptrdiff_t end = 0;

    Worker(const TiledEngine& e, const Targets<T>& targets, ptrdiff_t rows_expected)
        : engine(e), blocks(e.kernels, e.rows, targets, tile_block_rows),
          gradient(e.C * e.weights.padded, rows_expected) {}

    static constexpr ptrdiff_t block_rows() { return tile_block_rows; }

    void scores(ptrdiff_t first, ptrdiff_t n, T* s, ptrdiff_t ld) {
      x = blocks.get(first, n);
      end = first + n;
      const PackedWeights<T>& w = engine.weights;
      engine.kernels.dense_scores(x, blocks.stride(), n, w.features, w.rows.data(), w.padded, w.bias.data(), w.columns,
                                  s, ld);
    }

    void accumulate(ptrdiff_t n, const T* r, ptrdiff_t ld) {
      const PackedWeights<T>& w = engine.weights;
      engine.kernels.dense_accumulate(x, blocks.stride(), n, w.features, r, ld, engine.C, gradient.data(), w.padded,
                                      blocks.next(end));
      gradient.rows_added(n);
    }
  };

  void collect(std::vector<Worker>& workers, T* out) const {
    collect_dense(workers, C, weights.features, weights.padded, intercept, out);
  }
};

template <class T>
struct GemmEngine {
  const Kernels<T>& kernels;
  const Blas& blas;
  DenseRows<T> rows;
  PackedWeights<T> weights;
  ptrdiff_t C;
  bool intercept;

  struct Worker {
    const GemmEngine& engine;
    RowBlocks<T> blocks;
    GradientSum<T> gradient;
    const T* x = nullptr;

    Worker(const GemmEngine& e, const Targets<T>& targets, ptrdiff_t rows_expected)
        : engine(e), blocks(e.kernels, e.rows, targets, block_rows()),
          gradient(e.C * e.weights.padded, rows_expected) {}

    static constexpr ptrdiff_t block_rows() { return 256; }

    void scores(ptrdiff_t first, ptrdiff_t n, T* s, ptrdiff_t ld) {
      x = blocks.get(first, n);
      const PackedWeights<T>& w = engine.weights;
      engine.blas.template gemm<T>('T', 'N', n, w.columns, w.features, T(1), x, blocks.stride(), w.rows.data(),
                                   w.padded, T(0), s, ld);
      for (ptrdiff_t c = 0; c < w.columns; ++c)
        for (ptrdiff_t i = 0; i < n; ++i) s[c * ld + i] += w.bias.data()[c];
    }

    void accumulate(ptrdiff_t n, const T* r, ptrdiff_t ld) {
      const PackedWeights<T>& w = engine.weights;
      engine.blas.template gemm<T>('N', 'N', w.features, engine.C, n, T(1), x, blocks.stride(), r, ld, T(1),
                                   gradient.data(), w.padded);
      gradient.rows_added(n);
    }
  };

  void collect(std::vector<Worker>& workers, T* out) const {
    collect_dense(workers, C, weights.features, weights.padded, intercept, out);
  }
};

}  // namespace hinge
