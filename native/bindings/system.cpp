// What runs on this machine: instruction sets, compiler, width of BLAS integers.
#include <nanobind/stl/string.h>

#include "bindings.hpp"

namespace hinge {

namespace {

nb::dict system_info() {
  nb::list supported;
  for (Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512})
    if (isa_supported(isa)) supported.append(std::string(isa_name(isa)));
  nb::dict info;
  info["isa"] = std::string(isa_name(module_isa()));
  info["supported"] = supported;
  info["compiler"] = __VERSION__;
  info["blas_integers"] = scipy_blas().wide_integers ? 64 : 32;
  return info;
}

}  // namespace

void bind_system(nb::module_& m) {
  m.def("system_info", system_info, nb::sig("def system_info() -> dict[str, typing.Any]"),
        "Return the instruction set in use, those supported, the compiler and BLAS's integer width.");
}

}  // namespace hinge
