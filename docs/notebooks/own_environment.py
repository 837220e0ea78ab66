# %% [markdown]
# # Your own Gymnasium environment
#
# Any environment becomes a task: say what its objectives and features are, and MOME-P2C learns policies for it.
# Here a pendulum should spend its time upright and use little torque, and we want policies that turn in different
# directions.

# %%
# %pip install "moqd[gym]"
import gymnasium
import numpy as np

import moqd

# %% [markdown]
# Objectives are sums over an episode of what `info` holds, so a small wrapper puts there what matters.


# %%
class Reported(gymnasium.Wrapper):
    def step(self, action):
        obs, reward, terminated, truncated, info = self.env.step(action)
        info = {**info, "upright": float(obs[0]), "torque": float(np.abs(action).sum())}
        return obs, reward, terminated, truncated, info


task = moqd.gymnasium_task(
    lambda: Reported(gymnasium.make("Pendulum-v1")),
    name="pendulum",
    objectives={"upright": "upright", "torque": "torque"},
    minimised=["torque"],
    features={"turning": moqd.features.mean_obs(2, bounds=(-6.0, 6.0))},
    reference_point=[-200.0, 400.0],
    episode_length=100,
)
task

# %% [markdown]
# ## Learn
#
# Episodes run in worker processes, one per core; a critic learns from their steps. The numbers are small, so that this
# takes a minute; leave them out for the paper's.

# %%
run = moqd.run(
    "mome-p2c",
    task,
    iterations=10,
    num_cells=16,
    ga_batch=16,
    pg_batch=8,
    actor_batch=8,
    critic_steps=50,
    pg_steps=10,
    buffer_size=20_000,
    progress=True,
)
run

# %%
figure = run.plot()

# %% [markdown]
# ## Choose, export, use
#
# An exported policy needs only NumPy to act. Its outputs are from -1 to 1, and `action_bounds` are those of the
# environment. The archive was filled from `reset(seed=0)`, so an episode from there has the same sums.

# %%
solution = moqd.pick(run, [0.8, 0.2])
moqd.export_policy(solution, "pendulum.npz")
policy = moqd.load_policy("pendulum.npz")
low, high = policy.action_bounds.T
env = Reported(gymnasium.make("Pendulum-v1"))
obs, _ = env.reset(seed=0)
upright = torque = 0.0
for _ in range(100):
    obs, _, _, _, info = env.step(low + (policy(obs) + 1) / 2 * (high - low))
    upright, torque = upright + info["upright"], torque + info["torque"]
print(f"upright {upright:.2f}, torque {torque:.2f}; in the archive: {solution.objectives}")
