"""The command as a user meets it: results, exit codes, and nothing half-written."""

import gzip
import json
import os
import pty
import signal
import struct
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

from hinge import load_model
from hinge.cli.main import run
from hinge.errors import DataError

HINGE = [sys.executable, "-c", "from hinge.cli.main import main; main()"]


@pytest.fixture(autouse=True)
def in_an_empty_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 3, 120)
    rows = rng.normal(size=(120, 3)) + 3 * np.eye(3)[kind]
    lines = ["length,width,height,kind"]
    lines += [",".join(map(str, row)) + "," + ["ant", "bee", "cat"][k] for row, k in zip(rows, kind, strict=True)]
    Path("table.csv").write_text("\n".join(lines) + "\n")
    return lines


def names(directory="."):
    return sorted(os.listdir(directory))


def test_run_without_data_makes_a_report_on_digits(capsys):
    assert run(["run"]) == 0
    out, err = capsys.readouterr()
    assert "digits: 1,797 rows, 64 features, 10 classes; 359 rows held out" in out
    assert out.rstrip().endswith("report: hinge-run/report.html")
    assert err == ""
    assert names() == ["hinge-run"]
    assert names("hinge-run") == ["metrics.json", "model", "report.html"]
    assert names("hinge-run/model") == ["model.json", "weights.safetensors"]
    metrics = json.loads(Path("hinge-run/metrics.json").read_text())
    for classifier in metrics["classifiers"].values():
        assert classifier["test_accuracy"] >= 0.95
        assert len(classifier["confusion"]) == 10
    assert load_model("hinge-run/model").coef_.shape == (10, 64)


def test_run_on_a_table_and_predict(table, capsys):
    assert run(["run", "table.csv", "--target", "kind", "-o", "out", "--seed", "1", "-j", "1"]) == 0
    assert "test accuracy" in capsys.readouterr().out
    # Other column order, no labels: columns are found by name.
    new = ["height,width,length"] + [",".join(reversed(line.split(",")[:3])) for line in table[1:]]
    Path("new.csv").write_text("\n".join(new))
    assert run(["predict", "out/model", "new.csv"]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[0] == "prediction"
    truth = [line.split(",")[3] for line in table[1:]]
    assert np.mean(np.array(out.splitlines()[1:]) == truth) > 0.9
    assert "accuracy" not in err
    assert run(["predict", "out/model", "table.csv", "--scores", "--json", "-o", "p.jsonl"]) == 0
    assert "accuracy on the 120 labelled rows: 9" in capsys.readouterr().err
    first = json.loads(Path("p.jsonl").read_text().splitlines()[0])
    assert set(first) == {"prediction", "score_ant", "score_bee", "score_cat"}
    assert max(("ant", "bee", "cat"), key=lambda c: first[f"score_{c}"]) == first["prediction"]


def test_json_goes_to_stdout_alone(table, capsys):
    assert run(["run", "table.csv", "--json"]) == 0
    metrics = json.loads(capsys.readouterr().out)
    assert metrics == json.loads(Path("hinge-run/metrics.json").read_text())
    assert metrics["data"]["notes"]


def test_run_on_the_mnist_format(capsys):
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 80).astype(np.uint8)
    images = (rng.random((80, 5, 5)) * 100 + 100 * labels[:, None, None]).astype(np.uint8)
    with gzip.open("train-images-idx3-ubyte.gz", "wb") as file:
        file.write(struct.pack(">HBB3I", 0, 8, 3, 80, 5, 5) + images.tobytes())
    Path("train-labels-idx1-ubyte").write_bytes(struct.pack(">HBBI", 0, 8, 1, 80) + labels.tobytes())
    assert run(["run", "train-images-idx3-ubyte.gz", "-q"]) == 0
    page = Path("hinge-run/report.html").read_text()
    assert "What each class looks for, one weight a pixel" in page
    assert run(["inspect", "hinge-run/model"]) == 0
    assert "features" in capsys.readouterr().out


def test_an_earlier_result_is_replaced_and_nothing_else_ever(table):
    assert run(["run", "table.csv"]) == 0
    first = Path("hinge-run/metrics.json").read_text()
    assert run(["run", "table.csv", "--seed", "5"]) == 0
    assert Path("hinge-run/metrics.json").read_text() != first
    Path("mine").mkdir()
    Path("mine/thesis.tex").write_text("years of work")
    assert run(["run", "table.csv", "-o", "mine"]) == 2
    assert names("mine") == ["thesis.tex"]
    assert run(["run", "table.csv", "-o", "table.csv"]) == 2
    assert names() == ["hinge-run", "mine", "table.csv"]


BAD_DATA = {
    "nan.csv": ("a,b,y\n1,2,u\nnan,2,v\n3,4,u\n", "line 3"),
    "infinite.csv": ("a,b,y\n1,2,u\n1,inf,v\n3,4,u\n", "line 3"),
    "empty.csv": ("", "empty"),
    "header.csv": ("a,b,y\n", "row"),
    "one-class.csv": ("a,b,y\n1,2,u\n2,3,u\n3,4,u\n", "one class"),
    "ragged.csv": ("a,b,y\n1,2,u\n2,3\n3,4,v\n", "line 3"),
    "text.csv": ("a,b,y\n1,2,u\n2,red,v\n3,4,v\n", "red"),
    "short-idx3-ubyte": (b"\x00\x00\x08\x03\x00\x00\x00\x09\x00\x00\x00\x02\x00\x00\x00\x02abc", "cut off"),
    "array.npy": (b"\x93NUMPY\x01\x00junk", "array.npy"),
    "archive.npz": (b"PK\x03\x04 this is no archive", "archive.npz"),
    "picture.png": (b"\x89PNG\r\n\x1a\n\x00\x00", "picture.png"),
}


@pytest.mark.parametrize("name", BAD_DATA)
def test_bad_data_ends_with_3_and_one_clear_line(name):
    content, word = BAD_DATA[name]
    Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
    if "idx3" in name:
        Path(name.replace("idx3", "idx1")).write_bytes(struct.pack(">HBBI", 0, 8, 1, 9) + bytes(9))
    before = names()
    done = subprocess.run([*HINGE, "run", name], capture_output=True, text=True)
    assert done.returncode == 3, done.stderr
    assert word in done.stderr
    assert name in done.stderr
    assert done.stderr.startswith("hinge: ")
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert names() == before


def test_mismatched_lengths_end_with_3(capsys):
    np.savez("m.npz", X=np.zeros((5, 2)), y=np.arange(4))
    assert run(["run", "m.npz"]) == 3
    assert "5" in (err := capsys.readouterr().err)
    assert "4" in err
    assert names() == ["m.npz"]


def test_unknown_columns_and_files_are_told(table, capsys):
    assert run(["run", "table.csv", "--target", "kindd"]) == 3
    assert "kind" in capsys.readouterr().err
    assert run(["run", "tabel.csv"]) == 3
    assert "tabel.csv" in capsys.readouterr().err
    assert names() == ["table.csv"]


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["run", "--frob"], "--frob"),
        (["walk"], "walk"),
        (["run", "--seed", "x"], "seed"),
        (["run", "--seed", "-1"], "seed"),
        (["run", "--image-shape", "big", "x.csv"], "28x28"),
        (["run", "--target", "a"], "there is none"),
        (["run", "-j", "0"], "n_jobs=0"),
        (["inspect"], "PATH or --system"),
        (["inspect", "x", "--system"], "PATH or --system"),
    ],
)
def test_usage_errors_end_with_2(arguments, word, capsys):
    assert run(arguments) == 2
    assert word in capsys.readouterr().err
    assert names() == []


def test_predict_refuses_what_does_not_fit(table, capsys):
    assert run(["run", "table.csv", "-o", "out"]) == 0
    Path("other.csv").write_text("length,width\n1,2\n")
    assert run(["predict", "out/model", "other.csv"]) == 3
    assert "height" in capsys.readouterr().err
    assert run(["predict", "out", "table.csv"]) == 3
    assert "model.json" in capsys.readouterr().err
    Path("out/model/weights.safetensors").write_bytes(b"gone")
    assert run(["predict", "out/model", "table.csv"]) == 3
    assert "SHA-256" in capsys.readouterr().err


def test_probabilities_need_a_softmax_model(table, capsys):
    from hinge import LinearSVM, SoftmaxRegression, datasets, save_model

    data = datasets.read("table.csv")
    save_model(LinearSVM().fit(data.X, data.y), "svm", feature_names=data.feature_names)
    save_model(SoftmaxRegression().fit(data.X, data.y), "softmax", feature_names=data.feature_names)
    assert run(["predict", "svm", "table.csv", "--probabilities"]) == 2
    capsys.readouterr()
    assert run(["predict", "softmax", "table.csv", "--probabilities"]) == 0
    header, first, *_ = capsys.readouterr().out.splitlines()
    assert header == "prediction,probability_ant,probability_bee,probability_cat"
    assert sum(map(float, first.split(",")[1:])) == pytest.approx(1)


def test_inspect_tells_what_is_there(table, capsys):
    assert run(["inspect", "--system"]) == 0
    out = capsys.readouterr().out
    for word in ("instruction set", "threads", "BLAS", "hinge"):
        assert word in out
    assert run(["inspect", "table.csv", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["rows"] == 120
    assert facts["target"] == "kind"
    assert run(["datasets"]) == 0
    assert "digits" in capsys.readouterr().out


@pytest.mark.parametrize("isa", ["baseline", "avx2", "avx512"])
def test_hinge_isa_forces_an_instruction_set(isa):
    known = subprocess.run([*HINGE, "inspect", "--system", "--json"], capture_output=True, text=True, check=True)
    done = subprocess.run(
        [*HINGE, "inspect", "--system", "--json"], capture_output=True, text=True, env=os.environ | {"HINGE_ISA": isa}
    )
    if isa in json.loads(known.stdout)["supported"]:
        assert json.loads(done.stdout)["instruction set"] == isa
    else:
        assert done.returncode != 0
        assert isa in done.stderr


def test_an_unknown_instruction_set_is_a_usage_error():
    environment = os.environ | {"HINGE_ISA": "mmx"}
    done = subprocess.run([*HINGE, "run"], capture_output=True, text=True, env=environment)
    assert done.returncode == 2
    assert "HINGE_ISA=mmx: unknown; use baseline, avx2 or avx512" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_job_that_cannot_fit_is_refused_before_it_starts(table, monkeypatch, capsys):
    monkeypatch.setattr("hinge.selection.study.available_memory", lambda: 1000)
    assert run(["run", "table.csv"]) == 5
    assert "needs about" in capsys.readouterr().err
    assert names() == ["table.csv"]


def test_ctrl_c_ends_with_130_and_leaves_nothing():
    rng = np.random.default_rng(0)
    np.savez("big.npz", X=rng.normal(size=(30000, 300)).astype(np.float32), y=rng.integers(0, 20, 30000))
    process = subprocess.Popen([*HINGE, "run", "big.npz"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(4)
    assert process.poll() is None, "the job ended before it could be interrupted"
    process.send_signal(signal.SIGINT)
    began = time.monotonic()
    out, err = process.communicate(timeout=20)
    assert time.monotonic() - began < 2
    assert process.returncode == 130
    assert err.strip() == "hinge: interrupted; nothing was written"
    assert out == ""
    assert names() == ["big.npz"]


def test_a_full_disk_ends_with_5_and_leaves_nothing(table, monkeypatch, capsys):
    def full(self, *arguments, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    assert run(["run", "table.csv"]) == 5
    assert "disk is full" in capsys.readouterr().err
    assert names() == ["table.csv"]


def test_progress_shows_on_a_terminal_only(table):
    quiet = subprocess.run([*HINGE, "run", "table.csv"], capture_output=True, text=True, check=True)
    assert quiet.stderr == ""
    ours, theirs = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "40", "PYTHONWARNINGS": "ignore"}
    process = subprocess.Popen([*HINGE, "run"], stdout=subprocess.DEVNULL, stderr=theirs, env=environment)
    os.close(theirs)
    shown = b""
    while True:
        try:
            piece = os.read(ours, 4096)
        except OSError:
            break
        if not piece:
            break
        shown += piece
    os.close(ours)
    assert process.wait() == 0
    assert b"Searching" in shown


def test_help_is_quick_and_complete(capsys):
    for arguments in (["--help"], ["run", "--help"], ["predict", "--help"], ["inspect", "-h"], ["datasets", "-h"]):
        assert run(arguments) == 0
        assert "Usage: hinge" in capsys.readouterr().out
    code = "import sys; from hinge.cli.main import run; run(['--help']); print('numpy' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.splitlines()[-1] == "False"


def test_output_that_nobody_reads_is_no_error(table):
    assert run(["run", "table.csv", "-o", "out"]) == 0
    command = " ".join([sys.executable, "-c", "'from hinge.cli.main import main; main()'"])
    done = subprocess.run(
        f"{command} predict out/model table.csv --scores | head -1", shell=True, capture_output=True, text=True
    )
    assert done.stderr.startswith("accuracy") or done.stderr == ""
    assert "prediction" in done.stdout


def test_warnings_are_lines_of_their_own(capsys, monkeypatch):
    def study(*args, **options):
        warnings.warn("a fit fell short", stacklevel=2)
        raise DataError("and then the rows ran out")

    monkeypatch.setattr("hinge.selection.study.run_study", study)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        assert run(["run"]) == 3
    assert capsys.readouterr().err == "hinge: warning: a fit fell short\nhinge: and then the rows ran out\n"
