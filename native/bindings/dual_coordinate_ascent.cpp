// dual_coordinate_ascent_*(…): one epoch of visits; count_nonzeros and compress_rows prepare rows for it.
#include <nanobind/stl/optional.h>

#include <optional>

#include "bindings.hpp"
#include "hinge/compress_rows.hpp"
#include "hinge/dual_coordinate_ascent.hpp"

namespace hinge {

namespace {

template <class T>
using Dense = nb::ndarray<const T, nb::ndim<2>, nb::device::cpu>;
template <class T>
using Out1 = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Out2 = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class A>
using Optional = std::optional<A>;
template <class T>
using Out3 = nb::ndarray<T, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

// Shapes that memory safety depends on; labels and column indices were checked when the data were bound.
template <class T>
DualAscent<T> make_ascent(int kind, bool squared, double margin, ptrdiff_t rows, ptrdiff_t features,
                          const Vector1<std::int32_t>& y, const Optional<Vector1<T>>& mean_product,
                          const Optional<Vector1<T>>& intercept_step, const Vector1<T>& rate, const Vector1<T>& curvature, const Out3<T>& alpha, ptrdiff_t weights, ptrdiff_t weights_needed,
                          T* weights_data, const Out2<T>& bias, const Out2<T>& drift,
                          const Out2<std::uint8_t>& idle) {
  const ptrdiff_t groups = (ptrdiff_t)alpha.shape(0), width = (ptrdiff_t)alpha.shape(2);
  require(kind >= 0 && kind <= 3, "not a loss");
  require(width == 4 || width == 8 || (width > 0 && width % 16 == 0), "a row of alpha has 4, 8 or a multiple of 16 lanes");
  require(groups >= 1 && (groups == 1 || kind == (int)LossKind::one_vs_rest), "only one-vs-rest goes in groups");
  require((ptrdiff_t)alpha.shape(1) == rows, "alpha differs from X in length");
  require((ptrdiff_t)bias.shape(0) == groups && (ptrdiff_t)bias.shape(1) == width, "bias differs from alpha in shape");
  require(drift.shape(0) == bias.shape(0) && drift.shape(1) == bias.shape(1), "drift differs from bias in shape");
  require((!mean_product && !intercept_step) ||
              (mean_product && intercept_step && (ptrdiff_t)mean_product->shape(0) == rows &&
               (ptrdiff_t)intercept_step->shape(0) == rows),
          "mean_product and intercept_step go together, with a value a row");
  require((ptrdiff_t)idle.shape(0) == groups && (ptrdiff_t)idle.shape(1) == rows, "idle differs from alpha in shape");
  require((ptrdiff_t)y.shape(0) == rows && (ptrdiff_t)rate.shape(0) == rows && (ptrdiff_t)curvature.shape(0) == rows,
          "y, rate or curvature differs from X in length");
  require(weights == weights_needed, "weights have the wrong shape");
  return {{(LossKind)kind, squared, margin}, rows, features, groups, width,
          mean_product ? mean_product->data() : nullptr, intercept_step ? intercept_step->data() : nullptr, y.data(),
          rate.data(), curvature.data(), alpha.data(), weights_data, bias.data(), drift.data(), idle.data()};
}

Visits make_visits(const Vector1<std::int64_t>& order, std::uint64_t epoch, ptrdiff_t rows) {
  for (std::size_t k = 0; k < order.shape(0); ++k)
    require(order.data()[k] >= 0 && order.data()[k] < rows, "order names a row that X does not have");
  return {order.data(), (ptrdiff_t)order.shape(0), epoch};
}

template <class F>
auto run(F&& work) {
  Interrupt interrupt(python_wants_to_stop);
  decltype(work(interrupt)) result;
  {
    const nb::gil_scoped_release release;
    result = work(interrupt);
  }
  if (interrupt.requested()) throw nb::python_error();
  return result;
}

template <class T>
ptrdiff_t ascend_dense(int kind, bool squared, double margin, Dense<T> X, Vector1<std::int32_t> y,
                       Vector1<std::int64_t> order, std::uint64_t epoch, Optional<Vector1<T>> mean_product,
                       Optional<Vector1<T>> intercept_step, Vector1<T> rate, Vector1<T> curvature, Out3<T> alpha,
                       Out2<T> weights, Out2<T> bias, Out2<T> drift, Out2<std::uint8_t> idle, int threads) {
  const ptrdiff_t rows = (ptrdiff_t)X.shape(0), features = (ptrdiff_t)X.shape(1), classes = (ptrdiff_t)weights.shape(0);
  require(X.stride(1) == 1 || features <= 1, "X needs rows whose values lie side by side");
  require((ptrdiff_t)weights.shape(1) == round_up(features, feature_padding), "weights need padded features");
  require(threads >= 1, "threads must be at least 1");
  const auto ascent = make_ascent<T>(kind, squared, margin, rows, features, y, mean_product, intercept_step, rate, curvature, alpha,
                                     (ptrdiff_t)alpha.shape(0), (classes + (ptrdiff_t)alpha.shape(2) - 1) / (ptrdiff_t)alpha.shape(2),
                                     weights.data(), bias, drift, idle);
  for (ptrdiff_t i = 0; i < rows; ++i) require(y.data()[i] >= 0 && y.data()[i] < classes, "a label has no weights");
  const Visits visits = make_visits(order, epoch, rows);
  const WholeRows<T> source{{X.data(), (ptrdiff_t)X.stride(0), 1, features}, classes};
  return run([&](Interrupt& interrupt) {
    return dual_coordinate_ascent(ascent, source, visits, threads, kernels<T>(module_isa()), interrupt);
  });
}

template <class T, class I>
ptrdiff_t ascend_sparse(int kind, bool squared, double margin, Vector1<I> indptr, Vector1<I> indices, Vector1<T> data,
                        Vector1<std::int32_t> y, Vector1<std::int64_t> order, std::uint64_t epoch,
                        Optional<Vector1<T>> mean_product, Optional<Vector1<T>> intercept_step, Vector1<T> rate,
                        Vector1<T> curvature, Out3<T> alpha, Out3<T> weights, Out2<T> bias, Out2<T> drift,
                        Out2<std::uint8_t> idle, int threads) {
  require(indptr.shape(0) >= 1, "indptr is empty");
  require(indices.shape(0) == data.shape(0), "indices and data differ in length");
  require(weights.shape(2) == alpha.shape(2), "weights and alpha differ in lanes");
  require(threads >= 1, "threads must be at least 1");
  const ptrdiff_t rows = (ptrdiff_t)indptr.shape(0) - 1, features = (ptrdiff_t)weights.shape(1);
  const auto ascent =
      make_ascent<T>(kind, squared, margin, rows, features, y, mean_product, intercept_step, rate, curvature, alpha,
                     (ptrdiff_t)weights.shape(0), (ptrdiff_t)alpha.shape(0), weights.data(), bias, drift, idle);
  const ptrdiff_t lanes = (ptrdiff_t)(alpha.shape(0) * alpha.shape(2));
  for (ptrdiff_t i = 0; i < rows; ++i) require(y.data()[i] >= 0 && y.data()[i] < lanes, "a label has no weights");
  const Visits visits = make_visits(order, epoch, rows);
  const PackedRows<T, I> source{{indptr.data(), indices.data(), data.data(), features}};
  return run([&](Interrupt& interrupt) {
    return dual_coordinate_ascent(ascent, source, visits, threads, kernels<T>(module_isa()), interrupt);
  });
}

template <class T>
DenseRows<T> dense_rows(const Dense<T>& X) {
  return {X.data(), (ptrdiff_t)X.stride(0), (ptrdiff_t)X.stride(1), (ptrdiff_t)X.shape(1)};
}

template <class T>
void count(Dense<T> X, Out1<std::int64_t> counts, int threads) {
  require(counts.shape(0) == X.shape(0), "counts differ from X in length");
  require(threads >= 1, "threads must be at least 1");
  const nb::gil_scoped_release release;
  count_nonzeros(dense_rows(X), (ptrdiff_t)X.shape(0), threads, counts.data());
}

template <class T, class I>
void compress(Dense<T> X, Vector1<std::int64_t> order, Vector1<I> indptr, Out1<I> indices, Out1<T> data, int threads) {
  make_visits(order, 0, (ptrdiff_t)X.shape(0));
  require(order.shape(0) == X.shape(0), "order differs from X in length");
  require(indptr.shape(0) == X.shape(0) + 1, "indptr differs from X in length");
  require(indices.shape(0) == data.shape(0), "indices and data differ in length");
  require(indptr.data()[0] == 0 && (std::size_t)indptr.data()[X.shape(0)] == data.shape(0), "indptr does not fit data");
  require(threads >= 1, "threads must be at least 1");
  const nb::gil_scoped_release release;
  compress_rows(dense_rows(X), (ptrdiff_t)X.shape(0), threads, order.data(), indptr.data(), indices.data(), data.data());
}

constexpr const char* ascend_doc = "Visit rows in the given order, each time solving the row's dual problem; return how many were not at rest.";
constexpr const char* count_doc = "Write each row's number of values other than 0 to counts.";
constexpr const char* compress_doc = "Write the values other than 0 and their columns; indptr holds the sums of count_nonzeros.";

template <class T>
void bind_dense(nb::module_& m) {
  m.def("dual_coordinate_ascent_dense", ascend_dense<T>, nb::arg("kind"), nb::arg("squared"), nb::arg("margin"),
        nb::arg("X").noconvert(), nb::arg("y").noconvert(), nb::arg("order").noconvert(), nb::arg("epoch"),
        nb::arg("mean_product").noconvert().none(), nb::arg("intercept_step").noconvert().none(), nb::arg("rate").noconvert(), nb::arg("curvature").noconvert(), nb::arg("alpha").noconvert(),
        nb::arg("weights").noconvert(), nb::arg("bias").noconvert(), nb::arg("drift").noconvert(), nb::arg("idle").noconvert(), nb::arg("threads"),
        ascend_doc);
  m.def("count_nonzeros", count<T>, nb::arg("X").noconvert(), nb::arg("counts").noconvert(), nb::arg("threads"), count_doc);
}

template <class T, class I>
void bind_sparse(nb::module_& m) {
  m.def("dual_coordinate_ascent_sparse", ascend_sparse<T, I>, nb::arg("kind"), nb::arg("squared"), nb::arg("margin"),
        nb::arg("indptr").noconvert(), nb::arg("indices").noconvert(), nb::arg("data").noconvert(),
        nb::arg("y").noconvert(), nb::arg("order").noconvert(), nb::arg("epoch"),
        nb::arg("mean_product").noconvert().none(), nb::arg("intercept_step").noconvert().none(),
        nb::arg("rate").noconvert(), nb::arg("curvature").noconvert(), nb::arg("alpha").noconvert(),
        nb::arg("weights").noconvert(), nb::arg("bias").noconvert(), nb::arg("drift").noconvert(), nb::arg("idle").noconvert(), nb::arg("threads"),
        ascend_doc);
  m.def("compress_rows", compress<T, I>, nb::arg("X").noconvert(), nb::arg("order").noconvert(), nb::arg("indptr").noconvert(),
        nb::arg("indices").noconvert(), nb::arg("data").noconvert(), nb::arg("threads"), compress_doc);
}

}  // namespace

void bind_dual_coordinate_ascent(nb::module_& m) {
  bind_dense<float>(m);
  bind_dense<double>(m);
  bind_sparse<float, std::int32_t>(m);
  bind_sparse<float, std::int64_t>(m);
  bind_sparse<double, std::int32_t>(m);
  bind_sparse<double, std::int64_t>(m);
}

}  // namespace hinge
