"""A policy as a file for robots and other programs: NumPy's .npz or ONNX, with a header that describes it.

The header is JSON: the task and trade-off of the policy, its observations and actions (of the network, and in
"environment" the bounds of the environment's, to which they are scaled), how often it acts, and its network, which has
layers x @ kernel + bias with ReLU between them and tanh after the last.
"""

import io
import json
import os
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from moqd.choose.pick import Solution
from moqd.core.networks import apply_policy
from moqd.io.errors import InputError
from moqd.io.extras import need
from moqd.io.files import FORMAT, check_format, check_regular, write_file, write_new

SUFFIXES = (".npz", ".onnx")
HEADER = "header"
MOST_BYTES = 2**30
OPSET = 17
"""The ONNX opset: it has all that is needed, and is old enough to be read everywhere."""


@dataclass(frozen=True)
class LoadedPolicy:
    """A policy from a file. Call it with an observation, or a batch of them, for the actions; it needs only NumPy."""

    header: Mapping[str, Any]
    layers: tuple[tuple[Float[np.ndarray, "_ _"], Float[np.ndarray, "_"]], ...]
    """Kernel and bias of each layer."""

    def __repr__(self) -> str:
        sizes = "-".join(map(str, self.header["network"]["sizes"]))
        return f"LoadedPolicy({sizes}, of task {self.header['task']!r}: {dict(self.header['objectives'])})"

    @property
    def action_bounds(self) -> Float[np.ndarray, "act 2"] | None:
        """(lowest, highest) of each action of the environment, to which [-1, 1] is to be scaled.

        None if the environment's actions are discrete, so that the largest output says which one to take, or if the
        file is of an earlier version, which did not say it.
        """
        said = self.header["action"].get("environment")
        return None if said is None else np.array([said["low"], said["high"]]).T

    def __call__(self, observation: ArrayLike) -> Float[np.ndarray, "*batch act"]:
        x = np.asarray(observation, np.float32)
        for i, (kernel, bias) in enumerate(self.layers):
            x = x @ kernel + bias
            x = np.tanh(x) if i == len(self.layers) - 1 else np.maximum(x, np.float32(0))
        return x


def export_policy(solution: Solution, path: str | os.PathLike[str]) -> Path:
    """Writes the policy of a solution to a file that ends in .npz or .onnx."""
    path = Path(path)
    if path.suffix not in SUFFIXES:
        raise InputError(f"cannot write a policy to {str(path)!r}: give a name that ends in .npz or .onnx.")
    header, layers = header_of(solution), _layers(solution)
    content = _npz(header, layers) if path.suffix == ".npz" else _onnx(header, layers)
    write_file(path, lambda beside: write_new(beside, content))
    return path


def load_policy(path: str | os.PathLike[str]) -> LoadedPolicy:
    """Reads a policy that was exported as .npz."""
    path = Path(path)
    check_regular(path)
    try:
        with zipfile.ZipFile(path) as parts:
            if sum(part.file_size for part in parts.infolist()) > MOST_BYTES:
                raise ValueError("it is too large")
        with np.load(path, allow_pickle=False) as file:
            header = json.loads(bytes(file[HEADER]).decode())
            sizes = header["network"]["sizes"]
            if len(sizes) < 2:
                raise ValueError("its network has no layers")
            layers = tuple((file[f"kernel{i}"], file[f"bias{i}"]) for i in range(len(sizes) - 1))
        version_read = header["format"]
        expected = [((n, m), (m,)) for n, m in pairwise(sizes)]
        if [(kernel.shape, bias.shape) for kernel, bias in layers] != expected:
            raise ValueError("its layers are not of the sizes that it says")
        if any(part.dtype != np.float32 for layer in layers for part in layer):
            raise ValueError("its layers are not of float32")
    except Exception as error:  # whatever a damaged file leads NumPy and zipfile to
        raise InputError(f"{str(path)!r} is not a policy that moqd exported as .npz ({error}).") from error
    check_format(path, version_read)
    return LoadedPolicy(header, layers)


def header_of(solution: Solution) -> dict[str, Any]:
    """The header of the policy's file."""
    task = solution.task
    if (policy := task.policy) is None:
        raise InputError(f"solutions of task {task.name!r} are not policies, so there is none to export.")
    if policy.apply is not apply_policy:
        raise InputError(
            f"the policies of task {task.name!r} are not plain networks with ReLU and tanh, the only kind that can be "
            "exported; save their genotype yourself."
        )
    layers, bounds = _layers(solution), policy.action_bounds
    if bounds == ():
        bounds = ((-1.0, 1.0),) * policy.num_actions
    low_high = None if bounds is None else dict(zip(("low", "high"), np.transpose(bounds).tolist(), strict=True))
    return {
        "format": FORMAT,
        "moqd": version("moqd"),
        "task": task.name,
        "options": None if task.options is None else dict(task.options),
        "objectives": dict(solution.objectives),
        "features": dict(solution.features),
        "preference": dict(zip(task.objective_names, solution.preference, strict=bool(solution.preference))),
        "observation": {"size": policy.num_obs, "names": list(policy.obs_names)},
        "action": {
            "size": policy.num_actions,
            "names": list(policy.action_names),
            "low": -1.0,
            "high": 1.0,
            "environment": low_high,
        },
        "control_rate": policy.control_rate,
        "network": {
            "sizes": [layers[0][0].shape[0], *(bias.shape[0] for _, bias in layers)],
            "activation": "relu",
            "last_activation": "tanh",
        },
    }


def _layers(solution: Solution) -> list[tuple[np.ndarray, np.ndarray]]:
    genotype = jax.tree.map(lambda leaf: np.asarray(leaf, np.float32), solution.genotype)
    return [(layer.kernel, layer.bias) for layer in genotype]


def _npz(header: Mapping[str, Any], layers: list[tuple[np.ndarray, np.ndarray]]) -> bytes:
    arrays = {HEADER: np.frombuffer(json.dumps(header, indent=2).encode(), np.uint8)}
    for i, (kernel, bias) in enumerate(layers):
        arrays |= {f"kernel{i}": kernel, f"bias{i}": bias}
    content = io.BytesIO()
    np.savez(content, **arrays)  # type: ignore[arg-type]  # of which no name is one of its arguments
    return content.getvalue()


def _onnx(header: Mapping[str, Any], layers: list[tuple[np.ndarray, np.ndarray]]) -> bytes:
    need("onnx", "onnx", "exporting as .onnx")
    from onnx import TensorProto, checker, helper, numpy_helper

    nodes, weights, last = [], [], "observation"
    for i, (kernel, bias) in enumerate(layers):
        weights += [numpy_helper.from_array(kernel, f"kernel{i}"), numpy_helper.from_array(bias, f"bias{i}")]
        nodes.append(helper.make_node("Gemm", [last, f"kernel{i}", f"bias{i}"], [f"dense{i}"]))
        end = i == len(layers) - 1
        last = "action" if end else f"relu{i}"
        nodes.append(helper.make_node("Tanh" if end else "Relu", [f"dense{i}"], [last]))
    sizes = header["network"]["sizes"]
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", size])
        for name, size in (("observation", sizes[0]), ("action", sizes[-1]))
    ]
    graph = helper.make_graph(nodes, "policy", ends[:1], ends[1:], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8, producer_name="moqd")
    helper.set_model_props(model, {"moqd": json.dumps(header)})
    checker.check_model(model)
    return model.SerializeToString()
