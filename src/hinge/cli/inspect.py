"""`hinge inspect`: what is in a data set or a model, and what this machine offers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from hinge.cli.options import data_options, image_option


@click.command("inspect")
@click.argument("path", required=False)
@data_options
@image_option
@click.option("--system", is_flag=True, help="Instruction set, threads, BLAS and versions.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of lines.")
def command(
    path: str | None,
    target: str | None,
    header: bool | None,
    image_shape: tuple[int, ...] | None,
    system: bool,
    as_json: bool,
) -> None:
    """Show what hinge sees in PATH (data or a model directory), or with --system what this machine offers."""
    if system == (path is not None):
        raise click.UsageError("give either PATH or --system")
    if path is None:
        facts = _system()
    elif (Path(path) / "model.json").is_file():
        facts = _model(Path(path))
    else:
        from hinge.cli.sources import read_dataset

        facts = _data(read_dataset(path, target=target, header=header, image_shape=image_shape))
    if as_json:
        click.echo(json.dumps(facts, ensure_ascii=False))
        return
    width = max(map(len, facts))
    for name, value in facts.items():
        shown = ", ".join(map(str, value)) if isinstance(value, list) else value
        click.echo(f"{name:<{width}}  {shown}")


def _system() -> dict[str, Any]:
    from threadpoolctl import threadpool_info

    from hinge.config import resolve_threads
    from hinge.estimators.model_file import library_versions
    from hinge.ops import system_info

    info = system_info()
    blas = [
        f"{pool['internal_api']} {pool['version']} ({pool['num_threads']} threads)"
        for pool in threadpool_info()
        if pool["user_api"] == "blas"
    ]
    return {
        "instruction set": info["isa"],
        "supported": info["supported"],
        "threads": resolve_threads(None),
        "BLAS": blas or ["unknown"],
        "BLAS integers": f"{info['blas_integers']} bits",
        "compiler": info["compiler"],
        **library_versions(),
    }


def _model(path: Path) -> dict[str, Any]:
    from hinge.estimators.model_file import read_model_file

    kept = read_model_file(path)
    return {
        "estimator": kept.header["estimator"],
        "features": kept.model.n_features_in_,
        "classes": [str(label) for label in kept.model.classes_.tolist()],
        "target": kept.target_name,
        "parameters": [f"{name}={value}" for name, value in kept.header["parameters"].items()],
        "objective": kept.model.objective_,
        "iterations": kept.model.n_iter_,
        **{f"data {name}": str(value) for name, value in kept.header["data"].items()},
        **{f"version of {name}": str(value) for name, value in kept.header["versions"].items()},
    }


def _data(data: Any) -> dict[str, Any]:
    import numpy as np

    labels, counts = np.unique(data.y, return_counts=True)
    return {
        "name": data.name,
        "rows": data.X.shape[0],
        "test rows": 0 if data.test is None else len(data.test[1]),
        "features": data.X.shape[1],
        "type": str(data.X.dtype),
        "range": f"{data.X.min():g} to {data.X.max():g}",
        "target": data.target_name,
        "classes": [f"{label} ({count})" for label, count in zip(labels.tolist(), counts.tolist(), strict=True)],
        "picture": "no" if data.image_shape is None else "x".join(map(str, data.image_shape)),
        "notes": list(data.notes) or ["none"],
    }
