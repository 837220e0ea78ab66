"""Analytic tasks with features: compiled in milliseconds, for tests, examples and first steps."""

from dataclasses import dataclass, field

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from moqd.tasks.function import FunctionTask

Measured = tuple[Float[Array, "objectives"], Float[Array, "features"]]


@dataclass(frozen=True)
class ArmConfig:
    """Options of arm-2."""

    num_joints: int = 12
    """Joints, and links, of the arm."""


def arm(config: ArmConfig) -> FunctionTask:
    """A planar arm in gravity that reaches everywhere: little bending against little holding torque.

    The features are where its hand ends up, so a cell holds all the ways to reach one place, from the straightest to
    the one that the joints carry most easily.
    """
    num_joints = config.num_joints
    mass = length = 1.0 / num_joints

    def reach(angle: Float[Array, "joints"]) -> Measured:
        heading = jnp.cumsum(angle)
        end_x, end_y = jnp.cumsum(length * jnp.cos(heading)), jnp.cumsum(length * jnp.sin(heading))
        middle_x = end_x - 0.5 * length * jnp.cos(heading)
        joint_x = jnp.concatenate([jnp.zeros(1), end_x[:-1]])
        # The joint at the base of each link carries that link and all links after it.
        carried = jnp.cumsum(middle_x[::-1])[::-1] - joint_x * jnp.arange(num_joints, 0.0, -1.0)
        objectives = jnp.stack([jnp.mean(angle**2), jnp.mean(jnp.abs(mass * carried))])
        return objectives, jnp.stack([end_x[-1], end_y[-1]])

    return FunctionTask(
        reach,
        name="arm-2",
        bounds=((-np.pi / 2, np.pi / 2),) * num_joints,
        parameter_names=tuple(f"angle {i}" for i in range(num_joints)),
        objective_names=("bending", "torque"),
        minimised=("bending", "torque"),
        feature_names=("hand x", "hand y"),
        feature_bounds=((-1.0, 1.0), (-1.0, 1.0)),
        reference_point=(2.5, 0.5),
        units={
            "bending": "rad², mean",
            "torque": "arm weight · length, mean",
            "hand x": "arm lengths",
            "hand y": "arm lengths",
        },
        traceable=True,
    )


@dataclass(frozen=True)
class RastriginConfig:
    """Options of rastrigin-2."""

    num_parameters: int = field(default=10, metadata={"least": 2})
    """Parameters, of which the first two are the features; at least 2."""


def rastrigin(config: RastriginConfig) -> FunctionTask:
    """Two Rastrigin functions with optima a little apart (MOME's first benchmark); the features are two parameters.

    Many local optima, and a front between the two centres in every cell.
    """

    def score(x: Float[Array, "parameters"], centre: float) -> Float[Array, ""]:
        z = x - centre
        return -jnp.sum(z**2 + 10 * (1 - jnp.cos(2 * jnp.pi * z)))

    return FunctionTask(
        lambda x: (jnp.stack([score(x, 0.0), score(x, 2.2)]), x[:2]),
        name="rastrigin-2",
        bounds=((-2.0, 4.0),) * config.num_parameters,
        objective_names=("score at 0", "score at 2.2"),
        feature_names=("x0", "x1"),
        feature_bounds=((-2.0, 4.0), (-2.0, 4.0)),
        # Nothing within the bounds scores below this.
        reference_point=(-40.0 * config.num_parameters,) * 2,
        traceable=True,
    )


@dataclass(frozen=True)
class Dtlz2Config:
    """Options of dtlz2-5."""

    num_distance_parameters: int = field(default=10, metadata={"least": 2})
    """Parameters that say how far from the best front a solution is; the first two are the features; at least 2."""


def dtlz2(config: Dtlz2Config, num_objectives: int = 5) -> FunctionTask:
    """DTLZ2 (Deb et al., 2002), minimised: a spherical front in many objectives.

    The features are two of the distance parameters, so that every cell has a whole front, larger the farther the cell
    is from the middle.
    """

    def sphere(x: Float[Array, "parameters"]) -> Measured:
        position, distance = x[: num_objectives - 1], x[num_objectives - 1 :]
        radius = 1 + jnp.sum((distance - 0.5) ** 2)
        # The cosine as a sine, which is exactly 0 at 1: the float32 cosine of a right angle is a little below 0, and
        # that would make a larger radius the better one.
        cosine, sine = jnp.sin((1 - position) * jnp.pi / 2), jnp.sin(position * jnp.pi / 2)
        cosines = jnp.concatenate([jnp.ones(1), jnp.cumprod(cosine)])[::-1]
        sines = jnp.concatenate([jnp.ones(1), sine[::-1]])
        return radius * cosines * sines, distance[:2]

    names = tuple(f"f{i + 1}" for i in range(num_objectives))
    return FunctionTask(
        sphere,
        name=f"dtlz2-{num_objectives}",
        bounds=((0.0, 1.0),) * (num_objectives - 1 + config.num_distance_parameters),
        objective_names=names,
        minimised=names,
        feature_names=("distance 0", "distance 1"),
        feature_bounds=((0.0, 1.0), (0.0, 1.0)),
        reference_point=(2.0,) * num_objectives,
        traceable=True,
    )
