"""Figures of papers and reports. The functions here draw a run and return a matplotlib Figure, neither shown nor saved.

Each file has a figure, and what draws it into the `ax` it is given.
"""

from typing import TYPE_CHECKING

from moqd.io.lazy import lazy

if TYPE_CHECKING:
    from moqd.plots.archive_map import archive_map_figure
    from moqd.plots.fronts import fronts_figure
    from moqd.plots.learning_curves import learning_curves_figure
    from moqd.plots.overview import overview_figure, save_overview
else:
    __getattr__, __dir__ = lazy(__name__, __file__)

__all__ = ["archive_map_figure", "fronts_figure", "learning_curves_figure", "overview_figure", "save_overview"]
