"""Neural networks as plain pytrees: a tuple of layers; in a batch of networks every leaf has the batch first."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float

from moqd.core.types import Key


class Dense(NamedTuple):
    """A layer x @ kernel + bias."""

    kernel: Float[Array, "inputs outputs"]
    bias: Float[Array, "outputs"]

    def __repr__(self) -> str:
        *batch, inputs, outputs = jnp.shape(self.kernel)
        return f"Dense({inputs} -> {outputs}{f', {batch} of them' if batch else ''})"


MLP: TypeAlias = tuple[Dense, ...]


class Policy(NamedTuple):
    """What genotypes are when they are policies."""

    num_obs: int
    num_actions: int
    hidden_sizes: tuple[int, ...]
    apply: Callable[[MLP, Float[Array, "obs"]], Float[Array, "act"]]
    obs_names: tuple[str, ...] = ()
    """The name of each observation, if known."""
    action_names: tuple[str, ...] = ()
    """What each action moves. Actions are in [-1, 1]."""
    control_rate: float | None = None
    """Actions per second."""
    action_bounds: tuple[tuple[float, float], ...] | None = ()
    """(lowest, highest) of each action of the environment, to which [-1, 1] is scaled; empty: it takes [-1, 1] itself.
    None: its actions are discrete, and the largest output says which one is taken."""

    def __repr__(self) -> str:
        return f"Policy({'-'.join(map(str, (self.num_obs, *self.hidden_sizes, self.num_actions)))})"


def init_mlp(key: Key, sizes: Sequence[int]) -> MLP:
    """A network with these layer sizes, inputs first: LeCun-uniform kernels, zero biases."""
    keys = jax.random.split(key, len(sizes) - 1)
    return tuple(
        Dense(jax.nn.initializers.lecun_uniform()(key, (inputs, outputs), jnp.float32), jnp.zeros(outputs, jnp.float32))
        for key, inputs, outputs in zip(keys, sizes[:-1], sizes[1:], strict=True)
    )


def apply_mlp(mlp: MLP, x: Float[Array, "*batch inputs"]) -> Float[Array, "*batch outputs"]:
    """The output of the network, with ReLU between layers and a linear last layer."""
    *hidden, last = mlp
    for layer in hidden:
        x = jax.nn.relu(_dense(layer, x))
    return _dense(last, x)


def apply_policy(policy: MLP, obs: Float[Array, "*batch obs"]) -> Float[Array, "*batch act"]:
    """Actions in [-1, 1]."""
    return jnp.tanh(apply_mlp(policy, obs))


def fold_standardisation(mlp: MLP, mean: Float[Array, "obs"], scale: Float[Array, "obs"]) -> MLP:
    """A network that takes raw observations as its first inputs, from one that takes standardised ones.

    W (s - m) / d + b = (W / d) s + (b - (W / d) m).
    """
    first, *rest = mlp
    num_obs = mean.shape[0]
    from_obs = first.kernel[:num_obs] / jnp.broadcast_to(scale[:, None], first.kernel[:num_obs].shape)
    kernel = jnp.concatenate([from_obs, first.kernel[num_obs:]])
    return (Dense(kernel, first.bias - mean @ from_obs), *rest)


def fold_preference(actor: MLP, preference: Float[Array, "conditions"]) -> MLP:
    """A conditioned actor at a fixed preference (or feature, or both), in the shape of a policy.

    W [s; w] + b = W_s s + (W_w w + b), so the preference's part of the first layer becomes a part of its bias.
    """
    first, *rest = actor
    num_obs = first.kernel.shape[0] - preference.shape[0]
    return (Dense(first.kernel[:num_obs], first.bias + preference @ first.kernel[num_obs:]), *rest)


def descend(
    optimiser: optax.GradientTransformation, gradient: MLP, state: optax.OptState, network: MLP
) -> tuple[MLP, optax.OptState]:
    """The network after one step of the optimiser down the gradient, and the optimiser's next state."""
    with jax.numpy_dtype_promotion("standard"):  # optax counts in integers and multiplies them with floats
        change, state = optimiser.update(gradient, state)
    return optax.apply_updates(network, change), state


def num_parameters(network: Any) -> int:
    """The total number of elements in a pytree of arrays."""
    return sum(leaf.size for leaf in jax.tree.leaves(network))


def _dense(layer: Dense, x: Float[Array, "*batch inputs"]) -> Float[Array, "*batch outputs"]:
    return x @ layer.kernel + jnp.broadcast_to(layer.bias, (*x.shape[:-1], *layer.bias.shape))
