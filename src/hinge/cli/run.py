"""`hinge run [DATA]`: from labelled rows to the best classifier, its test and a report."""

from __future__ import annotations

import json
from pathlib import Path

import click

from hinge.cli.options import data_options, image_option, jobs_option
from hinge.cli.progress import progress_bar


@click.command("run")
@click.argument("data", required=False)
@data_options
@image_option
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="DIR", default="hinge-run", show_default=True,
    help="Where to put report.html, model/ and metrics.json. An earlier result there is replaced.",
)  # fmt: skip
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of splits and training.")
@jobs_option
@click.option("--json", "as_json", is_flag=True, help="Print the metrics as JSON instead of a summary.")
@click.option("-q", "--quiet", is_flag=True, help="No progress display.")
def command(
    data: str | None,
    target: str | None,
    header: bool | None,
    image_shape: tuple[int, ...] | None,
    output: Path,
    seed: int,
    n_jobs: int | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Train, test and report on labelled rows.

    DATA is a CSV, NPY, NPZ or IDX file (the MNIST format, gzipped or not), a directory of IDX files, or the name of a
    data set that comes with hinge (see `hinge datasets`). Without DATA it runs on handwritten digits.
    """
    from hinge.atomic import require_place
    from hinge.cli.sources import read_dataset
    from hinge.report.study_files import METRICS, REPORT, metrics, write_study
    from hinge.selection.study import run_study

    require_place(output, replaces=METRICS)  # before the work, not after it
    with progress_bar(quiet=quiet) as progress:
        dataset = read_dataset(data, target=target, header=header, image_shape=image_shape)
        study = run_study(dataset, seed=seed, n_jobs=n_jobs, progress=progress)
        progress("Writing the report", 1.0)
        write_study(study, output)
    if as_json:
        click.echo(json.dumps(metrics(study), ensure_ascii=False))
        return
    click.echo(
        f"{study.data_name}: {study.n_train + study.n_validation + study.n_test:,} rows, "
        f"{study.n_features:,} features, {len(study.class_names)} classes; "
        f"{study.n_test:,} rows held out for the test"
    )
    for note in study.notes:
        click.echo(f"  note: {note}")
    width = max(len(trained.title) for trained in study.classifiers)
    for trained in study.classifiers:
        setting = ", ".join(f"{name}={value}" for name, value in trained.search.best.parameters.items())
        mark = "  ← best on validation rows" if trained is study.best else ""
        click.echo(f"  {trained.title:<{width}}  test accuracy {trained.test_accuracy:7.2%}  ({setting}){mark}")
    click.echo(f"report: {output / REPORT}")
