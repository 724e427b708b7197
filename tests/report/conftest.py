"""Studies made up for the report: no fit, only plausible numbers; and a page read back as a tree."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pytest

from hinge.inspection import Confusion
from hinge.selection.grid import SearchResult, Trial
from hinge.selection.study import Study, Trained
from hinge.solvers.result import Iteration

VOID = {"meta", "link", "img", "br", "hr", "input", "base"}


@dataclass
class Element:
    tag: str
    attributes: dict[str, str]
    parent: Element | None = None
    children: list[Element] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    def all(self, tag: str = "", **attributes: str) -> list[Element]:
        wanted = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items()}
        found = []
        for child in self.children:
            if tag in ("", child.tag) and wanted.items() <= child.attributes.items():
                found.append(child)
            found += child.all(tag, **attributes)
        return found

    def one(self, tag: str = "", **attributes: str) -> Element:
        (found,) = self.all(tag, **attributes)
        return found

    @property
    def text(self) -> str:
        return " ".join("".join(self.texts).split())


class Reader(HTMLParser):
    """Builds the tree and insists that every element is closed in order."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.root = self.open = Element("document", {})

    def handle_starttag(self, tag, attrs):
        assert len({key for key, _ in attrs}) == len(attrs), f"<{tag}> repeats an attribute"
        element = Element(tag, {key: value or "" for key, value in attrs}, self.open)
        self.open.children.append(element)
        if tag not in VOID:
            self.open = element

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open = self.open.parent

    def handle_endtag(self, tag):
        assert tag == self.open.tag, f"</{tag}> closes <{self.open.tag}>"
        self.open = self.open.parent

    def handle_data(self, data):
        element = self.open
        while element is not None:
            element.texts.append(data)
            element = element.parent


def read_page(page: str) -> Element:
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert reader.open is reader.root
    return reader.root


def make_search(grid: dict[str, tuple], *, failed: tuple[int, ...] = (), best: int | None = None) -> SearchResult:
    trials = []
    for k, values in enumerate(itertools.product(*grid.values())):
        reached = (float("nan"), float("nan"), "gone to infinity") if k in failed else (0.95, 0.8 + k / 500, "")
        trials.append(
            Trial(dict(zip(grid, values, strict=True)), reached[0], reached[1], 1 / (k + 1), 0.25, reached[2])
        )
    scores = [-1.0 if t.error else t.validation_accuracy for t in trials]
    return SearchResult(grid, tuple(trials), int(np.argmax(scores)) if best is None else best, None)


def make_study(
    class_names: tuple[str, ...] = ("cat", "dog", "owl"),
    *,
    feature_names: tuple[str, ...] = ("length", "weight", "age"),
    image_shape: tuple[int, ...] | None = None,
    searches: tuple[SearchResult, ...] | None = None,
    titles: tuple[str, ...] = ("Softmax regression", "Linear SVM", "Kernel SVM"),
    history: tuple[float, ...] = (4.0, 2.0, 1.0, 0.5, 0.3),
    test_accuracy: float = 0.9,
    data_name: str = "Animals",
    notes: tuple[str, ...] = ("took the last column as the class",),
    machine: dict[str, str] | None = None,
) -> Study:
    rng = np.random.default_rng(7)
    n_classes, n_features = len(class_names), len(feature_names)
    true = np.repeat(np.arange(n_classes), 20)
    predicted = np.where(rng.random(true.size) < 0.85, true, rng.integers(0, n_classes, true.size))
    counts = np.zeros((n_classes, n_classes), dtype=np.int64)
    np.add.at(counts, (true, predicted), 1)
    searches = searches or (
        make_search({"C": (0.01, 0.1, 1.0, 10.0)}),
        make_search({"C": (0.1, 1.0, 10.0), "loss": ("hinge", "squared_hinge")}, failed=(1,)),
        make_search({"C": (1.0, float("inf")), "gamma": ("scale", 0.1), "kernel": ("rbf", "poly")}),
    )
    classifiers = []
    for k, (title, search) in enumerate(zip(titles, searches, strict=False)):
        linear = title != "Kernel SVM"
        coef = rng.normal(size=(1 if n_classes == 2 else n_classes, n_features))
        templates = rng.uniform(-1, 1, (n_classes, *image_shape)) if image_shape and linear else None
        steps = tuple(Iteration(i, float(i), 0.1 * i, cost) for i, cost in enumerate(history)) if linear else ()
        model = SimpleNamespace(classes_=np.array(class_names)) if linear else SimpleNamespace()
        weights = coef if linear else None
        confusion = Confusion(np.arange(n_classes), counts)
        accuracy = test_accuracy - 0.01 * k
        classifiers.append(
            Trained(f"key{k}", title, model, search, 0.99957, accuracy, 1.5, steps, confusion, weights, templates)
        )
    return Study(
        data_name=data_name,
        source="animals.csv",
        fingerprint="sha256:" + "0123456789abcdef" * 4,
        n_features=n_features,
        target_name="species",
        feature_names=feature_names,
        image_shape=image_shape,
        class_names=class_names,
        class_counts=(100,) * n_classes,
        n_train=60 * n_classes,
        n_validation=20 * n_classes,
        n_test=20 * n_classes,
        classifiers=tuple(classifiers),
        best_index=0,
        seed=42,
        seconds=75.0,
        scaling="mean 0, deviation 1",
        majority_accuracy=1 / n_classes,
        notes=notes,
        machine={"processor": "a processor", "hinge": "0.1.0"} if machine is None else machine,
    )


@pytest.fixture(name="make_study", scope="session")
def _make_study():
    return make_study


@pytest.fixture(name="make_search", scope="session")
def _make_search():
    return make_search


@pytest.fixture(name="read_page", scope="session")
def _read_page():
    return read_page


HOSTILE = (
    "<script>document.title='owned'</script>",
    '"><img src=x onerror="document.title=1">',
    "' onmouseover='document.title=2",
    r"$\frac$",
    r"$x_$ \alpha${",
    "two\nlines\x00\x07\x1b",
    "lone \ud800 surrogate \ufffe",
    "漢字かな" * 12,
    "🙂👩‍👩‍👧‍👦" * 9,
    "שלום עולם مرحبا",
    "\u202eturned\u2066",
    "W" * 5000,
    "</style></svg>--><!-- &amp; ]]>",
    "",
    "{{ 7 * 7 }}{% raise %}",
    "javascript:document.title=3",
    "url(http://example.com/x)",
)


@pytest.fixture
def hostile_study():
    features = (*HOSTILE, "plain")
    searches = (
        make_search({HOSTILE[3]: (0.1, 1.0, 10.0)}, failed=(1,)),
        make_search({HOSTILE[0]: HOSTILE[:4], HOSTILE[7]: HOSTILE[4:]}),
        make_search({HOSTILE[1]: (1, 2), HOSTILE[8]: (None, True), HOSTILE[11]: HOSTILE[:6]}),
    )
    return make_study(
        HOSTILE,
        feature_names=features,
        searches=searches,
        titles=HOSTILE[:3],
        data_name=HOSTILE[0],
        notes=HOSTILE,
        machine=dict(zip(HOSTILE, HOSTILE, strict=True)),
    )
