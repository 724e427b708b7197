from __future__ import annotations

import base64
import hashlib
import itertools
import re
import time
from dataclasses import replace

import numpy as np
import pytest

from hinge.inspection import Confusion
from hinge.report import render


def rows_of(table):
    return [[cell.text for cell in row.children] for row in table.all("tr")]


@pytest.fixture(scope="module")
def page(make_study, read_page):
    return read_page(render(make_study()))


def test_the_page_has_one_heading_sections_and_a_skip_link(page):
    assert page.one("html").attributes["lang"] == "en"
    assert page.one("h1").text == "Animals"
    assert page.one("title").text == "Animals – hinge report"
    ids = [e.attributes["id"] for e in page.all() if "id" in e.attributes]
    assert len(ids) == len(set(ids))
    targets = [a.attributes["href"] for a in page.all("a")]
    assert targets[0] == "#content"
    assert {t.removeprefix("#") for t in targets} <= set(ids)
    labelled = {s.attributes["aria-labelledby"] for s in page.all("section")}
    assert labelled == {"summary", "accuracy", "cost", "errors", "weights", "search", "how"}


def test_headings_go_down_one_level_at_a_time(page):
    levels = [int(e.tag[1]) for e in page.all() if re.fullmatch("h[1-6]", e.tag)]
    assert levels[0] == 1
    assert all(b <= a + 1 for a, b in itertools.pairwise(levels))


def test_the_summary_tells_the_best_classifier_beside_the_baseline(page):
    lead = page.one("p", class_="lead").text
    assert "Softmax regression (C = 10)" in lead
    assert "90.0%" in lead
    assert "60 rows" in lead
    assert "33.3%" in lead
    tiles = page.one("dl", class_="tiles").text
    assert "95% interval 79.9–95.3%" in tiles
    assert "1 min 15 s" in tiles
    assert "18 settings tried" in tiles
    assert "took the last column as the class" in page.one("div", class_="notes").text


def test_the_table_of_accuracies_marks_the_best(page):
    section = page.one("section", aria_labelledby="accuracy")
    header, *rows = rows_of(section.one("table"))
    assert header == ["Classifier", "Train", "Validation", "Test", "Setting", "Time", "Iterations"]
    assert rows[0] == [
        "Softmax regression best",
        ">99.9%",
        "80.6%",
        "90.0%79.9–95.3%",
        "C = 10",
        "1.5 s",
        "4",
    ]
    assert rows[2][0] == "Kernel SVM"
    assert rows[2][-1] == "–"
    assert len(section.all("tr", class_="best")) == 1


def test_confusion_matrices_carry_their_numbers(make_study, page):
    counts = make_study().best.confusion.counts
    matrix, shares = page.all("svg", role="img")[1:3]
    assert "confusion matrix, rows" in matrix.attributes["aria-label"]
    numbers = [t.text for t in matrix.all("text") if t.text.isdigit()]
    assert sorted(map(int, numbers)) == sorted(counts[counts > 0].tolist())
    assert f"{100 * counts[0, 0] / counts[0].sum():.1f}" in [t.text for t in shares.all("text")]


def test_most_frequent_confusions_and_each_class_are_told(make_study, page):
    confusion = make_study().best.confusion
    tables = page.one("section", aria_labelledby="errors").all("table")
    true, predicted, count = confusion.worst_pairs(1)[0]
    names = ("cat", "dog", "owl")
    assert rows_of(tables[0])[1][:3] == [names[true], names[predicted], str(count)]
    classes = rows_of(tables[1])
    assert [row[0] for row in classes[1:]] == list(names)
    assert classes[1][1:3] == ["100", "20"]
    assert classes[1][3] == f"{100 * confusion.recall[0]:.1f}%"


def test_a_class_without_test_rows_has_no_recall(make_study, read_page):
    study = make_study()
    empty = Confusion(np.arange(3), np.array([[5, 0, 0], [0, 5, 0], [0, 0, 0]]))
    best = replace(study.best, confusion=empty)
    section = read_page(render(replace(study, classifiers=(best,)))).one("section", aria_labelledby="errors")
    assert "No test row was taken for another class." in section.text
    assert rows_of(section.one("table"))[3][3:] == ["–", "–"]


def test_weights_are_told_by_feature_name(make_study, page):
    coef = make_study().best.weights
    section = page.one("section", aria_labelledby="weights")
    first = section.all("table")[0].all("tr")[1]
    names = ("length", "weight", "age")
    strongest = names[int(np.argmax(coef[0]))]
    assert first.children[1].all("li")[0].text == f"{strongest} +{coef[0].max():.3g}"
    assert first.children[2].all("li")[0].text == f"{names[int(np.argmin(coef[0]))]} −{-coef[0].min():.3g}"
    assert "Without weights of their own to show: Kernel SVM." in section.text


def test_two_classes_share_one_row_of_weights(make_study, read_page):
    section = read_page(render(make_study(("no", "yes")))).one("section", aria_labelledby="weights")
    assert [row[0] for row in rows_of(section.all("table")[0])] == ["Class", "yes"]


@pytest.mark.parametrize("shape", [(8, 8), (4, 6, 3), (5, 5, 1)])
def test_templates_are_pictures_with_a_text_in_their_place(make_study, read_page, shape):
    features = tuple(f"pixel{k}" for k in range(int(np.prod(shape))))
    page = read_page(render(make_study(feature_names=features, image_shape=shape)))
    images = page.one("section", aria_labelledby="weights").all("img")
    assert len(images) == 6
    assert images[1].attributes["alt"] == "Weights of class dog as a picture"
    for image in images:
        kind, _, data = image.attributes["src"].partition(",")
        assert kind == "data:image/png;base64"
        assert base64.b64decode(data, validate=True).startswith(b"\x89PNG")


def test_more_than_forty_templates_show_the_first_forty_and_say_so(make_study, read_page):
    names = tuple(f"kind {k}" for k in range(45))
    features = tuple(f"pixel{k}" for k in range(16))
    page = read_page(render(make_study(names, feature_names=features, image_shape=(4, 4), titles=("One",))))
    section = page.one("section", aria_labelledby="weights")
    assert len(section.all("img")) == 40
    assert "The first 40 of 45 classes." in section.text


def test_a_search_shows_failures_and_all_settings(page):
    section = page.one("section", aria_labelledby="search")
    tables = section.all("table")
    assert [len(t.all("tr")) - 1 for t in tables] == [4, 6, 8]
    assert rows_of(tables[1])[2][:3] == ["0.1", "squared_hinge", "failed gone to infinity"]
    assert "1 setting failed." in section.text
    assert "C = 10 is the largest value tried; one beyond may do better." in section.text
    assert len(section.all("svg", role="img")) == 3


def test_how_it_was_made_and_used_again(page):
    section = page.one("section", aria_labelledby="how")
    for text in ("animals.csv", "0123456789abcdef", "mean 0, deviation 1", "42", "a processor"):
        assert text in section.text
    assert "hinge predict model/ DATA" in section.text
    assert 'hinge.load_model("model")' in section.text


def test_every_chart_is_named_and_follows_the_colour_of_the_page(page):
    charts = page.all("svg", class_="chart")
    assert len(charts) == 10
    for chart in charts:
        assert chart.attributes["role"] == "img"
        assert chart.attributes["aria-label"]
        assert "currentColor" in {t.attributes.get("fill") for t in chart.all("text")}
        assert not chart.all("style")


def test_the_policy_admits_this_style_and_nothing_else(page):
    policy = page.one("meta", http_equiv="Content-Security-Policy").attributes["content"]
    style = page.one("style")
    digest = base64.b64encode(hashlib.sha256("".join(style.texts).encode()).digest()).decode()
    assert policy.startswith(f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:;")
    assert "unsafe" not in policy
    assert not page.all("script")
    assert not [e for e in page.all() if "style" in e.attributes]


def test_the_page_refers_to_nothing_outside(make_study):
    page = render(make_study())
    assert "http:" not in page
    assert "https:" not in page
    assert "xmlns" not in page
    assert not re.search(r"@import|url\((?!#)", page)


def test_the_same_study_gives_the_same_bytes(make_study):
    assert render(make_study()) == render(make_study())


def test_settings_of_matplotlib_neither_matter_nor_change(make_study):
    import matplotlib

    expected = render(make_study())
    with matplotlib.rc_context({"text.usetex": True, "font.size": 30, "axes.facecolor": "red"}):
        assert render(make_study()) == expected
        assert matplotlib.rcParams["font.size"] == 30


def test_hostile_names_are_only_text(hostile_study, read_page):
    text = render(hostile_study)
    text.encode("utf-8")
    assert not re.search("[\x00-\x09\x0b-\x1f\ufffe\u202e\u2066]", text)
    page = read_page(text)
    assert page.one("h1").text == "<script>document.title='owned'</script>"
    assert not page.all("script")
    assert not page.all("img")
    for element in page.all():
        assert not [key for key in element.attributes if key.startswith("on")]
        assert element.attributes.get("href", "#").startswith(("#", "data:image/png;base64,"))
    assert "{{ 7 * 7 }}{% raise %}" in page.text
    assert r"$\frac$" in page.text
    assert "W" * 500 not in text
    assert "(empty)" in page.text


def test_labels_that_are_names_keep_their_order(make_study, read_page):
    study = make_study()
    confusion = Confusion(np.array(["cat", "dog", "owl"]), study.best.confusion.counts)
    named = replace(study, classifiers=(replace(study.best, confusion=confusion),))
    coded = replace(study, classifiers=(study.best,))
    assert render(named) == render(coded)


@pytest.mark.parametrize("history", [(), (1.0,), (float("nan"), 2.0, float("inf")), (0.0, 0.0), (-1.0, -2.0)])
def test_any_history_renders(make_study, read_page, history):
    page = read_page(render(make_study(history=history)))
    finite = [h for h in history if np.isfinite(h)]
    assert len(page.all("section", aria_labelledby="cost")) == bool(finite)


def test_a_long_history_is_thinned(make_study):
    costs = tuple((0.3 + np.exp(-np.arange(200_000) / 5000)).tolist())
    assert len(render(make_study(history=costs))) < 300_000


def test_a_study_without_a_test_set_or_notes_renders(make_study, read_page):
    study = make_study(test_accuracy=float("nan"), notes=())
    page = read_page(render(replace(study, n_test=0, majority_accuracy=float("nan"), source="")))
    assert not page.all("div", class_="notes")
    assert "nan" not in page.one("main").text


@pytest.mark.parametrize(("n_classes", "largest"), [(25, 600_000), (26, 400_000), (100, 1_500_000), (1000, 4_000_000)])
def test_many_classes_stay_small_and_fast(make_study, read_page, n_classes, largest):
    names = tuple(f"class {k}" for k in range(n_classes))
    features = tuple(f"pixel{k}" for k in range(64))
    started = time.perf_counter()
    text = render(make_study(names, feature_names=features, image_shape=(8, 8)))
    assert time.perf_counter() - started < 10
    assert len(text) < largest
    section = read_page(text).one("section", aria_labelledby="errors")
    assert len(section.all("svg", role="img")) == (6 if n_classes <= 25 else 3)
    assert len(section.all("table")[1].all("tr")) == n_classes + 1


def test_a_long_search_lists_its_best_settings(make_study, make_search, read_page):
    search = make_search({"C": tuple(float(k) for k in range(1, 601))}, failed=(3,))
    section = read_page(render(make_study(searches=(search,)))).one("section", aria_labelledby="search")
    listed = [row[0] for row in rows_of(section.one("table"))[1:]]
    assert len(listed) == 500
    assert listed[0] == "600"
    assert "4" not in listed
    assert "The best 500 settings as a table" in section.text


def test_weights_that_fit_no_class_are_not_shown(make_study, read_page):
    study = make_study(titles=("One",))
    study = replace(study, classifiers=(replace(study.best, weights=np.ones((6, 3))),))
    assert not read_page(render(study)).all("section", aria_labelledby="weights")


def test_classes_missing_from_the_test_rows_are_called_by_their_labels(make_study, read_page):
    study = make_study(titles=("One",))
    confusion = Confusion(np.array(["cat", "owl"]), np.array([[4, 1], [0, 5]]))
    page = read_page(render(replace(study, classifiers=(replace(study.best, confusion=confusion),))))
    pair, classes = page.one("section", aria_labelledby="errors").all("table")
    assert rows_of(pair)[1] == ["cat", "owl", "1", "20.0%"]
    assert rows_of(classes)[2][:3] == ["owl", "–", "5"]
