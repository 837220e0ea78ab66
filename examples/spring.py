"""Springs of every size: stiff against light, for each coil diameter and number of turns. Run it from anywhere.

Writes the run to runs/spring and a picture of it to runs/spring/figures/overview.png.
"""

from pathlib import Path

import numpy as np

import moqd
from moqd.plots.overview import save_overview


def spring(x):
    """Objectives and features of a coil spring; x is wire and coil diameter in millimetres, and turns."""
    wire, coil, turns = x
    if wire > coil / 3:
        raise ValueError("the wire is too thick to be wound")  # a failed evaluation: counted, never archived
    stiffness = 79_000 * wire**4 / (8 * coil**3 * turns)  # newtons per millimetre, steel
    weight = 7.85e-3 * np.pi * coil * turns * np.pi * wire**2 / 4  # grams
    return [stiffness, weight], [coil, turns]


task = moqd.FunctionTask(
    spring,
    name="spring",
    bounds=[(0.5, 5.0), (5.0, 30.0), (3.0, 15.0)],
    parameter_names=["wire", "coil", "turns"],
    objective_names=["stiffness", "weight"],
    minimised=["weight"],
    feature_names=["coil", "turns"],
    feature_bounds=[(5.0, 30.0), (3.0, 15.0)],
)
folder = Path("runs/spring")
run = moqd.run(moqd.make_algorithm("mome", task, ga_batch=128, num_cells=64), task, iterations=50, out=folder)
save_overview(run, folder / "figures" / "overview.png")

# The lightest spring of at least 5 N/mm that is about 20 mm wide.
solutions = run.solutions()
stiffness, weight = solutions.objectives.T
coil, _ = solutions.features.T
fits = (stiffness >= 5) & (abs(coil - 20) < 2)
best = np.argmin(np.where(fits, weight, np.inf))
parameters = task.parameters(solutions.genotype)
named = {name: f"{value:.2f}" for name, value in zip(task.parameter_names, parameters[best], strict=True)}
print(f"{len(weight)} springs, {run.metrics['failed_evaluations'][-1]:.0f} evaluations failed")
print(f"the lightest that fits: {named}, {stiffness[best]:.1f} N/mm, {weight[best]:.1f} g")
