"""PGA-ME: Nilsson & Cully, "Policy gradient assisted MAP-Elites" (2021).

    the sum of the objectives is fitness and reward
    repeat
        select parents: a cell uniformly, in it its only member
        policy-gradient variation of b_p - 1 parents, and the actor itself
        Iso+LineDD variation of b_g parents
        evaluate; store transitions in the replay buffer; train actor and critics
        each cell keeps its best

This is MOME-PGX with one objective, the sum, and one place in every cell; so it is made of it.
Deviations: see docs/deviations.md.
"""

from dataclasses import dataclass, replace

from moqd.algorithms.algorithm import Algorithm
from moqd.algorithms.mome_pgx import MomePgxConfig, mome_pgx
from moqd.algorithms.summed import SummedConfig, num_elites, on_the_sum
from moqd.tasks.task import Task


@dataclass(frozen=True, kw_only=True)
class PgaMeConfig(SummedConfig, MomePgxConfig):
    """Hyper-parameters of PGA-ME: those of the MOME-P2C paper except for `center_rewards` and `standardise_obs`."""


def pga_me(name: str, config: PgaMeConfig, task: Task) -> Algorithm:
    elites = num_elites(config, config.num_cells, config.front_length)
    single = replace(config, num_cells=elites, front_length=1)
    return on_the_sum(lambda summed: mome_pgx(name, single, summed), config, task)
