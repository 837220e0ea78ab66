# %% [markdown]
# # Your own design problem
#
# A hollow beam, clamped at one end and loaded at the other. It should be light and stiff, must not break, and we want
# to see good beams of *every* height and price, because we do not know yet what the workshop can make.

# %%
# %pip install "moqd[pandas]"
import moqd

STEEL, ALUMINIUM, TITANIUM = "steel", "aluminium", "titanium"
MATERIALS = {  # stiffness in GPa, density in kg/m³, strength in MPa, price in €/kg
    STEEL: (210, 7850, 250, 1.5),
    ALUMINIUM: (70, 2700, 200, 4.0),
    TITANIUM: (114, 4430, 800, 35.0),
}

# %% [markdown]
# A problem is a function. It takes its parameters by name and returns lists: the objectives, the features by which
# solutions should differ, and constraints, which are met where they are at most 0.


# %%
def beam(width, height, wall, material):  # millimetres
    stiffness, density, strength, price = MATERIALS[material]
    length, load = 1000.0, 500.0  # mm, N
    inner_width, inner_height = width - 2 * wall, height - 2 * wall
    area = width * height - inner_width * inner_height
    inertia = (width * height**3 - inner_width * inner_height**3) / 12
    mass = area * length * density * 1e-9
    deflection = load * length**3 / (3 * stiffness * 1e3 * inertia)
    stress = load * length * height / 2 / inertia
    return [mass, deflection], [height, mass * price], [stress / strength - 1]


task = moqd.problem(
    beam,
    parameters={
        "width": (20.0, 80.0),
        "height": (20.0, 120.0),
        "wall": (1.0, 8.0),
        "material": moqd.Categorical(STEEL, ALUMINIUM, TITANIUM),
    },
    objectives={"mass": "min", "deflection": "min"},
    features={"height": (20, 120), "price": (0, 500)},
    constraints=["overload"],
    units={"mass": "kg", "deflection": "mm", "height": "mm", "price": "€"},
)
task

# %% [markdown]
# ## Search
#
# `mome` keeps a front of non-dominated beams in each of 128 cells of height and price.

# %%
run = moqd.run("mome", task, evaluations=2000, seed=0)
run

# %%
figure = run.plot()

# %% [markdown]
# ## The solutions as a table

# %%
beams = run.to_pandas()
beams.sort_values("mass").head()

# %%
beams.groupby("material")[["mass", "deflection", "price"]].median()

# %% [markdown]
# ## Choose one
#
# Weights say what matters; limits say what must hold, for objectives, features, constraints and parameters alike.

# %%
moqd.pick(run, [0.5, 0.5], limits=["height<=60", "price<30", "material==aluminium"])

# %% [markdown]
# ## Look around
#
# The explorer is one HTML file: click a cell for its front and a solution for its parameters.

# %%
moqd.explore(run, "beams.html")

# %% [markdown]
# ## A finer map of the same solutions
#
# No evaluation is made for this.

# %%
moqd.regrid(run, num_cells=(12, 10))
