import numpy as np
import pytest
from matplotlib.figure import Figure

from moqd.plots.parallel_axes import label_columns


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (-2.0, 3.0, "-2 to 3"),
        (0.0, 4e-7, "0 to 4e-07"),
        (10000.0, 10040.0, "10000 to 10040"),
        (-1.5004, -1.5, "-1.5004 to -1.5"),
        (-1e-9, 1.0, "0 to 1"),
        (0.0034, 1.0, "0.0034 to 1"),
        (np.float32(0.95), np.float32(1.05), "0.95 to 1.05"),
        (10040.0, 10040.0, "10040 to 10040"),
        (0.0, 0.0, "0 to 0"),
    ],
)
def test_the_ends_of_a_column_can_be_told_apart(low, high, text):
    ax = Figure().subplots()
    label_columns(ax, np.array([low]), np.array([high]), ["speed"])
    (label,) = ax.get_xticklabels()
    assert label.get_text() == f"speed\n{text}"
