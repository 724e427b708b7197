"""LinearSVM and SoftmaxRegression: solutions against independent solvers, and scikit-learn's habits."""

import pickle
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

from hinge import LinearSVM, SoftmaxRegression, solvers
from hinge.errors import DataError, UsageError

LONG = solvers.GradientDescent(momentum=0.95, nesterov=True, tol=1e-9)


@pytest.fixture(scope="module")
def blobs():
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(4, 6)) * 1.5
    y = rng.integers(0, 4, 240)
    return centres[y] + rng.normal(size=(240, 6)), np.array(["ant", "bee", "cat", "dog"])[y]


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    held = np.random.default_rng(0).permutation(len(y))[: len(y) // 5]
    kept = np.setdiff1d(np.arange(len(y)), held)
    return X[kept], y[kept], X[held], y[held]


@pytest.mark.parametrize("model", [LinearSVM(random_state=0), SoftmaxRegression(random_state=0)])
def test_digits_with_default_settings(digits, model):
    """The exact optimum of the hinge at C = 1, on raw pixels, gets 341 of the 359 held-out rows right: 0.9499."""
    X, y, X_held, y_held = digits
    assert model.fit(X, y).score(X_held, y_held) >= 0.94
    assert model.converged_


@pytest.mark.parametrize("C", [0.01, 1.0])
def test_softmax_reaches_scikit_learns_optimum(blobs, C):
    X, y = blobs
    ours = SoftmaxRegression(C, solver=LONG, max_iter=20000).fit(X, y)
    theirs = LogisticRegression(C=C, tol=1e-10, max_iter=10000).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=2e-5)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-5)


def test_two_classes_are_the_binary_logistic_problem(blobs):
    X, y = blobs
    two = np.isin(y, ["ant", "bee"])
    ours = SoftmaxRegression(0.5, solver=LONG, max_iter=20000).fit(X[two], y[two])
    theirs = LogisticRegression(C=0.5, tol=1e-10, max_iter=10000).fit(X[two], y[two])
    assert ours.coef_.shape == (1, 6)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=2e-5)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=2e-5)


@pytest.mark.parametrize("multi_class", ["weston_watkins", "crammer_singer", "one_vs_rest"])
def test_two_classes_are_the_binary_svm_whatever_the_multiclass_form(blobs, multi_class):
    X, y = blobs
    two = np.isin(y, ["ant", "bee"])
    X, y = X[two], y[two]
    ours = LinearSVM(0.5, multi_class=multi_class, solver=solvers.GradientDescent(), max_iter=30000).fit(X, y)
    theirs = SVC(C=0.5, kernel="linear", tol=1e-8).fit(X, y)

    def primal(w, b):
        t = np.where(y == "bee", 1, -1)
        return 0.5 * np.sum(w**2) + 0.5 * np.maximum(0, 1 - t * (X @ w + b)).sum()

    best = primal(theirs.coef_[0], theirs.intercept_[0])
    assert primal(ours.coef_[0], ours.intercept_[0]) <= best * (1 + 2e-3)
    # The published objective is the same number in mean form.
    np.testing.assert_allclose(ours.objective_, primal(ours.coef_[0], ours.intercept_[0]) / (0.5 * len(y)), rtol=1e-6)


@pytest.mark.parametrize("multi_class", ["weston_watkins", "crammer_singer", "one_vs_rest"])
def test_squared_hinges_reach_an_independent_optimum(blobs, multi_class):
    X, y = blobs
    codes = np.unique(y, return_inverse=True)[1]
    ours = LinearSVM(1.0, loss="squared_hinge", multi_class=multi_class, margin=0.7, solver=LONG, max_iter=20000)
    ours.fit(X, y)
    rows = np.arange(len(y))

    def primal(flat):
        W = flat.reshape(4, 7)
        S = X @ W[:, :6].T + W[:, 6]
        if multi_class == "one_vs_rest":
            sign = np.ones_like(S)
            sign[rows, codes] = -1
            m = 0.7 + sign * S
        else:
            m = 0.7 + S - S[rows, codes][:, None]
            m[rows, codes] = 0
        if multi_class == "crammer_singer":
            m = m.max(axis=1)
        return 0.5 * np.sum(W[:, :6] ** 2) / len(y) + np.sum(np.maximum(0, m) ** 2) / len(y)

    reference = minimize(primal, np.zeros(28), method="L-BFGS-B", options={"maxiter": 5000, "maxfun": 10**6})
    assert ours.objective_ == pytest.approx(reference.fun, rel=1e-5)


def test_reg_is_the_courses_convention(blobs):
    X, y = blobs
    by_reg = SoftmaxRegression(reg=1e-2, solver=LONG, max_iter=5000).fit(X, y)
    by_c = SoftmaxRegression(1 / (2 * 1e-2 * len(y)), solver=LONG, max_iter=5000).fit(X, y)
    np.testing.assert_allclose(by_reg.coef_, by_c.coef_, atol=1e-6)  # each within tol·‖∂P(0)‖/λ of the optimum


def test_a_weight_of_two_is_a_row_twice(blobs):
    X, y = blobs
    weight = np.random.default_rng(1).integers(0, 3, len(y)).astype(float)
    # Strong convexity bounds the distance to the optimum by ‖∂P‖/λ, here 240·‖∂P‖: tol 1e-12 leaves below 1e-8.
    exact = solvers.GradientDescent(momentum=0.95, nesterov=True, tol=1e-12)
    model = LinearSVM(loss="squared_hinge", solver=exact, max_iter=30000)
    weighted = model.fit(X, y, sample_weight=weight).coef_.copy()
    repeated = model.fit(np.repeat(X, weight.astype(int), axis=0), np.repeat(y, weight.astype(int))).coef_
    np.testing.assert_allclose(weighted, repeated, atol=1e-7)


def test_balanced_weights_match_explicit_ones(blobs):
    X, y = blobs
    labels, counts = np.unique(y, return_counts=True)
    explicit = dict(zip(labels.tolist(), len(y) / (len(labels) * counts), strict=True))
    a = SoftmaxRegression(class_weight="balanced", random_state=0).fit(X, y)
    b = SoftmaxRegression(class_weight=explicit, random_state=0).fit(X, y)
    np.testing.assert_allclose(a.coef_, b.coef_, rtol=1e-6)


@pytest.mark.parametrize("make", [sparse.csr_matrix, sparse.csr_array, sparse.csc_matrix, sparse.coo_array])
def test_sparse_rows_give_the_dense_solution(blobs, make):
    X, y = blobs
    X = np.where(np.abs(X) > 1, X, 0)
    dense = LinearSVM(random_state=0).fit(X, y)
    spare = LinearSVM(random_state=0).fit(make(X), y)
    np.testing.assert_allclose(spare.coef_, dense.coef_, atol=1e-6)
    np.testing.assert_array_equal(spare.predict(make(X)), dense.predict(X))


def test_sparse_rows_with_64_bit_indices(blobs):
    X, y = blobs
    wide = sparse.csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    np.testing.assert_allclose(
        LinearSVM(random_state=0).fit(wide, y).coef_,
        LinearSVM(random_state=0).fit(sparse.csr_array(X), y).coef_,
        rtol=1e-12,
    )


@pytest.mark.parametrize("form", ["fortran", "strided", "read-only", "big-endian", "float32", "int", "list"])
def test_any_array_of_the_same_numbers_gives_the_same_model(blobs, form):
    X, y = blobs
    X = np.round(X)
    reference = SoftmaxRegression(random_state=0).fit(X, y)
    shapes = {
        "fortran": np.asfortranarray(X),
        "strided": np.repeat(X, 2, axis=1)[:, ::2],
        "read-only": X.copy(),
        "big-endian": X.astype(">f8"),
        "float32": X.astype(np.float32),
        "int": X.astype(np.int16),
        "list": X.tolist(),
    }
    given = shapes[form]
    if form == "read-only":
        given.flags.writeable = False
    model = SoftmaxRegression(random_state=0).fit(given, y)
    np.testing.assert_allclose(model.coef_, reference.coef_, rtol=1e-3 if form == "float32" else 1e-9, atol=1e-4)
    assert model.coef_.dtype == (np.float32 if form == "float32" else np.float64)


def test_same_seed_same_bits(digits):
    X, y, _, _ = digits
    first = LinearSVM(random_state=3, n_jobs=2).fit(X, y)
    second = LinearSVM(random_state=3, n_jobs=2).fit(X, y)
    assert first.coef_.tobytes() == second.coef_.tobytes()
    visits = [LinearSVM(reg=0.1, solver="dual", tol=1e-3, random_state=seed).fit(X / 16, y).coef_ for seed in (3, 3, 4)]
    assert visits[0].tobytes() == visits[1].tobytes() != visits[2].tobytes()


def test_partial_fit_learns_from_a_stream(digits):
    X, y, X_held, y_held = digits
    model = LinearSVM(random_state=0)
    for start in range(0, len(y), 100):
        model.partial_fit(X[start : start + 100], y[start : start + 100], classes=range(10))
    assert model.n_iter_ == len(model.history_) == 15
    assert model.score(X_held, y_held) > 0.9


def test_partial_fit_goes_on_from_a_fit(blobs):
    X, y = blobs
    model = SoftmaxRegression(random_state=0).fit(X, y)
    before, iterations = model.score(X, y), model.n_iter_
    model.partial_fit(X, y)
    assert model.n_iter_ == iterations + 1
    assert model.score(X, y) >= before - 0.02


def test_partial_fit_refuses_what_it_cannot_do(blobs):
    X, y = blobs
    with pytest.raises(UsageError, match="classes must be passed on the first call"):
        LinearSVM().partial_fit(X, y)
    model = LinearSVM().partial_fit(X, y, classes=np.unique(y))
    with pytest.raises(DataError, match="'eel' is not among the 4 known classes"):
        model.partial_fit(X[:1], ["eel"])
    with pytest.raises(UsageError, match="differs from"):
        model.partial_fit(X, y, classes=["ant", "bee"])
    assert not hasattr(LinearSVM(solver=solvers.GradientDescent()), "partial_fit")
    with pytest.raises(UsageError, match="cosine schedule needs to know"):
        LinearSVM(solver=solvers.SGD(schedule="cosine")).partial_fit(X, y, classes=np.unique(y))


def test_warm_start_goes_on_from_the_last_solution(blobs):
    X, y = blobs
    model = SoftmaxRegression(solver=LONG, max_iter=300, warm_start=True).fit(X, y)
    first = model.history_[0].objective
    model.fit(X, y)
    assert model.history_[0].objective == pytest.approx(model.objective_, abs=1e-3)
    assert model.history_[0].objective < first / 2


def test_callbacks_see_every_iteration_and_may_end_the_fit(blobs):
    X, y = blobs
    for solver in ("lbfgs", "newton_cg", "interior_point"):
        seen = []
        model = LinearSVM(loss="squared_hinge", solver=solver)
        model.set_params(callbacks=[seen.append, lambda iteration: iteration.iteration == 3]).fit(X, y)
        assert [s.iteration for s in seen] == [0, 1, 2, 3]
        assert model.n_iter_ == 3
        assert model.history_ == tuple(seen)
    with pytest.warns(ConvergenceWarning, match="ended after 2 iterations"):
        assert LinearSVM(callbacks=seen.append, max_iter=2).fit(X, y).n_iter_ == 2


def test_callbacks_see_every_certificate_of_coordinate_ascent(blobs):
    """An epoch is far cheaper than a certificate, so these become rare: epochs 4, 6, 9, 13, … as the gap falls."""
    X, y = blobs
    seen = []
    model = LinearSVM(solver="dual", callbacks=[seen.append, lambda iteration: iteration.iteration == 9]).fit(X, y)
    assert [s.iteration for s in seen] == [4, 6, 9]
    assert model.n_iter_ == 9
    assert model.history_ == tuple(seen)


def test_probabilities_agree_with_predictions(blobs):
    X, y = blobs
    model = SoftmaxRegression(random_state=0).fit(X, y)
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    np.testing.assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(X))
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), p)
    far = model.predict_log_proba(X * 1e6)
    assert np.all(np.isfinite(far))


def test_models_survive_pickling_with_their_stream(blobs):
    X, y = blobs
    model = LinearSVM(random_state=0).partial_fit(X[:100], y[:100], classes=np.unique(y))
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.partial_fit(X[100:], y[100:]).coef_, model.partial_fit(X[100:], y[100:]).coef_)


def test_importing_hinge_is_cheap():
    """No sklearn, no NumPy until they are needed: the whole cost over `import sklearn` stays small."""
    code = (
        "import sys, hinge; print(sorted(m for m in ('numpy', 'sklearn', 'polars', 'matplotlib') if m in sys.modules))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[]"


@pytest.mark.parametrize(
    "options",
    [
        "SoftmaxRegression(solver='lbfgs', tol=0, max_iter=10**6)",
        "SoftmaxRegression(solver='newton_cg', tol=0, max_iter=10**6)",
        "LinearSVM(solver='dual', reg=1e-7, tol=0, max_iter=10**6)",
        "LinearSVM(solver='interior_point', reg=1e-7, tol=0, max_iter=10**6)",
        "LinearSVM(loss='squared_hinge', reg=1e-7, tol=0, max_iter=10**6)",
        "LinearSVM(solver='sgd', max_iter=10**6)",
        "LinearSVM(solver='gradient_descent', max_iter=10**6)",
    ],
)
def test_ctrl_c_ends_a_fit_within_a_second_and_keeps_its_weights(options):
    program = f"""
import time
import numpy as np
from hinge import LinearSVM, SoftmaxRegression
rng = np.random.default_rng(0)
X, y = rng.standard_normal((20_000, 60)), rng.integers(0, 10, 20_000)
lines = []
def say(iteration):
    if not lines:
        print("ready", flush=True)
    lines.append(iteration)
model = {options}.set_params(n_jobs=2, random_state=0, callbacks=say)
try:
    model.fit(X, y)
    print("it ended by itself", model.n_iter_)
except KeyboardInterrupt:
    print("interrupted", np.all(np.isfinite(model.coef_)), model.coef_.shape)
"""
    run = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert run.stdout.readline() == "ready\n"
    run.send_signal(signal.SIGINT)  # at once: some of these fits are over in a tenth of a second
    began = time.perf_counter()
    out = run.communicate(timeout=30)[0]
    assert out == "interrupted True (10, 60)\n"
    assert time.perf_counter() - began < 5  # a second on a machine that does nothing else


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("scale", [0.0, 1e-18, 1.0, 1e3, 1e150])
def test_the_predicted_class_is_never_less_likely_than_another(n_classes, scale):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 3))
    y = np.arange(80) % n_classes
    rows = np.vstack([X * scale, np.zeros((2, 3))])
    for model in (SoftmaxRegression(), LinearSVM(calibrate="temperature"), LinearSVM(C=1e4, calibrate="temperature")):
        model.fit(X, y)
        p, log_p = model.predict_proba(rows), model.predict_log_proba(rows)
        chosen = np.searchsorted(model.classes_, model.predict(rows))
        at = np.arange(len(rows))
        np.testing.assert_array_equal(p[at, chosen], p.max(axis=1))
        np.testing.assert_array_equal(log_p[at, chosen], log_p.max(axis=1))
        np.testing.assert_allclose(p.sum(axis=1), 1)
        assert np.all(np.isfinite(log_p))


def test_verbose_prints_a_line_an_iteration_to_stderr(blobs, capsys):
    model = SoftmaxRegression(verbose=1).fit(*blobs)
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == len(model.history_)
    assert err.splitlines()[0].split()[:2] == ["0", "passes"]
    assert f"gap {model.duality_gap_:.2e}" in err.splitlines()[-1]


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_wide_sparse_rows_are_never_made_dense(loss):
    """2,000 × 2,000,000 values would take 32 GB."""
    rng = np.random.default_rng(0)
    X = sparse.csr_array((rng.standard_normal(20_000), rng.integers(0, 2_000_000, 20_000), np.arange(0, 20_001, 10)))
    X = sparse.csr_array((X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)), shape=(2000, 2_000_000))
    model = LinearSVM(loss=loss, n_jobs=2, random_state=0).fit(X, rng.integers(0, 2, 2000))
    assert model.converged_
    assert model.predict(X).shape == (2000,)
