// The Python module `hinge._native`: arrays in, arrays out.
#include <stdexcept>

#include "bindings.hpp"

namespace hinge {

namespace {
Isa chosen = Isa::baseline;
}

Isa module_isa() { return chosen; }

}  // namespace hinge

NB_MODULE(_native, m) {
  using namespace hinge;
  try {
    chosen = active_isa();
  } catch (const std::runtime_error& error) {
    throw nb::import_error(error.what());
  }
  m.doc() = "hinge's hot loops. Everything here checks types and shapes and nothing else; use hinge.ops.";
  bind_dual_coordinate_ascent(m);
  bind_exp(m);
  bind_linear_pass(m);
  bind_system(m);
}
