// The hot loops, as tables of function pointers: one table per instruction set and floating type.
//
// Notation in all of them: a block holds n rows x_i of D features; C classes with weights w_c;
// scores s and residuals r are class-major, s[c * ld + i], with ld a multiple of `row_lanes`, so that loops
// over the rows of a block are contiguous. Lanes i ≥ n of a block hold zeros, and so do their row weights.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "hinge/loss.hpp"

namespace hinge {

using std::ptrdiff_t;

constexpr ptrdiff_t row_lanes = 16;          // the widest vector, in float32
constexpr ptrdiff_t tile_block_rows = 32;    // rows that the register-tiled kernels take at once
constexpr ptrdiff_t feature_padding = 16;    // packed weights and gradients are padded to this many features

template <class T>
struct Kernels {
  // s[c * ld + i] = bias[c] + Σ_d x[i * ldx + d] · w[c * ldw + d]; w is zero beyond D up to the padding.
  void (*dense_scores)(const T* x, ptrdiff_t ldx, ptrdiff_t n, ptrdiff_t D, const T* w, ptrdiff_t ldw, const T* bias,
                       ptrdiff_t C, T* s, ptrdiff_t ld);
  // g[c * ldg + d] += Σ_i r[c * ld + i] · x[i * ldx + d]; rows at `next` are fetched meanwhile (null: none).
  void (*dense_accumulate)(const T* x, ptrdiff_t ldx, ptrdiff_t n, ptrdiff_t D, const T* r, ptrdiff_t ld, ptrdiff_t C,
                           T* g, ptrdiff_t ldg, const T* next);
  // Replaces scores by weight_i · ∂loss/∂score and returns Σ_i weight_i · loss_i.
  double (*residual)(const Loss& loss, T* s, ptrdiff_t ld, ptrdiff_t n, ptrdiff_t C, const std::int32_t* y,
                     const T* weight);
  // Replaces direction scores u by weight_i · (∂²loss/∂score²) · u_i; plain hinges have none.
  void (*curvature)(const Loss& loss, T* s, T* u, ptrdiff_t ld, ptrdiff_t n, ptrdiff_t C, const std::int32_t* y,
                    const T* weight);
  // One sparse row against feature-major weights w[d * C + c], and its transpose.
  void (*sparse_scores_32)(const std::int32_t* index, const T* value, ptrdiff_t count, const T* w, ptrdiff_t C, T* s);
  void (*sparse_scores_64)(const std::int64_t* index, const T* value, ptrdiff_t count, const T* w, ptrdiff_t C, T* s);
  void (*sparse_accumulate_32)(const std::int32_t* index, const T* value, ptrdiff_t count, const T* r, ptrdiff_t C, T* g);
  void (*sparse_accumulate_64)(const std::int64_t* index, const T* value, ptrdiff_t count, const T* r, ptrdiff_t C, T* g);
  // packed[i * ldp + d] = x[i + d * stride]: a block of a column-major matrix as rows.
  void (*transpose)(const T* x, ptrdiff_t stride, ptrdiff_t n, ptrdiff_t D, T* packed, ptrdiff_t ldp);
  // out[i] = eˣ, to the accuracy stated in docs/algorithms/exp.md.
  void (*exp)(const T* x, T* out, ptrdiff_t n);

  // For one row at a time; arrays of classes have `width` lanes: 4, 8 or a multiple of 16, and scores of −1e30 beyond C.
  // Solves the row's dual problem: α (softmax: its logarithm) in place, the change of u to delta, `m` is scratch of three
  // times the width; whether anything changed. `own` is
  // the lane of the row's class; in one-vs-rest it may lie outside.
  bool (*dual_step)(const Loss& loss, T q, ptrdiff_t own, const T* s, T* alpha, T* delta, T* m, ptrdiff_t width);
  // s += Σ_k value[k]·w[index[k] * width …], and its transpose w[index[k] * width …] += value[k]·r.
  void (*packed_scores_32)(const std::int32_t* index, const T* value, ptrdiff_t count, const T* w, ptrdiff_t width, T* s);
  void (*packed_scores_64)(const std::int64_t* index, const T* value, ptrdiff_t count, const T* w, ptrdiff_t width, T* s);
  void (*packed_update_32)(const std::int32_t* index, const T* value, ptrdiff_t count, const T* r, T* w, ptrdiff_t width);
  void (*packed_update_64)(const std::int64_t* index, const T* value, ptrdiff_t count, const T* r, T* w, ptrdiff_t width);
};

enum class Isa : int { baseline = 0, avx2 = 1, avx512 = 2 };

std::string_view isa_name(Isa isa);
bool isa_supported(Isa isa);        // by this processor and this build
Isa best_isa();                     // the widest supported one
Isa active_isa();                   // HINGE_ISA if set, else best_isa(); throws std::runtime_error if it cannot be

template <class T>
const Kernels<T>& kernels(Isa isa);

}  // namespace hinge
