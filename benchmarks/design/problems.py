"""Design problems with features: the classic test functions, and engineering problems with constraints.

Every function is written once, for NumPy and for jax.numpy, so that all libraries optimise the same numbers. All
objectives are minimised, and a solution is feasible if every constraint value is at most 0.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

import moqd
from moqd.tasks.parameters import Bound, Space, space_of

Measured = tuple[Any, Any, Any]
"""Objectives, features and constraints: matrices, one row per solution."""


class Problem(NamedTuple):
    """A design problem."""

    name: str
    kind: str
    """zdt/dtlz/wfg, or engineering."""
    evaluate: Callable[[Any, Any], Measured]
    """Called as `evaluate(x, xp)`: `x` has one row per solution and holds parameters in their own units (of a choice
    its index); `xp` is numpy or jax.numpy."""
    bounds: dict[str, Bound]
    objectives: tuple[str, ...]
    features: dict[str, tuple[float, float]]
    """Their bounds by name."""
    reference_point: tuple[float, ...]
    constraints: tuple[str, ...] = ()

    @property
    def space(self) -> Space:
        """The parameters, as moqd maps the unit cube to them."""
        return space_of(list(self.bounds.values()), list(self.bounds))

    @property
    def is_mixed(self) -> bool:
        """Whether some parameters are whole numbers or choices."""
        return not all(isinstance(bound, tuple) for bound in self.bounds.values())


def task(problem: Problem, traceable: bool = True) -> moqd.FunctionTask:
    """The problem as a task: compiled, or called on the host with NumPy."""

    def evaluate(x: Any) -> tuple[Any, ...]:
        measured = problem.evaluate(x, jnp if traceable else np)
        return measured if problem.constraints else measured[:2]

    return moqd.FunctionTask(
        evaluate,
        name=problem.name,
        bounds=list(problem.bounds.values()),
        parameter_names=list(problem.bounds),
        objective_names=problem.objectives,
        minimised=problem.objectives,
        feature_names=tuple(problem.features),
        feature_bounds=tuple(problem.features.values()),
        reference_point=problem.reference_point,
        constraint_names=problem.constraints,
        traceable=traceable,
        batched=True,
    )


def stack(xp: Any, *columns: Any) -> Any:
    return xp.stack(columns, axis=1)


def columns(x: Any) -> Iterator[Any]:
    return (x[:, i] for i in range(x.shape[1]))


def look_up(xp: Any, table: tuple[float, ...], choice: Any) -> Any:
    """What a table says of each choice."""
    return xp.asarray(table, choice.dtype)[choice.astype(int)]


def reals(number: int, low: float = 0.0, high: float = 1.0) -> dict[str, Bound]:
    return {f"x{i}": (low, high) for i in range(number)}


# ---------------------------------------------------------------------------------------------------- ZDT, DTLZ, WFG


def zdt1(x: Any, xp: Any) -> Measured:
    """Zitzler, Deb and Thiele (2000). The features are two of the 29 distance parameters."""
    f1, g = x[:, 0], 1 + 9 * xp.mean(x[:, 1:], axis=1)
    return stack(xp, f1, g * (1 - xp.sqrt(f1 / g))), x[:, 1:3], x[:, :0]


def zdt2(x: Any, xp: Any) -> Measured:
    """Zitzler, Deb and Thiele (2000). The features are the position and a distance parameter."""
    f1, g = x[:, 0], 1 + 9 * xp.mean(x[:, 1:], axis=1)
    return stack(xp, f1, g * (1 - (f1 / g) ** 2)), x[:, :2], x[:, :0]


def zdt3(x: Any, xp: Any) -> Measured:
    """Zitzler, Deb and Thiele (2000). The features are a distance parameter and the mean of five others."""
    f1, g = x[:, 0], 1 + 9 * xp.mean(x[:, 1:], axis=1)
    f2 = g * (1 - xp.sqrt(f1 / g) - f1 / g * xp.sin(10 * np.pi * f1))
    return stack(xp, f1, f2), stack(xp, x[:, 1], xp.mean(x[:, 2:7], axis=1)), x[:, :0]


def zdt4(x: Any, xp: Any) -> Measured:
    """Zitzler, Deb and Thiele (2000). The features are the position and the mean of the distance parameters."""
    f1, distance = x[:, 0], x[:, 1:]
    g = 1 + xp.sum(distance**2 + 10 * (1 - xp.cos(4 * np.pi * distance)), axis=1)
    return stack(xp, f1, g * (1 - xp.sqrt(f1 / g))), stack(xp, f1, xp.mean(distance, axis=1)), x[:, :0]


def dtlz2(x: Any, xp: Any) -> Measured:
    """Deb, Thiele, Laumanns and Zitzler (2002). The features are a position and a distance parameter."""
    radius = 1 + xp.sum((x[:, 2:] - 0.5) ** 2, axis=1)
    # The cosine as a sine, which is exactly 0 at 1: the float32 cosine of a right angle is a little below 0.
    cosine, sine = xp.sin((1 - x[:, :2]) * (np.pi / 2)), xp.sin(x[:, :2] * (np.pi / 2))
    objectives = (cosine[:, 0] * cosine[:, 1], cosine[:, 0] * sine[:, 1], sine[:, 0])
    return stack(xp, *(radius * part for part in objectives)), stack(xp, x[:, 0], x[:, 2]), x[:, :0]


def dtlz7(x: Any, xp: Any) -> Measured:
    """Deb, Thiele, Laumanns and Zitzler (2002): four separate regions. The features are two distance parameters."""
    f1, f2, g = x[:, 0], x[:, 1], 1 + 9 * xp.mean(x[:, 2:], axis=1)
    f3 = 3 * (1 + g) - sum(f * (1 + xp.sin(3 * np.pi * f)) for f in (f1, f2))
    return stack(xp, f1, f2, f3), x[:, 2:4], x[:, :0]


def wfg4(x: Any, xp: Any) -> Measured:
    """Huband, Hingston, Barone and While (2006): every parameter is multi-modal, with its optimum at 0.35 of its range.

    4 position and 20 distance parameters; the features are the means of the two halves of the latter, as shares of
    their ranges.
    """
    z = x / xp.broadcast_to(xp.asarray(2 * np.arange(1.0, 25.0), x.dtype), x.shape)
    away = xp.abs(z - 0.35) / (2 * (xp.floor(0.35 - z) + 0.35))
    shifted = (1 + xp.cos(122 * np.pi * (0.5 - xp.abs(away))) + 40 * away**2) / 12
    first, second, distance = (xp.mean(part, axis=1) for part in (shifted[:, :2], shifted[:, 2:4], shifted[:, 4:]))
    (cos1, sin1), (cos2, sin2) = ((xp.sin((1 - t) * (np.pi / 2)), xp.sin(t * (np.pi / 2))) for t in (first, second))
    objectives = stack(xp, distance + 2 * sin1 * sin2, distance + 4 * sin1 * cos2, distance + 6 * cos1)
    return objectives, stack(xp, xp.mean(z[:, 4:14], axis=1), xp.mean(z[:, 14:], axis=1)), x[:, :0]


# ------------------------------------------------------------------------------------------------------- engineering


def welded_beam(x: Any, xp: Any) -> Measured:
    """A cantilever of 14 inches, welded on, under 6,000 pounds (Deb, 2001): cost against deflection at its end."""
    weld, length, height, width = columns(x)
    cost = 1.10471 * weld**2 * length + 0.04811 * height * width * (14 + length)
    deflection = 2.1952 / (width * height**3)
    arm = 0.25 * (weld + height) ** 2
    radius = xp.sqrt(0.25 * length**2 + arm)
    direct = 6000 / (2**0.5 * weld * length)
    torsion = 6000 * (14 + length / 2) * radius / (2**0.5 * weld * length * (length**2 / 12 + arm))
    shear = xp.sqrt(direct**2 + torsion**2 + direct * torsion * length / radius)
    buckling = 64746.022 * (1 - 0.0282346 * height) * height * width**3
    constraints = stack(
        xp,
        shear / 13600 - 1,
        6 * 6000 * 14 / (width * height**2) / 30000 - 1,
        (weld - width) / 4.875,
        1 - buckling / 6000,
    )
    return stack(xp, cost, deflection), stack(xp, length, width / height), constraints


def pressure_vessel(x: Any, xp: Any) -> Measured:
    """A cylinder with hemispherical heads (Kannan and Kramer, 1994): cost against volume, made larger here.

    The thicknesses are multiples of 1/16 inch.
    """
    shell, head, radius, length = columns(x)
    shell, head = 0.0625 * shell, 0.0625 * head
    cost = (
        0.6224 * shell * radius * length
        + 1.7781 * head * radius**2
        + 3.1661 * shell**2 * length
        + 19.84 * shell**2 * radius
    )
    volume = 1e-6 * np.pi * radius**2 * (length + 4 / 3 * radius)
    constraints = stack(xp, 0.0193 * radius / shell - 1, 0.00954 * radius / head - 1, 1 - volume / 1.296)
    return stack(xp, cost / 1000, -volume), stack(xp, 2 * radius, length), constraints


def truss_two(x: Any, xp: Any) -> Measured:
    """Two bars that carry a load between two walls (Deb, 2001): volume against the greater stress."""
    first, second, height = columns(x)
    long, short = xp.sqrt(16 + height**2), xp.sqrt(1 + height**2)
    volume = first * long + second * short
    stress = xp.maximum(20 * long / (height * first), 80 * short / (height * second))
    return (
        stack(xp, 1e3 * volume, stress / 1e3),
        stack(xp, height, first / (first + second)),
        stack(xp, stress / 1e5 - 1),
    )


NODES = ((720, 360), (720, 0), (360, 360), (360, 0), (0, 360), (0, 0))
"""Of the ten-bar truss, in inches; the last two are fixed."""
BARS = ((4, 2), (2, 0), (5, 3), (3, 1), (2, 3), (0, 1), (4, 3), (5, 2), (2, 1), (3, 0))


def truss_geometry() -> tuple[np.ndarray, np.ndarray]:
    """The length of every bar, and how much each displacement of a free node makes it longer."""
    lengths, stretches = np.zeros(len(BARS)), np.zeros((len(BARS), 2 * len(NODES)))
    for i, (start, end) in enumerate(BARS):
        along = np.subtract(NODES[end], NODES[start])
        lengths[i] = np.linalg.norm(along)
        stretches[i, 2 * start : 2 * start + 2], stretches[i, 2 * end : 2 * end + 2] = -along, along
    return lengths, (stretches / lengths[:, None])[:, :8]


LENGTHS, STRETCHES = truss_geometry()
LOAD = -100.0 * np.array([0, 0, 0, 1, 0, 0, 0, 1])
"""In thousands of pounds: downwards, on the two lower nodes."""


def truss_ten(x: Any, xp: Any) -> Measured:
    """The ten-bar cantilever of aluminium (Venkayya, 1971): weight against displacement, within 25,000 psi.

    The features are the shares of the material that is in diagonals, and in the half next to the wall.
    """
    stiffness = x * xp.broadcast_to(xp.asarray(1e4 / LENGTHS, x.dtype), x.shape)
    whole = xp.einsum("nb,bi,bj->nij", stiffness, *(xp.asarray(STRETCHES, x.dtype),) * 2)
    load = xp.broadcast_to(xp.asarray(LOAD[:, None], x.dtype), (len(x), 8, 1))
    moved = xp.linalg.solve(whole, load)[:, :, 0]
    longer = moved @ xp.asarray(STRETCHES.T, x.dtype)
    stress = longer * xp.broadcast_to(xp.asarray(1e4 / LENGTHS, x.dtype), x.shape)  # in thousands of psi
    volume = x * xp.broadcast_to(xp.asarray(LENGTHS, x.dtype), x.shape)
    total = xp.sum(volume, axis=1)
    inner = volume[:, 0] + volume[:, 2] + volume[:, 6] + volume[:, 7]
    features = stack(xp, xp.sum(volume[:, 6:], axis=1) / total, inner / total)
    objectives = stack(xp, 0.1 * total, xp.max(xp.abs(moved), axis=1))
    return objectives, features, stack(xp, xp.max(xp.abs(stress), axis=1) / 25 - 1)


def disc_brake(x: Any, xp: Any) -> Measured:
    """A brake of several discs (Osyczka and Kundu, 1995): mass against stopping time."""
    inner, outer, force, discs = columns(x)
    area, third = outer**2 - inner**2, outer**3 - inner**3
    ring = xp.maximum(area, 1.0)  # where the discs have no area they are infeasible anyway
    cubes = xp.maximum(third, 1.0)
    objectives = stack(xp, 4.9e-5 * area * (discs - 1), 9.82e6 * ring / (force * discs * cubes))
    constraints = stack(
        xp,
        (20 - (outer - inner)) / 20,
        (2.5 * (discs + 1) - 30) / 30,
        force / (3.14 * ring) / 0.4 - 1,
        2.22e-3 * force * cubes / ring**2 - 1,
        1 - 2.66e-2 * force * discs * cubes / ring / 900,
    )
    return objectives, stack(xp, outer, discs), constraints


def speed_reducer(x: Any, xp: Any) -> Measured:
    """A gear with two shafts (Golinski, 1970): weight against stress in the first shaft."""
    face, module, teeth, length1, length2, diameter1, diameter2 = columns(x)
    weight = (
        0.7854 * face * module**2 * (10 / 3 * teeth**2 + 14.9334 * teeth - 43.0934)
        - 1.508 * face * (diameter1**2 + diameter2**2)
        + 7.4777 * (diameter1**3 + diameter2**3)
        + 0.7854 * (length1 * diameter1**2 + length2 * diameter2**2)
    )
    pitch = module * teeth
    stress1 = xp.sqrt((745 * length1 / pitch) ** 2 + 1.69e7) / (0.1 * diameter1**3)
    stress2 = xp.sqrt((745 * length2 / pitch) ** 2 + 1.575e8) / (0.1 * diameter2**3)
    constraints = stack(
        xp,
        27 / (face * module**2 * teeth) - 1,
        397.5 / (face * module**2 * teeth**2) - 1,
        1.93 * length1**3 / (pitch * diameter1**4) - 1,
        1.93 * length2**3 / (pitch * diameter2**4) - 1,
        pitch / 40 - 1,
        5 * module / face - 1,
        face / (12 * module) - 1,
        (1.5 * diameter1 + 1.9) / length1 - 1,
        (1.1 * diameter2 + 1.9) / length2 - 1,
        stress1 / 1300 - 1,
        stress2 / 1100 - 1,
    )
    return stack(xp, weight, stress1), stack(xp, teeth, length1 + length2), constraints


class Metal(NamedTuple):
    """What a heat sink is made of."""

    conductivity: float
    density: float
    price: float
    """Per kilogram, and worked."""


METALS = {
    "aluminium": Metal(205.0, 2700.0, 9.0),
    "copper": Metal(385.0, 8960.0, 21.0),
    "magnesium": Metal(84.0, 1770.0, 12.0),
    "graphite": Metal(300.0, 1950.0, 75.0),
}


class Fan(NamedTuple):
    pressure: float
    """At no flow, in Pa."""
    flow: float
    """At no pressure, in m³/s."""
    noise: float
    """In dB(A)."""
    price: float


FANS = {
    "slim": Fan(18.0, 0.007, 27.0, 3.5),
    "80 mm": Fan(32.0, 0.015, 32.0, 5.0),
    "92 mm": Fan(45.0, 0.025, 37.0, 8.0),
    "server": Fan(160.0, 0.035, 52.0, 15.0),
}
INTERFACES = {"pad": (0.20, 0.3), "paste": (0.06, 0.8), "solder": (0.015, 5.0)}
"""Thermal resistance in K/W and price."""


def field_of(xp: Any, table: dict[str, Any], choice: Any, name: int | str) -> Any:
    """One property of what each solution has chosen."""
    values = (row[name] if isinstance(name, int) else getattr(row, name) for row in table.values())
    return look_up(xp, tuple(values), choice)


def heat_sink(x: Any, xp: Any) -> Measured:
    """A finned heat sink of a chip of 100 W in the stream of a fan: temperature rise, cost and noise.

    The flow is where the fan's curve meets that of the channels; the convection in them is by Teertstra, Yovanovich
    and Culham (2000), and the spreading of heat in the base by Lee, Song, Au and Moran (1995).
    """
    width, length, base, height, fin, taper, speed, fins, pipes, fin_metal, base_metal, fan, interface = columns(x)
    width, length, base, height, fin = (1e-3 * part for part in (width, length, base, height, fin))
    mean_fin = fin * (1 - taper / 2)
    gap = (width - fins * mean_fin) / (fins - 1)
    free = xp.maximum(gap, 2e-4)  # where fins overlap they are infeasible anyway
    # The air's speed v: pressure drop 48 mu L v / (2 s)² + 0.6 rho v² against the fan's curve, a straight line.
    pressure = speed**2 * field_of(xp, FANS, fan, "pressure")
    most = speed * field_of(xp, FANS, fan, "flow")
    opening = (fins - 1) * free * height
    linear = 48 * 1.85e-5 * length / (2 * free) ** 2 + pressure * opening / most
    v = 2 * pressure / (linear + xp.sqrt(linear**2 + 4 * 0.6 * 1.16 * pressure))
    # Convection between the fins, and how well these conduct.
    reynolds = free**2 * v / (1.6e-5 * length)
    developed = 0.71 * reynolds / 2
    developing = 0.664 * 0.71 ** (1 / 3) * xp.sqrt(reynolds) * xp.sqrt(1 + 3.65 / xp.sqrt(reynolds))
    convection = 0.026 / free * (developed**-3 + developing**-3) ** (-1 / 3)
    fin_conductivity = field_of(xp, METALS, fin_metal, "conductivity")
    decay = height * xp.sqrt(2 * convection / (fin_conductivity * mean_fin))
    efficiency = xp.tanh(decay) / decay
    surface = length * (2 * fins * height * efficiency + (fins - 1) * free)
    sink = 1 / (convection * surface) + 1 / (2 * 1.16 * 1007 * opening * v)
    # The base, to which heat pipes of 6 mm add, spreads the heat of a chip of 25 x 25 mm.
    piped = xp.minimum(pipes * 6e-3 / width, 0.9) * xp.minimum(base / 7e-3, 1.0)
    conductivity = field_of(xp, METALS, base_metal, "conductivity") + 3000 * piped
    source, plate = 0.025 / np.pi**0.5, xp.sqrt(width * length / np.pi)
    share, thickness = source / plate, base / plate
    rate = np.pi + 1 / (np.pi**0.5 * share)
    over_biot = rate * np.pi * conductivity * plate * sink
    tangent = xp.tanh(rate * thickness)
    spreading = share * thickness + (1 - share) * (tangent + over_biot) / (1 + over_biot * tangent)
    resistance = sink + spreading / (np.pi * conductivity * source)
    rise = 100 * (resistance + field_of(xp, INTERFACES, interface, 0))
    fin_mass = fins * mean_fin * height * length * field_of(xp, METALS, fin_metal, "density")
    base_mass = base * width * length * field_of(xp, METALS, base_metal, "density")
    mass = fin_mass + base_mass + 0.012 * pipes
    joint = xp.where(fin_metal == base_metal, 0.0 * fins, 0.5 + 0.06 * fins)  # of two metals, fins are soldered on
    cost = (
        fin_mass * field_of(xp, METALS, fin_metal, "price")
        + base_mass * field_of(xp, METALS, base_metal, "price")
        + (0.03 + 0.05 * taper) * fins
        + joint
        + 1.8 * pipes
        + field_of(xp, FANS, fan, "price")
        + field_of(xp, INTERFACES, interface, 1)
    )
    noise = field_of(xp, FANS, fan, "noise") + 50 * xp.log10(speed) + 0.8 * v
    constraints = stack(xp, (height - 18 * gap) / 0.018, rise / 60 - 1)
    return stack(xp, rise, cost, noise), stack(xp, mass, 1e3 * (base + height)), constraints


class Chemistry(NamedTuple):
    voltage: float
    per_litre: float
    """Wh."""
    per_kilogram: float
    """Wh."""
    price: float
    """Per kWh."""
    resistance: float
    """Ohm times Ah."""


CHEMISTRIES = {
    "NMC": Chemistry(3.65, 640.0, 250.0, 125.0, 0.075),
    "NCA": Chemistry(3.6, 690.0, 265.0, 140.0, 0.085),
    "LFP": Chemistry(3.2, 390.0, 170.0, 85.0, 0.095),
    "LTO": Chemistry(2.3, 180.0, 85.0, 320.0, 0.03),
}
CELLS = {
    "21700": (21.0, 70.0, 0.35),
    "26650": (26.0, 65.0, 0.45),
    "32700": (32.0, 70.0, 0.6),
    "4680": (46.0, 80.0, 1.1),
}
"""Diameter and height in mm, and the price of making one."""
COOLING = {"air": (0.11, 2.0, 60.0), "plate": (0.03, 14.0, 260.0), "immersion": (0.014, 25.0, 600.0)}
"""Thermal resistance of a square metre in K/W; kg and price per square metre of the pack."""
BUSBARS = {"copper": (1.7e-8, 8960.0, 11.0), "aluminium": (2.8e-8, 2700.0, 4.0)}
"""Resistivity, density and price per kg."""
HOUSINGS = {"steel": (200.0, 7850.0, 2.5), "aluminium": (70.0, 2700.0, 7.0), "composite": (45.0, 1600.0, 30.0)}
"""GPa, density and price per kg."""


def battery_pack(x: Any, xp: Any) -> Measured:
    """A vehicle's battery: cost, mass and energy, which is made larger, over voltage and height.

    It is feasible from 250 to 800 V and below 55 °C while 70 % are charged in at most half an hour, on at most 2.5 m²
    and with a lid that bends by at most 8 mm.
    """
    chemistry, cell, series, parallel, layers, spacing, cooling, effort, busbar, bar, housing, wall, power = columns(x)
    wanted = partial(field_of, xp)
    diameter, height, making = (wanted(CELLS, cell, i) for i in range(3))
    cells = series * parallel
    litres = 0.9e-6 * np.pi / 4 * diameter**2 * height
    watt_hours = litres * wanted(CHEMISTRIES, chemistry, "per_litre")
    energy = 1e-3 * cells * watt_hours
    voltage = series * wanted(CHEMISTRIES, chemistry, "voltage")
    capacity = watt_hours / wanted(CHEMISTRIES, chemistry, "voltage")
    # Places: in each layer the cells stand in a hexagonal pattern.
    pitch = 1e-3 * (diameter + 0.5 * spacing)
    area = 0.866 * pitch**2 * cells / layers
    tall = layers * (height + 8) + wall + 0.2 * bar + 20
    # Heat of a cell while it is charged, of itself and of its busbar.
    current = 1e3 * power / voltage / parallel
    strip = 1e-3 * (0.2 * bar) * 0.008
    joints = wanted(BUSBARS, busbar, 0) * pitch / strip + 1.5e-4
    heat = current**2 * (wanted(CHEMISTRIES, chemistry, "resistance") / capacity + joints)
    side = 1e-6 * np.pi * diameter * height
    room = 1 + look_up(xp, (3.0, 0.0, 0.6), cooling) / spacing  # a narrow gap lets little air through
    to_coolant = wanted(COOLING, cooling, 0) * room / (side * xp.sqrt(effort))
    temperature = 25 + heat * (to_coolant + 0.15)
    # Mass and cost.
    cell_mass = cells * watt_hours / wanted(CHEMISTRIES, chemistry, "per_kilogram")
    bar_mass = cells * strip * pitch * wanted(BUSBARS, busbar, 1)
    shell = 2 * area + 4 * xp.sqrt(area) * 1e-3 * tall
    shell_mass = shell * 5e-4 * wall * wanted(HOUSINGS, housing, 1)
    wet = area * layers
    cooling_mass = wet * wanted(COOLING, cooling, 1) * (0.7 + 0.1 * effort)
    mass = cell_mass + bar_mass + shell_mass + cooling_mass + 15
    cost = (
        energy * wanted(CHEMISTRIES, chemistry, "price")
        + cells * making
        + bar_mass * wanted(BUSBARS, busbar, 2)
        + shell_mass * wanted(HOUSINGS, housing, 2)
        + wet * wanted(COOLING, cooling, 2) * (0.6 + 0.1 * effort)
        + 6 * series
        + 250
    )
    charging = 60 * 0.7 * energy / power
    bending = 0.02 * area**2 / (wanted(HOUSINGS, housing, 0) * (0.5 * wall) ** 3 * 1e-3)  # of the lid, in mm
    constraints = stack(
        xp,
        xp.abs(voltage - 525) / 275 - 1,
        (temperature - 55) / 30,
        charging / 30 - 1,
        area / 2.5 - 1,
        xp.log(bending / 8),
    )
    return stack(xp, cost / 1000, mass, -energy), stack(xp, voltage, tall), constraints


# --------------------------------------------------------------------------------------------------------------- all

CLASSIC, ENGINEERING = "zdt/dtlz/wfg", "engineering"
UNIT = (0.0, 1.0)
F2, F3 = ("f1", "f2"), ("f1", "f2", "f3")

PROBLEMS = {
    problem.name: problem
    for problem in (
        Problem("zdt1", CLASSIC, zdt1, reals(30), F2, {"x1": UNIT, "x2": UNIT}, (1.1, 1.1)),
        Problem("zdt2", CLASSIC, zdt2, reals(30), F2, {"x0": UNIT, "x1": UNIT}, (1.1, 1.1)),
        Problem("zdt3", CLASSIC, zdt3, reals(30), F2, {"x1": UNIT, "mean of x2 to x6": UNIT}, (1.1, 1.1)),
        Problem(
            "zdt4",
            CLASSIC,
            zdt4,
            reals(10, -5.0, 5.0) | {"x0": UNIT},
            F2,
            {"x0": UNIT, "mean of x1 to x9": (-1.0, 1.0)},
            (1.1, 1.1),
        ),
        Problem("dtlz2", CLASSIC, dtlz2, reals(12), F3, {"x0": UNIT, "x2": UNIT}, (1.1, 1.1, 1.1)),
        Problem("dtlz7", CLASSIC, dtlz7, reals(22), F3, {"x2": UNIT, "x3": UNIT}, (1.1, 1.1, 6.6)),
        Problem(
            "wfg4",
            CLASSIC,
            wfg4,
            {f"z{i}": (0.0, 2.0 * (i + 1)) for i in range(24)},
            F3,
            {"mean of z4 to z13": UNIT, "mean of z14 to z23": UNIT},
            (3.0, 5.0, 7.0),
        ),
        Problem(
            "welded-beam",
            ENGINEERING,
            welded_beam,
            {"weld": (0.125, 5.0), "length": (0.1, 10.0), "height": (0.1, 10.0), "width": (0.125, 5.0)},
            ("cost", "deflection"),
            {"weld length": (0.0, 10.0), "width / height": (0.0, 1.0)},
            (40.0, 0.016),
            ("shear", "bending", "weld wider than beam", "buckling"),
        ),
        Problem(
            "pressure-vessel",
            ENGINEERING,
            pressure_vessel,
            {
                "shell": moqd.Integer(1, 99),
                "head": moqd.Integer(1, 99),
                "radius": (10.0, 200.0),
                "length": (10.0, 240.0),
            },
            ("cost", "negative volume"),
            {"diameter": (80.0, 400.0), "length of the cylinder": (10.0, 240.0)},
            (350.0, 0.0),
            ("shell too thin", "head too thin", "too small"),
        ),
        Problem(
            "truss-2",
            ENGINEERING,
            truss_two,
            {"first": (1e-4, 0.01), "second": (1e-4, 0.01), "height": (1.0, 3.0)},
            ("volume", "stress"),
            {"height": (1.0, 3.0), "first / both": (0.0, 1.0)},
            (60.0, 100.0),
            ("stress",),
        ),
        Problem(
            "truss-10",
            ENGINEERING,
            truss_ten,
            {f"area {i + 1}": (0.1, 35.0) for i in range(10)},
            ("weight", "displacement"),
            {"share of diagonals": (0.2, 0.9), "share next to the wall": (0.2, 0.9)},
            (10_000.0, 5.0),
            ("stress",),
        ),
        Problem(
            "disc-brake",
            ENGINEERING,
            disc_brake,
            {"inner": (55.0, 80.0), "outer": (75.0, 110.0), "force": (1000.0, 3000.0), "discs": moqd.Integer(2, 20)},
            ("mass", "stopping time"),
            {"outer": (75.0, 110.0), "discs": (2.0, 11.0)},
            (3.0, 17.0),
            ("ring too narrow", "too long", "pressure", "temperature", "torque"),
        ),
        Problem(
            "speed-reducer",
            ENGINEERING,
            speed_reducer,
            {
                "face": (2.6, 3.6),
                "module": (0.7, 0.8),
                "teeth": moqd.Integer(17, 28),
                "length 1": (7.3, 8.3),
                "length 2": (7.3, 8.3),
                "diameter 1": (2.9, 3.9),
                "diameter 2": (5.0, 5.5),
            },
            ("weight", "stress"),
            {"teeth": (17.0, 28.0), "length of both shafts": (14.6, 16.6)},
            (6500.0, 1300.0),
            (
                *("bending of teeth", "contact of teeth", "deflection 1", "deflection 2", "pitch", "face too narrow"),
                *("face too wide", "length 1", "length 2", "stress 1", "stress 2"),
            ),
        ),
        Problem(
            "heat-sink",
            ENGINEERING,
            heat_sink,
            {
                "width": (50.0, 130.0),
                "length": (40.0, 130.0),
                "base": (2.0, 12.0),
                "height": (10.0, 60.0),
                "fin": (0.4, 3.0),
                "taper": (0.0, 0.6),
                "speed": (0.3, 1.0),
                "fins": moqd.Integer(6, 45),
                "pipes": moqd.Integer(0, 6),
                "fin metal": moqd.Categorical(*METALS),
                "base metal": moqd.Categorical(*METALS),
                "fan": moqd.Categorical(*FANS),
                "interface": moqd.Categorical(*INTERFACES),
            },
            ("rise", "cost", "noise"),
            {"mass": (0.0, 2.0), "height": (12.0, 72.0)},
            (60.0, 40.0, 50.0),
            ("fins too close", "too hot"),
        ),
        Problem(
            "battery-pack",
            ENGINEERING,
            battery_pack,
            {
                "chemistry": moqd.Categorical(*CHEMISTRIES),
                "cell": moqd.Categorical(*CELLS),
                "series": moqd.Integer(60, 240),
                "parallel": moqd.Integer(2, 48),
                "layers": moqd.Integer(1, 3),
                "spacing": moqd.Integer(1, 12),
                "cooling": moqd.Categorical(*COOLING),
                "effort": moqd.Integer(1, 10),
                "busbar": moqd.Categorical(*BUSBARS),
                "bar": moqd.Integer(1, 10),
                "housing": moqd.Categorical(*HOUSINGS),
                "wall": moqd.Integer(2, 12),
                "power": (30.0, 250.0),
            },
            ("cost", "mass", "negative energy"),
            {"voltage": (250.0, 800.0), "height": (90.0, 300.0)},
            (15.0, 450.0, -40.0),
            ("voltage", "temperature", "charging time", "area", "bending"),
        ),
    )
}
SUITE = tuple(name for name in PROBLEMS if name not in ("zdt2", "truss-2"))
"""The problems of the comparison."""
