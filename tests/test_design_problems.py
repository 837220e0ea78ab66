"""The problems on which algorithms are compared, against pymoo and against designs that the literature knows."""

import jax
import numpy as np
import pytest
from pymoo.problems import get_problem

import moqd
from benchmarks.design.ceilings import best_brakes, best_vessels
from benchmarks.design.problems import PROBLEMS, Problem, task
from benchmarks.design.rivals import Method

EACH = pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)


def designs(problem: Problem, number: int = 200) -> np.ndarray:
    """Random genotypes, and corners."""
    rng = np.random.default_rng(1)
    unit = rng.random((number, len(problem.bounds)), np.float32)
    return np.concatenate([unit, np.round(unit[:50])])


def measure(problem: str, **parameters: float) -> list[np.ndarray]:
    """What a design comes to; other parameters are in the middle."""
    space = task(PROBLEMS[problem]).space
    assert space is not None
    x = dict(zip(space.names, space.vector(np.full(len(space.names), 0.5)), strict=True)) | parameters
    return [part[0] for part in PROBLEMS[problem].evaluate(np.array([list(x.values())]), np)]


@pytest.mark.parametrize(
    ("name", "oracle", "objective_scale", "constraint_scale"),
    [
        ("zdt1", get_problem("zdt1"), 1.0, 1.0),
        ("zdt2", get_problem("zdt2"), 1.0, 1.0),
        ("zdt3", get_problem("zdt3"), 1.0, 1.0),
        ("zdt4", get_problem("zdt4"), 1.0, 1.0),
        ("dtlz2", get_problem("dtlz2", n_var=12, n_obj=3), 1.0, 1.0),
        ("dtlz7", get_problem("dtlz7", n_var=22, n_obj=3), 1.0, 1.0),
        ("wfg4", get_problem("wfg4", n_var=24, n_obj=3), 1.0, 1.0),
        ("welded-beam", get_problem("welded_beam"), 1.0, 1.0),
        ("truss-2", get_problem("truss2d"), [1e3, 1e-3], 1e-5),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_as_in_pymoo(name: str, oracle: object, objective_scale: object, constraint_scale: float) -> None:
    problem = PROBLEMS[name]
    space = task(problem).space
    assert space is not None
    x = space.vector(designs(problem))
    objectives, _, constraints = problem.evaluate(x, np)
    expected = oracle.evaluate(x, return_as_dictionary=True)
    np.testing.assert_allclose(objectives, expected["F"] * np.array(objective_scale), rtol=1e-9, atol=1e-9)
    if problem.constraints:
        np.testing.assert_allclose(constraints, expected["G"] * constraint_scale, rtol=1e-9, atol=1e-9)
    if name != "truss-2":  # whose bars may vanish there, under infinite stress
        np.testing.assert_array_equal(np.array(list(problem.bounds.values())).T, [oracle.xl, oracle.xu])


@EACH
def test_numpy_and_jax_agree(problem: Problem) -> None:
    """The compiled task, and the task on the host, give the same numbers, to 32 bits."""
    genotype, key = designs(problem), jax.random.key(0)
    traced = jax.jit(task(problem).evaluate)(key, genotype)
    on_host = task(problem, traceable=False).evaluate(key, genotype)
    for ours, theirs in zip(jax.tree.leaves(traced), jax.tree.leaves(on_host), strict=True):
        ours, theirs = np.asarray(ours, float), np.asarray(theirs, float)
        scale = max(float(np.median(np.abs(theirs))), 1.0)
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=3e-5 * scale)
    assert np.all(traced.valid)


@EACH
def test_features_span_their_bounds(problem: Problem) -> None:
    """Of random feasible designs, each feature covers at least half of its bounds, and few are beyond."""
    rng = np.random.default_rng(0)
    space = task(problem).space
    assert space is not None
    objectives, features, constraints = problem.evaluate(space.vector(rng.random((5000, len(problem.bounds)))), np)
    feasible = np.all(constraints <= 0, axis=1)
    low, high = np.array(list(problem.features.values())).T
    found = features[feasible]
    inside = np.mean((found >= low) & (found <= high), axis=0)
    spanned = (np.min([found.max(0), high], axis=0) - np.max([found.min(0), low], axis=0)) / (high - low)
    assert np.all(spanned > 0.5)
    assert np.all(inside > 0.6)
    if problem.kind == "engineering":
        volume = moqd.hypervolume(-objectives[feasible], [-value for value in problem.reference_point])
        assert volume > 0


def test_pressure_vessel_of_the_literature() -> None:
    objectives, _, constraints = measure("pressure-vessel", shell=13, head=7, radius=42.098446, length=176.636596)
    np.testing.assert_allclose(objectives, [6.059714, -1.296], rtol=1e-6)
    np.testing.assert_allclose(constraints[[0, 2]], 0, atol=1e-6)


def test_speed_reducer_of_the_literature() -> None:
    """The lightest with stresses of at most 1100 and 850."""
    design = {"face": 3.5, "module": 0.7, "teeth": 17, "length 1": 7.3, "length 2": 7.71532}
    objectives, _, constraints = measure("speed-reducer", **design, **{"diameter 1": 3.350215, "diameter 2": 5.286654})
    np.testing.assert_allclose(objectives, [2994.471, 1100], rtol=1e-5)
    np.testing.assert_allclose((constraints[10] + 1) * 1100, 850, rtol=1e-5)
    assert np.all(constraints < 1e-6)


def test_disc_brake_of_the_literature() -> None:
    """The lightest."""
    objectives, _, _ = measure("disc-brake", inner=55, outer=75, force=3000, discs=2)
    np.testing.assert_allclose(objectives, [0.1274, 16.6549], rtol=1e-5)


def test_ten_bar_truss_of_the_literature() -> None:
    """The lightest that moves by at most 2 inches."""
    areas = (30.5218, 0.1, 23.1999, 15.2229, 0.1, 0.5514, 7.4572, 21.0364, 21.5284, 0.1)
    objectives, _, constraints = measure("truss-10", **{f"area {i + 1}": area for i, area in enumerate(areas)})
    np.testing.assert_allclose(objectives, [5060.85, 2.0], rtol=1e-4)
    np.testing.assert_allclose(constraints, 0, atol=1e-3)


def test_heat_sink_obeys_physics() -> None:
    slow, fast = (measure("heat-sink", speed=speed, fins=20) for speed in (0.5, 1.0))
    assert fast[0][0] < slow[0][0]  # cooler
    assert fast[0][2] > slow[0][2] + 10  # and louder
    light, heavy = (measure("heat-sink", fins=20, **{"fin metal": metal, "base metal": metal}) for metal in (0, 1))
    assert heavy[1][0] > 2 * light[1][0]
    assert heavy[0][0] < light[0][0]
    few, many = (measure("heat-sink", pipes=pipes, fins=20) for pipes in (0, 4))
    assert many[0][0] < few[0][0]


def test_battery_pack_by_hand() -> None:
    objectives, features, _ = measure("battery-pack", chemistry=0, cell=0, series=100, parallel=40)
    assert features[0] == pytest.approx(365)
    assert objectives[2] == pytest.approx(-4000 * 0.9 * np.pi / 4 * 0.21**2 * 0.7 * 640 / 1000)
    gentle, quick = (measure("battery-pack", power=power)[2] for power in (50.0, 100.0))
    warmer = [30 * constraints[1] + 55 - 25 for constraints in (gentle, quick)]
    assert warmer[1] == pytest.approx(4 * warmer[0])  # heat grows as the square of the current
    assert quick[2] < gentle[2]


def test_methods_have_options() -> None:
    assert Method.parse("mome") == ("mome", {})
    method = Method.parse("mome[variation=sbx:0.5,polynomial:0.5,ga_batch=100,crowding=True]")
    assert method == ("mome", {"variation": "sbx:0.5,polynomial:0.5", "ga_batch": 100, "crowding": True})
    assert not Method.parse("nobody").is_known
    with pytest.raises(moqd.InputError, match="invalid method"):
        Method.parse("mome[ga_batch=100")


@pytest.mark.parametrize(
    "method",
    [
        *("random", "pymoo-nsga2", "pymoo-sms-emoa"),
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("pyribs-cma-me", "mome[ga_batch=64]")),
    ],
)
@pytest.mark.parametrize("name", ["welded-beam", "heat-sink"])
@pytest.mark.filterwarnings("ignore")  # of the peers
def test_methods_give_all_their_evaluations(name: str, method: str) -> None:
    if method.startswith("pyribs"):
        pytest.importorskip("ribs")  # a peer that only the benchmarks need
    problem = PROBLEMS[name]
    run = Method.parse(method).on(problem)
    x, again, other = run(3, 333), run(3, 333), run(4, 333)
    assert x.shape == (333, len(problem.bounds))
    np.testing.assert_array_equal(x, again)
    assert np.mean(x == other) < 0.5
    assert len(np.unique(x, axis=0)) > 250
    for column, bound in zip(x.T, problem.bounds.values(), strict=True):
        if isinstance(bound, tuple):
            assert np.all((column >= bound[0]) & (column <= bound[1]))
        else:
            assert set(column) <= set(range(bound.low, bound.low + bound.number))


@pytest.mark.parametrize(
    ("name", "best"),
    [
        ("pressure-vessel", lambda x: best_vessels(x[:, 2], x[:, 3])),
        ("disc-brake", lambda x: best_brakes(x[:, 0], x[:, 1], x[:, 3])),
    ],
)
def test_no_feasible_design_is_better_than_the_one_from_which_the_ceiling_is_computed(name, best):
    problem = PROBLEMS[name]
    x = problem.space.vector(np.random.default_rng(2).random((20_000, len(problem.bounds))))
    objectives, features, constraints = problem.evaluate(x, np)
    feasible = np.all(constraints <= 0, axis=1)
    assert feasible.sum() > 100
    replaced = best(x[feasible])
    low, high = problem.space.vector(np.array([[0.0], [1.0]]) * np.ones(len(problem.bounds)))
    assert np.all((replaced >= low) & (replaced <= high))
    found = problem.evaluate(replaced, np)
    assert np.all(found[0] <= objectives[feasible] * (1 + 1e-9 * np.sign(objectives[feasible])))
    np.testing.assert_array_equal(found[1], features[feasible])
    assert np.all(found[2] <= 1e-9)
