from __future__ import annotations

import math

import pytest

from hinge.report.wording import (
    clean,
    columns,
    duration,
    elide,
    interval,
    interval_text,
    percent,
    plural,
    setting,
    value,
)


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (1.0, "100.0%"),
        (0.99957, ">99.9%"),
        (0.9994, "99.9%"),
        (0.9721, "97.2%"),
        (0.0, "0.0%"),
        (-0.0, "0.0%"),
        (0.0004, "<0.1%"),
        (0.0005001, "0.1%"),
        (math.nan, "–"),
    ],
)
def test_percent_never_claims_all_or_nothing(share, text):
    assert percent(share) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0042, "4.2 ms"),
        (0.42, "420 ms"),
        (12.34, "12.3 s"),
        (59.97, "1 min 0 s"),
        (3700, "1 h 1 min"),
        (math.nan, "–"),
    ],
)
def test_duration(seconds, text):
    assert duration(seconds) == text


def test_interval_agrees_with_the_published_example():
    # Newcombe (1998), table I: 81 of 263 gives 0.2553 to 0.3662.
    low, high = interval(81 / 263, 263)
    assert (round(low, 4), round(high, 4)) == (0.2553, 0.3662)
    assert interval(0.5, 0) is None
    assert interval_text(1.0, 10) == "72.2–100.0%"
    assert interval_text(math.nan, 10) == ""


def test_clean_leaves_one_line_of_legal_characters():
    assert clean("a\n\tb\u2028c") == "a b c"
    assert clean("x\x00\ud800\ufffey") == "x\ufffd\ufffd\ufffdy"
    assert clean("\u202eabc\u2069") == "abc"


def test_elide_counts_columns():
    assert elide("abcdef", 6) == "abcdef"
    assert elide("abcdefg", 6) == "abcde…"
    assert elide("漢字漢字", 8) == "漢字漢字"
    assert columns(elide("漢字漢字漢字", 8)) <= 8
    assert elide("", 8) == "(empty)"
    assert not elide("ab 👩‍👩‍👧", 6).endswith("\u200d…")


def test_values_and_settings_are_short():
    assert value(0.1 + 0.2) == "0.3"
    assert value(math.inf) == "∞"
    assert value(True) == "True"
    assert setting({"C": 1e-05, "loss": "hinge", "n": 3}) == "C = 1e-05, loss = hinge, n = 3"
    assert setting({}) == "defaults"


def test_plural():
    assert plural(1, "row") == "1 row"
    assert plural(1797, "row") == "1,797 rows"
    assert plural(2, "class") == "2 classes"
