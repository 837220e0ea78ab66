"""The table of tasks. It imports no JAX, so that the command line lists it at once."""

from dataclasses import dataclass

from moqd.io.lazy import Listed, loader


@dataclass(frozen=True)
class Entry(Listed):
    """What a name stands for."""

    sizes: tuple[int, int, int] | None = None
    """Objectives, features and parameters, with the defaults of the config."""
    policies: bool = False
    """Whether its solutions are policies, so that it suits algorithms with policy gradients."""


def _robot(name: str, summary: str, objectives: int, features: int, parameters: int) -> Entry:
    load = loader("moqd.tasks.locomotion", "locomotion", "LocomotionConfig", name)
    return Entry(summary, load, (objectives, features, parameters), policies=True)


TASKS: dict[str, Entry] = {
    "ant-2": _robot("ant-2", "an ant runs fast, with little energy", 2, 4, 6472),
    "ant-3": _robot("ant-3", "an ant runs along x and y, with little energy", 3, 4, 6472),
    "halfcheetah-2": _robot("halfcheetah-2", "a planar cheetah runs fast, with little energy", 2, 2, 5702),
    "hopper-2": _robot("hopper-2", "a leg hops fast, with little energy", 2, 1, 5123),
    "hopper-3": _robot("hopper-3", "a leg hops fast and high, with little energy", 3, 1, 5123),
    "walker-2": _robot("walker-2", "two legs walk fast, with little energy", 2, 2, 5702),
    "arm-2": Entry(
        "an arm reaches everywhere, with little torque", loader("moqd.tasks.analytic", "arm", "ArmConfig"), (2, 2, 12)
    ),
    "rastrigin-2": Entry(
        "two Rastrigin functions with optima apart",
        loader("moqd.tasks.analytic", "rastrigin", "RastriginConfig"),
        (2, 2, 10),
    ),
    "dtlz2-5": Entry("DTLZ2 with five objectives", loader("moqd.tasks.analytic", "dtlz2", "Dtlz2Config"), (5, 2, 14)),
}
