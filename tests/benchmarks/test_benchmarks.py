from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROBLEMS = ("linear_pass", "exp", "import", "linear", "sweep")


def run(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)


@pytest.fixture(scope="module", params=PROBLEMS)
def quick_run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str, dict]:
    file = tmp_path_factory.mktemp("results") / "result.json"
    done = run(request.param, "--quick", "--repeat", "2", "--threads", "2", "--json", str(file))
    assert done.returncode == 0, done.stderr
    return request.param, done.stdout, json.loads(file.read_text(encoding="utf-8"))


def test_a_quick_run_prints_ratios_for_every_row(quick_run):
    name, printed, result = quick_run
    assert "÷ hinge" in printed
    assert "×" in printed.split("÷ hinge", 1)[1]
    assert list(result["problems"]) == [name]


def test_the_result_file_keeps_the_rounds(quick_run):
    _, _, result = quick_run
    rows = [row for tables in result["problems"].values() for table in tables for row in table["rows"]]
    ratios = [row["ratio"] for row in rows if isinstance(row.get("ratio"), dict)]
    assert ratios
    for ratio in ratios:
        assert len(ratio["rounds"]) == 2
        assert min(ratio["rounds"]) <= ratio["median"] <= max(ratio["rounds"])
        assert min(ratio["rounds"]) > 0


def test_the_result_file_describes_the_machine_but_does_not_name_it(quick_run):
    _, _, result = quick_run
    machine = result["machine"]
    assert {"cpu", "cores", "isa", "versions", "blas", "rates"} <= set(machine)
    assert machine["versions"]["hinge"]
    assert machine["rates"]["copy_gb_per_s"] > 0
    assert result["settings"]["threads"] == 2
    assert str(ROOT) not in json.dumps(result)


@pytest.mark.parametrize("quick_run", ["linear"], indirect=True)
def test_whole_fits_have_a_line_for_everyone_and_end_near_the_optimum(quick_run):
    _, _, result = quick_run
    (table,) = result["problems"]["linear"]
    ours = [row for row in table["rows"] if row["who"] == "hinge"]
    assert len(ours) == len({row["label"] for row in table["rows"]}) == 10
    assert ours[0]["memory"] is None or ours[0]["memory"] >= 0  # a tiny fit may find room in pages that are there
    for row in table["rows"]:
        if row.get("remark") == "absent":
            continue
        assert row["above"] >= 0, row
        assert row["above"] < 1e-2, row
        assert row["seconds"]["median"] > 0
    assert all(row["above"] <= row["gap"] + row["known"] for row in ours)
    assert all(row["tol"] is not None for row in ours)


def test_only_some_rows():
    done = run("linear", "--quick", "--repeat", "1", "--only", "weston")
    assert done.returncode == 0, done.stderr
    assert "Weston–Watkins" in done.stdout
    assert "softmax" not in done.stdout


def test_an_unknown_problem_is_a_usage_error_that_lists_the_known_ones():
    done = run("linear_passs")
    assert done.returncode == 2
    assert all(name in done.stderr for name in PROBLEMS)
    assert not done.stdout


def test_the_list_names_every_problem_and_measures_nothing():
    begun = time.monotonic()
    done = run("--list")
    assert done.returncode == 0
    assert [line.split()[0] for line in done.stdout.splitlines()] == list(PROBLEMS)
    assert time.monotonic() - begun < 30


@pytest.mark.parametrize("words", [("--threads", "0"), ("--repeat", "-1"), ("--nonsense",)])
def test_a_wrong_option_is_a_usage_error(words):
    assert run(*words).returncode == 2
