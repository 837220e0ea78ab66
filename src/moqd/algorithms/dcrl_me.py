"""DCRL-ME: Faldor, Chalumeau, Flageat & Cully, "Synergizing Quality-Diversity with Descriptor-Conditioned Reinforcement
Learning" (2024), and DCG-ME: the same authors, "MAP-Elites with Descriptor-Conditioned Gradients and Archive
Distillation into a Single Policy" (2023), in which the actor is evaluated and learned from, but not injected.

    the sum of the objectives is fitness and reward
    repeat
        select parents: a cell uniformly, in it its only member
        policy-gradient variation of b_p parents, each towards its own feature
        Iso+LineDD variation of b_g parents
        the actor, folded at n_a features of the archive
        evaluate; store transitions with the feature that was aimed for and the one that was achieved
        train actor and critics on rewards times how near the two are
        each cell keeps its best

This is MOME-DCRL with one objective, the sum, and one place in every cell; so it is made of it.
Deviations: see docs/deviations.md.
"""

from dataclasses import dataclass, replace

from moqd.algorithms.algorithm import Algorithm
from moqd.algorithms.mome_dcrl import MomeDcrlConfig, mome_dcrl
from moqd.algorithms.summed import SummedConfig, num_elites, on_the_sum
from moqd.tasks.task import Task


@dataclass(frozen=True, kw_only=True)
class DcrlMeConfig(SummedConfig, MomeDcrlConfig):
    """Hyper-parameters of DCRL-ME, which are those of the MOME-P2C paper where both have them."""


def dcrl_me(name: str, config: DcrlMeConfig, task: Task) -> Algorithm:
    elites = num_elites(config, config.num_cells, config.front_length)
    single = replace(config, num_cells=elites, front_length=1)
    return on_the_sum(lambda summed: mome_dcrl(name, single, summed), config, task)
