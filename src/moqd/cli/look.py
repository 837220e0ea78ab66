"""One task on the command line: what it is, and what random solutions of it reach."""

import jax
import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from moqd.cli.output import describe
from moqd.core.networks import num_parameters
from moqd.io.errors import EvaluationError, InputError
from moqd.io.options import checked_seed
from moqd.tasks import TASKS, Task
from moqd.tasks.evaluate import Evaluator


def look_at(out: Console, name: str, task: Task) -> None:
    """Objectives, features, reference point, solutions and options."""
    better = [f"{objective} {'↓' if objective in task.minimised else '↑'}" for objective in task.objective_names]
    bounds = zip(task.feature_names, task.feature_bounds, strict=True)
    genotype = jax.eval_shape(lambda: task.init_genotype(jax.random.key(0), 1))
    policy = task.policy
    layers = "" if policy is None else "-".join(map(str, (policy.num_obs, *policy.hidden_sizes, policy.num_actions)))
    details = {
        "objectives": ", ".join(better),
        "features": ", ".join(f"{feature} {low:g} to {high:g}" for feature, (low, high) in bounds),
        "reference": ", ".join(f"{value:g}" for value in task.reference_point or ()),
        "solutions": f"{f'networks {layers}, ' if layers else ''}{num_parameters(genotype):,} parameters",
    }
    describe(out, name, TASKS[name].summary, TASKS[name].config, details)


def sample(out: Console, task: Task, number: int, seed: int) -> None:
    """What random solutions reach, and where the reference point lies among them."""
    if number < 1:
        raise InputError(f"--sample is {number}; give a whole number of at least 1.")
    key_init, key_evaluate = jax.random.split(jax.random.key(checked_seed(seed)))
    with out.status(f"evaluating {number} random solutions"):
        genotype = jax.jit(task.init_genotype, static_argnums=1)(key_init, number)
        evaluation = Evaluator(task, checked=True)(key_evaluate, genotype)
    valid = np.asarray(evaluation.valid)
    fitness = np.asarray(evaluation.fitness)[valid]
    if not len(fitness):
        raise EvaluationError(f"all of the {number} evaluations failed.")
    table = Table(box=SIMPLE_HEAD)
    for column in ("objective", "worst", "median", "best", "reference", "below it"):
        table.add_column(column, justify="left" if column == "objective" else "right")
    for i, name in enumerate(task.objective_names):
        sign = task.direction[i]
        numbers = [f"{sign * value:.4g}" for value in np.quantile(fitness[:, i], [0, 0.5, 1])]
        reference = task.reference_point[i] if task.reference_point is not None else None
        below = "" if reference is None else f"{np.mean(fitness[:, i] <= sign * reference):.1%}"
        table.add_row(Text(name), *numbers, "" if reference is None else f"{reference:g}", below)
    out.print(f"{len(fitness)} random solutions, seed {seed} ({number - len(fitness)} more failed)", highlight=False)
    out.print(table)
    if task.reference_point is not None:
        reference_point = np.asarray(task.reference_point) * task.direction
        anywhere = np.mean(np.any(fitness <= reference_point, axis=1))
        out.print(
            f"{anywhere:.1%} are below the reference point in some objective: they add no hypervolume.", highlight=False
        )
