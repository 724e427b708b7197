"""A matplotlib figure as SVG that can stand in a page: no ids that clash, no styles, the page's colours."""

from __future__ import annotations

import io
import re
import threading
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from markupsafe import Markup

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK = "#010203"
"""The colour that becomes the page's text colour, in light and in dark."""

SERIES = ("#1f7fc4", "#d55e00", "#009e73", "#b0569b", "#8a7400", "#7a7f87")
"""Okabe and Ito's colours moved to a middle lightness: told apart by all eyes, on white and on black."""

DASHES = ("", "6 2", "2 2", "8 2 2 2")
"""Line patterns, changed when the colours begin again."""

_SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",  # text stays text: small, selectable, in fonts that have the glyphs
    "text.parse_math": False,  # a class may be called "$\\frac$"
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.labelsize": 9.0,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "savefig.facecolor": "none",
    "axes.unicode_minus": True,
}
_LOCK = threading.Lock()  # matplotlib's settings belong to the whole process
_REFERENCE = re.compile(r"#([^)\s]+)\)?$")
_FONT_SIZE = re.compile(r"([\d.]+)px")


def draw(paint: Callable[[Figure], None], size: tuple[float, float], name: str, label: str) -> Markup:
    """Return the picture that `paint` makes on a figure of `size` inches.

    `name` is unique in the page and keeps the ids of two pictures apart; `label` is read out in place of it.
    """
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    buffer = io.BytesIO()
    with _LOCK, matplotlib.rc_context(), warnings.catch_warnings():
        # A glyph that matplotlib's font lacks only makes its measure a guess: the browser finds it elsewhere.
        warnings.filterwarnings("ignore", message="(?s).*(Glyph|[Mm]atplotlib currently does not support)")
        matplotlib.rcdefaults()
        matplotlib.rcParams.update({**_SETTINGS, "svg.hashsalt": name})
        figure = Figure(figsize=size)
        FigureCanvasSVG(figure)
        paint(figure)
        nothing = {"Date": None, "Creator": None, "Format": None, "Type": None}
        figure.savefig(buffer, format="svg", bbox_inches="tight", pad_inches=0.04, metadata=nothing)
    return Markup(inline(buffer.getvalue(), name, label))


def inline(document: bytes, name: str, label: str) -> str:
    """Return an SVG document of matplotlib's as an element of a page that forbids inline styles."""
    root = ElementTree.fromstring(document)
    used = {
        match[1]
        for element in root.iter()
        for text in (*element.attrib.values(), *_style(element).values())
        if not text.startswith("data:") and (match := _REFERENCE.search(text))
    }
    _drop(root, {"metadata", "style"})
    for element in root.iter():
        _flatten(element, used, name)
    _, _, width, height = (float(n) for n in root.attrib["viewBox"].split())
    root.attrib = {
        "class": "chart",
        "role": "img",
        "aria-label": label,
        "viewBox": root.attrib["viewBox"],
        "width": f"{width * 4 / 3:.0f}",
        "height": f"{height * 4 / 3:.0f}",
    }
    return ElementTree.tostring(root, encoding="unicode")


def _drop(parent: ElementTree.Element, tags: set[str]) -> None:
    for child in list(parent):
        if _local(child.tag) in tags:
            parent.remove(child)
        else:
            _drop(child, tags)


def _flatten(element: ElementTree.Element, used: set[str], name: str) -> None:
    """Turn styles into attributes, prefix the ids in use, drop the others and all namespaces."""
    attributes = {}
    for key, text in element.attrib.items():
        key = _local(key)
        if key == "id" and text in used:
            attributes[key] = f"{name}-{text}"
        elif key == "href" and text.startswith("#"):
            attributes[key] = f"#{name}-{text[1:]}"
        elif key not in ("id", "style", "space"):
            attributes[key] = text.replace("url(#", f"url(#{name}-")
    for key, text in _style(element).items():
        if key == "font":
            attributes |= _font(text)
        elif not key.startswith("font"):
            colour = "currentColor" if text == INK else text
            attributes[key] = colour.replace("url(#", f"url(#{name}-")
        elif key in ("font-size", "font-weight"):
            attributes[key] = text
    element.tag = _local(element.tag)
    element.attrib = attributes
    element.tail = None
    if element.tag not in ("text", "tspan"):
        element.text = None


def _style(element: ElementTree.Element) -> dict[str, str]:
    parts = (part.partition(":") for part in element.attrib.get("style", "").split(";"))
    return {key.strip(): text.strip() for key, _, text in parts if text.strip()}


def _font(shorthand: str) -> dict[str, str]:
    size = _FONT_SIZE.search(shorthand)
    weight = {"font-weight": "bold"} if re.search(r"\b(bold|[6-9]00)\b", shorthand) else {}
    return {**({"font-size": size[1]} if size else {}), **weight}


def _local(name: str) -> str:
    return name.rpartition("}")[2]
