"""A search as a picture: what each setting reached."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from hinge.report.charts import Chart, Series, log_ticks, number, plain_ticks, tidy
from hinge.report.svg import INK, SERIES, draw
from hinge.report.wording import clean, columns, elide, percent, setting, value

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from hinge.selection.grid import SearchResult, Trial

MOST_DOTS = 30
HELD_OUT, LEARNED, FAILED = SERIES[0], SERIES[5], SERIES[1]


def varied(search: SearchResult) -> list[str]:
    """Return the parameters of which more than one value was tried."""
    return [name for name, values in search.grid.items() if len({value(v) for v in values}) > 1]


def failed(trial: Trial) -> bool:
    """Tell whether a setting could not be trained."""
    return bool(trial.error) or not math.isfinite(trial.validation_accuracy)


def is_number(parameter: Any) -> bool:
    """Tell whether a value can be placed on an axis."""
    if isinstance(parameter, bool) or not isinstance(parameter, Real):
        return False
    return math.isfinite(parameter)


def search_chart(search: SearchResult, name: str) -> Chart | None:
    """Draw a line for one parameter, a map for two, ranked dots for more; None for a single setting."""
    names = varied(search)
    if not names or len(search.trials) < 2 or all(failed(t) for t in search.trials):
        return None
    if len(names) == 1:
        return _line(search, names[0], name)
    if len(names) == 2 and max(len(search.grid[n]) for n in names) <= 30:
        return _map(search, names, name)
    return _dots(search, name)


def edges(search: SearchResult) -> list[str]:
    """Return a sentence for each number of the best setting that lies at an end of its grid."""
    found = []
    for name, values in search.grid.items():
        numbers = sorted({float(v) for v in values if is_number(v)})
        best = search.best.parameters.get(name)
        if len(numbers) < 3 or not is_number(best) or best == 0:
            continue
        for end, word in ((numbers[0], "smallest"), (numbers[-1], "largest")):
            if best == end and not (word == "largest" and math.inf in values):
                found.append(f"{clean(name)} = {value(best)} is the {word} value tried; one beyond may do better.")
    return found


def _line(search: SearchResult, name: str, picture: str) -> Chart:
    values = [t.parameters.get(name) for t in search.trials]
    numeric = all(is_number(v) for v in values)
    x = [float(v) for v in values] if numeric else [float(k) for k in range(len(values))]  # type: ignore[arg-type]
    order = [k for k in (sorted(range(len(x)), key=x.__getitem__)) if not failed(search.trials[k])]
    lost = [x[k] for k, t in enumerate(search.trials) if failed(t)]

    def paint(figure: Figure) -> None:
        axes = figure.add_axes((0.1, 0.16, 0.88, 0.78))
        at = [x[k] for k in order]
        train = [100 * search.trials[k].train_accuracy for k in order]
        held = [100 * search.trials[k].validation_accuracy for k in order]
        axes.plot(at, train, color=LEARNED, linewidth=1.5, linestyle=(0, (4, 2)), marker="s", markersize=3.5)
        axes.plot(at, held, color=HELD_OUT, linewidth=1.8, marker="o", markersize=4.5)
        best = search.best
        if not failed(best):
            axes.plot(x[search.best_index], 100 * best.validation_accuracy, "o", markersize=11,
                      markerfacecolor="none", markeredgecolor=HELD_OUT, markeredgewidth=1.5)  # fmt: skip
        if lost:
            foot = [0.03] * len(lost)
            axes.plot(lost, foot, "x", color=FAILED, markersize=6, transform=axes.get_xaxis_transform())
        if numeric:
            _numbers_below(axes, x)
        else:
            _names_below(axes, [value(v) for v in values])
        axes.set_xlabel(elide(name, 40))
        _percent_axis(axes)
        tidy(axes)

    legend = (
        Series("rows held out for validation", HELD_OUT, marker="o"),
        Series("training rows", LEARNED, "4 2"),
    )
    label = f"Line chart: accuracy against {clean(name)}, {_best_in_words(search)}"
    return Chart(draw(paint, (7.0, 2.9), picture, label), legend)


def _numbers_below(axes: Axes, x: Sequence[float]) -> None:
    spread = sorted(set(x))
    logarithmic = spread[0] > 0 and spread[-1] >= 100 * spread[0]
    places = np.log(spread) if logarithmic else np.asarray(spread)
    if logarithmic:
        axes.set_xscale("log")
    width = max(columns(value(v)) for v in spread)
    if np.diff(places).min() >= (places[-1] - places[0]) * 0.011 * (width + 2):
        axes.set_xticks(spread, [value(v) for v in spread])
    elif logarithmic:
        log_ticks(axes.xaxis, spread[0], spread[-1])
    else:
        plain_ticks(axes.xaxis)


def _names_below(axes: Axes, names: Sequence[str]) -> None:
    step = -(-len(names) // 24)
    shown = range(0, len(names), step)
    texts = [elide(names[k], 22) for k in shown]
    crowded = max(map(columns, texts)) * len(texts) > 90
    slant: dict[str, Any] = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"} if crowded else {}
    axes.set_xticks(list(shown), texts, **slant)


def _percent_axis(axes: Axes) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    low, high = axes.get_ylim()
    axes.set_ylim(low, min(high, 100 + 0.04 * (100 - low)))
    axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{round(y, 6):g}%" if y <= 100 else ""))
    axes.set_ylabel("accuracy")


def _map(search: SearchResult, names: list[str], picture: str) -> Chart:
    down, across = sorted(names, key=lambda n: len(search.grid[n]))
    rows, places = ({value(v): k for k, v in enumerate(_sorted(search.grid[n]))} for n in (down, across))
    shares = np.full((len(rows), len(places)), np.nan)
    lost = set()
    for trial in search.trials:
        at = rows[value(trial.parameters[down])], places[value(trial.parameters[across])]
        if failed(trial):
            lost.add(at)
        else:
            shares[at] = trial.validation_accuracy
    best = rows[value(search.best.parameters[down])], places[value(search.best.parameters[across])]
    width = min(0.62, 6.2 / len(places))
    height = min(0.36, 6.2 / len(rows))

    def paint(figure: Figure) -> None:
        axes = figure.add_axes((0, 0, 1, 1))
        _cells(axes, shares, lost, best)
        _names_below(axes, [_tick(text) for text in places])
        axes.set_yticks(range(len(rows)), [elide(_tick(text), 22) for text in rows])
        axes.set_xlabel(elide(across, 40))
        axes.set_ylabel(elide(down, 40))
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)

    label = f"Map: validation accuracy by {clean(across)} and {clean(down)}, {_best_in_words(search)}"
    return Chart(draw(paint, (width * len(places), height * len(rows)), picture, label))


def _cells(axes: Axes, shares: Any, lost: set[tuple[int, int]], best: tuple[int, int]) -> None:
    from matplotlib.patches import Rectangle

    # Less than five points between the best and the worst shall not look like day and night.
    high = float(np.nanmax(shares))
    span = max(high - float(np.nanmin(shares)), 0.05)
    strength = 0.06 + 0.84 * (1 - (high - shares) / span) ** 2
    pixels = np.zeros((*shares.shape, 4))
    pixels[..., :3] = (0x1F / 255, 0x5F / 255, 0xBF / 255)
    pixels[..., 3] = np.nan_to_num(strength)
    axes.imshow(pixels, interpolation="none", aspect="auto")
    if shares.shape[1] <= 14:
        for (i, j), share in np.ndenumerate(shares):
            text = "failed" if (i, j) in lost else percent(float(share)).rstrip("%")
            colour = "white" if pixels[i, j, 3] > 0.78 else INK
            axes.text(j, i, text, ha="center", va="center_baseline", fontsize=8, color=colour)
    frame: dict[str, Any] = {"fill": False, "edgecolor": FAILED, "linewidth": 2.0}
    axes.add_patch(Rectangle((best[1] - 0.5, best[0] - 0.5), 1, 1, clip_on=False, **frame))


def _dots(search: SearchResult, picture: str) -> Chart:
    done = [t for t in search.trials if not failed(t)]
    shown = sorted(done, key=lambda t: -t.validation_accuracy)[:MOST_DOTS]
    names = varied(search)

    def paint(figure: Figure) -> None:
        axes = figure.add_axes((0.4, 0.1, 0.58, 0.85))
        y = range(len(shown))
        axes.plot(
            [100 * t.train_accuracy for t in shown],
            y,
            "s",
            color=LEARNED,
            markersize=4,
            markerfacecolor="none",
        )
        axes.plot([100 * t.validation_accuracy for t in shown], y, "o", color=HELD_OUT, markersize=5.5)
        texts = [elide(setting({n: t.parameters[n] for n in names if n in t.parameters}), 46) for t in shown]
        axes.set_yticks(list(y), texts)
        axes.set_ylim(len(shown) - 0.4, -0.6)
        axes.set_xlabel("accuracy in per cent")
        low, high = axes.get_xlim()
        axes.set_xlim(low, min(high, 100 + 0.04 * (100 - low)))
        plain_ticks(axes.xaxis)
        tidy(axes)

    legend = (
        Series("rows held out for validation", HELD_OUT, marker="o"),
        Series("training rows", LEARNED, marker="s"),
    )
    label = f"Dot chart: the {len(shown)} best settings, {_best_in_words(search)}"
    return Chart(draw(paint, (7.4, 0.7 + 0.22 * len(shown)), picture, label), legend)


def _sorted(values: Sequence[Any]) -> list[Any]:
    return sorted(values) if all(is_number(v) for v in values) else list(values)


def _tick(text: str) -> str:
    try:
        return number(float(text))
    except ValueError:
        return text


def _best_in_words(search: SearchResult) -> str:
    return f"best {percent(search.best.validation_accuracy)} at {elide(setting(search.best.parameters), 120)}"
