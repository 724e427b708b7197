from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from hinge.report.charts import cost_chart, number, series
from hinge.report.pictures import LARGEST_SIDE, reduce_max, reduce_mean, template_png
from hinge.report.searches import edges, search_chart, varied
from hinge.report.svg import draw, inline


def texts(svg):
    return [element.text for element in ElementTree.fromstring(svg).iter("text")]


def test_an_inline_picture_has_no_namespace_style_or_stray_id():
    def paint(figure):
        axes = figure.add_axes((0, 0, 1, 1))
        axes.plot([0, 1], [0, 1], marker="o")
        axes.set_title(r"$\frac$ <b>")

    svg = draw(paint, (2, 2), "one", 'a "label" <i>')
    root = ElementTree.fromstring(svg)
    assert root.tag == "svg"
    assert root.get("aria-label") == 'a "label" <i>'
    assert r"$\frac$ <b>" in texts(svg)
    assert "style" not in svg
    assert "http" not in svg
    ids = re.findall(r' id="([^"]+)"', svg)
    assert ids
    assert all(i.startswith("one-") for i in ids)
    assert set(re.findall(r"url\(#([^)]+)\)", svg)) | set(re.findall(r'href="#([^"]+)"', svg)) == set(ids)


def test_costs_over_decades_get_a_logarithmic_axis(make_study):
    chart = cost_chart(make_study(history=(100.0, 10.0, 1.0)).classifiers)
    assert {"1", "10", "100"} <= set(texts(chart.svg))
    assert [entry.title for entry in chart.legend] == ["Softmax regression", "Linear SVM"]
    assert not chart.log_iterations


def test_long_histories_get_a_logarithmic_axis_of_iterations(make_study):
    chart = cost_chart(make_study(history=tuple(np.linspace(2, 1, 5000).tolist())).classifiers)
    assert chart.log_iterations


def test_series_differ_by_colour_then_by_pattern():
    looks = [(look.colour, look.dash) for look in (series(k, "x") for k in range(24))]
    assert len(set(looks)) == 24


def test_one_parameter_is_a_line_over_its_values(make_search):
    chart = search_chart(make_search({"C": (0.001, 0.1, 10.0), "loss": ("hinge",)}), "s")
    assert {"0.001", "0.1", "10", "C"} <= set(texts(chart.svg))
    assert len(chart.legend) == 2


def test_two_parameters_are_a_map_with_numbers(make_search):
    search = make_search({"C": (1.0, 2.0, 3.0), "kernel": ("rbf", "poly")}, failed=(2,))
    words = texts(search_chart(search, "s").svg)
    assert {"rbf", "poly", "failed", "80.0", "81.0"} <= set(words)


def test_three_parameters_are_ranked(make_search):
    search = make_search({"C": (1.0, 2.0), "kernel": ("rbf", "poly"), "gamma": (0.1, 0.2)})
    labels = [t for t in texts(search_chart(search, "s").svg) if t.startswith("C = ")]
    assert len(labels) == 8
    assert "C = 2, kernel = poly, gamma = 0.2" in labels


@pytest.mark.parametrize(
    "grid",
    [
        {"C": (1.0, float("inf"))},
        {"C": (1, 2, 3, 500)},
        {"C": (0.0, 1.0)},
        {"gamma": ("scale", None, 0.1)},
        {"C": tuple(float(k) for k in range(1, 60))},
        {"C": tuple(10.0**k for k in range(-20, 21))},
        {"a": tuple(range(20)), "b": tuple(range(20))},
        {"a": tuple(range(40)), "b": (1, 2)},
        {"flag": (True, False)},
    ],
)
def test_any_grid_can_be_drawn(make_search, grid):
    assert "<svg" in search_chart(make_search(grid), "s").svg


def test_nothing_is_drawn_where_nothing_varies_or_all_failed(make_search):
    assert search_chart(make_search({"C": (1.0,)}), "s") is None
    assert search_chart(make_search({"C": (1.0, 2.0)}, failed=(0, 1)), "s") is None
    assert varied(make_search({"C": (1.0, 1.0), "d": (1, 2)})) == ["d"]


def test_the_edge_of_a_grid_is_told_for_numbers_only(make_search):
    assert edges(make_search({"C": (1.0, 2.0, 3.0)})) == ["C = 3 is the largest value tried; one beyond may do better."]
    assert "smallest" in edges(make_search({"C": (1.0, 2.0, 3.0)}, best=0))[0]
    assert not edges(make_search({"C": (1.0, 2.0, 3.0)}, best=1))
    assert not edges(make_search({"C": (1.0, 2.0)}))
    assert not edges(make_search({"C": (1.0, 2.0, 3.0, float("inf"))}))
    assert not edges(make_search({"C": (1.0, 2.0, 3.0, float("inf"))}, best=2))
    assert not edges(make_search({"reg": (0.0, 1.0, 2.0)}, best=0))
    assert not edges(make_search({"kernel": ("a", "b", "c")}))


def test_ticks_are_plain_text():
    assert [number(x) for x in (0, 0.001, 1e-7, 2e9, -3)] == ["0", "0.001", "1e−7", "2e9", "−3"]


def test_large_templates_are_averaged_down_and_lone_errors_survive():
    image = np.zeros((300, 200))
    image[17, 3] = 1.0
    small = reduce_mean(image)
    assert max(small.shape) <= LARGEST_SIDE
    assert small.max() == pytest.approx(1 / 16)
    assert reduce_max(image, 50).max() == 1.0
    assert reduce_mean(image[:20, :20]).shape == (20, 20)


def test_templates_of_other_shapes_are_not_pictures():
    assert template_png(np.zeros(9)) is None
    assert template_png(np.zeros((3, 3, 4))) is None
    assert template_png(np.full((2, 2), np.nan)).startswith("data:image/png;base64,")


def test_the_short_form_of_a_font_becomes_attributes():
    document = b"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 72 36">
      <metadata>made by</metadata>
      <g id="a" style="fill: #010203">
      <text style="font: bold 12px 'DejaVu Sans', sans-serif">x</text></g></svg>"""
    root = ElementTree.fromstring(inline(document, "name", "label"))
    assert (root.get("width"), root.get("height")) == ("96", "48")
    assert root.find("metadata") is None
    assert root.find("g").attrib == {"fill": "currentColor"}
    assert root.find("g/text").attrib == {"font-size": "12", "font-weight": "bold"}
