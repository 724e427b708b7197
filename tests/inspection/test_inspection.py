"""Confusion matrices and weight templates."""

import numpy as np
import pytest
from sklearn.metrics import confusion_matrix, precision_score, recall_score

from hinge import inspection
from hinge.errors import DataError

rng = np.random.default_rng(0)
true, predicted = rng.integers(0, 4, 300), rng.integers(0, 4, 300)


def test_confusion_matches_scikit_learn():
    matrix = inspection.confusion(true, predicted)
    np.testing.assert_array_equal(matrix.counts, confusion_matrix(true, predicted))
    assert matrix.accuracy == np.mean(true == predicted)
    np.testing.assert_allclose(matrix.recall, recall_score(true, predicted, average=None))
    np.testing.assert_allclose(matrix.precision, precision_score(true, predicted, average=None))
    np.testing.assert_allclose(matrix.normalized.sum(axis=1), 1)


def test_confusion_with_classes_that_never_occur():
    matrix = inspection.confusion(np.array(["a"]), np.array(["b"]), labels=np.array(["b", "a", "z"]))
    np.testing.assert_array_equal(matrix.counts, [[0, 0, 0], [1, 0, 0], [0, 0, 0]])
    assert np.all(np.isfinite(matrix.recall))
    assert np.all(np.isfinite(matrix.precision))
    assert matrix.worst_pairs() == [("a", "b", 1)]


def test_worst_pairs_come_in_order():
    matrix = inspection.confusion(true, predicted)
    counts = [count for _, _, count in matrix.worst_pairs(100)]
    assert counts == sorted(counts, reverse=True)
    assert sum(counts) == int(np.sum(true != predicted))


def test_labels_that_do_not_fit():
    with pytest.raises(DataError, match="cannot be compared"):
        inspection.confusion(true, predicted[1:])
    with pytest.raises(DataError, match="is not among the given labels"):
        inspection.confusion(true, predicted, labels=np.array([0, 1]))


def test_templates_are_scaled_pictures():
    coef = rng.normal(size=(3, 6))
    pictures = inspection.weight_templates(coef, (2, 3))
    assert pictures.shape == (3, 2, 3)
    np.testing.assert_allclose(np.abs(pictures).max(axis=(1, 2)), 1)
    np.testing.assert_allclose(pictures[1].ravel() * np.abs(coef[1]).max(), coef[1])


def test_two_classes_give_two_opposite_templates():
    pictures = inspection.weight_templates(np.array([[1.0, -2.0]]), (1, 2))
    np.testing.assert_array_equal(pictures, [[[-0.5, 1.0]], [[0.5, -1.0]]])


def test_a_picture_of_another_size():
    with pytest.raises(DataError, match="do not fill a picture"):
        inspection.weight_templates(np.zeros((2, 5)), (2, 3))
