// The fused linear pass against brute force: every loss, product, memory layout, engine and instruction set.
//
// All arrays are exactly as large as they must be, so that the address sanitizer sees a read or write beyond them; gaps
// between strided rows hold NaN, so that reading one shows in the result.
#include <cstring>
#include <limits>
#include <optional>

#include "brute_force.hpp"
#include "check.hpp"
#include "hinge/linear_pass.hpp"

using namespace hinge;
using brute_force::Problem;
using brute_force::Sums;

namespace {

struct Case {
  Loss loss;
  bool curved;
};

std::vector<Case> all_cases(double margin) {
  std::vector<Case> cases{{{LossKind::softmax, false, margin}, false}, {{LossKind::softmax, false, margin}, true}};
  for (LossKind kind : {LossKind::weston_watkins, LossKind::crammer_singer, LossKind::one_vs_rest})
    for (int form = 0; form < 3; ++form) cases.push_back({{kind, form > 0, margin}, form == 2});
  return cases;
}

// --- memory --------------------------------------------------------------------------------------------------------

// N×D values at the given strides in a buffer without a number to spare.
template <class T>
struct Strided {
  std::vector<T> memory;
  DenseRows<T> rows;

  Strided(const Problem& p, ptrdiff_t row_stride, ptrdiff_t column_stride)
      : memory(extent(p.N, row_stride, p.D, column_stride), std::numeric_limits<T>::quiet_NaN()),
        rows{memory.data(), row_stride, column_stride, p.D} {
    if (p.N == 0) return;
    const ptrdiff_t origin =
        std::max<ptrdiff_t>(0, -row_stride) * (p.N - 1) + std::max<ptrdiff_t>(0, -column_stride) * (p.D - 1);
    rows.data += origin;
    for (ptrdiff_t i = 0; i < p.N; ++i)
      for (ptrdiff_t d = 0; d < p.D; ++d)
        memory[origin + i * row_stride + d * column_stride] = (T)p.X[i * p.D + d];
  }

  static ptrdiff_t extent(ptrdiff_t N, ptrdiff_t row_stride, ptrdiff_t D, ptrdiff_t column_stride) {
    return N == 0 ? 0 : std::abs(row_stride) * (N - 1) + std::abs(column_stride) * (D - 1) + 1;
  }
};

struct Strides {
  ptrdiff_t row, column;
};

constexpr int layouts = 12;

Strides layout(int number, ptrdiff_t N, ptrdiff_t D) {
  switch (number) {
    case 0: return {D, 1};             // C order
    case 1: return {D + 3, 1};         // columns cut off
    case 2: return {1, N};             // F order
    case 3: return {1, N + 5};         // rows cut off
    case 4: return {2 * D + 1, 2};     // every second column
    case 5: return {-D, 1};            // rows backwards
    case 6: return {-D, -1};           // all backwards
    case 7: return {1, -N};            // columns of F order backwards
    case 8: return {-1, N};            // rows of F order backwards
    case 9: return {0, 1};             // one row for all
    case 10: return {1, 0};            // one column for all
    default: return {3, 3 * N + 1};    // every third row of F order
  }
}

// Strides of 0 make rows or columns equal: the problem follows.
void follow(Problem& p, Strides strides) {
  for (ptrdiff_t i = 0; i < p.N; ++i)
    for (ptrdiff_t d = 0; d < p.D; ++d)
      p.X[i * p.D + d] = p.X[(strides.row == 0 ? 0 : i) * p.D + (strides.column == 0 ? 0 : d)];
}

template <class T, class I>
struct Compressed {
  std::vector<I> row_start{0}, index;
  std::vector<T> value;

  // Zeros are left out but for a few, and some values are stored as two halves.
  explicit Compressed(const Problem& p) {
    std::vector<I> columns;
    std::vector<T> values;
    for (ptrdiff_t i = 0; i < p.N; ++i) {
      for (ptrdiff_t d = 0; d < p.D; ++d) {
        const T x = (T)p.X[i * p.D + d];
        const int parts = (i + d) % 7 == 0 ? 2 : 1;
        if (x == 0 && (i * 5 + d) % 11 != 0) continue;
        columns.insert(columns.end(), parts, (I)d);
        values.insert(values.end(), parts, x / (T)parts);
      }
      row_start.push_back((I)values.size());
    }
    index = std::vector<I>(columns.begin(), columns.end());
    value = std::vector<T>(values.begin(), values.end());
  }
  SparseRows<T, I> rows(ptrdiff_t D) const { return {row_start.data(), index.data(), value.data(), D}; }
};

// Weights and row weights in the type of the pass, class-major or feature-major.
template <class T>
struct Arguments {
  std::vector<T> W, V, weight;
  const Problem& p;
  bool feature_major, subset, weighted;

  Arguments(const Problem& problem, bool feature_major_, bool subset_, bool weighted_)
      : W(arranged(problem, problem.W, feature_major_)), V(arranged(problem, problem.V, feature_major_)),
        weight(problem.weight.begin(), problem.weight.end()), p(problem), feature_major(feature_major_),
        subset(subset_), weighted(weighted_) {}

  static std::vector<T> arranged(const Problem& p, const std::vector<double>& from, bool feature_major) {
    std::vector<T> to(from.size());
    for (ptrdiff_t c = 0; c < p.C; ++c)
      for (ptrdiff_t d = 0; d < p.columns(); ++d)
        to[feature_major ? d * p.C + c : c * p.columns() + d] = (T)from[c * p.columns() + d];
    return to;
  }

  LinearPass<T> pass(const Case& k, int threads) const {
    return {k.loss, k.curved ? Product::curvature : Product::gradient, W.data(), k.curved ? V.data() : nullptr, p.C,
            p.intercept,
            {p.y.data(), weighted ? weight.data() : nullptr, subset ? p.visits.data() : nullptr,
             (ptrdiff_t)p.visits.size()},
            threads};
  }
};

template <class T>
struct Result {
  double loss;
  std::vector<T> gradient;  // as the pass wrote it

  bool same_bits(const Result& other) const {
    return std::memcmp(&loss, &other.loss, sizeof(loss)) == 0 &&
           std::memcmp(gradient.data(), other.gradient.data(), gradient.size() * sizeof(T)) == 0;
  }
};

template <class T, class Rows>
Result<T> run(const Arguments<T>& arguments, const Case& k, const Rows& rows, const Kernels<T>& kernels, int threads,
              const Blas* blas = nullptr) {
  Interrupt interrupt(nullptr);
  Result<T> result{0, std::vector<T>(arguments.W.size(), std::numeric_limits<T>::quiet_NaN())};
  const LinearPass<T> pass = arguments.pass(k, threads);
  if constexpr (std::is_same_v<Rows, DenseRows<T>>)
    result.loss = linear_pass(pass, rows, kernels, blas, interrupt, result.gradient.data());
  else
    result.loss = linear_pass(pass, rows, kernels, interrupt, result.gradient.data());
  return result;
}

// --- a GEMM of three loops, with either width of integers -----------------------------------------------------------

template <class T, class I>
void naive_gemm(char* trans_a, char* trans_b, I* m, I* n, I* k, T* alpha, const T* a, I* lda, const T* b, I* ldb,
                T* beta, T* c, I* ldc) {
  const bool ta = *trans_a == 'T', tb = *trans_b == 'T';
  CHECK(*lda >= std::max<I>(1, ta ? *k : *m) && *ldb >= std::max<I>(1, tb ? *n : *k) && *ldc >= std::max<I>(1, *m),
        "leading dimensions %ld %ld %ld", (long)*lda, (long)*ldb, (long)*ldc);
  for (ptrdiff_t j = 0; j < *n; ++j)
    for (ptrdiff_t i = 0; i < *m; ++i) {
      T sum = 0;
      for (ptrdiff_t l = 0; l < *k; ++l)
        sum += a[ta ? l + i * *lda : i + l * *lda] * b[tb ? j + l * *ldb : l + j * *ldb];
      T& target = c[i + j * *ldc];
      target = *alpha * sum + (*beta == 0 ? T(0) : *beta * target);
    }
}

template <class I>
Blas naive_blas() {
  return {reinterpret_cast<void*>(naive_gemm<float, I>), reinterpret_cast<void*>(naive_gemm<double, I>),
          sizeof(I) == 8};
}

// --- comparison ----------------------------------------------------------------------------------------------------

// Sums of whole and half numbers are exact while they are small enough, in any order and type; so are the hinges. The
// softmax of whole scores is off by its exponentials and their sum of C terms, and sums of n rows by about √n.
template <class T>
void compare(const Result<T>& got, const Sums& want, const Arguments<T>& arguments, const Case& k, const char* engine) {
  const Problem& p = arguments.p;
  const double eps = std::numeric_limits<T>::epsilon(), exact_below = 1 / (4 * eps);
  const bool exact = k.loss.kind != LossKind::softmax;
  const double each = eps * ((double)p.C + 10), together = eps * 2 * std::sqrt((double)p.visits.size());
  const auto context = [&](const char* what, ptrdiff_t c, ptrdiff_t d, double value, double expected) {
    static char text[300];
    std::snprintf(text, sizeof(text),
                  "%s, %zu bits, loss %d squared %d curved %d, N=%td C=%td D=%td intercept %d visits %zu: "
                  "%s[%td, %td] = %.17g, expected %.17g",
                  engine, 8 * sizeof(T), (int)k.loss.kind, k.loss.squared, k.curved, p.N, p.C, p.D, p.intercept,
                  p.visits.size(), what, c, d, value, expected);
    return text;
  };
  const double in_double = std::numeric_limits<double>::epsilon() * 2 * std::sqrt((double)p.visits.size());
  const double loss_tolerance = exact ? 0 : (each + in_double) * want.loss_size;
  CHECK(std::fabs(got.loss - want.loss) <= loss_tolerance, "%s", context("loss", 0, 0, got.loss, want.loss));
  for (ptrdiff_t c = 0; c < p.C; ++c)
    for (ptrdiff_t d = 0; d < p.columns(); ++d) {
      const ptrdiff_t at = c * p.columns() + d;
      const double value = got.gradient[arguments.feature_major ? d * p.C + c : at];
      const double tolerance =
          exact ? (want.size[at] < exact_below ? 0 : together * want.size[at]) : (each + together) * want.size[at];
      CHECK(std::fabs(value - want.gradient[at]) <= tolerance, "%s",
            context("gradient", c, d, value, want.gradient[at]));
    }
}

// `turn` decides between integers of 32 and 64 bits.
template <class T>
void compare_all_engines(const Problem& p, Strides strides, bool subset, bool weighted, const Case& k, const Sums& want,
                         const Kernels<T>& kernels, int threads, std::size_t turn) {
  const Arguments<T> by_class(p, false, subset, weighted), by_feature(p, true, subset, weighted);
  const Strided<T> dense(p, strides.row, strides.column);
  compare(run(by_class, k, dense.rows, kernels, threads), want, by_class, k, "tiles");
  const bool wide = turn % 2 == 1;
  if ((k.curved ? 2 : 1) * p.C > most_tiled_columns) {
    const Blas blas = wide ? naive_blas<std::int64_t>() : naive_blas<std::int32_t>();
    compare(run(by_class, k, dense.rows, kernels, threads, &blas), want, by_class, k, wide ? "gemm 64" : "gemm 32");
  }
  if (wide) {
    const Compressed<T, std::int64_t> sparse(p);
    compare(run(by_feature, k, sparse.rows(p.D), kernels, threads), want, by_feature, k, "sparse 64");
  } else {
    const Compressed<T, std::int32_t> sparse(p);
    compare(run(by_feature, k, sparse.rows(p.D), kernels, threads), want, by_feature, k, "sparse 32");
  }
}

// --- tests ---------------------------------------------------------------------------------------------------------

void test_shapes(Isa isa) {
  check::Random random(1);
  int number = 0;
  for (ptrdiff_t C : {2, 3, 5, 10, 11, 12, 13, 33, 40})
    for (ptrdiff_t D : {1, 2, 15, 16, 17, 64, 100})
      for (ptrdiff_t N : {0, 1, 31, 32, 33, 255, 257}) {
        const bool intercept = random.coin(), weighted = random.coin(), subset = random.integer(0, 2) == 0;
        const Strides strides = layout(number++ % layouts, N, D);
        Problem p = brute_force::make_problem(random, N, C, D, intercept, weighted, subset);
        follow(p, strides);
        brute_force::score(p);
        const auto cases = all_cases((double)random.integer(1, 2));
        for (std::size_t j = 0; j < cases.size(); ++j) {
          if (N > 200 && C * D > 200 && (j + number) % 4 != 0) continue;  // the large ones take turns
          const Sums want = brute_force::sums(p, cases[j].loss, cases[j].curved);
          compare_all_engines(p, strides, subset, weighted, cases[j], want, kernels<float>(isa), 1, number + j);
          compare_all_engines(p, strides, subset, weighted, cases[j], want, kernels<double>(isa), 1, number + j + 1);
        }
      }
}

// Enough work for four threads, and more rows than one float32 run of GradientSum.
void test_threads(Isa isa) {
  check::Random random(2);
  const auto cases = all_cases(1);
  int number = 0;
  for (ptrdiff_t C : {2, 12, 40})
    for (std::size_t j = (std::size_t)number % 2; j < cases.size(); j += 2, ++number) {
      const bool subset = number % 3 == 1, weighted = number % 2 == 1;
      const Strides strides = layout(number % layouts, 5000, 100);
      Problem p = brute_force::make_problem(random, 5000, C, C == 40 ? 15 : 100, number % 4 < 2, weighted, subset);
      follow(p, strides);
      brute_force::score(p);
      const Sums want = brute_force::sums(p, cases[j].loss, cases[j].curved);
      const int threads = 1 + number % 4, others = 1 + (number + 2) % 4;
      compare_all_engines(p, strides, subset, weighted, cases[j], want, kernels<float>(isa), threads, number);
      compare_all_engines(p, strides, subset, weighted, cases[j], want, kernels<double>(isa), others, number + 1);
    }
}

// Real numbers now: the same threads give the same bits, and sums over blocks of rows add up to the sum over all.
template <class T>
void test_repeats_and_blocks(const Kernels<T>& kernels) {
  check::Random random(3);
  const auto cases = all_cases(1);
  for (std::size_t j = 0; j < cases.size(); j += 4) {  // softmax, a curvature product, one-vs-rest
    const Case& k = cases[j];
    Problem p = brute_force::make_problem(random, 3000, 12, 100, true, true, false);
    for (double& x : p.X) x = (double)(float)random.uniform(-1, 1);
    const Arguments<T> arguments(p, false, false, true), by_feature(p, true, false, true);
    const Strided<T> dense(p, p.D, 1);
    const Compressed<T, std::int32_t> sparse(p);
    for (int threads = 1; threads <= 4; ++threads) {
      const Result<T> first = run(arguments, k, dense.rows, kernels, threads);
      CHECK(first.same_bits(run(arguments, k, dense.rows, kernels, threads)), "dense, %d threads", threads);
      const Result<T> other = run(by_feature, k, sparse.rows(p.D), kernels, threads);
      CHECK(other.same_bits(run(by_feature, k, sparse.rows(p.D), kernels, threads)), "sparse, %d threads", threads);
    }

    const Result<T> whole = run(arguments, k, dense.rows, kernels, 2);
    Result<T> sum{0, std::vector<T>(whole.gradient.size())};
    std::vector<double> size(whole.gradient.size());
    for (ptrdiff_t start = 0, rows = 700; start < p.N; start += rows) {
      LinearPass<T> pass = arguments.pass(k, 1);
      pass.targets.y += start, pass.targets.weight += start;
      pass.targets.count = std::min(rows, p.N - start);
      Interrupt interrupt(nullptr);
      std::vector<T> part(whole.gradient.size());
      const DenseRows<T> block{dense.rows.data + start * p.D, p.D, 1, p.D};
      sum.loss += linear_pass(pass, block, kernels, nullptr, interrupt, part.data());
      for (std::size_t e = 0; e < part.size(); ++e) sum.gradient[e] += part[e], size[e] += std::fabs((double)part[e]);
    }
    const double eps = std::numeric_limits<T>::epsilon();
    CHECK(std::fabs(sum.loss - whole.loss) <= 1e-13 * whole.loss, "%.17g and %.17g", sum.loss, whole.loss);
    const double largest = *std::max_element(size.begin(), size.end());
    for (std::size_t j = 0; j < size.size(); ++j)
      CHECK(std::fabs((double)sum.gradient[j] - (double)whole.gradient[j]) <= 2 * std::sqrt(3000.0) * eps * largest,
            "%.9g and %.9g", (double)sum.gradient[j], (double)whole.gradient[j]);
  }
}

// 400,000 equal terms in float32: one running sum would be wrong by a hundredth, runs are wrong by what one run loses.
void test_long_sums(const Kernels<float>& kernels) {
  const ptrdiff_t N = 400'000;
  Problem p{N, 2, 1, false, {}, {0, 0}, {0, 0}, {}, std::vector<std::int32_t>(N), std::vector<std::int64_t>(N), {}, {}};
  p.X.assign(1, 0.1);
  const float x = 0.1f;
  const Arguments<float> arguments(p, false, false, false);
  const DenseRows<float> rows{&x, 0, 1, 1};
  const Result<float> got = run(arguments, {{LossKind::one_vs_rest, false, 1}, false}, rows, kernels, 1);
  const double want = (double)x * (double)N;
  const double lost = (double)GradientSum<float>::run * std::numeric_limits<float>::epsilon() / 2;
  CHECK(std::fabs(got.gradient[1] - want) <= lost * want, "%.9g, expected %.9g", got.gradient[1], want);
  CHECK(got.gradient[0] == -got.gradient[1], "%.9g", got.gradient[0]);
}

// A number that is not finite, in the rows or in one class's weights, must not vanish.
template <class T>
void test_not_finite(const Kernels<T>& kernels) {
  const auto finite = [](const std::vector<T>& values) {
    return std::all_of(values.begin(), values.end(), [](T value) { return std::isfinite(value); });
  };
  check::Random random(4);
  const Blas blas = naive_blas<std::int32_t>();
  for (const Case& k : all_cases(1))
    for (ptrdiff_t C : {2, 4, 40}) {
      const Problem clean = brute_force::make_problem(random, 35, C, 17, true, false, false);
      const auto check_pass = [&](const Problem& p, bool in_loss, const char* where) {
        const Arguments<T> by_class(p, false, false, false), by_feature(p, true, false, false);
        const Strided<T> dense(p, p.D, 1), columns(p, 1, p.N);
        const Compressed<T, std::int32_t> sparse(p);
        for (const Result<T>& got :
             {run(by_class, k, dense.rows, kernels, 1), run(by_class, k, columns.rows, kernels, 1, &blas),
              run(by_feature, k, sparse.rows(p.D), kernels, 1)})
          CHECK(in_loss ? !std::isfinite(got.loss) : !finite(got.gradient), "%s, loss %d squared %d curved %d C=%td",
                where, (int)k.loss.kind, k.loss.squared, k.curved, C);
      };
      for (ptrdiff_t i : {0, 31, 34})
        for (ptrdiff_t d : {0, 16})
          for (double value : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
            Problem p = clean;
            p.X[i * p.D + d] = value;
            check_pass(p, false, "rows");
            if (std::isnan(value) && !k.curved) check_pass(p, true, "rows");
          }
      for (ptrdiff_t c = 0; c < C && !k.curved; c += C - 1) {
        Problem p = clean;
        p.W[c * p.columns() + 3] = std::nan("");
        std::fill(p.X.begin(), p.X.end(), 1.0);
        std::fill(p.y.begin(), p.y.end(), (std::int32_t)((c + 1) % C));  // no row of the class itself
        check_pass(p, true, "weights");
      }
    }
}

template <class T>
void test_transpose(const Kernels<T>& kernels) {
  for (ptrdiff_t n : {1, 7, 8, 15, 16, 17, 40})
    for (ptrdiff_t D : {1, 3, 4, 8, 16, 31, 33}) {
      const ptrdiff_t stride = n + 2, ldp = D + 1;
      std::vector<T> x((D - 1) * stride + n), packed((n - 1) * ldp + D, T(-1));
      for (std::size_t j = 0; j < x.size(); ++j) x[j] = (T)j;
      kernels.transpose(x.data(), stride, n, D, packed.data(), ldp);
      for (ptrdiff_t j = 0; j < (ptrdiff_t)packed.size(); ++j) {
        const T want = j % ldp < D ? (T)(j / ldp + j % ldp * stride) : T(-1);
        CHECK(packed[j] == want, "n=%td D=%td at %td: %g", n, D, j, (double)packed[j]);
      }
    }
}

template <class T>
void test_all(const Kernels<T>& kernels) {
  test_transpose(kernels);
  test_not_finite(kernels);
  test_repeats_and_blocks(kernels);
}

}  // namespace

int main() {
  const Isa isa = check::isa();
  test_shapes(isa);
  test_threads(isa);
  test_long_sums(kernels<float>(isa));
  test_all(kernels<float>(isa));
  test_all(kernels<double>(isa));
  return check::result();
}
