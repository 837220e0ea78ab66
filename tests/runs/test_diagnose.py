"""What diagnosis says of a run, against plain computations from the same offspring; and that it only reads the run."""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import moocore
import numpy as np
import pytest
from scipy.stats import rankdata

import moqd
from moqd.algorithms import mome_p2c, mome_pgx
from moqd.core.types import Source
from moqd.io.files import read_tensors
from moqd.runs.timing import Measured, Measurement
from tests import naive
from tests.algorithms.test_algorithms import small
from tests.plain import PLAIN
from tests.quick import only
from tests.walk import Walk, walk

DISCOUNT, GENERATIONS = 0.99, 3
CASES = {"mome-p2c": {}, "mome-p2c with costs": {"after_fall": "costs"}, "mome-pgx": {}, "pga-me": {}}


@dataclass(frozen=True, eq=False)
class Steep(Walk):
    """A walk that ends as soon as the point is left of the start by a little."""

    def evaluate(self, key, genotype):
        whole = super().evaluate(key, genotype)
        steps = whole.transitions
        left = (steps.next_obs[..., 0] < -0.02).astype(jnp.int32)
        valid = (jnp.cumsum(left, axis=1) - left) == 0
        steps = steps._replace(valid=valid, terminated=valid & (left == 1))
        return whole._replace(fitness=jnp.sum(steps.reward, axis=1, where=valid[..., None]), transitions=steps)


def steep() -> Steep:
    return Steep(**{name: value for name, value in vars(walk()).items() if not name.startswith("_")})


class Seen(NamedTuple):
    """A diagnosis, and what passed by while it was made."""

    found: moqd.Diagnosis
    run: moqd.Run
    generations: list[Measured]
    parents: list[Any]
    before: dict[str, bytes]
    after: dict[str, bytes]


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b"" for path in folder.rglob("*")}


def noting(function: Callable[..., Any], noted: list[Any]) -> Callable[..., Any]:
    def call(*arguments, **options):
        noted.append((arguments, options, function(*arguments, **options)))
        return noted[-1][-1]

    return call


@pytest.fixture(scope="module", params=only([], CASES))
def seen(request, tmp_path_factory) -> Seen:
    name, options = request.param.partition(" ")[0], CASES[request.param]
    task, folder = steep(), tmp_path_factory.mktemp("diagnosed") / "run"
    run = moqd.run(small(name, task, **options), task, iterations=4, out=folder, seed=1)
    before, measured, improved = content(folder), [], []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Measurement, "__call__", noting(Measurement.__call__, measured))
        for module in (mome_p2c, mome_pgx):
            patch.setattr(module, "improve", noting(module.improve, improved))
        found = moqd.diagnose(folder, task=task, generations=GENERATIONS)
    # Each batch is improved in `ask`, on its own to be timed, and by steps of length 0 to know the parents.
    each = len(improved) // (3 * GENERATIONS)
    asked = [call for i, call in enumerate(improved) if i % (3 * each) < each]
    assert all(options["learning_rate"] > 0 for _, options, _ in asked)
    return Seen(found, run, [one for *_, one in measured], [call[0][0] for call in asked], before, content(folder))


def rows_of(seen: Seen) -> list[dict[str, Any]]:
    """All offspring, with what came of each."""
    return [
        {
            "source": Source(int(one.offspring.source[i])).name.lower(),
            "preference": np.asarray(one.offspring.preference[i], float),
            "fitness": np.asarray(one.evaluation.fitness[i], float),
            "feature": np.asarray(one.evaluation.feature[i], float),
            "steps": jax.tree.map(lambda leaf, i=i: np.asarray(leaf[i]), one.evaluation.transitions),
            "generation": generation,
        }
        for generation, one in enumerate(seen.generations)
        for i in range(len(one.offspring.source))
    ]


def front_of(run: moqd.Run, feature: np.ndarray) -> tuple[int, np.ndarray]:
    """The nearest cell, and what is in it."""
    cell = int(np.argmin(np.abs(np.asarray(run.archive.centroid)[:, 0] - feature[0])))
    return cell, np.asarray(run.archive.fitness, float)[cell][np.asarray(run.archive.valid)[cell]]


def tensors(seen: Seen) -> dict[str, np.ndarray]:
    """What the algorithm itself goes on from; of PGA-ME, without the passive archive."""
    assert seen.run.path is not None
    stored = read_tensors(seen.run.path / "checkpoints" / "00000004" / "state.safetensors")
    prefix = "state/active/" if seen.found.algorithm == "pga-me" else "state/"
    return {name.removeprefix(prefix): value for name, value in stored.items() if name.startswith(prefix)}


def in_bin(row: dict[str, Any], preference: str) -> bool:
    if preference == "all":
        return True
    low, high = map(float, preference.split(" to "))
    return low <= row["preference"][0] < high or (high == 1 == row["preference"][0])


def group(rows: list[dict[str, Any]], told: Any) -> list[dict[str, Any]]:
    """The offspring that a row of a table is about."""
    return [row for row in rows if row["source"] in told["source"].split(" + ") and in_bin(row, told["preference"])]


def test_the_folder_stays_as_it_is(seen):
    assert seen.before == seen.after
    assert "checkpoints/00000004/state.safetensors" in seen.before


def test_offspring_are_counted_and_judged_as_the_archive_would(seen):
    rows, run, length = rows_of(seen), seen.run, seen.run.archive.valid.shape[1]
    reference = np.asarray([-8.0, -8.0])
    unit = np.asarray(run.archive.fitness, float)[np.asarray(run.archive.valid)].max(axis=0) - reference
    for row in rows:
        cell, front = front_of(run, row["feature"])
        mates = [other for other in rows if other["generation"] == row["generation"]]
        newcomers = [tuple(o["fitness"]) for o in mates if front_of(run, o["feature"])[0] == cell]
        kept, point = naive.add([tuple(one) for one in front], newcomers, length), tuple(row["fitness"])
        row["entered"] = point in kept and point not in [tuple(one) for one in front]
        volumes = [
            moocore.hypervolume((points - reference) / unit, ref=[0.0, 0.0], maximise=True) if len(points) else 0.0
            for points in (front, np.vstack([front.reshape(-1, 2), row["fitness"]]))
        ]
        row["hypervolume"] = volumes[1] - volumes[0]
    for told in seen.found.offspring:
        some = [row for row in rows if row["source"] == told["source"]]
        assert told["number"] == len(some) > 0
        # Two offspring of a batch may be the same (an actor at the same preference); one of them enters.
        assert told["entered"] == pytest.approx(np.mean([row["entered"] for row in some]), abs=1.01 / len(some))
        assert told["hypervolume"] == pytest.approx(np.mean([row["hypervolume"] for row in some]), rel=1e-3, abs=1e-6)
        assert told["seconds"] > 0
        assert told["hypervolume_per_second"] == told["hypervolume"] / told["seconds"]
    assert sum(told["number"] for told in seen.found.offspring) == len(rows) == 12 * GENERATIONS


def test_the_cost_of_offspring_is_that_of_an_iteration(seen):
    """All offspring of a generation cost, taken together, what its parts took where they were fastest."""
    timed = seen.generations[1:]
    fastest = {name: min(one.parts[name] for one in timed) for name in timed[0].parts}
    gradient = fastest.pop("policy_gradient_variation")
    told = {row["source"]: row for row in seen.found.offspring}
    spent = sum(row["number"] * row["seconds"] for row in told.values()) / GENERATIONS
    assert spent == pytest.approx(sum(fastest.values()) + max(min(one.ask for one in timed), gradient), rel=1e-6)
    assert told["pg"]["seconds"] > told["ga"]["seconds"] or gradient == 0


def weighed(seen: Seen, row: dict[str, Any], values: np.ndarray) -> float:
    """w.r of what is learned from: PGA-ME learns from the sum."""
    scale = np.sqrt(tensors(seen)["experience/reward_stats/variance"].astype(float))
    if seen.found.algorithm == "pga-me":
        return float(values.sum() / scale[0])
    return float(np.sum(row["preference"] * values / scale))


def test_gradients_are_judged_by_what_is_archived_of_the_parents(seen):
    """An evaluation is not noisy, so that of a parent is what the archive says of it, which is found by its genes."""
    stored = tensors(seen)
    fitness = stored["archive/fitness"].astype(float)  # of PGA-ME, the sum
    layers = [stored[f"archive/genotype/{layer}/{part}"] for layer in range(2) for part in ("kernel", "bias")]
    members = np.concatenate([leaf.reshape(len(fitness), -1) for leaf in layers], axis=1)
    parents = np.concatenate(
        [
            np.concatenate([np.asarray(leaf).reshape(len(leaf), -1) for leaf in jax.tree.leaves(batch)], axis=1)
            for batch in seen.parents
        ]
    )
    children = [row for row in rows_of(seen) if row["source"] == "pg"]
    assert len(children) == len(parents)
    for child, genes in zip(children, parents, strict=True):
        (place,) = np.flatnonzero((members == genes).all(axis=1))[:1]
        reached = child["fitness"] if len(fitness[place]) == 2 else child["fitness"].sum()
        child["change"] = weighed(seen, child, reached - fitness[place])
    for told in seen.found.gradients:
        changes = [child["change"] for child in children if in_bin(child, told["preference"])]
        assert told["number"] == len(changes)
        assert told["change"] == pytest.approx(np.mean(changes), rel=1e-3, abs=1e-5)
        assert told["improved"] == np.mean([change > 0 for change in changes])
    assert seen.found.gradients[0]["preference"] == "all"
    assert sum(told["number"] for told in seen.found.gradients[1:]) == len(children)


def naive_value(seen: Seen, row: dict[str, Any]) -> float:
    """w.Q1 of the first step, by NumPy from the arrays of the checkpoint."""
    stored, name = tensors(seen), seen.found.algorithm
    mean, variance = (stored[f"experience/obs_stats/{part}"] for part in ("mean", "variance"))
    seen_obs = (row["steps"].obs[0] - mean) / np.where(variance > 0, np.sqrt(variance), 1)
    inputs = [seen_obs, row["steps"].action[0]] + ([row["preference"]] if name == "mome-p2c" else [])
    which = {"mome-p2c": (0,), "mome-pgx": (int(np.argmax(row["preference"])), 0), "pga-me": (0, 0)}[name]
    prefix = "agent" if name == "mome-p2c" else "agents"
    x = np.concatenate(inputs)
    for layer in range(3):
        kernel, bias = (stored[f"{prefix}/critics/{layer}/{part}"][which] for part in ("kernel", "bias"))
        x = x @ kernel + bias
        x = np.maximum(x, 0) if layer < 2 else x
    return float(np.sum(x * row["preference"])) if name == "mome-p2c" else float(x[0])


def naive_return(seen: Seen, row: dict[str, Any]) -> float:
    stats, steps, total = tensors(seen), row["steps"], 0.0
    after = seen.run.config.algorithm.options.get("after_fall", "nothing")
    costs = np.minimum(stats["experience/reward_stats/mean"].astype(float), 0)
    for time in range(len(steps.valid)):
        if steps.valid[time]:
            total += DISCOUNT**time * weighed(seen, row, steps.reward[time].astype(float))
        if steps.valid[time] and steps.terminated[time] and after == "costs":
            total += DISCOUNT**time * DISCOUNT / (1 - DISCOUNT) * weighed(seen, row, costs)
    return total


def test_critics_are_compared_with_discounted_returns(seen):
    rows = [row for row in rows_of(seen) if row["source"] in ("pg", "actor")]
    for row in rows:
        row["value"], row["return"] = naive_value(seen, row), naive_return(seen, row)
    for told in seen.found.critics:
        some = group(rows, told)
        values, returns = (np.array([row[name] for row in some]) for name in ("value", "return"))
        assert told["number"] == len(some)
        assert told["predicted"] == pytest.approx(values.mean(), rel=1e-3, abs=1e-4)
        assert told["returned"] == pytest.approx(returns.mean(), rel=1e-3, abs=1e-4)
        assert told["error"] == pytest.approx(told["predicted"] - told["returned"], abs=1e-6)
        cut = [0 if row["steps"].terminated.any() else DISCOUNT ** row["steps"].valid.sum() for row in some]
        assert told["beyond_end"] == pytest.approx(np.mean(cut), rel=1e-5)
        if told["rank_correlation"] is None:
            assert len(some) < 3 or np.ptp(values) == 0 or np.ptp(returns) == 0
        else:
            ranks = np.corrcoef(rankdata(np.round(values, 5)), rankdata(np.round(returns, 5)))[0, 1]
            assert told["rank_correlation"] == pytest.approx(ranks, abs=0.05)
    assert [told["source"] for told in seen.found.critics if told["preference"] == "all"] == ["pg", "actor"]


def test_falls_are_counted(seen):
    rows = rows_of(seen)
    for told in seen.found.falls:
        some = group(rows, told)
        fell = [any(row["steps"].terminated[: row["steps"].valid.sum()]) for row in some]
        assert told["number"] == len(some)
        assert told["fell"] == pytest.approx(np.mean(fell), rel=1e-6)
        assert told["length"] == pytest.approx(np.mean([row["steps"].valid.sum() for row in some]), rel=1e-6)
    shares = [told["fell"] for told in seen.found.falls]
    assert max(shares) > 0
    assert min(shares) < 1


def test_it_says_what_it_found(seen):
    found = seen.found
    assert list(found.tables) == list(found.readings) == ["offspring", "gradients", "critics", "falls"]
    shown = repr(found)
    assert shown.startswith(f"Diagnosis({found.algorithm} on walk, iteration 4, 3 generations):\n  Learning ")
    for start in ("Gradients ", "The critic ", "Episodes that end in a fall: ga "):
        assert f"\n  {start}" in shown
    stored = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert stored["readings"] == found.readings
    assert stored["offspring"] == list(found.offspring)
    assert (found.weight_of, found.iteration) == ("speed", 4)


@pytest.fixture(scope="module")
def plain(tmp_path_factory) -> moqd.Run:
    """Of a function on the host, without reference point."""
    task = moqd.FunctionTask(
        lambda x, y: ([x, 1 - x * y], [y]),
        name="plain",
        bounds={"x": (0.0, 1.0), "y": (0.0, 1.0)},
        objective_names=["a", "b"],
        feature_names=["y"],
        feature_bounds=[(0.0, 1.0)],
    )
    few = {"iterations": 3, "ga_batch": 6, "num_cells": 4}
    return moqd.run("mome", task, **few, **PLAIN, out=tmp_path_factory.mktemp("plain") / "run")


def test_a_function_has_offspring_and_nothing_more(plain):
    before = content(plain.path)
    found = moqd.diagnose(plain, generations=2)
    assert content(plain.path) == before
    assert list(found.tables) == ["offspring"]
    (row,) = found.offspring
    assert (row["source"], row["number"]) == ("ga", 12)
    assert 0 <= row["entered"] <= 1
    again, other = (moqd.diagnose(plain, generations=2, seed=seed).offspring[0] for seed in (0, 1))
    assert again["hypervolume"] == row["hypervolume"] != other["hypervolume"]


def test_mistakes_are_told_in_a_sentence(plain, tmp_path):
    with pytest.raises(moqd.InputError, match="generations is 1; give a whole number of at least 2"):
        moqd.diagnose(plain, generations=1)
    with pytest.raises(moqd.InputError, match="is not a run: it holds no config"):
        moqd.diagnose(tmp_path)
    with pytest.raises(moqd.InputError, match="is of the task 'plain', which is not one of moqd's; pass it as task="):
        moqd.diagnose(plain.path)
    folder = tmp_path / "bare"
    shutil.copytree(plain.path, folder)
    shutil.rmtree(folder / "checkpoints")
    with pytest.raises(moqd.InputError, match="has no checkpoint, so it cannot be continued"):
        moqd.diagnose(folder, task=plain.task)
    assert not (folder / "checkpoints").exists()
    with pytest.raises(moqd.InputError, match="the run is not in a folder"):
        moqd.diagnose(replace(plain, path=None))


def test_a_damaged_checkpoint_is_left_alone(plain, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(plain.path, folder)
    newest = max((folder / "checkpoints").iterdir())
    shutil.copytree(newest, newest.with_name("00000009"))
    before = content(folder)
    with pytest.warns(UserWarning, match=r"The checkpoint before it is used, of iteration 3\."):
        assert moqd.diagnose(folder, task=plain.task, generations=2).iteration == 3
    assert content(folder) == before


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mome", "nsga2", "mome-p2c-no-actor", "mome-p2c-no-ga", "pga-me-128", "mo-cma-mae"])
def test_every_kind_of_algorithm(name, tmp_path):
    task = walk(3)
    algorithm = small(name, task)
    run = moqd.run(algorithm, task, iterations=2, out=tmp_path / "run")
    found = moqd.diagnose(run, generations=2)
    learns = hasattr(algorithm.config, "pg_batch")
    assert list(found.tables) == (["offspring", "gradients", "critics", "falls"] if learns else ["offspring", "falls"])
    if learns:
        assert {row["preference"] for row in found.gradients} <= {"all", *task.objective_names}
    assert len(repr(found).splitlines()) == 1 + len(found.tables)
