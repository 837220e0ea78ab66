# %% [markdown]
# # Comparing algorithms
#
# Which algorithm suits your problem? Try them on it with several seeds, and let a test say whether a difference is more
# than luck.

# %%
# %pip install "moqd[pandas]"
import jax.numpy as jnp
import pandas as pd
from scipy.stats import mannwhitneyu

import moqd

# %% [markdown]
# A Rastrigin function with two minima: many local optima, ten parameters. It is written with `jax.numpy`, so
# `traceable=True` compiles it together with the algorithm.


# %%
def bumpy(x):
    def rastrigin(y):
        return jnp.mean(y**2 - jnp.cos(2 * jnp.pi * y) + 1)

    return [rastrigin(x), rastrigin(x - 2)], x[:2]


task = moqd.problem(
    bumpy,
    parameters=[(-3, 5)] * 10,  # without names: the function takes a vector
    objectives={"first": "min", "second": "min"},
    features={"x0": (-3, 5), "x1": (-3, 5)},
    reference_point=[20, 20],
    traceable=True,
)

# %% [markdown]
# The reference point is given, so that the hypervolumes of all runs mean the same. The budget is a multiple of
# all batch sizes (50, 100 and 80), so that it is the same for all algorithms; a first, random batch comes on top.

# %%
SEEDS = range(5)
rows = []
for name in ("mome", "nsga2", "mo-cma-mae"):
    for run in moqd.run(name, task, evaluations=4800, seeds=SEEDS):
        rows.append({"algorithm": name, "seed": run.config.seed, **run.metrics_frame().iloc[-1]})
results = pd.DataFrame(rows)
results.groupby("algorithm")[["moqd_score", "global_hypervolume", "coverage"]].median()

# %%
scores = {name: group["moqd_score"] for name, group in results.groupby("algorithm")}
for rival in ("nsga2", "mo-cma-mae"):
    test = mannwhitneyu(scores["mome"], scores[rival])
    share, p = test.statistic / len(SEEDS) ** 2, min(1, 2 * test.pvalue)  # times two, because there are two tests
    print(f"mome is better than {rival} in {share:.0%} of the pairs of runs, p = {p:.4f}")

# %% [markdown]
# For more than a few runs, write the comparison down as a study: it runs in parallel, continues after interruptions
# and ends with a report that has tables, figures and corrected tests. See the guide "Studies".
