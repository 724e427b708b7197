// BLAS from SciPy's `cython_blas` capsules. A capsule's name is the C signature of its function; it tells the width of
// the integers, so that both LP64 and ILP64 builds of SciPy work and any other change is noticed here, at load.
#include <string>

#include "bindings.hpp"

namespace hinge {

namespace {

struct Routine {
  void* function;
  bool wide_integers;
};

// "void (char *, char *, int *, int *, int *, …_s *, …)": the third parameter is the first integer.
bool wide_integers_of(const std::string& signature, const char* name) {
  std::size_t begin = signature.find('(');
  for (int k = 0; k < 2 && begin != std::string::npos; ++k) begin = signature.find(',', begin + 1);
  const std::size_t end = begin == std::string::npos ? begin : signature.find('*', begin);
  if (end != std::string::npos) {
    std::string type = signature.substr(begin + 1, end - begin - 1);
    type.erase(0, type.find_first_not_of(' '));
    type.erase(type.find_last_not_of(' ') + 1);
    if (type == "int") return false;
    if (type == "long" || type == "long long" || type == "int64_t" || type.ends_with("int64_t")) return true;
  }
  throw nb::import_error(
      (std::string("SciPy's ") + name + " has an unknown interface (" + signature + "); hinge needs another SciPy").c_str());
}

Routine routine(const nb::dict& capsules, const char* name) {
  if (!capsules.contains(name)) throw nb::import_error((std::string("SciPy's BLAS has no ") + name).c_str());
  const nb::object capsule = nb::borrow(capsules[name]);
  const char* signature = PyCapsule_GetName(capsule.ptr());
  void* function = signature == nullptr ? nullptr : PyCapsule_GetPointer(capsule.ptr(), signature);
  if (function == nullptr) throw nb::python_error();
  return {function, wide_integers_of(signature, name)};
}

Blas load() {
  const nb::dict capsules = nb::module_::import_("scipy.linalg.cython_blas").attr("__pyx_capi__");
  const Routine single = routine(capsules, "sgemm"), real = routine(capsules, "dgemm");
  return {single.function, real.function, single.wide_integers};
}

}  // namespace

const Blas& scipy_blas() {
  static const Blas blas = load();
  return blas;
}

}  // namespace hinge
