"""Sweeps with cross-validation: the scores of separate fits, from one fit that shares its work."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import GroupKFold, ShuffleSplit, StratifiedKFold
from sklearn.utils.estimator_checks import parametrize_with_checks

import hinge
from hinge import LinearSVM, LinearSVMCV, SoftmaxRegression, SoftmaxRegressionCV
from hinge.errors import DataError, UsageError
from hinge.selection import cross_validation
from hinge.selection.cross_validation import best_penalty

rng = np.random.default_rng(0)
y = rng.integers(0, 3, 240)
X = rng.normal(size=(3, 5))[y] + rng.normal(size=(240, 5))
CS = np.logspace(-3, 1, 5)
TIGHT = 1e-9  # so that no held-out row lies between two solutions

SWEEPS = [
    (SoftmaxRegressionCV, SoftmaxRegression, {}),
    (SoftmaxRegressionCV, SoftmaxRegression, {"class_weight": "balanced", "fit_intercept": False}),
    (LinearSVMCV, LinearSVM, {"loss": "squared_hinge", "multi_class": "one_vs_rest"}),
    (LinearSVMCV, LinearSVM, {"loss": "squared_hinge", "class_weight": {0: 2.0}, "margin": 0.7}),
    (LinearSVMCV, LinearSVM, {"tol": 1e-6}),
    (SoftmaxRegressionCV, SoftmaxRegression, {"penalty": "l1"}),
    (SoftmaxRegressionCV, SoftmaxRegression, {"penalty": "elasticnet", "l1_ratio": 0.5, "fit_intercept": False}),
    (LinearSVMCV, LinearSVM, {"loss": "squared_hinge", "penalty": "elasticnet", "l1_ratio": 0.2}),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(
    [
        SoftmaxRegressionCV(),
        SoftmaxRegressionCV(Cs=[0.1, 1], cv=3, tol=1e-10, class_weight="balanced", scoring="neg_log_loss"),
        LinearSVMCV(Cs=[0.1, 1], loss="squared_hinge"),
        LinearSVMCV(Cs=[0.1, 1], cv=3, loss="squared_hinge", multi_class="one_vs_rest", refit=False),
    ]
)
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.mark.parametrize(("sweep", "single", "options"), SWEEPS, ids=str)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("weighted", [False, True])
def test_scores_and_solutions_are_those_of_separate_fits(sweep, single, options, form, weighted):
    weight = rng.uniform(0.1, 2, len(y)) if weighted else None
    options = {"tol": TIGHT, "random_state": 0, **options}
    model = sweep(CS, **options).fit(form(X), y, sample_weight=weight)
    assert model.scores_.shape == model.gaps_.shape == model.n_iter_.shape == (5, len(CS))
    assert np.all(model.gaps_ <= model.tol)
    assert model.converged_
    for k, (train, held) in enumerate(StratifiedKFold(5).split(X, y)):
        for j, C in enumerate(CS):
            alone = single(C, **options).fit(form(X[train]), y[train], None if weight is None else weight[train])
            score = alone.score(form(X[held]), y[held], None if weight is None else weight[held])
            assert model.scores_[k, j] == pytest.approx(score, abs=1e-6)
    np.testing.assert_allclose(model.mean_scores_, model.scores_.mean(axis=0))
    assert model.C_ in CS
    assert model.best_score_ == model.mean_scores_.max()
    final = single(model.C_, **options).fit(form(X), y, weight)
    assert model.objective_ == pytest.approx(final.objective_, rel=2 * model.tol)
    np.testing.assert_allclose(model.coef_, final.coef_, atol=1e-2)
    np.testing.assert_array_equal(model.predict(form(X)), final.predict(form(X)))
    assert model.duality_gap_ == model.history_[-1].gap <= model.tol


def test_probabilities_are_those_of_the_plain_classifiers():
    model = SoftmaxRegressionCV(CS, tol=TIGHT).fit(X, y)
    plain = SoftmaxRegression(model.C_, tol=TIGHT).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(X), atol=1e-3)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X))
    svm = LinearSVMCV(CS, calibrate="temperature", random_state=0, tol=1e-6).fit(X, y)
    plain = LinearSVM(svm.C_, calibrate="temperature", random_state=0, tol=1e-6).fit(X, y)
    assert svm.temperature_ == pytest.approx(plain.temperature_, rel=1e-2)
    np.testing.assert_allclose(svm.predict_proba(X), plain.predict_proba(X), atol=1e-2)
    assert not hasattr(LinearSVMCV(), "predict_proba")


@pytest.mark.parametrize("sweep", [SoftmaxRegressionCV, LinearSVMCV])
def test_two_classes_and_float32(sweep):
    two = y < 2
    model = sweep(CS).fit(X[two].astype(np.float32), np.array(["no", "yes"])[y[two]])
    assert model.coef_.shape == (1, 5)
    assert model.coef_.dtype == np.float32
    assert model.decision_function(X[:7].astype(np.float32)).shape == (7,)
    assert set(model.predict(X)) == {"no", "yes"}
    assert model.best_score_ > 0.7


def test_folds_of_ones_own():
    groups = np.arange(len(y)) % 4
    pairs = list(GroupKFold(4).split(X, y, groups))
    model = SoftmaxRegressionCV(CS, cv=pairs).fit(X, y)
    assert model.scores_.shape == (4, len(CS))
    masks = [(groups != k, groups == k) for k in range(4)]
    again = SoftmaxRegressionCV(CS, cv=masks).fit(X, y)
    np.testing.assert_allclose(np.sort(again.scores_, axis=0), np.sort(model.scores_, axis=0), atol=0.02)
    shuffled = SoftmaxRegressionCV(CS, cv=ShuffleSplit(3, test_size=0.2, random_state=0)).fit(X, y)
    assert shuffled.scores_.shape == (3, len(CS))
    rows = np.repeat(np.arange(200), 2)  # a row may be trained on twice
    assert SoftmaxRegressionCV(CS, cv=[(rows, np.arange(200, 240))]).fit(X, y).scores_.shape == (1, len(CS))


def test_rows_of_weight_zero_are_not_there():
    weight = (np.arange(len(y)) % 4 > 0).astype(float)
    weighted = SoftmaxRegressionCV(CS, tol=TIGHT).fit(X, y, sample_weight=weight)
    fewer = SoftmaxRegressionCV(CS, tol=TIGHT).fit(X[weight > 0], y[weight > 0])
    np.testing.assert_allclose(weighted.scores_, fewer.scores_)
    np.testing.assert_allclose(weighted.coef_, fewer.coef_, atol=1e-3)


def test_without_memory_for_copies_rows_left_out_weigh_nothing(monkeypatch):
    copied = SoftmaxRegressionCV(CS, tol=TIGHT).fit(X, y)
    monkeypatch.setattr(cross_validation, "available_memory", lambda: 1)
    in_place = SoftmaxRegressionCV(CS, tol=TIGHT).fit(X, y)
    np.testing.assert_allclose(in_place.scores_, copied.scores_)
    weight = rng.uniform(0.1, 2, len(y))
    in_place = SoftmaxRegressionCV(CS, tol=TIGHT, class_weight="balanced").fit(X, y, weight)
    monkeypatch.undo()
    copied = SoftmaxRegressionCV(CS, tol=TIGHT, class_weight="balanced").fit(X, y, weight)
    np.testing.assert_allclose(in_place.scores_, copied.scores_)


def test_scoring_by_name_and_by_a_function():
    weight = rng.uniform(0.1, 2, len(y))
    by_name = SoftmaxRegressionCV(CS, scoring="neg_log_loss", tol=1e-7).fit(X, y, sample_weight=weight)
    seen = []

    def scorer(model, rows, labels, sample_weight=None):
        seen.append(sample_weight)
        return -log_loss(labels, model.predict_proba(rows), sample_weight=sample_weight)

    own = SoftmaxRegressionCV(CS, scoring=scorer, tol=1e-7, n_jobs=1).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(own.scores_, by_name.scores_, rtol=1e-3)
    assert all(part is not None for part in seen)
    accuracy = SoftmaxRegressionCV(CS, scoring=lambda m, rows, labels: accuracy_score(labels, m.predict(rows)))
    np.testing.assert_allclose(accuracy.fit(X, y).scores_, SoftmaxRegressionCV(CS).fit(X, y).scores_)


def test_without_refit_the_folds_are_averaged():
    model = SoftmaxRegressionCV(CS, refit=False).fit(X, y)
    best = [CS[best_penalty(scores, CS)] for scores in model.scores_]
    assert pytest.approx(np.mean(best)) == model.C_
    assert not hasattr(model, "objective_")
    assert model.score(X, y) > 0.7
    model.set_params(refit=True).fit(X, y)
    assert model.best_estimator_.objective_ == model.objective_
    assert not hasattr(model.set_params(refit=False).fit(X, y), "objective_")
    assert not hasattr(model, "best_estimator_")


def test_the_best_estimator_is_a_plain_classifier():
    model = LinearSVMCV(CS, calibrate="temperature", random_state=0).fit(X, y)
    best = model.best_estimator_
    assert isinstance(best, LinearSVM)
    assert model.C_ == best.C
    assert (best.converged_, best.n_iter_) == (True, model.history_[-1].iteration)
    np.testing.assert_array_equal(best.predict_proba(X), model.predict_proba(X))
    best.partial_fit(X, y)
    assert best.score(X, y) > 0.7
    assert not hasattr(LinearSVMCV(), "best_estimator_")


def test_an_l1_penalty_leaves_exact_zeros():
    noise = np.hstack([X, np.random.default_rng(1).normal(size=(240, 40))])
    sweep = SoftmaxRegressionCV([0.03, 0.1], penalty="l1", random_state=0).fit(noise, y)
    alone = SoftmaxRegression(sweep.C_, penalty="l1", random_state=0).fit(noise, y)
    assert (sweep.coef_[:, 5:] == 0).mean() > 0.5
    assert sweep.objective_ == pytest.approx(alone.objective_, rel=1e-4)


def test_the_strongest_of_equal_penalties_wins():
    Cs = np.array([1.0, 0.1, 0.01, 10.0])
    assert best_penalty(np.array([0.5, 0.9, 0.8, 0.9]), Cs) == 1
    assert best_penalty(np.array([0.9, 0.9, np.nan, 0.9]), Cs) == 1
    model = SoftmaxRegressionCV([10.0, 1.0, 5.0], scoring=lambda m, rows, labels: 1.0).fit(X, y)
    assert model.C_ == 1.0
    with pytest.raises(DataError, match="no score is a number"):
        SoftmaxRegressionCV(CS, scoring=lambda m, rows, labels: np.nan).fit(X, y)


def test_the_same_bits_for_the_same_threads_and_nearly_for_others():
    one, two, again = (SoftmaxRegressionCV(CS, n_jobs=k, random_state=0).fit(X, y) for k in (1, 2, 2))
    np.testing.assert_array_equal(two.coef_, again.coef_)
    np.testing.assert_array_equal(two.gaps_, again.gaps_)
    assert two.objective_ == pytest.approx(one.objective_, rel=1e-4)


def test_callbacks_hear_of_every_fit():
    told = []
    SoftmaxRegressionCV(CS, cv=3, callbacks=told.append, n_jobs=2).fit(X, y)
    assert [line.iteration for line in told].count(0) == 4 * len(CS)


def test_fits_that_fall_short_are_told_of_once():
    with pytest.warns(ConvergenceWarning, match="30 of 30 fits ended above tol=0") as caught:
        model = SoftmaxRegressionCV(CS, tol=0.0, max_iter=1).fit(X, y)
    assert len(caught) == 1
    assert not model.converged_


def test_copies_and_files():
    model = LinearSVMCV(CS, cv=3, margin=0.5)
    assert clone(model).get_params().keys() == model.get_params().keys()
    assert clone(model).margin == 0.5
    assert set(SoftmaxRegressionCV().get_params()) == set(SoftmaxRegression().get_params()) - {
        "C",
        "reg",
        "warm_start",
    } | {"Cs", "cv", "scoring", "refit"}
    assert set(LinearSVMCV().get_params()) - set(LinearSVM().get_params()) == {"Cs", "cv", "scoring", "refit"}
    model.fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert hinge.LinearSVMCV is LinearSVMCV


def test_settings_that_make_no_sense():
    for Cs in ([], [0.0], [np.nan]):
        with pytest.raises(UsageError, match=r"penalties|positive"):
            SoftmaxRegressionCV(Cs).fit(X, y)
    for cv, message in ((1, "cv=1"), ([], "no folds")):
        with pytest.raises(UsageError, match=message):
            SoftmaxRegressionCV(CS, cv=cv).fit(X, y)
    for scoring in ("beauty", 3):
        with pytest.raises(UsageError, match="scoring="):
            SoftmaxRegressionCV(CS, scoring=scoring).fit(X, y)
    with pytest.raises(UsageError, match="tol="):
        SoftmaxRegressionCV(CS, tol=-1).fit(X, y)
    with pytest.raises(UsageError, match="multi_class="):
        LinearSVMCV(CS, multi_class="all").fit(X, y)
    with pytest.raises(UsageError, match="whose slope jumps"):
        LinearSVMCV(CS, penalty="l1").fit(X, y)
    with pytest.raises(UsageError, match="penalty='l3'"):
        SoftmaxRegressionCV(CS, penalty="l3").fit(X, y)
    for ratio in (None, 2.0, [0.1, 0.5], "half"):
        with pytest.raises(UsageError, match="l1_ratio="):
            SoftmaxRegressionCV(CS, penalty="elasticnet", l1_ratio=ratio).fit(X, y)
    with pytest.raises(UsageError, match="cannot take an L1 penalty"):
        SoftmaxRegressionCV(CS, penalty="l1", solver="lbfgs").fit(X, y)


def test_folds_that_cannot_be_trained_on():
    missing = [(np.flatnonzero(y < 2), np.flatnonzero(y == 2))]
    with pytest.raises(DataError, match=r"fold 0: no training row has class 2"):
        SoftmaxRegressionCV(CS, cv=missing).fit(X, y)
    with pytest.raises(DataError, match="fold 0: no row of positive weight is held out"):
        SoftmaxRegressionCV(CS, cv=[(np.arange(240), np.arange(0))]).fit(X, y)
    with pytest.raises(DataError, match="not among the 240"):
        SoftmaxRegressionCV(CS, cv=[(np.arange(240), [240])]).fit(X, y)
    rare = np.where(np.arange(240) == 0, 7, y)
    with pytest.raises(DataError, match="class 7 has n_samples=1, too few"):
        SoftmaxRegressionCV(CS).fit(X, rare)
    few = np.where(np.arange(240) < 3, 7, y)
    assert SoftmaxRegressionCV(CS).fit(X, few).scores_.shape == (3, len(CS))
    with pytest.raises(DataError, match="too few for 5 folds"):
        SoftmaxRegressionCV(CS, cv=5).fit(X, few)
