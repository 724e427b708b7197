// exp(x, out): eˣ elementwise, as the kernels compute it. Used by the accuracy tests.
#include <stdexcept>

#include "bindings.hpp"

namespace hinge {

namespace {

template <class T>
void exp_array(Vector1<T> x, nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu> out) {
  if (x.shape(0) != out.shape(0)) throw std::invalid_argument("x and out differ in length");
  kernels<T>(module_isa()).exp(x.data(), out.data(), (ptrdiff_t)x.shape(0));
}

}  // namespace

void bind_exp(nb::module_& m) {
  const char* doc = "Write the exponential of x to out.";
  m.def("exp", exp_array<float>, nb::arg("x").noconvert(), nb::arg("out").noconvert(), doc);
  m.def("exp", exp_array<double>, nb::arg("x").noconvert(), nb::arg("out").noconvert(), doc);
}

}  // namespace hinge
