"""Rows that stay in their file: fits of a memory map take a small part of its size in memory of their own."""

import os
import subprocess
import sys

import numpy as np
import pytest

from hinge import LinearSVM, SoftmaxRegression
from hinge.errors import DataError

N, D, C = 800_000, 128, 3

PROGRAM = """
import json, resource, sys
import numpy as np
from hinge import LinearSVM, SoftmaxRegression
path, allowed = sys.argv[1], int(sys.argv[2])
N, D, C = map(int, sys.argv[3:])
def model(kind, tol):
    if kind == "softmax":
        return SoftmaxRegression(reg=1e-2, tol=tol, n_jobs=2)
    return LinearSVM(reg=1e-2, loss=kind, tol=tol, n_jobs=2, random_state=0)
X = np.memmap(path, dtype=np.float32, mode="r", shape=(N, D))
y = np.load(path + ".npy", mmap_mode="r")
for kind in ("softmax", "squared_hinge", "hinge"):  # what is loaded and allocated once counts before the limit
    model(kind, 0.3).fit(np.array(X[:3000]), np.array(y[:3000]))
used = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmData")) * 1024
resource.setrlimit(resource.RLIMIT_DATA, (used + allowed, used + allowed))
try:
    np.ones(allowed // 4, dtype=np.float64)
except MemoryError:
    print("the limit holds", flush=True)
for kind in ("softmax", "squared_hinge", "hinge"):
    fitted = model(kind, 2e-2).fit(X, y)
    print(json.dumps([kind, fitted.objective_, fitted.duality_gap_, fitted.coef_.tolist(), fitted.intercept_.tolist()]))
"""


@pytest.fixture(scope="module")
def big_file(tmp_path_factory):
    """410 MB of rows with a class each."""
    path = tmp_path_factory.mktemp("rows") / "rows.f32"
    rng = np.random.default_rng(0)
    W = rng.standard_normal((D, C)).astype(np.float32)
    X = np.memmap(path, dtype=np.float32, mode="w+", shape=(N, D))
    y = np.empty(N, dtype=np.int64)
    for first in range(0, N, 50_000):
        part = slice(first, first + 50_000)
        X[part] = rng.random((50_000, D), dtype=np.float32) - 0.5
        y[part] = (X[part] @ W + rng.gumbel(size=(50_000, C))).argmax(axis=1)
    X.flush()
    np.save(f"{path}.npy", y)
    yield path, X, y
    path.unlink()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells file-backed memory from a process's own")
def test_a_file_is_fitted_in_a_third_of_its_size(big_file):
    import json

    path, X, y = big_file
    allowed = int(0.33 * X.nbytes)
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(path), str(allowed), str(N), str(D), str(C)],
        capture_output=True,
        text=True,
        env=os.environ | {"MALLOC_ARENA_MAX": "1"},
    )
    assert run.returncode == 0, run.stderr
    first, *lines = run.stdout.splitlines()
    assert first == "the limit holds"
    for line in lines:
        kind, value, gap, coef, intercept = json.loads(line)
        assert gap <= 2e-2
        W, b = np.array(coef), np.array(intercept)
        assert value == pytest.approx(objective(kind, X, y, W, b), rel=1e-5)
    assert len(lines) == 3


def objective(kind, X, y, W, b):
    total = 0.0
    for first in range(0, N, 50_000):
        part = slice(first, first + 50_000)
        s = X[part].astype(np.float64) @ W.T + b
        own = s[np.arange(len(s)), y[part]][:, None]
        if kind == "softmax":
            total += np.log(np.exp(s - own).sum(axis=1)).sum()
        else:
            m = np.maximum(1 + s - own, 0)
            m[np.arange(len(s)), y[part]] = 0
            total += (m**2 if kind == "squared_hinge" else m).sum()
    return total / N + 1e-2 * np.sum(W**2)


@pytest.mark.parametrize("model", [SoftmaxRegression(), LinearSVM(), LinearSVM(loss="squared_hinge")], ids=str)
def test_a_memory_map_gives_the_model_of_its_array(tmp_path, model):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 8)).astype(np.float32)
    y = (X[:, :3] + rng.gumbel(size=(400, 3))).argmax(axis=1)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    model.set_params(random_state=0, n_jobs=2)
    expected = model.fit(X, y).coef_.copy()
    np.testing.assert_array_equal(model.fit(mapped, y).coef_, expected)
    np.testing.assert_array_equal(model.predict(mapped), model.predict(X))


def test_a_value_deep_in_a_large_array_is_named_by_place():
    X = np.zeros((30_000, 50), dtype=np.float32)
    X[29_998, 49] = np.inf
    X[29_999, 3] = np.nan
    with pytest.raises(DataError, match=r"row 29998, column 49: Input X contains infinity .* and 1 more value"):
        LinearSVM().fit(X, np.arange(30_000) % 2)
