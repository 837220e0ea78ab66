"""What the profile counts, against counts on paper."""

import jax
import jax.numpy as jnp
import pytest

from benchmarks.flops import Operations, count

ROWS, INPUTS, UNITS = 8, 5, 3


def layer(kernel, x):
    return jnp.tanh(x @ kernel)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (layer, Operations(2 * ROWS * INPUTS * UNITS, ROWS * UNITS)),
        (jax.jit(layer), Operations(2 * ROWS * INPUTS * UNITS, ROWS * UNITS)),
        (  # a product for each of four steps, and what is added up
            lambda kernel, x: jax.lax.scan(lambda y, _: (y + x @ kernel, None), jnp.zeros((ROWS, UNITS)), length=4)[0],
            Operations(4 * 2 * ROWS * INPUTS * UNITS, 4 * ROWS * UNITS),
        ),
        (  # as often as it is told that the loop goes round
            lambda kernel, x: jax.lax.while_loop(lambda y: y[0, 0] < 1, lambda y: y * 2.0, x),
            Operations(0, 7 * ROWS * INPUTS),
        ),
        (lambda kernel, x: x.T.reshape(-1)[3:], Operations()),
        (lambda kernel, x: jnp.sum(x), Operations(0, ROWS * INPUTS)),
    ],
)
def test_operations_are_those_counted_by_hand(function, expected):
    found = count(function, jnp.ones((INPUTS, UNITS)), jnp.ones((ROWS, INPUTS)), trips=7)
    assert found == expected


def test_a_gradient_has_two_products_for_each_of_the_first():
    """The first layer is not differentiated with respect to its input: twice its product, and three times the other."""
    first, second, x = jnp.ones((INPUTS, UNITS)), jnp.ones((UNITS, UNITS)), jnp.ones((ROWS, INPUTS))
    gradient = jax.grad(lambda kernels: jnp.sum(layer(kernels[1], layer(kernels[0], x))))
    products = 2 * (2 * ROWS * INPUTS * UNITS) + 3 * (2 * ROWS * UNITS * UNITS)
    assert count(gradient, (first, second)).matrix == products
