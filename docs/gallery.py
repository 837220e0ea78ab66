"""Writes the explorer pages of the gallery into docs/_built/gallery, where the site takes them from.

Three small problems, a few seconds each. A page that exists is left as it is; remove the folder to make them anew.
"""

from pathlib import Path

import jax.numpy as jnp

import moqd

GALLERY = Path(__file__).parent / "_built" / "gallery"


def spring(wire, coil, turns):
    """A steel spring, in millimetres: stiff against light, for every coil diameter and number of turns."""
    stiffness = 79_000 * wire**4 / (8 * coil**3 * turns)  # N/mm
    weight = 7.85e-3 * jnp.pi * coil * turns * jnp.pi * wire**2 / 4  # g
    return [stiffness, weight], [coil, turns], [3 * wire - coil]


def springs() -> moqd.Task:
    return moqd.FunctionTask(
        spring,
        name="spring",
        bounds={"wire": (0.5, 5.0), "coil": (5.0, 30.0), "turns": moqd.Integer(3, 15)},
        objective_names=["stiffness", "weight"],
        minimised=["weight"],
        feature_names=["coil", "turns"],
        feature_bounds=[(5.0, 30.0), (3.0, 15.0)],
        constraint_names=["too thick to be wound"],
        units={"stiffness": "N/mm", "weight": "g", "coil": "mm"},
        traceable=True,
        draw=draw_spring,
    )


def draw_spring(wire, coil, turns):
    """From the side, 10 pixels to a millimetre, wound with a gap as wide as the wire; the back is paler."""
    width, pitch, edge = round(10 * coil), 20 * wire, 10 * wire
    ends = [(round(pitch * i), round(pitch * (i + 0.5)), round(pitch * (i + 1))) for i in range(int(turns))]
    front = "".join(f"M0 {top}L{width} {middle}" for top, middle, _ in ends)
    back = "".join(f"M{width} {middle}L0 {bottom}" for _, middle, bottom in ends)
    box = f"{-edge:.0f} {-edge:.0f} {width + 2 * edge:.0f} {pitch * turns + 2 * edge:.0f}"
    style = f'stroke="#3b6ea5" stroke-width="{edge:.0f}" stroke-linecap="round"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}" style="width: 100%; height: 92vh">'
        f'<g {style}><path d="{back}" opacity="0.35"/><path d="{front}"/></g></svg>'
    )


def tank(radius, length, wall):
    """A pressure tank: volume, weight and burst pressure, for every radius and slenderness."""
    volume = jnp.pi * radius**2 * length + 4 / 3 * jnp.pi * radius**3
    weight = 7.85 * wall * (2 * jnp.pi * radius * length + 4 * jnp.pi * radius**2)
    pressure = 400 * wall / (1000 * radius) * 10
    return [volume, weight, pressure], [radius, length / radius]


def tanks() -> moqd.Task:
    return moqd.FunctionTask(
        tank,
        name="tank",
        bounds={"radius": (0.2, 1.5), "length": (0.2, 6.0), "wall": (2.0, 20.0)},
        objective_names=["volume", "weight", "pressure"],
        minimised=["weight"],
        feature_names=["radius", "slenderness"],
        feature_bounds=[(0.2, 1.5), (0.5, 6.0)],
        units={"volume": "m³", "weight": "kg", "pressure": "bar", "radius": "m"},
        traceable=True,
    )


PROBLEMS = {"spring": springs, "tank": tanks, "arm": lambda: moqd.make_task("arm-2")}


def main() -> None:
    GALLERY.mkdir(parents=True, exist_ok=True)
    for name, make in PROBLEMS.items():
        page = GALLERY / f"{name}.html"
        if not page.exists():
            run = moqd.run("mome", make(), iterations=200, num_cells=100, front_length=20)
            moqd.explore(run, page, gaits="all")
            print(f"{run} -> {page}")


if __name__ == "__main__":
    main()
