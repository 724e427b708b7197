"""`hinge predict MODEL DATA`: classes, and on request scores or probabilities, one line a row."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import click


@click.command("predict")
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("data")
@click.option(
    "--header/--no-header",
    default=None,
    help="Whether a CSV's first line names the columns.  [default: look]",
)
@click.option("--scores", is_flag=True, help="Also the score of each class.")
@click.option("--probabilities", is_flag=True, help="Also the probability of each class (softmax models).")
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Write there instead of stdout.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a row instead of CSV.")
def command(
    model: Path,
    data: str,
    header: bool | None,
    scores: bool,
    probabilities: bool,
    output: Path | None,
    as_json: bool,
) -> None:
    """Predict the rows of DATA with the model in directory MODEL, e.g. hinge-run/model.

    Columns are matched by name where DATA has names; a column with the classes is not needed, and if it is there the
    accuracy is shown on stderr.
    """
    from hinge import datasets
    from hinge.errors import UsageError
    from hinge.estimators.model_file import read_model_file

    kept = read_model_file(model)
    if probabilities and not hasattr(kept.model, "predict_proba"):
        raise UsageError(
            f"a {type(kept.model).__name__} has no probabilities", remedy="Use --scores, or a softmax model."
        )
    rows = datasets.read_rows(data, feature_names=kept.feature_names, target_name=kept.target_name, header=header)
    labels = kept.model.predict(rows.X)
    columns: dict[str, Any] = {"prediction": labels.tolist()}
    if scores:
        columns |= _by_class("score", kept.model, _two_columns(kept.model.decision_function(rows.X)))
    if probabilities:
        columns |= _by_class("probability", kept.model, kept.model.predict_proba(rows.X))
    _write(_as_json(columns) if as_json else _as_csv(columns), output)
    for note in rows.notes:
        click.echo(f"note: {note}", err=True)
    if rows.y is not None:
        accuracy = float((labels.astype(str) == rows.y.astype(str)).mean())
        click.echo(f"accuracy on the {len(labels):,} labelled rows: {accuracy:.2%}", err=True)


def _two_columns(scores: Any) -> Any:
    import numpy as np

    return np.stack([-scores / 2, scores / 2], axis=1) if scores.ndim == 1 else scores


def _by_class(what: str, model: Any, values: Any) -> dict[str, Any]:
    return {f"{what}_{label}": values[:, k].tolist() for k, label in enumerate(model.classes_.tolist())}


def _as_csv(columns: dict[str, Any]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return text.getvalue()


def _as_json(columns: dict[str, Any]) -> str:
    rows = zip(*columns.values(), strict=True)
    return "".join(json.dumps(dict(zip(columns, row, strict=True)), ensure_ascii=False) + "\n" for row in rows)


def _write(text: str, output: Path | None) -> None:
    if output is None:
        click.echo(text, nl=False)
        return
    from hinge.atomic import new_file

    with new_file(output) as scratch:
        scratch.write_text(text, encoding="utf-8")
