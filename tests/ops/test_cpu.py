"""The native back end: what it refuses, every way that rows may lie in memory, threads, Ctrl-C and fork."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from scipy import sparse
from threadpoolctl import threadpool_info, threadpool_limits

from hinge import _native
from hinge.errors import DataError, UsageError
from hinge.ops import CpuBackend, Loss, ReferenceBackend, cpu

SOFTMAX = Loss("softmax")
SQUARED = Loss("weston_watkins", squared=True)


def whole_problem(N=200, D=23, C=5, dtype=np.float64):
    rng = np.random.default_rng(0)
    X = rng.integers(-2, 3, (N, D)).astype(dtype)
    y = rng.integers(0, C, N).astype(np.int32)
    return X, y, rng.integers(-1, 2, (C, D + 1)).astype(dtype)


def pass_over(X, y, W, *, threads=1, weight=None, subset=None, loss=SQUARED):
    return CpuBackend(threads).bind(X, y, weight, len(W)).loss_and_gradient(loss, W, subset)


def assert_same(got, want):
    assert got[0] == want[0]
    np.testing.assert_array_equal(got[1], want[1])


# --- what is refused -------------------------------------------------------------------------------------------------


def damaged(**changes):
    X = sparse.csr_array(np.array([[1.0, 0, 2], [0, 0, 0], [0, 3, 0], [4, 5, 6]]))
    for attribute, values in changes.items():
        setattr(X, attribute, np.asarray(values, dtype=getattr(X, attribute).dtype))
    return X


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"indices": [0, 2, 1, 0, 1, 3]}, "column index lies outside the 3 columns"),
        ({"indices": [0, 2, 1, 0, 1, 2**31 - 1]}, "column index lies outside"),
        ({"indices": [0, -1, 1, 0, 1, 2]}, "column index lies outside"),
        ({"indptr": [0, 3, 2, 3, 6]}, "row pointers are damaged"),
        ({"indptr": [1, 2, 2, 3, 6]}, "row pointers are damaged"),
        ({"indptr": [-1, 2, 2, 3, 6]}, "row pointers are damaged"),
        ({"indptr": [0, 2, 2, 3, 7]}, "row pointers are damaged"),
        ({"indptr": [0, 2, 2, 2**30, 6]}, "row pointers are damaged"),
        ({"data": [1, 2, 3, 4, 5]}, "row pointers are damaged"),
    ],
)
def test_damaged_sparse_rows(changes, message):
    with pytest.raises(DataError, match=message) as caught:
        CpuBackend(1).bind(damaged(**changes), np.zeros(4, dtype=np.int32), None, 2)
    assert caught.value.where == "X"


def test_values_beyond_the_last_row_are_left_alone():
    X = damaged(indptr=[0, 2, 2, 3, 5])
    y, W = np.array([0, 1, 1, 0], dtype=np.int32), np.array([[1.0, 0, 1], [0, 1, 0]])
    assert_same(pass_over(X, y, W), pass_over(np.array([[1.0, 0, 2], [0, 0, 0], [0, 3, 0], [4, 5, 0]]), y, W))


@pytest.mark.parametrize("labels", [[0, 1, 2], [0, -1, 1]])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_labels_out_of_range(labels, form):
    with pytest.raises(DataError, match="label code is not below 2"):
        CpuBackend(1).bind(form(np.ones((3, 2))), np.array(labels, dtype=np.int32), None, 2)


@pytest.mark.parametrize("loss", [Loss("weston_watkins"), Loss("crammer_singer"), Loss("one_vs_rest")])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_a_plain_hinge_has_no_curvature(loss, form):
    passes = CpuBackend(1).bind(form(np.ones((3, 2))), np.array([0, 1, 1], dtype=np.int32), None, 2)
    with pytest.raises(UsageError, match=r"plain hinge has no curvature.*squared"):
        passes.curvature_product(loss, np.zeros((2, 2)), np.ones((2, 2)))


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_shapes_that_memory_safety_depends_on(form):
    X, y = form(np.ones((3, 2))), np.array([0, 1, 1], dtype=np.int32)
    passes = CpuBackend(1).bind(X, y, None, 2)
    for wrong in (np.zeros((2, 1)), np.zeros((2, 4)), np.zeros((1, 2))):
        with pytest.raises(ValueError, match="weights need"):
            passes.loss_and_gradient(SOFTMAX, wrong)
    with pytest.raises(ValueError, match="direction differs"):
        passes.curvature_product(SOFTMAX, np.zeros((2, 2)), np.zeros((2, 3)))
    for subset in ([3], [-1], [0, 1, 2, 1 << 40]):
        with pytest.raises(ValueError, match="subset names a row"):
            passes.loss_and_gradient(SOFTMAX, np.zeros((2, 2)), np.array(subset))
    with pytest.raises(ValueError, match="y differs"):
        CpuBackend(1).bind(X, y[:2], None, 2).loss_and_gradient(SOFTMAX, np.zeros((2, 2)))
    with pytest.raises(ValueError, match="sample_weight differs"):
        CpuBackend(1).bind(X, y, np.ones(2), 2).loss_and_gradient(SOFTMAX, np.zeros((2, 2)))
    with pytest.raises(ValueError, match="threads"):
        CpuBackend(0).bind(X, y, None, 2).loss_and_gradient(SOFTMAX, np.zeros((2, 2)))


@pytest.mark.parametrize("kind", ["hinge", "", "Softmax"])
def test_unknown_loss(kind):
    with pytest.raises(UsageError, match=r"unknown loss.*softmax, weston_watkins, crammer_singer, one_vs_rest"):
        Loss(kind)


@pytest.mark.parametrize("margin", [0, -1.0, float("nan"), float("inf")])
def test_margins_that_are_none(margin):
    with pytest.raises(UsageError, match=r"margin=.* is not a positive number"):
        Loss("one_vs_rest", margin=margin)


# --- how rows lie in memory ------------------------------------------------------------------------------------------


def read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


def inside(X, step_rows, step_columns):
    """Put X into every so many-th cell of a larger array of NaN."""
    larger = np.full((X.shape[0] * step_rows + 3, X.shape[1] * step_columns + 5), np.nan, dtype=X.dtype)
    view = larger[2 : 2 + X.shape[0] * step_rows : step_rows, 1 : 1 + X.shape[1] * step_columns : step_columns]
    view[...] = X
    return view


LAYOUTS = {
    "C order": lambda X: X,
    "F order": np.asfortranarray,
    "read-only": read_only,
    "columns cut off": lambda X: inside(X, 1, 1),
    "every second row": lambda X: inside(X, 2, 1),
    "every third column": lambda X: inside(X, 1, 3),
    "F order, rows cut off": lambda X: inside(X.T, 1, 1).T,
    "F order, every second row": lambda X: inside(X.T, 1, 2).T,
    "backwards": lambda X: X[::-1, ::-1].copy()[::-1, ::-1],
    "F order backwards": lambda X: np.asfortranarray(X[::-1])[::-1],
    "CSR": sparse.csr_array,
    "CSR matrix": sparse.csr_matrix,
    "CSC": sparse.csc_array,
    "COO": sparse.coo_array,
    "unsorted CSR": lambda X: unsorted(sparse.csr_array(X)),
    "64-bit CSR": lambda X: wide(sparse.csr_array(X), np.int64, np.int64),
    "mixed CSR": lambda X: wide(sparse.csr_array(X), np.int32, np.int64),
    "read-only CSR": lambda X: frozen(sparse.csr_array(X)),
}


def unsorted(X):
    for i in range(X.shape[0]):
        row = slice(X.indptr[i], X.indptr[i + 1])
        X.indices[row], X.data[row] = X.indices[row][::-1].copy(), X.data[row][::-1].copy()
    return X


def wide(X, indices, indptr):
    X.indices, X.indptr = X.indices.astype(indices), X.indptr.astype(indptr)
    return X


def frozen(X):
    for values in (X.data, X.indices, X.indptr):
        values.flags.writeable = False
    return X


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("C", [5, 40])
def test_layouts_give_the_same_sums(layout, dtype, C):
    X, y, W = whole_problem(C=C, dtype=dtype)
    rows = LAYOUTS[layout](X)
    assert_same(pass_over(rows, y, W), ReferenceBackend().bind(X, y, None, C).loss_and_gradient(SQUARED, W))
    subset = np.random.default_rng(1).integers(0, len(y), 77)
    assert_same(pass_over(rows, y, W, subset=subset), pass_over(X[subset], y[subset], W))


def test_one_row_or_column_for_all():
    X, y, W = whole_problem()
    for broadcast in (np.broadcast_to(X[0], X.shape), np.broadcast_to(X[:, :1], X.shape)):
        assert_same(pass_over(broadcast, y, W), pass_over(broadcast.copy(), y, W))


@pytest.mark.parametrize("order", ["C", "F"])
def test_weights_in_any_order(order):
    X, y, W = whole_problem()
    for rows in (X, sparse.csr_array(X)):
        assert_same(pass_over(rows, y, np.asarray(W, order=order)), pass_over(X, y, W))
        assert_same(pass_over(rows, y, np.repeat(W, 2, axis=1)[:, ::2]), pass_over(X, y, W))


def test_no_rows():
    _, _, W = whole_problem()
    for rows in (np.zeros((0, 23)), sparse.csr_array((0, 23))):
        value, gradient = pass_over(rows, np.zeros(0, dtype=np.int32), W)
        assert value == 0
        assert gradient.shape == W.shape
        assert not gradient.any()


def test_weight_two_is_the_row_twice():
    X, y, W = whole_problem()
    weight = np.random.default_rng(2).integers(0, 4, len(y))
    copies = np.repeat(np.arange(len(y)), weight)
    assert_same(pass_over(X, y, W, weight=weight.astype(float)), pass_over(X[copies], y[copies], W))


def test_nothing_is_changed():
    X, y, W = whole_problem()
    before = X.copy(), y.copy(), W.copy()
    pass_over(X, y, W, threads=2)
    for now, then in zip((X, y, W), before, strict=True):
        np.testing.assert_array_equal(now, then)


# --- threads ---------------------------------------------------------------------------------------------------------


def large_problem(C=10):
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((20_000, 60)), rng.integers(0, C, 20_000).astype(np.int32)
    return X, y, rng.standard_normal((C, 61))


@pytest.mark.parametrize("C", [10, 40])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_threads_give_the_same_bits_again_and_nearly_the_same_sums(C, form):
    X, y, W = large_problem(C)
    rows = form(X)
    value, gradient = pass_over(rows, y, W, loss=SOFTMAX)
    for threads in (2, 3, 4):
        first = pass_over(rows, y, W, threads=threads, loss=SOFTMAX)
        assert_same(pass_over(rows, y, W, threads=threads, loss=SOFTMAX), first)
        assert first[0] == pytest.approx(value, rel=1e-13)
        np.testing.assert_allclose(first[1], gradient, rtol=0, atol=1e-12 * np.abs(gradient).max())


def blas_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_blas_runs_one_thread_while_ours_call_it():
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        with cpu.single_threaded_blas():
            assert blas_threads() == {1}
        assert blas_threads() == before


LONG_FIT = """
import sys
import numpy as np
from hinge.ops import CpuBackend, Loss
rows = np.broadcast_to(np.ones(200, dtype=np.float32), (20_000_000, 200))
passes = CpuBackend(int(sys.argv[1])).bind(rows, np.zeros(20_000_000, dtype=np.int32), None, 12)
weights = passes.zero_weights(intercept=True)
print("running", flush=True)
while True:
    passes.loss_and_gradient(Loss("softmax"), weights)
"""


@pytest.mark.skipif(os.name == "nt", reason="sends a POSIX signal")
@pytest.mark.parametrize("threads", [1, 2])
def test_ctrl_c_ends_a_long_pass_within_a_second(threads):
    child = subprocess.Popen(
        [sys.executable, "-c", LONG_FIT, str(threads)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout.readline() == "running\n"
        time.sleep(0.3)
        assert child.poll() is None
        sent = time.perf_counter()
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=20)
        took = time.perf_counter() - sent
    finally:
        child.kill()
        child.communicate()
    assert errors.rstrip().endswith("KeyboardInterrupt")
    assert child.returncode == -signal.SIGINT
    assert took < 1


def send_pass(connection, C):
    connection.send(pass_over(*large_problem(C), threads=3, loss=SOFTMAX))


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
@pytest.mark.parametrize("C", [10, 40])  # by register tiles and by BLAS
def test_a_forked_child_may_use_threads_after_its_parent_did(C):
    expected = pass_over(*large_problem(C), threads=3, loss=SOFTMAX)
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=send_pass, args=(sender, C))
    child.start()
    try:
        assert receiver.poll(30), "the child hangs"
        assert_same(receiver.recv(), expected)
        child.join(10)
        assert child.exitcode == 0
    finally:
        child.kill()


# --- the exponential, as the module offers it ------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_exp(dtype):
    x = np.linspace(-80, 80, 10_001).astype(dtype)
    out = np.empty_like(x)
    _native.exp(x, out)
    exact = np.exp(x.astype(np.longdouble))
    assert np.all(np.abs(out - exact) <= 1.2 * np.spacing(exact.astype(dtype)))


def test_exp_refuses_what_it_cannot_take():
    with pytest.raises(ValueError, match="differ in length"):
        _native.exp(np.zeros(3), np.zeros(2))
    with pytest.raises(TypeError):
        _native.exp(np.zeros(3, dtype=np.int64), np.zeros(3))
    with pytest.raises(TypeError):
        _native.exp(np.zeros(6)[::2], np.zeros(3))
