"""The page in a real browser, from a file."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from hinge.report import render

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no chromium or chrome on the path")


def open_page(page, folder):
    file = folder / "report.html"
    file.write_text(page, encoding="utf-8")
    command = [
        BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-sync",
        "--enable-logging=stderr", "--log-level=0", "--window-size=390,900",
        f"--user-data-dir={folder / 'profile'}", "--dump-dom", file.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=60, check=True)
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def test_a_page_with_hostile_names_opens_and_runs_nothing(hostile_study, tmp_path, read_page):
    page = render(hostile_study)
    dom, complaints = open_page(page, tmp_path)
    assert not complaints
    assert re.search(r"<title>[^<]*owned[^<]* – hinge report</title>", dom)
    assert "<script" not in dom
    tree = read_page(dom)
    assert len(tree.all("svg", class_="chart")) == len(read_page(page).all("svg", class_="chart"))
    assert not [key for e in tree.all() for key in e.attributes if key.startswith("on")]


def test_a_page_with_pictures_opens_without_a_complaint(make_study, tmp_path, read_page):
    features = tuple(f"pixel{k}" for k in range(64))
    dom, complaints = open_page(render(make_study(feature_names=features, image_shape=(8, 8))), tmp_path)
    assert not complaints
    tree = read_page(dom)
    assert tree.one("h1").text == "Animals"
    assert len(tree.one("section", aria_labelledby="weights").all("img")) == 6
    assert not re.search(r"https?://", dom)


def test_the_policy_stops_a_script_that_got_in(make_study, tmp_path):
    page = render(make_study()).replace("</body>", "<script>document.title='ran'</script></body>")
    dom, complaints = open_page(page, tmp_path)
    assert "<title>Animals" in dom
    assert any("Content Security Policy" in line for line in complaints)
