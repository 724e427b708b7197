// linear_pass(…): checks shapes, releases the GIL, runs the pass; Ctrl-C is noticed between blocks of rows.
#include <nanobind/stl/optional.h>

#include <optional>
#include <stdexcept>

#include "bindings.hpp"
#include "hinge/linear_pass.hpp"

namespace hinge {

namespace {

template <class T>
using Dense = nb::ndarray<const T, nb::ndim<2>, nb::device::cpu>;
template <class T>
using ClassMajor = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using ClassMajorOut = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using FeatureMajor = nb::ndarray<const T, nb::ndim<2>, nb::f_contig, nb::device::cpu>;
template <class T>
using FeatureMajorOut = nb::ndarray<T, nb::ndim<2>, nb::f_contig, nb::device::cpu>;
template <class T>
using RowCurvature = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using DualVariables = nb::ndarray<const T, nb::ndim<2>, nb::device::cpu>;
using Gain = nb::ndarray<double, nb::shape<1>, nb::c_contig, nb::device::cpu>;
template <class A>
using Optional = std::optional<A>;

// Shapes and ranges that memory safety depends on. Labels and column indices were checked when the data were bound.
template <class T, class W, class Out>
LinearPass<T> make_pass(int kind, bool squared, double margin, ptrdiff_t rows, ptrdiff_t features, const Vector1<std::int32_t>& y,
                        const Optional<Vector1<T>>& weight, const Optional<Vector1<std::int64_t>>& subset, const W& weights,
                        const Optional<W>& direction, const Out& out, int threads,
                        const Optional<RowCurvature<T>>& row_curvature) {
  const ptrdiff_t C = (ptrdiff_t)weights.shape(0), columns = (ptrdiff_t)weights.shape(1);
  require(kind >= 0 && kind <= 3, "unknown loss");
  require(threads >= 1, "threads must be at least 1");
  require(C >= 2, "weights need a row for each of at least two classes");
  require(columns == features || columns == features + 1, "weights need a column for each feature, and one for intercepts");
  require((ptrdiff_t)out.shape(0) == C && (ptrdiff_t)out.shape(1) == columns, "out differs from weights in shape");
  require((ptrdiff_t)y.shape(0) == rows, "y differs from X in length");
  require(!weight || (ptrdiff_t)weight->shape(0) == rows, "sample_weight differs from X in length");
  require(!direction || ((ptrdiff_t)direction->shape(0) == C && (ptrdiff_t)direction->shape(1) == columns),
          "direction differs from weights in shape");
  if (subset)
    for (std::size_t k = 0; k < subset->shape(0); ++k)
      require(subset->data()[k] >= 0 && subset->data()[k] < rows, "subset names a row that X does not have");
  require(!row_curvature || (!direction && (ptrdiff_t)row_curvature->shape(0) == rows),
          "row_curvature needs one value a row, and no direction");
  const Loss loss{(LossKind)kind, squared, margin};
  require(!direction || loss.has_curvature(), "this loss has no curvature");
  return {loss,
          direction ? Product::curvature : Product::gradient,
          weights.data(),
          direction ? direction->data() : nullptr,
          C,
          columns == features + 1,
          {y.data(), weight ? weight->data() : nullptr, subset ? subset->data() : nullptr,
           subset ? (ptrdiff_t)subset->shape(0) : rows},
          threads,
          row_curvature ? row_curvature->data() : nullptr};
}

// With alpha, the pass's gradient is that of a dual point, and gain its value before the penalty.
template <class T>
void add_dual_point(LinearPass<T>& pass, ptrdiff_t rows, const Optional<DualVariables<T>>& alpha, const Optional<Gain>& gain) {
  if (!alpha && !gain) return;
  require(alpha && gain, "alpha and gain go together");
  require(pass.product == Product::gradient, "alpha goes with no direction");
  require((ptrdiff_t)alpha->shape(0) == rows && (ptrdiff_t)alpha->shape(1) == pass.C && alpha->stride(1) == 1,
          "alpha needs a row for each of X's, with a value for each class side by side");
  pass.alpha = alpha->data();
  pass.alpha_stride = (ptrdiff_t)alpha->stride(0);
  pass.dual_gain = gain->data();
  *pass.dual_gain = 0;
}

template <class F>
double run(F&& pass) {
  Interrupt interrupt(python_wants_to_stop);
  double loss;
  {
    const nb::gil_scoped_release release;
    loss = pass(interrupt);
  }
  if (interrupt.requested()) throw nb::python_error();
  return loss;
}

template <class T>
double dense_pass(int kind, bool squared, double margin, Dense<T> X, Vector1<std::int32_t> y,
                  Optional<Vector1<T>> sample_weight, Optional<Vector1<std::int64_t>> subset, ClassMajor<T> weights,
                  Optional<ClassMajor<T>> direction, ClassMajorOut<T> out, int threads,
                  Optional<RowCurvature<T>> row_curvature, Optional<DualVariables<T>> alpha, Optional<Gain> gain) {
  auto pass = make_pass<T>(kind, squared, margin, (ptrdiff_t)X.shape(0), (ptrdiff_t)X.shape(1), y, sample_weight,
                                 subset, weights, direction, out, threads, row_curvature);
  add_dual_point(pass, (ptrdiff_t)X.shape(0), alpha, gain);
  const DenseRows<T> rows{X.data(), (ptrdiff_t)X.stride(0), (ptrdiff_t)X.stride(1), (ptrdiff_t)X.shape(1)};
  const Blas& blas = scipy_blas();
  return run([&](Interrupt& interrupt) {
    return linear_pass(pass, rows, kernels<T>(module_isa()), &blas, interrupt, out.data());
  });
}

template <class T, class I>
double sparse_pass(int kind, bool squared, double margin, Vector1<I> indptr, Vector1<I> indices, Vector1<T> data,
                   ptrdiff_t n_features, Vector1<std::int32_t> y, Optional<Vector1<T>> sample_weight,
                   Optional<Vector1<std::int64_t>> subset, FeatureMajor<T> weights,
                   Optional<FeatureMajor<T>> direction, FeatureMajorOut<T> out, int threads,
                   Optional<RowCurvature<T>> row_curvature, Optional<DualVariables<T>> alpha, Optional<Gain> gain) {
  require(indptr.shape(0) >= 1, "indptr is empty");
  require(indices.shape(0) == data.shape(0), "indices and data differ in length");
  auto pass = make_pass<T>(kind, squared, margin, (ptrdiff_t)indptr.shape(0) - 1, n_features, y, sample_weight,
                                 subset, weights, direction, out, threads, row_curvature);
  add_dual_point(pass, (ptrdiff_t)indptr.shape(0) - 1, alpha, gain);
  const SparseRows<T, I> rows{indptr.data(), indices.data(), data.data(), n_features};
  return run([&](Interrupt& interrupt) {
    return linear_pass(pass, rows, kernels<T>(module_isa()), interrupt, out.data());
  });
}

constexpr const char* doc =
    "Sum the weighted losses and their gradient, or with a direction the curvature product, or with alpha the gradient of "
    "that dual point, over the rows into out.";

template <class T>
void bind_dense(nb::module_& m) {
  m.def("linear_pass_dense", dense_pass<T>, nb::arg("kind"), nb::arg("squared"), nb::arg("margin"),
        nb::arg("X").noconvert(), nb::arg("y").noconvert(), nb::arg("sample_weight").noconvert().none(),
        nb::arg("subset").noconvert().none(), nb::arg("weights").noconvert(), nb::arg("direction").noconvert().none(),
        nb::arg("out").noconvert(), nb::arg("threads"), nb::arg("row_curvature").noconvert().none() = nb::none(),
        nb::arg("alpha").noconvert().none() = nb::none(), nb::arg("gain").noconvert().none() = nb::none(), doc);
}

template <class T, class I>
void bind_sparse(nb::module_& m) {
  m.def("linear_pass_sparse", sparse_pass<T, I>, nb::arg("kind"), nb::arg("squared"), nb::arg("margin"),
        nb::arg("indptr").noconvert(), nb::arg("indices").noconvert(), nb::arg("data").noconvert(),
        nb::arg("n_features"), nb::arg("y").noconvert(), nb::arg("sample_weight").noconvert().none(),
        nb::arg("subset").noconvert().none(), nb::arg("weights").noconvert(), nb::arg("direction").noconvert().none(),
        nb::arg("out").noconvert(), nb::arg("threads"), nb::arg("row_curvature").noconvert().none() = nb::none(),
        nb::arg("alpha").noconvert().none() = nb::none(), nb::arg("gain").noconvert().none() = nb::none(), doc);
}

}  // namespace

void bind_linear_pass(nb::module_& m) {
  bind_dense<float>(m);
  bind_dense<double>(m);
  bind_sparse<float, std::int32_t>(m);
  bind_sparse<float, std::int64_t>(m);
  bind_sparse<double, std::int32_t>(m);
  bind_sparse<double, std::int64_t>(m);
}

}  // namespace hinge
