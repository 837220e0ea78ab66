"""A tiny task of policies that compiles in no time: a point on a line that is drawn by two objectives."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from moqd import Task
from moqd.core.networks import Policy, apply_policy, init_mlp
from moqd.core.types import Evaluation, Transition

LENGTH = 8


@dataclass(frozen=True, eq=False)
class Walk(Task):
    """Speed to the right, little effort, and (with three objectives) staying near the start.

    The feature is how much of the time the point is right of the start; one that goes beyond -1 has fallen.
    """

    @property
    def policy(self):
        return Policy(num_obs=2, num_actions=1, hidden_sizes=(8,), apply=apply_policy)

    def init_genotype(self, key, num_genotypes):
        return jax.vmap(lambda key: init_mlp(key, (2, 8, 1)))(jax.random.split(key, num_genotypes))

    def evaluate(self, key, genotype):
        return self._evaluate(genotype, jnp.zeros((genotype[0].bias.shape[0], LENGTH, 1)))

    def explore(self, key, genotype, noise):
        return self._evaluate(genotype, noise[:, None] * jax.random.normal(key, (noise.shape[0], LENGTH, 1)))

    def _evaluate(self, genotype, deviation):
        def episode(policy, deviation):
            def step(carry, inputs):
                (place, alive), (time, noise) = carry, inputs
                obs = jnp.stack([place, time / LENGTH])
                action = apply_policy(policy, obs) + noise
                taken = jnp.clip(action[0], -1, 1)
                after = place + 0.3 * taken
                reward = jnp.stack([taken, -(taken**2), -jnp.abs(after)])[: self.num_objectives]
                fell = after < -1
                seen = Transition(obs, action, reward, jnp.stack([after, (time + 1) / LENGTH]), fell & alive, alive)
                return (after, alive & ~fell), seen

            first = jnp.zeros(()), jnp.ones((), bool)
            return jax.lax.scan(step, first, (jnp.arange(LENGTH, dtype=jnp.float32), deviation))[1]

        steps = jax.vmap(episode)(genotype, deviation)
        happened = steps.valid[..., None]
        length = jnp.sum(happened, axis=1)
        fitness = jnp.sum(steps.reward, axis=1, where=happened)
        right = jnp.sum((steps.next_obs[..., :1] > 0) & happened, axis=1)
        feature = right.astype(jnp.float32) / length.astype(jnp.float32)
        return Evaluation(fitness, feature, jnp.all(jnp.isfinite(fitness), axis=1), steps)


def walk(num_objectives: int = 2) -> Walk:
    return Walk(
        name="walk",
        objective_names=("speed", "effort", "home")[:num_objectives],
        feature_names=("right",),
        feature_bounds=((0.0, 1.0),),
        reference_point=(-8.0,) * num_objectives,
    )
