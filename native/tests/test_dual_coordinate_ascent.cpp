// Dual coordinate ascent: rows solved by the kernels against bisection in float64, weights against their definition,
// groups and threads against each other, and rows in compressed form.
#include <cmath>
#include <cstring>
#include <limits>

#include "check.hpp"
#include "hinge/compress_rows.hpp"
#include "hinge/dual_coordinate_ascent.hpp"

using namespace hinge;

namespace {

std::vector<Loss> all_hinges() {
  std::vector<Loss> hinges;
  for (LossKind kind : {LossKind::weston_watkins, LossKind::crammer_singer, LossKind::one_vs_rest})
    for (bool squared : {false, true})
      for (double margin : {1.0, 0.4}) hinges.push_back({kind, squared, margin});
  return hinges;
}

// --- one row -------------------------------------------------------------------------------------------------------

double clip(double x, double upper) { return x < 0 ? 0 : x > upper ? upper : x; }

// α by bisection on θ; kernels/dual_coordinate_ascent.inl derives the equation.
std::vector<double> best_row(const Loss& loss, double q, ptrdiff_t y, const std::vector<double>& s,
                             const std::vector<double>& alpha) {
  const ptrdiff_t C = (ptrdiff_t)s.size();
  const double bend = loss.squared ? 0.5 : 0, unbounded = 1e300;
  std::vector<double> best(C);
  if (loss.kind == LossKind::one_vs_rest) {
    for (ptrdiff_t c = 0; c < C; ++c)
      best[c] = clip((loss.margin + (c == y ? -s[c] : s[c]) + q * alpha[c]) / (q + bend), loss.squared ? unbounded : 1);
    return best;
  }
  const bool by_sum = loss.kind == LossKind::crammer_singer;
  const double h = by_sum ? q : q + bend, p = by_sum ? q + bend : q, upper = by_sum || loss.squared ? unbounded : 1;
  const double cap = by_sum && !loss.squared ? 1 : unbounded;
  double total = 0;
  for (double a : alpha) total += a;
  const auto sum_at = [&](double theta) {
    double sum = 0;
    for (ptrdiff_t c = 0; c < C; ++c) {
      best[c] = c == y ? 0 : clip((loss.margin + s[c] + q * alpha[c] - (s[y] - q * total) - theta) / h, upper);
      sum += best[c];
    }
    return sum;
  };
  double low = 0, high = 1e6;
  for (int k = 0; k < 200; ++k) {
    const double middle = (low + high) / 2;
    (sum_at(middle) > std::min(middle / p, cap) ? low : high) = middle;
  }
  sum_at((low + high) / 2);
  return best;
}

template <class T>
void test_rows(const Kernels<T>& kernels) {
  check::Random random(1);
  const double eps = std::numeric_limits<T>::epsilon();
  for (const Loss& loss : all_hinges())
    for (ptrdiff_t C : {2, 3, 4, 5, 8, 10, 16, 17, 40, 100})
      for (int repeat = 0; repeat < 20; ++repeat) {
        const ptrdiff_t width = C <= 4 ? 4 : C <= 8 ? 8 : round_up(C, 16), y = random.integer(0, C - 1);
        const double q = (double)(T)(repeat % 3 == 0 ? 20.0 : repeat % 3 == 1 ? 0.5 : 0.01);
        std::vector<double> score(C), before(C);
        std::vector<T> s(width, T(-1e30)), alpha(width), delta(width), scratch(3 * width);
        for (ptrdiff_t c = 0; c < C; ++c) {
          score[c] = repeat % 4 == 0 ? (double)random.integer(-1, 1) : (double)(T)random.uniform(-2, 2);
          before[c] = c == y && loss.kind != LossKind::one_vs_rest ? 0
                      : repeat < 2                                 ? 0
                                                                   : (double)(T)(random.uniform(0, 1) / (double)C);
          s[c] = (T)score[c], alpha[c] = (T)before[c];
        }
        const std::vector<double> want = best_row(loss, q, y, score, before);
        const bool changed = kernels.dual_step(loss, (T)q, y, s.data(), alpha.data(), delta.data(), scratch.data(), width);
        double total = 0;
        bool same = true;
        for (ptrdiff_t c = 0; c < C; ++c) {
          CHECK(std::fabs((double)alpha[c] - want[c]) <= 40 * eps * std::max(1.0, 4 / q),
                "loss %d squared %d C=%td q=%g lane %td: %.9g, expected %.9g", (int)loss.kind, loss.squared, C, q, c,
                (double)alpha[c], want[c]);
          same = same && (double)alpha[c] == before[c];
          const double moved = (double)alpha[c] - before[c];
          total += moved;
          const double sign = loss.kind == LossKind::one_vs_rest && c == y ? -1 : 1;
          if (c != y || loss.kind == LossKind::one_vs_rest)
            CHECK(std::fabs((double)delta[c] - sign * moved) <= 4 * eps, "lane %td: %g", c, (double)delta[c]);
        }
        if (loss.kind != LossKind::one_vs_rest)
          CHECK(std::fabs((double)delta[y] + total) <= 4 * eps * (double)C * std::max(1.0, total), "%g and %g", (double)delta[y],
                total);
        for (ptrdiff_t c = C; c < width; ++c)
          CHECK(alpha[c] == 0 && delta[c] == 0, "idle lane %td of %td: %g", c, width, (double)alpha[c]);
        CHECK(changed != same, "loss %d C=%td: %d", (int)loss.kind, C, changed);
      }
}

// Softmax: log p_c + q·p_c + ν must be the same a_c for all classes, and Σ p_c = 1.
template <class T>
void test_softmax_rows(const Kernels<T>& kernels) {
  check::Random random(2);
  const double eps = std::numeric_limits<T>::epsilon();
  const T lowest = sizeof(T) == 4 ? T(-87) : T(-700);
  for (ptrdiff_t C : {2, 3, 4, 5, 8, 10, 16, 17, 40, 100})
    for (int repeat = 0; repeat < 20; ++repeat) {
      const ptrdiff_t width = C <= 4 ? 4 : C <= 8 ? 8 : round_up(C, 16), y = random.integer(0, C - 1);
      const double q = (double)(T)(repeat % 3 == 0 ? 50.0 : repeat % 3 == 1 ? 0.5 : 0.01);
      std::vector<T> s(width, T(-1e30)), l(width, lowest), delta(width), scratch(3 * width);
      std::vector<double> before(C), a(C);
      for (ptrdiff_t c = 0; c < C; ++c) {
        before[c] = repeat < 4 ? (double)(c == y) : 1.0 / (double)C;
        if (before[c] > 0) l[c] = (T)std::log(before[c]);
        s[c] = (T)random.uniform(-3, 3);
        a[c] = (double)s[c] + q * before[c];
      }
      const Loss softmax{LossKind::softmax, false, 1.0};
      CHECK(kernels.dual_step(softmax, (T)q, y, s.data(), l.data(), delta.data(), scratch.data(), width), "q=%g", q);
      double sum = 0, nu = 0;
      for (ptrdiff_t c = 0; c < C; ++c) sum += std::exp((double)l[c]);
      CHECK(std::fabs(sum - 1) <= 40 * eps, "C=%td q=%g: Σp = %.9g", C, q, sum);
      for (ptrdiff_t c = 0; c < C; ++c) {
        const double p = std::exp((double)l[c]), excess = a[c] - (double)l[c] - q * p;
        if (c == 0) nu = excess;
        CHECK(std::fabs(excess - nu) <= 100 * eps * (10 + q), "C=%td q=%g lane %td: %.9g, not %.9g", C, q, c, excess, nu);
        CHECK(std::fabs((double)delta[c] - (p - before[c])) <= 20 * eps, "lane %td: %g", c, (double)delta[c]);
      }
      for (ptrdiff_t c = C; c < width; ++c)
        CHECK(l[c] == lowest && delta[c] == 0, "idle lane %td of %td: %g", c, width, (double)l[c]);
    }
}

// --- epochs --------------------------------------------------------------------------------------------------------

template <class T>
struct Run {
  ptrdiff_t N, C, D, groups, width, padded;
  bool centred;
  Loss loss;
  std::vector<T> X, rate, curvature, alpha, weights, bias, drift, product, step, mean;
  std::vector<std::int32_t> y;
  std::vector<std::uint8_t> idle;
  std::vector<std::int64_t> order;

  Run(const Loss& l, ptrdiff_t N_, ptrdiff_t C_, ptrdiff_t D_, bool dense, bool centred_)
      : N(N_), C(C_), D(D_), groups(l.kind == LossKind::one_vs_rest && C > 16 ? (C + 15) / 16 : 1),
        width(groups > 1 ? 16 : C <= 4 ? 4 : C <= 8 ? 8 : round_up(C, 16)), padded(round_up(D, feature_padding)),
        centred(centred_), loss(l), X(N * D), rate(N), curvature(N), alpha(groups * N * width),
        weights(dense ? C * padded : groups * D * width), bias(groups * width, T(-1e30)), drift(groups * width),
        product(N), step(N), mean(D), y(N), idle(groups * N), order(N) {
    check::Random random(7);
    for (T& x : X) x = random.coin() ? T(0) : (T)random.uniform(-1, 1);
    for (ptrdiff_t c = 0; c < C; ++c) bias[c] = 0;
    for (ptrdiff_t i = 0; i < N; ++i) {
      y[i] = (std::int32_t)random.integer(0, C - 1);
      order[i] = (i * 7) % N;
      rate[i] = i == 3 ? T(0) : (T)random.uniform(0.5, 2);
    }
    for (ptrdiff_t d = 0; d < D && centred; ++d) {
      for (ptrdiff_t i = 0; i < N; ++i) mean[d] += X[i * D + d] / (T)N;
    }
    double mean_square = 0;
    for (T m : mean) mean_square += (double)m * (double)m;
    for (ptrdiff_t i = 0; i < N; ++i) {
      double square = 0, along = 0;
      for (ptrdiff_t d = 0; d < D; ++d)
        square += (double)X[i * D + d] * (double)X[i * D + d], along += (double)X[i * D + d] * (double)mean[d];
      const double pull = centred ? 0.1 : 0;
      product[i] = (T)along;
      step[i] = (T)(pull + mean_square - along);
      curvature[i] = (T)std::max(1e-3, (double)rate[i] * (square - 2 * along + mean_square + pull));
    }
  }

  DualAscent<T> ascent() {
    return {loss, N, D, groups, width, centred ? product.data() : nullptr, centred ? step.data() : nullptr, y.data(),
            rate.data(), curvature.data(), alpha.data(), weights.data(), bias.data(), drift.data(), idle.data()};
  }

  double weight(bool dense, ptrdiff_t c, ptrdiff_t d) const {
    return dense ? (double)weights[c * padded + d] : (double)weights[(c / width * D + d) * width + c % width];
  }

  // A = −Σ rate_i u_i x_iᵀ, σ = −Σ rate_i u_i.
  void check_weights(bool dense, const char* form) const {
    const double tolerance = 300 * (double)std::numeric_limits<T>::epsilon() * (double)N;
    for (ptrdiff_t c = 0; c < C; ++c) {
      std::vector<double> want(D + 1);
      for (ptrdiff_t i = 0; i < N; ++i) {
        const auto at = [&](ptrdiff_t k) { return (double)alpha[(k / width * N + i) * width + k % width]; };
        double u = at(c);
        if (c == y[i]) {
          u = -at(c);
          for (ptrdiff_t k = 0; k < C && loss.kind != LossKind::one_vs_rest; ++k) u -= k == c ? 0 : at(k);
        }
        for (ptrdiff_t d = 0; d < D; ++d) want[d] -= (double)rate[i] * u * (double)X[i * D + d];
        want[D] -= (double)rate[i] * u;
      }
      for (ptrdiff_t d = 0; d < D; ++d)
        CHECK(std::fabs(weight(dense, c, d) - want[d]) <= tolerance, "%s, loss %d squared %d C=%td: %g, expected %g", form,
              (int)loss.kind, loss.squared, C, weight(dense, c, d), want[d]);
      if (centred) CHECK(std::fabs((double)drift[c] - want[D]) <= tolerance, "%g and %g", (double)drift[c], want[D]);
    }
  }
};

template <class T, class I>
struct Compressed {
  std::vector<I> start, index;
  std::vector<T> value;

  explicit Compressed(const Run<T>& run) : start(run.N + 1) {
    const DenseRows<T> rows{run.X.data(), run.D, 1, run.D};
    std::vector<std::int64_t> counts(run.N), order(run.N);
    count_nonzeros(rows, run.N, 2, counts.data());
    for (ptrdiff_t i = 0; i < run.N; ++i) start[i + 1] = start[i] + (I)counts[i], order[i] = i;
    index.resize(start[run.N]), value.resize(start[run.N]);
    compress_rows(rows, run.N, 3, order.data(), start.data(), index.data(), value.data());
    for (ptrdiff_t i = 0; i < run.N; ++i)
      for (I k = start[i]; k < start[i + 1]; ++k)
        CHECK(value[k] == run.X[i * run.D + index[k]] && value[k] != 0, "row %td", i);
  }
};

template <class T>
void epochs(const DualAscent<T>& ascent, const auto& rows, Run<T>& run, int threads, const Kernels<T>& kernels) {
  Interrupt interrupt(nullptr);
  for (std::uint64_t epoch = 0; epoch < 6; ++epoch) {
    const ptrdiff_t visits = dual_coordinate_ascent(ascent, rows, {run.order.data(), run.N, epoch}, threads, kernels, interrupt);
    CHECK(epoch > 0 || visits == run.groups * (run.N - 1), "%td", visits);  // all but the row of rate 0
  }
}

template <class T>
void test_epochs(const Kernels<T>& kernels) {
  for (const Loss& loss : all_hinges())
    for (ptrdiff_t C : {2, 10, 35})
      for (bool centred : {false, true}) {
        const ptrdiff_t N = 61, D = 19;
        Run<T> dense(loss, N, C, D, true, centred), sparse(loss, N, C, D, false, centred), wide = sparse;
        const WholeRows<T> whole{{dense.X.data(), D, 1, D}, C};
        epochs(dense.ascent(), whole, dense, 1, kernels);
        dense.check_weights(true, "dense");
        const Compressed<T, std::int32_t> narrow_rows(sparse);
        const PackedRows<T, std::int32_t> packed{{narrow_rows.start.data(), narrow_rows.index.data(), narrow_rows.value.data(), D}};
        epochs(sparse.ascent(), packed, sparse, 3, kernels);
        sparse.check_weights(false, "sparse");
        const Compressed<T, std::int64_t> wide_rows(wide);
        const PackedRows<T, std::int64_t> packed_wide{{wide_rows.start.data(), wide_rows.index.data(), wide_rows.value.data(), D}};
        epochs(wide.ascent(), packed_wide, wide, 1, kernels);
        CHECK(std::memcmp(sparse.alpha.data(), wide.alpha.data(), wide.alpha.size() * sizeof(T)) == 0,
              "three threads or 64-bit indices change the bits, loss %d C=%td", (int)loss.kind, C);
        CHECK(sparse.alpha[3 * sparse.width] == 0, "a row of rate 0 was visited");
      }
}

// Strided and reversed rows come out the same.
void test_compressed_views() {
  check::Random random(3);
  std::vector<double> memory(40 * 60);
  for (double& x : memory) x = random.integer(0, 2) == 0 ? random.uniform(-1, 1) : 0;
  const DenseRows<double> view{memory.data() + 39 * 60, -60, 3, 20};
  std::vector<std::int64_t> counts(20), order(20);
  count_nonzeros(view, 20, 1, counts.data());
  std::vector<std::int32_t> start(21);
  for (int i = 0; i < 20; ++i) order[i] = 19 - i;
  for (int i = 0; i < 20; ++i) start[i + 1] = start[i] + (std::int32_t)counts[order[i]];
  std::vector<std::int32_t> index(start[20]);
  std::vector<double> value(start[20]);
  compress_rows(view, 20, 2, order.data(), start.data(), index.data(), value.data());
  for (int i = 0; i < 20; ++i)
    for (std::int32_t k = start[i]; k < start[i + 1]; ++k)
      CHECK(value[k] == view.data[order[i] * -60 + index[k] * 3], "row %d", i);
}

}  // namespace

int main() {
  const Isa isa = check::isa();
  test_rows(kernels<float>(isa));
  test_rows(kernels<double>(isa));
  test_softmax_rows(kernels<float>(isa));
  test_softmax_rows(kernels<double>(isa));
  test_epochs(kernels<float>(isa));
  test_epochs(kernels<double>(isa));
  test_compressed_views();
  return check::result();
}
