"""Environment steps per second of each robot, beside the plain way: Brax's step under `jax.vmap` and `lax.scan` on one
device, with the contacts of Brax's debug output, as QDax does it.

Each side runs in a process of its own, with JAX set up as its users have it; the two take turns.
"""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

BATCH = 256
ROBOTS = {"hopper-2": "hopper", "walker-2": "walker2d", "halfcheetah-2": "halfcheetah", "ant-2": "ant"}


class Rate(NamedTuple):
    """A row of the table."""

    what: str
    steps: int
    ours: float
    theirs: float
    ours_first: float
    theirs_first: float

    @property
    def ratio(self) -> float:
        return self.theirs / self.ours


def measure(rounds: int = 5) -> Iterator[Rate]:
    """Whole episodes of every robot, and then those of random policies that may fall."""
    for task in ROBOTS:
        yield _compare(f"{task}, whole episodes", task, 250, "whole", rounds)
    for task in ("hopper-2", "walker-2"):
        yield _compare(f"{task}, random policies may fall", task, 1000, "falling", rounds)


def _compare(what: str, task: str, length: int, mode: str, rounds: int) -> Rate:
    workers = [_Worker(side, task, str(length), mode) for side in ("ours", "plain")]
    first = [worker.seconds() for worker in workers]
    taken = [[worker.seconds() for worker in workers] for _ in range(rounds)]
    for worker in workers:
        worker.stop()
    ours, theirs = (sorted(column)[rounds // 2] for column in zip(*taken, strict=True))
    return Rate(what, BATCH * length, ours, theirs, *first)


class _Worker:
    """A process that rolls out once for every line it is sent, and answers with the seconds it took."""

    def __init__(self, *arguments: str) -> None:
        command = [sys.executable, "-W", "ignore", "-m", "benchmarks.rollout", *arguments]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def seconds(self) -> float:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith("took "):
                return float(line.split()[1])
        raise RuntimeError("a worker of the benchmark ended early")

    def stop(self) -> None:
        self._process.communicate()


def ours(task_name: str, length: int, mode: str) -> Callable[[], object]:
    """What `moqd train` does with a batch."""
    import moqd

    moqd.use_devices()
    import jax

    from moqd.core.devices import compiled, on_all
    from moqd.tasks import locomotion

    task = moqd.make_task(task_name, episode_length=length)
    if mode == "whole" and ROBOTS[task_name] != "halfcheetah":
        robot = _never_falling(ROBOTS[task_name])
        locomotion._robot = lambda name, backend: robot
    policies = on_all(jax.jit(task.init_genotype, static_argnums=1)(jax.random.key(0), BATCH))
    evaluate, key = compiled(task.evaluate), on_all(jax.random.key(0))
    return lambda: evaluate(key, policies)


def plain(task_name: str, length: int, mode: str) -> Callable[[], object]:
    import jax
    import jax.numpy as jnp
    import mujoco
    from brax import envs

    mujoco.set_mju_user_warning(lambda message: None)  # no MUJOCO_LOG.TXT
    robot = ROBOTS[task_name]
    can_fall = robot != "halfcheetah" and mode == "whole"
    options = {"terminate_when_unhealthy": False} if can_fall else {}
    env = envs.get_environment(robot, backend="spring", debug=True, reset_noise_scale=0.0, **options)
    sizes = (env.observation_size, 64, 64, env.action_size)

    def init(key):  # type: ignore[no-untyped-def]
        shapes = list(zip(jax.random.split(key, 3), sizes[:-1], sizes[1:], strict=True))
        return [(jax.nn.initializers.lecun_uniform()(key, shape), jnp.zeros(shape[1])) for key, *shape in shapes]

    def act(policy, obs):  # type: ignore[no-untyped-def]
        *hidden, (kernel, bias) = policy
        for w, b in hidden:
            obs = jax.nn.relu(obs @ w + b)
        return jnp.tanh(obs @ kernel + bias)

    @jax.jit
    def rollout(policies):  # type: ignore[no-untyped-def]
        keys = jnp.broadcast_to(jax.random.PRNGKey(0), (BATCH, 2))

        def step(state, _):  # type: ignore[no-untyped-def]
            action = jax.vmap(act)(policies, state.obs)
            after = jax.vmap(env.step)(state, action)
            touching = after.pipeline_state.contact.dist <= 0
            return after, (state.obs, action, after.reward, after.obs, after.done, touching)

        return jax.lax.scan(step, jax.vmap(env.reset)(keys), length=length)[1]

    policies = jax.vmap(init)(jax.random.split(jax.random.key(0), BATCH))
    return lambda: rollout(policies)


def _never_falling(robot: str):  # type: ignore[no-untyped-def]
    from brax import envs

    return envs.get_environment(robot, backend="spring", terminate_when_unhealthy=False)


def main(side: str, task: str, length: str, mode: str) -> None:
    start = time.perf_counter()
    rollout = {"ours": ours, "plain": plain}[side](task, int(length), mode)
    import jax

    for number, _ in enumerate(sys.stdin):
        start = time.perf_counter() if number else start  # the first time counts what comes before it, too
        jax.block_until_ready(rollout())
        print("took", time.perf_counter() - start, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
