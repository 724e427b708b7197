"""The instruction sets other than the one in use: HINGE_ISA is read at import, so each has a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hinge.ops import system_info

CHECKS = Path(__file__).with_name("test_backends.py")


def run_python(isa, *arguments):
    environment = {**os.environ, "HINGE_ISA": isa}
    return subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("isa", ["baseline", "avx2", "avx512"])
def test_back_ends_agree(isa):
    if isa not in system_info()["supported"]:
        pytest.skip("this processor or build lacks it")
    if isa == system_info()["isa"]:
        pytest.skip("in use here: test_backends.py itself has run with it")
    done = run_python(isa, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:cov", str(CHECKS))
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout


def test_all_instruction_sets_give_nearly_the_same_loss():
    program = """
import numpy as np
from hinge.ops import CpuBackend, Loss
rng = np.random.default_rng(0)
X, y = rng.standard_normal((500, 33)), rng.integers(0, 7, 500).astype(np.int32)
value, gradient = CpuBackend(1).bind(X, y, None, 7).loss_and_gradient(Loss("softmax"), rng.standard_normal((7, 34)))
print(repr(value), repr(float(np.abs(gradient).sum())))
"""
    values = []
    for isa in system_info()["supported"]:
        done = run_python(isa, "-c", program)
        assert done.returncode == 0, done.stderr
        values.append([float(word) for word in done.stdout.split()])
    for other in values[1:]:
        assert other == pytest.approx(values[0], rel=1e-13)


def test_unknown_name_is_an_import_error():
    done = run_python("avx1024", "-c", "import hinge.ops")
    assert done.returncode == 1
    assert "ImportError: HINGE_ISA=avx1024: unknown; use baseline, avx2 or avx512" in done.stderr


def test_an_empty_name_means_the_best():
    done = run_python("", "-c", "from hinge.ops import system_info; print(system_info()['isa'])")
    assert done.stdout.split() == system_info()["supported"][-1:]
