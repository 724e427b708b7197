// Dense rows in compressed form: what an algorithm that visits rows one by one reads where most values are 0.
#pragma once

#include <algorithm>
#include <vector>

#include "hinge/parallel.hpp"
#include "hinge/rows.hpp"

namespace hinge {

// counts[i] = the values of row i that are not 0.
template <class T>
void count_nonzeros(const DenseRows<T>& rows, ptrdiff_t n, int threads, std::int64_t* counts) {
  run_parts(threads, [&](int part) {
    for (ptrdiff_t i = n * part / threads; i < n * (part + 1) / threads; ++i) {
      const T* x = rows.data + i * rows.row_stride;
      std::int32_t count = 0;
      if (rows.column_stride == 1)
        for (ptrdiff_t d = 0; d < rows.features; ++d) count += x[d] != 0;
      else
        for (ptrdiff_t d = 0; d < rows.features; ++d) count += x[d * rows.column_stride] != 0;
      counts[i] = count;
    }
  });
}

// Fills index and value with the rows in the given order; they start at row_start as the counts say.
template <class T, class I>
void compress_rows(const DenseRows<T>& rows, ptrdiff_t n, int threads, const std::int64_t* order, const I* row_start, I* index,
                   T* value) {
  std::vector<AlignedArray<I>> found_at(threads);
  std::vector<AlignedArray<T>> found(threads);
  for (int part = 0; part < threads; ++part) {
    found_at[part] = AlignedArray<I>(rows.features + 1);
    found[part] = AlignedArray<T>(rows.features + 1);
  }
  run_parts(threads, [&](int part) {
    I* const at = found_at[part].data();
    T* const what = found[part].data();
    for (ptrdiff_t i = n * part / threads; i < n * (part + 1) / threads; ++i) {
      const T* x = rows.data + order[i] * rows.row_stride;
      ptrdiff_t count = 0;
      for (ptrdiff_t d = 0; d < rows.features; ++d) {  // always written, counted if it is one: no branch to mispredict
        const T v = x[d * rows.column_stride];
        at[count] = (I)d;
        what[count] = v;
        count += v != 0;
      }
      count = std::min<ptrdiff_t>(count, (ptrdiff_t)(row_start[i + 1] - row_start[i]));  // should X change meanwhile
      std::copy(at, at + count, index + row_start[i]);
      std::copy(what, what + count, value + row_start[i]);
    }
  });
}

}  // namespace hinge
