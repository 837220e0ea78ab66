# %% [markdown]
# # A robot that moves in many ways
#
# A hopper learns to hop with its foot on the ground for any share of the time, and for each share along the trade-off
# between speed and energy. This takes a few minutes on two cores.

# %%
# %pip install "moqd[robots]"
import moqd

task = moqd.make_task("hopper-2", episode_length=250)
task

# %% [markdown]
# MOME-P2C, the algorithm of the paper, learns from every episode. The numbers are small, for a first look at 704
# policies; `moqd train hopper-2 --preset quick` on the command line evaluates 3,200, and `--preset small` 9,600.

# %%
algorithm = moqd.make_algorithm(
    "mome-p2c", task, ga_batch=32, pg_batch=16, actor_batch=16, critic_steps=100, pg_steps=20, buffer_size=50_000
)
run = moqd.run(algorithm, task, iterations=10, progress=True)
run

# %%
figure = run.plot()

# %% [markdown]
# ## Choose a policy and take it with you

# %%
solution = moqd.pick(run, [0.9, 0.1])
moqd.export_policy(solution, "hopper.npz")
policy = moqd.load_policy("hopper.npz")
policy

# %% [markdown]
# ## Watch it
#
# The page plays the gaits of the solutions that one looks at first.

# %%
moqd.explore(run, "hopper.html")
