"""Grid search and splits."""

import numpy as np
import pytest

from hinge import LinearSVM, solvers
from hinge.errors import DataError, DivergenceError, UsageError
from hinge.selection import grid_search, stratified_split

rng = np.random.default_rng(0)
y = rng.integers(0, 3, 150)
X = rng.normal(size=(3, 5))[y] * 2 + rng.normal(size=(150, 5))


def test_every_setting_is_trained_and_kept():
    seen = []
    result = grid_search(
        LinearSVM(random_state=0), {"C": [0.01, 1.0], "loss": ["hinge", "squared_hinge"]}, X, y, on_trial=seen.append
    )
    assert [t.parameters for t in result.trials] == [
        {"C": C, "loss": loss} for C in (0.01, 1.0) for loss in ("hinge", "squared_hinge")
    ]
    assert list(result.trials) == seen
    kept, held = stratified_split(y, 0.2, 0)
    for trial in result.trials:
        model = LinearSVM(random_state=0).set_params(**trial.parameters).fit(X[kept], y[kept])
        assert trial.train_accuracy == model.score(X[kept], y[kept])
        assert trial.validation_accuracy == model.score(X[held], y[held])
    assert result.best.validation_accuracy == max(t.validation_accuracy for t in result.trials)
    assert result.best_model.score(X[held], y[held]) == result.best.validation_accuracy
    assert result.table["C"] == [0.01, 0.01, 1.0, 1.0]
    assert "best" in str(result)


def test_the_earlier_setting_wins_a_tie():
    result = grid_search(LinearSVM(random_state=0), {"tol": [1e-3, 1e-3]}, X, y)
    assert result.best_index == 0


def test_a_setting_that_fails_is_kept_with_its_error():
    bad = solvers.SGD(learning_rate=1e300)
    with np.errstate(all="ignore"):
        result = grid_search(LinearSVM(loss="squared_hinge"), {"solver": [bad, "auto"]}, X, y)
        assert "left the finite numbers" in result.trials[0].error
        assert np.isnan(result.trials[0].validation_accuracy)
        assert result.best_index == 1
        with pytest.raises(DivergenceError):
            grid_search(LinearSVM(loss="squared_hinge"), {"solver": [bad]}, X, y)


def test_validation_rows_of_ones_own():
    result = grid_search(LinearSVM(random_state=0), {"C": [1.0]}, X[:100], y[:100], validation=(X[100:], y[100:]))
    assert result.best.validation_accuracy == LinearSVM(random_state=0).fit(X[:100], y[:100]).score(X[100:], y[100:])


def test_searches_that_make_no_sense():
    for grid in ({}, {"C": []}):
        with pytest.raises(UsageError, match="the grid is empty"):
            grid_search(LinearSVM(), grid, X, y)
    with pytest.raises(UsageError, match="is not a share"):
        grid_search(LinearSVM(), {"C": [1]}, X, y, validation=1.5)
    with pytest.raises(DataError, match="X has 150 rows and y 149"):
        grid_search(LinearSVM(), {"C": [1]}, X, y[1:])


@pytest.mark.parametrize("share", [0.1, 0.2, 0.5])
def test_splits_keep_shares_of_classes(share):
    labels = np.repeat(["a", "b", "c"], [100, 37, 1])
    kept, held = stratified_split(labels, share, 0)
    np.testing.assert_array_equal(np.sort(np.concatenate([kept, held])), np.arange(138))
    assert abs(len(held) - share * 138) <= 1.5
    assert abs(np.sum(labels[held] == "b") - share * 37) <= 1
    assert "c" in labels[kept]
    np.testing.assert_array_equal(held, stratified_split(labels, share, 0)[1])
    assert not np.array_equal(held, stratified_split(labels, share, 1)[1])


def test_many_small_classes_still_give_a_share():
    labels = np.repeat(np.arange(50), 2)
    kept, held = stratified_split(labels, 0.2, 0)
    assert len(held) == 20
    assert set(labels[kept]) == set(range(50))


def test_too_few_rows_to_split():
    with pytest.raises(DataError, match="too few to hold out"):
        stratified_split(np.array([0, 1]), 0.2, 0)
