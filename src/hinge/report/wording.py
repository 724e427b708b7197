"""Values as a reader wants to see them: short, honest and harmless in a page or a chart."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping
from numbers import Integral, Real

MISSING = "–"
EMPTY = "(empty)"
_SPACE = re.compile(r"\s+")
_ILLEGAL = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_DIRECTION = re.compile("[\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def clean(text: object) -> str:
    """Return one line without the characters that XML forbids or that turn the direction of what follows."""
    line = _SPACE.sub(" ", str(text)).strip()
    return _ILLEGAL.sub("\ufffd", _DIRECTION.sub("", line))


def elide(text: object, width: int) -> str:
    """Return `text` cleaned and cut to `width` columns; an East Asian character or an emoji fills two.

    A name without a character that can be seen is called empty.
    """
    line = clean(text) or EMPTY
    if len(line) * 2 <= width or columns(line) <= width:
        return line
    kept, used = [], 1
    for character in line:
        used += _columns_of(character)
        if used > width:
            break
        kept.append(character)
    # A joiner or a combining mark at the cut would attach itself to the dots.
    while kept and (kept[-1] == "\u200d" or kept[-1].isspace()):
        kept.pop()
    return "".join(kept) + "…"


def columns(text: str) -> int:
    """Return how many columns a line takes in a font of one width."""
    return sum(map(_columns_of, text))


def _columns_of(character: str) -> int:
    if unicodedata.combining(character) or character in "\u200d\ufe0f":
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def percent(share: float) -> str:
    """Return a share in per cent with one decimal: only all reads 100.0% and only nothing reads 0.0%."""
    if not math.isfinite(share):
        return MISSING
    text = f"{100 * share:.1f}"
    if text == "100.0" and share < 1:
        return ">99.9%"
    if text in ("0.0", "-0.0") and share > 0:
        return "<0.1%"
    return f"{abs(float(text)) if text == '-0.0' else text}%"


def count(number: float) -> str:
    """Return a whole number with its thousands set apart."""
    return f"{int(number):,}"


def plural(number: int, noun: str) -> str:
    """Return a count with its noun, e.g. "1 row" or "1,797 rows"."""
    ending = "es" if noun.endswith("s") else "s"
    return f"{count(number)} {noun}{'' if number == 1 else ending}"


def duration(seconds: float) -> str:
    """Return a time in the unit that suits it."""
    if not math.isfinite(seconds):
        return MISSING
    if seconds < 0.01:
        return f"{1000 * seconds:.1f} ms"
    if seconds < 1:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def value(parameter: object) -> str:
    """Return the value of a parameter: numbers short, all else as it prints."""
    if isinstance(parameter, Real) and not isinstance(parameter, (bool, Integral)):
        return f"{float(parameter):.6g}".replace("inf", "∞")
    return clean(parameter)


def setting(parameters: Mapping[str, object]) -> str:
    """Return parameters as "C = 0.1, gamma = 0.01"."""
    return ", ".join(f"{clean(name)} = {value(v)}" for name, v in parameters.items()) or "defaults"


def interval(share: float, rows: int) -> tuple[float, float] | None:
    """Return the 95% Wilson interval of a share seen on `rows` rows; None without rows."""
    if rows < 1 or not math.isfinite(share):
        return None
    z = 1.959964
    middle = (share + z * z / (2 * rows)) / (1 + z * z / rows)
    half = z / (1 + z * z / rows) * math.sqrt(share * (1 - share) / rows + (z / (2 * rows)) ** 2)
    # Rounding must not move the ends that are exact.
    return (0.0 if share == 0 else middle - half), (1.0 if share == 1 else middle + half)


def interval_text(share: float, rows: int) -> str:
    """Return the interval as "95.0–98.5%"; empty where there is none."""
    ends = interval(share, rows)
    return "" if ends is None else f"{percent(ends[0]).rstrip('%')}–{percent(ends[1])}"
