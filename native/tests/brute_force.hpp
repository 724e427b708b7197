// The linear pass as its definition reads: one row, one class and one feature at a time, in float64.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "check.hpp"
#include "hinge/loss.hpp"

namespace brute_force {

using hinge::Loss;
using hinge::LossKind;
using hinge::ptrdiff_t;

// Small whole numbers, so that ties and margins of exactly 0 are common and all but the softmax is exact in any order.
struct Problem {
  ptrdiff_t N, C, D;
  bool intercept;
  std::vector<double> X, W, V, weight;  // N×D; C×(D + intercept) twice; N
  std::vector<std::int32_t> y;
  std::vector<std::int64_t> visits;  // rows, in order
  std::vector<std::vector<double>> s, u;  // scores of each row by W and by V, once score() was called

  ptrdiff_t columns() const { return D + intercept; }
};

inline std::vector<double> whole_numbers(check::Random& random, ptrdiff_t size, int lowest, int highest) {
  std::vector<double> values(size);
  for (double& value : values) value = (double)random.integer(lowest, highest);
  return values;
}

inline Problem make_problem(check::Random& random, ptrdiff_t N, ptrdiff_t C, ptrdiff_t D, bool intercept, bool weighted,
                            bool subset) {
  Problem p{N, C, D, intercept, {}, {}, {}, {}, {}, {}, {}, {}};
  p.X = whole_numbers(random, N * D, -2, 2);
  for (ptrdiff_t i = 0; i < N; ++i)
    if (random.integer(0, 9) == 0) std::fill_n(p.X.begin() + i * D, D, 0.0);
  p.W = whole_numbers(random, C * p.columns(), -1, 1);
  p.V = whole_numbers(random, C * p.columns(), -2, 2);
  p.weight = whole_numbers(random, N, 0, 4);
  for (double& v : p.weight) v = weighted ? v / 2 : 1;
  for (ptrdiff_t i = 0; i < N; ++i) p.y.push_back((std::int32_t)random.integer(0, C - 1));
  const ptrdiff_t count = subset && N > 0 ? random.integer(0, N + 7) : N;
  for (ptrdiff_t k = 0; k < count; ++k) p.visits.push_back(subset ? random.integer(0, N - 1) : k);
  return p;
}

struct Row {
  double value;
  std::vector<double> slope;
};

inline double hinge_value(double m, bool squared) { return m <= 0 ? 0 : squared ? m * m : m; }
inline double hinge_slope(double m, bool squared) { return m <= 0 ? 0 : squared ? 2 * m : 1; }

inline std::vector<double> softmax(const std::vector<double>& s) {
  const double largest = *std::max_element(s.begin(), s.end());
  std::vector<double> p(s.size());
  double total = 0;
  for (std::size_t c = 0; c < s.size(); ++c) total += p[c] = std::exp(s[c] - largest);
  for (double& value : p) value /= total;
  return p;
}

inline ptrdiff_t strongest_rival(const std::vector<double>& s, ptrdiff_t y) {
  ptrdiff_t rival = y == 0 ? 1 : 0;
  for (ptrdiff_t c = 0; c < (ptrdiff_t)s.size(); ++c)
    if (c != y && s[c] > s[rival]) rival = c;
  return rival;
}

inline Row loss_of_row(const Loss& loss, const std::vector<double>& s, ptrdiff_t y) {
  const ptrdiff_t C = (ptrdiff_t)s.size();
  Row row{0, std::vector<double>(C)};
  const auto pay = [&](double m, ptrdiff_t up, ptrdiff_t down) {
    row.value += hinge_value(m, loss.squared);
    if (up >= 0) row.slope[up] += hinge_slope(m, loss.squared);
    if (down >= 0) row.slope[down] -= hinge_slope(m, loss.squared);
  };
  switch (loss.kind) {
    case LossKind::softmax: {
      const double largest = *std::max_element(s.begin(), s.end());
      double total = 0;
      for (double value : s) total += std::exp(value - largest);
      row.value = std::log(total) + (largest - s[y]);
      row.slope = softmax(s);
      row.slope[y] -= 1;
      break;
    }
    case LossKind::weston_watkins:
      for (ptrdiff_t c = 0; c < C; ++c)
        if (c != y) pay(loss.margin + s[c] - s[y], c, y);
      break;
    case LossKind::crammer_singer: {
      const ptrdiff_t rival = strongest_rival(s, y);
      pay(loss.margin + s[rival] - s[y], rival, y);
      break;
    }
    case LossKind::one_vs_rest:
      for (ptrdiff_t c = 0; c < C; ++c)
        if (c == y) pay(loss.margin - s[c], -1, c);
        else pay(loss.margin + s[c], c, -1);
      break;
  }
  return row;
}

// ∂²loss/∂score² times u.
inline std::vector<double> curvature_of_row(const Loss& loss, const std::vector<double>& s,
                                            const std::vector<double>& u, ptrdiff_t y) {
  const ptrdiff_t C = (ptrdiff_t)s.size();
  std::vector<double> product(C);
  const auto pair = [&](ptrdiff_t c) {
    if (loss.margin + s[c] - s[y] <= 0) return;
    product[c] += 2 * (u[c] - u[y]);
    product[y] -= 2 * (u[c] - u[y]);
  };
  switch (loss.kind) {
    case LossKind::softmax: {
      const std::vector<double> p = softmax(s);
      double mean = 0;
      for (ptrdiff_t c = 0; c < C; ++c) mean += p[c] * u[c];
      for (ptrdiff_t c = 0; c < C; ++c) product[c] = p[c] * (u[c] - mean);
      break;
    }
    case LossKind::weston_watkins:
      for (ptrdiff_t c = 0; c < C; ++c)
        if (c != y) pair(c);
      break;
    case LossKind::crammer_singer: pair(strongest_rival(s, y)); break;
    case LossKind::one_vs_rest:
      for (ptrdiff_t c = 0; c < C; ++c)
        if (loss.margin + (c == y ? -s[c] : s[c]) > 0) product[c] = 2 * u[c];
      break;
  }
  return product;
}

// Sums over the visits, and the sums of their terms' sizes, by which rounding is measured.
struct Sums {
  double loss = 0, loss_size = 0;
  std::vector<double> gradient, size;
};

inline std::vector<std::vector<double>> scores(const Problem& p, const std::vector<double>& W) {
  std::vector<std::vector<double>> all(p.N, std::vector<double>(p.C));
  for (ptrdiff_t i = 0; i < p.N; ++i)
    for (ptrdiff_t c = 0; c < p.C; ++c) {
      const double* w = W.data() + c * p.columns();
      for (ptrdiff_t d = 0; d < p.D; ++d) all[i][c] += w[d] * p.X[i * p.D + d];
      if (p.intercept) all[i][c] += w[p.D];
    }
  return all;
}

inline void score(Problem& p) { p.s = scores(p, p.W), p.u = scores(p, p.V); }

inline Sums sums(const Problem& p, const Loss& loss, bool curved) {
  Sums total;
  long double loss_sum = 0;
  total.gradient.resize(p.C * p.columns());
  total.size.resize(p.C * p.columns());
  for (const std::int64_t i : p.visits) {
    const std::vector<double>&s = p.s[i], &u = p.u[i];
    std::vector<double> slope;
    double largest = 1;
    if (curved) {
      slope = curvature_of_row(loss, s, u, p.y[i]);
      for (double value : u) largest = std::max(largest, std::fabs(value));
    } else {
      Row row = loss_of_row(loss, s, p.y[i]);
      loss_sum += p.weight[i] * row.value;
      total.loss_size += p.weight[i] * (1 + row.value);
      slope = std::move(row.slope);
    }
    for (ptrdiff_t c = 0; c < p.C; ++c)
      for (ptrdiff_t d = 0; d < p.columns(); ++d) {
        const double x = p.weight[i] * (d == p.D ? 1.0 : p.X[i * p.D + d]);
        total.gradient[c * p.columns() + d] += slope[c] * x;
        // A softmax slope is the difference of numbers up to `largest`, and off by a part of those.
        const double scale = loss.kind == LossKind::softmax ? largest : slope[c];
        total.size[c * p.columns() + d] += std::fabs(scale * x);
      }
  }
  total.loss = (double)loss_sum;
  return total;
}

}  // namespace brute_force
