"""One page from one study: self-contained, offline, and safe whatever the data's names are."""

from __future__ import annotations

import base64
import hashlib
from functools import lru_cache
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from hinge.report.charts import cost_chart
from hinge.report.sections import MOST_TEMPLATES, accuracy_rows, errors, search, weights
from hinge.report.wording import clean, count, duration, elide, interval_text, percent, plural, setting
from hinge.selection.study import Study


def render(study: Study) -> str:
    """Return the report of `study` as one HTML page; write it as UTF-8."""
    style = _style()
    learned = [weights(study, t) for t in study.classifiers]
    page: str = _environment().get_template("report.html.j2").render(
        study=study,
        best=study.best,
        style=Markup(style),
        style_hash=base64.b64encode(hashlib.sha256(style.encode()).digest()).decode("ascii"),
        accuracies=accuracy_rows(study),
        cost=cost_chart(study.classifiers),
        errors=[errors(study, t, k) for k, t in enumerate(study.classifiers)],
        weights=[w for w in learned if w is not None],
        weightless=[t.title for t, w in zip(study.classifiers, learned, strict=True) if w is None],
        most_templates=MOST_TEMPLATES,
        searches=[search(study, t, k) for k, t in enumerate(study.classifiers)],
    )  # fmt: skip
    return page


@lru_cache(maxsize=1)
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("hinge.report"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "count": count,
        "duration": duration,
        "elide": elide,
        "interval": interval_text,
        "percent": percent,
        "plural": plural,
        "setting": setting,
    }
    return environment


def _finalize(text: object) -> object:
    """Clean every value on its way into the page: only markup of our own passes as it is."""
    return text if isinstance(text, Markup) else clean(text)


@lru_cache(maxsize=1)
def _style() -> str:
    text = files("hinge.report").joinpath("static", "report.css").read_text(encoding="utf-8")
    return text.replace("\r\n", "\n").strip()
