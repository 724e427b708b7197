// The multiclass losses of the linear pass, as data: which one, squared or not, and its margin.
#pragma once

namespace hinge {

enum class LossKind : int { softmax = 0, weston_watkins = 1, crammer_singer = 2, one_vs_rest = 3 };

struct Loss {
  LossKind kind;
  bool squared;   // of the hinge; softmax has no squared form
  double margin;  // the Δ of max(0, Δ + …)

  // A plain hinge is piecewise linear: it has no curvature to multiply by.
  bool has_curvature() const { return kind == LossKind::softmax || squared; }
};

}  // namespace hinge
