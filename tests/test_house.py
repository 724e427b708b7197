"""Rules of the house that no other tool checks."""

import ast
import re
from pathlib import Path

import pytest

import hinge
from hinge import config
from hinge.errors import UsageError

SOURCE = Path(__file__).parents[1] / "src" / "hinge"


def test_only_ops_touches_native_code():
    """The import linter does not see extension modules, so this looks itself."""
    for file in SOURCE.rglob("*.py"):
        if file.parent.name == "ops":
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom | ast.Import):
                assert "_native" not in ast.unparse(node), file


def test_every_public_name_is_there_and_documented():
    for name in hinge.__all__:
        assert getattr(hinge, name).__doc__, name
        assert name in dir(hinge)
    with pytest.raises(AttributeError, match="no attribute 'forest'"):
        _ = hinge.forest


def test_the_version_is_the_packages():
    text = (SOURCE.parents[1] / "pyproject.toml").read_text()
    assert re.search(r'^version = "(.*)"', text, re.M).group(1) == hinge.__version__


def test_threads(monkeypatch):
    monkeypatch.delenv("HINGE_NUM_THREADS", raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert config.resolve_threads(None) == 3
    monkeypatch.setenv("HINGE_NUM_THREADS", "5")
    assert config.resolve_threads(None) == 5
    assert config.resolve_threads(2) == 2
    monkeypatch.setattr(config, "cpu_count", lambda: 8)
    assert config.resolve_threads(-1) == 8
    assert config.resolve_threads(-3) == 6
    assert config.resolve_threads(-100) == 1
    monkeypatch.setenv("HINGE_NUM_THREADS", "many")
    assert config.resolve_threads(None) == 3
    for wrong in (0, 1.5, True):
        with pytest.raises(UsageError):
            config.resolve_threads(wrong)
