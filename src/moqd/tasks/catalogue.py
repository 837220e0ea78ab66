"""The table of tasks: what each name stands for. It imports no JAX, so that the command line lists it at once."""

from typing import NamedTuple


class Listed(NamedTuple):
    """A task that is not imported yet."""

    summary: str
    objectives: int
    features: int
    parameters: int
    """With the defaults of its options."""
    build: str
    """The function that builds it, as MODULE:NAME in moqd.tasks; a robot's is given the name too."""
    config: str
    """The class of its options, in the same module."""
    policies: bool = False
    """Whether its solutions are policies, so that it suits algorithms with policy gradients."""


def _robot(summary: str, objectives: int, features: int, parameters: int) -> Listed:
    return Listed(summary, objectives, features, parameters, "locomotion:locomotion", "LocomotionConfig", policies=True)


CATALOGUE: dict[str, Listed] = {
    "ant-2": _robot("an ant runs fast, with little energy", 2, 4, 6472),
    "ant-3": _robot("an ant runs along x and y, with little energy", 3, 4, 6472),
    "halfcheetah-2": _robot("a planar cheetah runs fast, with little energy", 2, 2, 5702),
    "hopper-2": _robot("a leg hops fast, with little energy", 2, 1, 5123),
    "hopper-3": _robot("a leg hops fast and high, with little energy", 3, 1, 5123),
    "walker-2": _robot("two legs walk fast, with little energy", 2, 2, 5702),
    "arm-2": Listed("an arm reaches everywhere, with little torque", 2, 2, 12, "analytic:arm", "ArmConfig"),
    "rastrigin-2": Listed(
        "two Rastrigin functions with optima apart", 2, 2, 10, "analytic:rastrigin", "RastriginConfig"
    ),
    "dtlz2-5": Listed("DTLZ2 with five objectives", 5, 2, 14, "analytic:dtlz2", "Dtlz2Config"),
}
