// Where rows come from, and the arrays that a pass over them needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

namespace hinge {

using std::ptrdiff_t;

// Zeroed memory that starts on a cache line.
template <class T>
class AlignedArray {
 public:
  AlignedArray() = default;
  explicit AlignedArray(ptrdiff_t size) : data_(allocate(size)) {}
  T* data() { return data_.get(); }
  const T* data() const { return data_.get(); }
  T& operator[](ptrdiff_t i) { return data_.get()[i]; }

 private:
  static T* allocate(ptrdiff_t size) {
    const std::size_t bytes = ((std::size_t)(size > 0 ? size : 1) * sizeof(T) + 63) / 64 * 64;
    void* memory = std::aligned_alloc(64, bytes);
    if (memory == nullptr) throw std::bad_alloc();
    __builtin_memset(memory, 0, bytes);
    return static_cast<T*>(memory);
  }
  struct Free {
    void operator()(T* memory) const { std::free(memory); }
  };
  std::unique_ptr<T, Free> data_;
};

// N×D rows by strides, counted in elements: C-ordered, F-ordered or any view.
template <class T>
struct DenseRows {
  const T* data;
  ptrdiff_t row_stride, column_stride, features;
};

// N×D rows in compressed sparse row form.
template <class T, class I>
struct SparseRows {
  const I* row_start;  // N + 1
  const I* index;
  const T* value;
  ptrdiff_t features;
};

// Labels and weights of the rows, and which rows to visit.
template <class T>
struct Targets {
  const std::int32_t* y;
  const T* weight;             // null: all 1
  const std::int64_t* subset;  // null: rows 0 … count − 1
  ptrdiff_t count;             // rows to visit

  ptrdiff_t row(ptrdiff_t position) const { return subset == nullptr ? position : (ptrdiff_t)subset[position]; }
};

constexpr ptrdiff_t round_up(ptrdiff_t value, ptrdiff_t multiple) { return (value + multiple - 1) / multiple * multiple; }

}  // namespace hinge
