"""Springs of every size: stiff against light, for each coil diameter and number of turns. Run it from anywhere.

Writes the run to runs/spring and a picture of it to runs/spring/figures/overview.png.
"""

from pathlib import Path

import numpy as np

import moqd
from moqd.plots.overview import save_overview


def spring(wire, coil, turns):
    """Objectives and features of a coil spring: wire and coil diameter in millimetres, and turns."""
    if wire > coil / 3:
        raise ValueError("the wire is too thick to be wound")  # a failed evaluation: counted, never archived
    stiffness = 79_000 * wire**4 / (8 * coil**3 * turns)  # newtons per millimetre, steel
    weight = 7.85e-3 * np.pi * coil * turns * np.pi * wire**2 / 4  # grams
    return [stiffness, weight], [coil, turns]


task = moqd.problem(
    spring,
    parameters={"wire": (0.5, 5.0), "coil": (5.0, 30.0), "turns": (3.0, 15.0)},
    objectives={"stiffness": "max", "weight": "min"},
    features={"coil": (5.0, 30.0), "turns": (3.0, 15.0)},
)
folder = Path("runs/spring")
run = moqd.run(moqd.make_algorithm("mome", task, ga_batch=128, num_cells=64), task, iterations=50, out=folder)
save_overview(run, folder / "figures" / "overview.png")

best = moqd.pick(run, [0, 1], limits=["stiffness>=5", "coil>18", "coil<22"])  # the lightest of these
print(f"{len(run.solutions().cell)} springs, {run.metrics['failed_evaluations'][-1]:.0f} evaluations failed")
print(best)
