"""Models as files: `weights.safetensors` holds numbers and nothing else, `model.json` says what they mean.

No pickle: loading a model runs no code of it. The header carries the format's version, the weights' SHA-256, the
versions of the libraries and what is known of the data.
"""

from __future__ import annotations

import hashlib
import json
import math
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from hinge.atomic import new_directory
from hinge.errors import DataError, UsageError
from hinge.estimators.linear import LinearSVM, SoftmaxRegression
from hinge.solvers.choice import NAMED
from hinge.typing import Array

FORMAT = 1
HEADER, WEIGHTS = "model.json", "weights.safetensors"
ESTIMATORS: dict[str, Any] = {"LinearSVM": LinearSVM, "SoftmaxRegression": SoftmaxRegression}
SOLVERS: dict[str, Any] = {solver.__name__: solver for solver in NAMED.values()}


@dataclass(frozen=True)
class ModelFile:
    """A model as it came from disk, and the names of what it was trained on."""

    model: Any
    feature_names: tuple[str, ...]
    target_name: str
    header: dict[str, Any]


def save_model(
    model: Any,
    directory: str | Path,
    *,
    feature_names: Sequence[str] | None = None,
    target_name: str = "target",
    data: dict[str, Any] | None = None,
) -> None:
    """Write a fitted classifier to `directory`, whole or not at all; of a search, its `best_estimator_`.

    `data` is kept in the header as it is.
    """
    given, model = model, getattr(model, "best_estimator_", model)
    if type(model).__name__ not in ESTIMATORS or not isinstance(model, ESTIMATORS[type(model).__name__]):
        raise UsageError(
            f"a {type(given).__name__} without a classifier of its own cannot be saved"
            if hasattr(given, "refit")
            else f"a {type(given).__name__} cannot be saved",
            remedy=f"Save a fitted {' or '.join(ESTIMATORS)}, or a search for one that was fitted with refit=True.",
        )
    check_is_fitted(model)
    names = feature_names if feature_names is not None else getattr(model, "feature_names_in_", None)
    with new_directory(Path(directory), replaces=HEADER) as scratch:
        write_model(model, scratch, feature_names=names, target_name=target_name, data=data)


def write_model(
    model: Any, directory: Path, *, feature_names: Any, target_name: str, data: dict[str, Any] | None
) -> None:
    """Write both files into an existing directory."""
    from safetensors.numpy import save

    weights = save({"coef": np.ascontiguousarray(model.coef_), "intercept": np.ascontiguousarray(model.intercept_)})
    labels = model.classes_
    header = {
        "format": FORMAT,
        "estimator": type(model).__name__,
        "parameters": {name: _to_json(value) for name, value in _kept_parameters(model).items()},
        "classes": {
            "dtype": labels.dtype.str if labels.dtype.kind != "O" else "object",
            "labels": labels.tolist(),
        },
        "n_features": int(model.coef_.shape[1]),
        "feature_names": None if feature_names is None else [str(name) for name in feature_names],
        "target_name": target_name,
        "fit": _fit_facts(model),
        "weights_sha256": hashlib.sha256(weights).hexdigest(),
        "versions": library_versions(),
        "data": data or {},
    }
    (directory / WEIGHTS).write_bytes(weights)
    (directory / HEADER).write_text(json.dumps(header, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _fit_facts(model: Any) -> dict[str, Any]:
    """Return what is told of the fit; a gap is left out where none was certified, as after partial_fit."""
    facts = {"objective": float(model.objective_), "n_iter": int(model.n_iter_)}
    gap = float(getattr(model, "duality_gap_", math.inf))
    if math.isfinite(gap):
        facts |= {"duality_gap": gap, "converged": model.converged_}
    if hasattr(model, "temperature_"):
        facts["temperature"] = float(model.temperature_)
    return facts


def _restore_fit(model: Any, facts: dict[str, Any]) -> None:
    model.objective_, model.n_iter_ = float(facts["objective"]), int(facts["n_iter"])
    model.duality_gap_ = float(facts.get("duality_gap", math.inf))
    model.converged_ = bool(facts.get("converged", False))
    if "temperature" in facts:
        model.temperature_ = float(facts["temperature"])
        if not 0 < model.temperature_ < math.inf:
            raise ValueError("the temperature is not a positive number")


def load_model(directory: str | Path) -> Any:
    """Read a classifier that `save_model` or `hinge run` wrote."""
    return read_model_file(directory).model


def read_model_file(directory: str | Path) -> ModelFile:
    """Read a model and its header, checking everything that a damaged or foreign file could get wrong."""
    directory = Path(directory)
    header_path = directory / HEADER
    header = _read_header(header_path)
    arrays = _read_weights(directory / WEIGHTS, str(header.get("weights_sha256")))
    try:
        model = ESTIMATORS[header["estimator"]](
            **{name: _from_json(value) for name, value in header["parameters"].items()}
        )
        dtype = header["classes"]["dtype"]
        labels = np.array(header["classes"]["labels"], dtype=object if dtype == "object" else dtype)
        coef, intercept = arrays["coef"], arrays["intercept"]
        rows = 1 if len(labels) == 2 else len(labels)
        n_features = int(header["n_features"])
        if coef.shape != (rows, n_features) or intercept.shape != (rows,) or labels.ndim != 1:
            raise ValueError("weights and classes differ in shape")
        if not (np.all(np.isfinite(coef)) and np.all(np.isfinite(intercept))):
            raise ValueError("a weight is not finite")
        names = header["feature_names"] or [f"column {k + 1}" for k in range(n_features)]
        if len(names) != n_features:
            raise ValueError("feature names and weights differ in number")
        _restore_fit(model, header["fit"])
        target_name = str(header["target_name"])
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise DataError(
            f"the header does not describe a model ({error})",
            where=str(header_path),
            remedy="Save the model again.",
        ) from error
    model.coef_, model.intercept_, model.classes_ = coef, intercept, labels
    model.n_features_in_, model.history_, model._seen_weight = n_features, (), 0.0
    return ModelFile(model, tuple(str(name) for name in names), target_name, header)


def library_versions() -> dict[str, str]:
    """Return the versions of what takes part in training."""
    from importlib.metadata import version

    names = ("hinge", "numpy", "scipy", "scikit-learn")
    return {"python": platform.python_version(), **{name: version(name) for name in names}}


def _kept_parameters(model: Any) -> dict[str, Any]:
    parameters: dict[str, Any] = model.get_params(deep=False)
    parameters.pop("callbacks", None)  # code is never stored
    if not isinstance(parameters["random_state"], int):
        parameters["random_state"] = None
    return parameters


def _to_json(value: Any) -> Any:
    if is_dataclass(value) and type(value).__name__ in SOLVERS and not isinstance(value, type):
        return {"solver": type(value).__name__, "options": asdict(value)}
    if isinstance(value, dict):
        return {"pairs": [[_to_json(key), _to_json(item)] for key, item in value.items()]}
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise UsageError(f"parameter value {value!r} cannot be saved", remedy="Use plain values or hinge's own solvers.")


def _from_json(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if "solver" in value:
        return SOLVERS[value["solver"]](**value["options"])
    return dict(value["pairs"])


def _read_header(path: Path) -> dict[str, Any]:
    try:
        header = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise DataError(
            f"holds no {HEADER}",
            where=str(path.parent),
            remedy="Name the model/ directory that hinge run wrote.",
        ) from error
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"cannot be read ({error})", where=str(path), remedy="Save the model again.") from error
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        found = header.get("format") if isinstance(header, dict) else None
        raise DataError(
            f"has format {found!r}; this hinge reads format {FORMAT}",
            where=str(path),
            remedy="Use the version of hinge that wrote it, or train again.",
        )
    return header


def _read_weights(path: Path, expected: str) -> dict[str, Array]:
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        content = path.read_bytes()
        if hashlib.sha256(content).hexdigest() != expected:
            raise DataError(
                "is damaged: its SHA-256 is not the one in the header",
                where=str(path),
                remedy="Save the model again.",
            )
        arrays: dict[str, Array] = load(content)
    except (OSError, SafetensorError, ValueError, KeyError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"cannot be read ({error})", where=str(path), remedy="Save the model again.") from error
    return arrays
