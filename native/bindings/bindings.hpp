// What the binding files share: array types, and one function each to register their part of the module.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <stdexcept>

#include "hinge/blas.hpp"
#include "hinge/kernels.hpp"

namespace hinge {

namespace nb = nanobind;

template <class T>
using Vector1 = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

inline void require(bool condition, const char* message) {
  if (!condition) throw std::invalid_argument(message);
}

// What a native loop polls for Ctrl-C.
inline bool python_wants_to_stop() {
  const nb::gil_scoped_acquire gil;
  return PyErr_CheckSignals() != 0;
}

void bind_dual_coordinate_ascent(nb::module_& m);
void bind_exp(nb::module_& m);
void bind_linear_pass(nb::module_& m);
void bind_system(nb::module_& m);

// SciPy's BLAS, looked up on the first call; raises ImportError if its interface is not one that hinge knows.
const Blas& scipy_blas();

// The instruction set in use. It is read once, at import; a wrong HINGE_ISA is an ImportError.
Isa module_isa();

}  // namespace hinge
