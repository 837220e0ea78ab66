"""What the actor of a MOME-P2C run has learned: the objectives it reaches at preferences from one extreme to the other.

python -m benchmarks.actor RUN [RUN ...]

reads the newest checkpoint of each run (of two objectives), evaluates the actor folded at each preference, and prints
its objectives, its features and how many steps it makes before it falls, beside the best sum of objectives in the
archive. Rewards are scaled by their standard deviations before they are weighted, so the preference that stands for the
plain sum of objectives is in proportion to these.
"""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import moqd
from moqd.core.networks import MLP, Dense
from moqd.io.files import read_tensors
from moqd.runs.checkpoint import CHECKPOINTS, STATE
from moqd.variation.actor_injection import inject

PREFERENCES = 16


def report(run: moqd.Run) -> None:
    assert run.path is not None
    checkpoints = [path for path in (run.path / CHECKPOINTS).glob("*") if path.name.isdecimal()]
    if not checkpoints or not run.config.algorithm.name.startswith("mome-p2c") or run.task.num_objectives != 2:
        sys.exit(f"{str(run.path)!r} is no run of MOME-P2C with two objectives and a checkpoint; give one that is.")
    newest = max(checkpoints)
    tensors = read_tensors(newest / STATE)
    weight = np.linspace(0, 1, PREFERENCES, dtype=np.float32)
    preference = jnp.asarray(np.stack([weight, 1 - weight], axis=1))
    found = run.task.evaluate(jax.random.key(0), inject(_actor(tensors), preference))
    fitness, feature = np.asarray(found.fitness), np.asarray(found.feature)
    steps = np.asarray(found.transitions.valid).reshape(PREFERENCES, -1).sum(axis=1)
    deviation = np.sqrt(tensors["state/experience/reward_stats/variance"])
    archived = run.solutions().objectives
    best = archived[np.argmax(archived.sum(axis=1))]
    print(f"\n{run.path.name}: best sum in the archive {best.sum():.0f}, of {np.round(best)}")
    print(f"the plain sum is the preference {deviation[0] / deviation.sum():.2f} for the first objective")
    columns = (*run.task.objective_names, "sum", *run.task.feature_names, "steps")
    print("weight  " + "".join(f"{name:>20}" for name in columns))
    for w, values, features, length in zip(weight, fitness, feature, steps, strict=True):
        print(f"{w:6.2f}  " + "".join(f"{value:20.4g}" for value in (*values, values.sum(), *features, length)))


def _actor(tensors: dict[str, np.ndarray]) -> MLP:
    prefix = "state/agent/actor/"
    layers = sorted({name.removeprefix(prefix).split("/")[0] for name in tensors if name.startswith(prefix)})
    return tuple(Dense(*(jnp.asarray(tensors[f"{prefix}{i}/{part}"]) for part in ("kernel", "bias"))) for i in layers)


def main() -> None:
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    moqd.use_devices(1)
    for path in map(Path, sys.argv[1:]):
        try:
            report(moqd.load_run(path))
        except moqd.InputError as error:
            sys.exit(str(error))


if __name__ == "__main__":
    main()
