"""One style for all figures: colours that differ in lightness and are never the only sign, light grid, no frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

# Okabe and Ito's palette, told apart by readers with any colour vision
COLORS = {
    "blue": "#0072B2",
    "orange": "#D55E00",
    "green": "#009E73",
    "yellow": "#E69F00",
    "sky": "#56B4E9",
    "pink": "#CC79A7",
    "grey": "#6E7781",
}
MARKERS = "osD^vP"
_STYLE: dict[Any, Any] = {
    "figure.dpi": 110,
    "figure.facecolor": "white",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E3E6E8",
    "font.size": 10,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "lines.markersize": 4.5,
    "svg.hashsalt": "icalign",
}


def figure(width: float = 6.4, height: float = 3.4, columns: int = 1) -> tuple[Figure, Any]:
    """A figure in the style of the book, sizes in inches; with several columns, an array of axes."""
    plt.rcParams.update(_STYLE)
    return plt.subplots(1, columns, figsize=(width, height), layout="constrained")


def measured_and_bound(
    ax: Axes, x: Sequence[float], measured: Sequence[float], bound: Sequence[float], label: str, color: str, marker: str
) -> None:
    """Measured values as markers, the bound they must stay under as a dashed line of the same colour."""
    ax.plot(x, bound, "--", color=color, label=f"{label}: bound")
    ax.plot(x, measured, marker, color=color, label=f"{label}: measured", markerfacecolor="white")
