"""Saved models: the same predictions after loading, and nothing but a typed error from a damaged file."""

import contextlib
import dataclasses
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from hinge import (
    LinearSVM,
    LinearSVMCV,
    SoftmaxRegression,
    SoftmaxRegressionCV,
    load_model,
    save_model,
    solvers,
)
from hinge.errors import DataError, HingeError, UsageError
from hinge.solvers.choice import SOLVER_NAMES

X = np.random.default_rng(0).normal(size=(60, 4))


@pytest.mark.parametrize(
    "model",
    [
        LinearSVM(0.5, multi_class="crammer_singer", class_weight={0: 1.0, 1: 2.0, 2: 1.0}),
        SoftmaxRegression(reg=1e-3, solver=solvers.SGD(batch_size=16, average=True), random_state=7),
    ],
)
@pytest.mark.parametrize("labels", [np.array([0, 1, 2]), np.array(["ä", "b\n", "c,d"]), np.array([False, True])])
def test_a_model_comes_back_as_it_was(tmp_path, model, labels):
    if isinstance(model, LinearSVM):
        model.set_params(class_weight=None if labels.dtype != int else {0: 1.0, 1: 2.0, 2: 1.0})
    y = labels[np.arange(60) % len(labels)]
    model.fit(X, y)
    save_model(model, tmp_path / "model", feature_names=["p", "q", "r", "s"])
    again = load_model(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.predict(X).dtype == model.predict(X).dtype
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert again.get_params() == model.get_params()


PUBLIC_SOLVERS = [
    getattr(solvers, name)()
    for name in solvers.__all__
    if dataclasses.is_dataclass(getattr(solvers, name)) and name not in ("Iteration", "SolverResult")
]


@pytest.mark.parametrize("solver", [*SOLVER_NAMES, *PUBLIC_SOLVERS], ids=str)
def test_models_of_every_solver_come_back(tmp_path, solver):
    model = LinearSVM(0.1, loss="squared_hinge", solver=solver, tol=1e-2, random_state=0)
    model.fit(X, np.arange(60) % 3)
    save_model(model, tmp_path / "m")
    again = load_model(tmp_path / "m")
    assert again.get_params() == model.get_params()
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))


@pytest.mark.parametrize(
    "search",
    [
        LinearSVMCV([0.1, 1.0], cv=2, calibrate="temperature", random_state=3),
        SoftmaxRegressionCV([0.1, 1.0], cv=2, penalty="elasticnet", l1_ratio=0.5, solver="orthant_newton"),
        GridSearchCV(SoftmaxRegression(), {"C": [0.1, 1.0]}, cv=2),
    ],
    ids=str,
)
def test_a_search_is_saved_as_the_classifier_that_it_found(tmp_path, search):
    search.fit(X, np.arange(60) % 3)
    save_model(search, tmp_path / "m")
    again = load_model(tmp_path / "m")
    assert type(again).__name__ in ("LinearSVM", "SoftmaxRegression")
    np.testing.assert_array_equal(again.predict_proba(X), search.predict_proba(X))
    assert again.get_params() == search.best_estimator_.get_params()
    assert again.duality_gap_ == search.best_estimator_.duality_gap_ <= again.tol
    search = clone(search).set_params(refit=False).fit(X, np.arange(60) % 3)
    with pytest.raises(UsageError, match=r"without a classifier of its own.*refit=True"):
        save_model(search, tmp_path / "m")


def test_float32_weights_stay_float32(tmp_path):
    model = LinearSVM().fit(X.astype(np.float32), np.arange(60) % 3)
    save_model(model, tmp_path / "m")
    assert load_model(tmp_path / "m").coef_.dtype == np.float32


def test_an_earlier_model_is_replaced_and_other_directories_are_not(tmp_path):
    model = LinearSVM().fit(X, np.arange(60) % 3)
    save_model(model, tmp_path / "m")
    save_model(model, tmp_path / "m")
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_text("x")
    with pytest.raises(UsageError, match="is not an earlier result"):
        save_model(model, tmp_path / "precious")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m", "precious"]
    with pytest.raises(UsageError, match="cannot be saved"):
        save_model(object(), tmp_path / "o")


@pytest.fixture
def saved(tmp_path):
    save_model(LinearSVM().fit(X, np.arange(60) % 3), tmp_path / "m")
    return tmp_path / "m"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 99}, "has format 99"),
        ({"estimator": "os.system"}, "does not describe a model"),
        ({"parameters": {"C": {"solver": "Popen", "options": {}}}}, "does not describe a model"),
        ({"n_features": 5}, "differ in shape"),
        ({"classes": {"dtype": "<i8", "labels": [1]}}, "differ in shape"),
        ({"feature_names": ["a"]}, "differ in number"),
        ({"weights_sha256": "0"}, "its SHA-256 is not the one"),
    ],
)
def test_headers_that_lie(saved, change, message):
    header = json.loads((saved / "model.json").read_text()) | change
    (saved / "model.json").write_text(json.dumps(header))
    with pytest.raises(DataError, match=message):
        load_model(saved)


def test_missing_files(saved, tmp_path):
    (saved / "weights.safetensors").unlink()
    with pytest.raises(DataError, match="cannot be read"):
        load_model(saved)
    with pytest.raises(DataError, match=r"holds no model\.json"):
        load_model(tmp_path)


@settings(max_examples=300, derandomize=True, deadline=None)
@given(data=st.data())
def test_mutated_files_give_typed_errors_only(tmp_path_factory, data):
    place = tmp_path_factory.mktemp("mutated") / "m"
    save_model(LinearSVM(tol=1.0, max_iter=1).fit(X, np.arange(60) % 3), place)
    file = place / data.draw(st.sampled_from(["model.json", "weights.safetensors"]))
    content = bytearray(file.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    file.write_bytes(bytes(content[: data.draw(st.sampled_from([len(content), len(content) // 2]))]))
    with contextlib.suppress(HingeError):
        load_model(place).predict(X)
