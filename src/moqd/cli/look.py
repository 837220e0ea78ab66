"""One task on the command line: what it is, and what random solutions of it reach."""

import jax
import numpy as np
from rich.console import Console
from rich.text import Text

from moqd.cli.output import describe, number_table
from moqd.core.networks import num_parameters
from moqd.io.errors import EvaluationError
from moqd.io.options import checked_seed, whole_number
from moqd.tasks import TASKS, Task
from moqd.tasks.evaluate import Evaluator


def look_at(out: Console, name: str, task: Task) -> None:
    """Objectives, features, reference point, solutions and options."""
    better = [f"{objective} {'↓' if objective in task.minimised else '↑'}" for objective in task.objective_names]
    genotype = jax.eval_shape(lambda: task.init_genotype(jax.random.key(0), 1))
    policy = task.policy
    layers = "" if policy is None else "-".join(map(str, (policy.num_obs, *policy.hidden_sizes, policy.num_actions)))
    details = {
        "objectives": ", ".join(better),
        "features": ", ".join(f"{feature} {extent}" for feature, extent in task.feature_ranges.items()),
        "reference": ", ".join(f"{value:g}" for value in task.reference_point or ()),
        "solutions": f"{f'networks {layers}, ' if layers else ''}{num_parameters(genotype):,} parameters",
    }
    describe(out, name, TASKS[name].summary, TASKS[name].config, details)


def sample(out: Console, task: Task, number: int, seed: int) -> None:
    """What random solutions reach, and where the reference point lies among them."""
    whole_number("--sample", number, least=1)
    key_init, key_evaluate = jax.random.split(jax.random.key(checked_seed(seed)))
    with out.status(f"evaluating {number} random solutions"):
        genotype = jax.jit(task.init_genotype, static_argnums=1)(key_init, number)
        evaluation = Evaluator(task, checked=True)(key_evaluate, genotype)
    fitness = np.asarray(evaluation.fitness)[np.asarray(evaluation.valid)]
    if not len(fitness):
        raise EvaluationError(f"all of the {number} evaluations failed.")
    point = None if task.reference_point is None else np.asarray(task.reference_point) * task.direction
    table = number_table("objective", "worst", "median", "best", "reference", "below it")
    for i, name in enumerate(task.objective_names):
        sign = task.direction[i]
        row = [f"{sign * value:.4g}" for value in np.quantile(fitness[:, i], [0, 0.5, 1])]
        if point is not None:
            row += [f"{sign * point[i]:g}", f"{np.mean(fitness[:, i] <= point[i]):.1%}"]
        table.add_row(Text(name), *row)
    out.print(f"{len(fitness)} random solutions, seed {seed} ({number - len(fitness)} more failed)")
    out.print(table)
    if point is not None:
        anywhere = np.mean(np.any(fitness <= point, axis=1))
        out.print(f"{anywhere:.1%} are below the reference point in some objective: they add no hypervolume.")
