"""Some columns alone: the same sums as the whole with all other weights 0, on every back end."""

import numpy as np
import pytest
from scipy import sparse

from hinge.ops import ColumnPasses, CpuBackend, Loss, ReferenceBackend


@pytest.mark.parametrize("backend", [CpuBackend(2), ReferenceBackend()])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, sparse.csr_array])
@pytest.mark.parametrize("weighted", [True, False])
def test_columns_and_their_squares(backend, form, weighted):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1500, 6)) * (rng.random((1500, 6)) < 0.5)
    y = rng.integers(0, 3, 1500).astype(np.int32)
    v = rng.uniform(0, 2, 1500) if weighted else None
    passes = backend.bind(form(X), y, v, 3)
    assert isinstance(passes, ColumnPasses)
    squares = (np.ones(1500) if v is None else v) @ X**2
    np.testing.assert_allclose(passes.column_squares(), squares, rtol=1e-12)
    chosen = np.array([1, 4])
    few = passes.columns(chosen)
    assert (few.n_rows, few.n_features) == (1500, 2)
    weights, inner = passes.zero_weights(intercept=True), np.array([1, 4, 6])
    weights[:, inner] = rng.standard_normal((3, 3))
    value, gradient = passes.loss_and_gradient(Loss("softmax"), weights)
    part = few.zero_weights(intercept=True)
    part[...] = weights[:, inner]
    alone, slope = few.loss_and_gradient(Loss("softmax"), part)
    assert alone == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(slope, gradient[:, inner], rtol=1e-9, atol=1e-9)
