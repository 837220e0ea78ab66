"""The search of tests that are about something else: what is run, written, resumed, looked at or told."""

PLAIN = {
    "variation": "iso-line",
    "iso_sigma": 0.005,
    "line_sigma": 0.05,
    "crowding": False,
    "guided": False,
    "cell_selection": "uniform",
}
"""MOME as published, for vectors as for policies: a third of the operations that the defaults for vectors compile."""

FLAGS = ["--variation", "iso-line", "--no-crowding", "--no-guided", "--cell-selection", "uniform"]
"""Of the command line, for the same."""
