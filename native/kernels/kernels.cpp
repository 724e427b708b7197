// All hot loops for one instruction set. The build compiles this file once per set, each time with that set's flags and
// with HINGE_ISA naming the namespace; dispatch.cpp picks a table at run time.
//
// Only types and built-ins of the compiler may be used here: an inline function of the standard library, compiled with
// wide vectors, could be the copy that the linker keeps for the portable code as well.
#include "hinge/kernels.hpp"

#if defined(__AVX512F__)
#define HINGE_VECTOR_BYTES 64
#elif defined(__AVX2__)
#define HINGE_VECTOR_BYTES 32
#else
#define HINGE_VECTOR_BYTES 16
#endif
#define HINGE_INLINE static inline __attribute__((always_inline))
#define HINGE_RESTRICT __restrict__

namespace hinge::HINGE_ISA {
namespace {

#include "vector.inl"

#include "exp.inl"

#include "dense.inl"

#include "losses.inl"

#include "sparse.inl"

#include "dual_coordinate_ascent.inl"

template <class T>
constexpr Kernels<T> table{
    dense_scores<T>,
    dense_accumulate<T>,
    residual<T>,
    curvature<T>,
    sparse_scores<T, std::int32_t>,
    sparse_scores<T, std::int64_t>,
    sparse_accumulate<T, std::int32_t>,
    sparse_accumulate<T, std::int64_t>,
    transpose<T>,
    exp_array<T>,
    dual_step<T>,
    packed_scores<T, std::int32_t>,
    packed_scores<T, std::int64_t>,
    packed_update<T, std::int32_t>,
    packed_update<T, std::int64_t>,
};

}  // namespace

extern const Kernels<float> float32 = table<float>;
extern const Kernels<double> float64 = table<double>;

}  // namespace hinge::HINGE_ISA
