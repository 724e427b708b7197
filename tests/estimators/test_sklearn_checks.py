"""Every check that scikit-learn has for estimators, with no expected failures."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from hinge import LinearSVM, LinearSVMCV, SoftmaxRegression, SoftmaxRegressionCV, solvers

ESTIMATORS = [
    LinearSVM(),
    LinearSVM(loss="squared_hinge", multi_class="crammer_singer", solver=solvers.GradientDescent()),
    LinearSVM(reg=1e-3, multi_class="one_vs_rest", class_weight="balanced"),
    SoftmaxRegression(),
    SoftmaxRegression(penalty="elasticnet", l1_ratio=0.5),
    SoftmaxRegression(solver=solvers.SGD(average=True, replacement=True, nesterov=False)),
    SoftmaxRegression(solver=solvers.GradientDescent(momentum=0.9, nesterov=True), warm_start=True),
    LinearSVMCV(Cs=[0.1, 1]),
    SoftmaxRegressionCV(Cs=[0.1, 1], cv=3, penalty="l1"),
]


# scikit-learn warns about a check that it skips itself, e.g. one that needs pandas.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_check(estimator, check):
    check(estimator)
