"""The one place that compiles `task.evaluate` and places it: on all devices, on one, or on the host."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jaxtyping import Array

from moqd.core.devices import compiled, on_all, on_one, shapes_on_all, shapes_on_one
from moqd.core.types import Evaluation, Genotype, Key
from moqd.tasks.function import FunctionTask, Journal
from moqd.tasks.task import Task, validated


class Evaluator:
    """Evaluates batches of a task; results are on the first device."""

    def __init__(self, task: Task, *, transitions: bool = False, checked: bool = False, explores: bool = False) -> None:
        """With `transitions`, these are made too; with `checked`, the evaluation is `validated`; with `explores`, there
        are transitions and actions have noise."""
        self._task = task
        evaluate: Callable[..., Evaluation] = task.evaluate if transitions else task.evaluate_fitness
        if isinstance(task, FunctionTask) and not task.traceable:
            evaluate = task.evaluate  # which takes a journal, and has no transitions anyway
        self._explores = explores
        if explores:
            evaluate = task.explore

        def check(*arguments: Any) -> Evaluation:
            return validated(task, evaluate(*arguments))

        self._program: Any = check if checked else evaluate
        if task.traceable:
            spread = task.uses_devices
            self._program = compiled(self._program, fused=task.fused) if spread else jax.jit(self._program)

    def __call__(
        self, key: Key, genotype: Genotype, journal: Journal | None = None, noise: Array | None = None
    ) -> Evaluation:
        if journal is not None:
            return self._program(key, genotype, journal)
        arguments = (key, genotype, noise) if self._explores else (key, genotype)
        if not self._task.uses_devices:
            return self._program(*arguments)
        return on_one(self._program(*on_all(arguments)))

    def trace(self, key: Any, genotype: Any, noise: Any = None) -> Any:
        """Traces it ahead for such arguments, of which only shapes count; the shapes of what it gives."""
        shapes = shapes_on_all if self._task.uses_devices else shapes_on_one
        arguments = (key, genotype, noise) if self._explores else (key, genotype)
        self._program = self._program.trace(*shapes(arguments))
        return self._program.out_info

    def compile(self) -> None:
        """After `trace`."""
        self._program = self._program.lower().compile()


def evaluate_first(
    task: Task, evaluate: Callable[[Genotype], Evaluation], genotype: Genotype, number: int
) -> Evaluation:
    """A batch of which only the first so many count: a compiled program takes it as it is, but on the host no
    evaluation is made for nothing, and the last one stands for the rest."""
    batch = jax.tree.leaves(genotype)[0].shape[0]
    if task.traceable or number == batch:
        return evaluate(genotype)
    rows = np.minimum(np.arange(batch), number - 1)
    evaluation = evaluate(jax.tree.map(lambda leaf: leaf[:number], genotype))

    def filled(leaf: Array) -> Array:
        each = leaf.shape[0] // number  # of transitions, one for each resample
        return leaf[(rows[:, None] * each + np.arange(each)).reshape(-1)]

    return jax.tree.map(filled, evaluation)
