// The one BLAS routine in use, as function pointers that the bindings fill from SciPy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace hinge {

// Fortran's xGEMM with integers of either width: column-major C = alpha·op(A)·op(B) + beta·C.
struct Blas {
  void* sgemm = nullptr;
  void* dgemm = nullptr;
  bool wide_integers = false;

  template <class T>
  void gemm(char trans_a, char trans_b, std::ptrdiff_t m, std::ptrdiff_t n, std::ptrdiff_t k, T alpha, const T* a,
            std::ptrdiff_t lda, const T* b, std::ptrdiff_t ldb, T beta, T* c, std::ptrdiff_t ldc) const {
    void* routine = std::is_same_v<T, float> ? sgemm : dgemm;
    if (wide_integers)
      call<T, std::int64_t>(routine, trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    else
      call<T, std::int32_t>(routine, trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  }

 private:
  template <class T, class I>
  static void call(void* routine, char trans_a, char trans_b, std::ptrdiff_t m_, std::ptrdiff_t n_, std::ptrdiff_t k_,
                   T alpha, const T* a, std::ptrdiff_t lda_, const T* b, std::ptrdiff_t ldb_, T beta, T* c,
                   std::ptrdiff_t ldc_) {
    using Gemm = void (*)(char*, char*, I*, I*, I*, T*, const T*, I*, const T*, I*, T*, T*, I*);
    I m = (I)m_, n = (I)n_, k = (I)k_, lda = (I)lda_, ldb = (I)ldb_, ldc = (I)ldc_;
    reinterpret_cast<Gemm>(routine)(&trans_a, &trans_b, &m, &n, &k, &alpha, a, &lda, b, &ldb, &beta, c, &ldc);
  }
};

}  // namespace hinge
