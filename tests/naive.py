"""The rules of the archive in plain Python, written to be read: what the fast versions must agree with."""

import numpy as np

Vector = tuple[float, ...]


def dominates(a: Vector, b: Vector) -> bool:
    return all(x >= y for x, y in zip(a, b, strict=True)) and a != b


def crowding(front: list[Vector]) -> list[float]:
    """NSGA-II's, averaged over objectives; extremes are infinite; float32 as the archive's numbers are."""
    total = np.zeros(len(front), np.float32)
    num_objectives = len(front[0])
    for j in range(num_objectives):
        order = sorted(range(len(front)), key=lambda i: (front[i][j], front[i]))
        extent = np.float32(front[order[-1]][j]) - np.float32(front[order[0]][j])
        if extent == 0:
            continue
        for before, i, after in zip(order, order[1:], order[2:], strict=False):
            total[i] += (np.float32(front[after][j]) - np.float32(front[before][j])) / extent
        total[order[0]] = total[order[-1]] = np.inf
    return list(total / np.float32(num_objectives))


def truncate(front: list[Vector], size: int) -> list[Vector]:
    """While too many, the least crowded goes, of equals the lexicographically least."""
    front = list(front)
    while len(front) > size:
        distance = crowding(front)
        del front[min(range(len(front)), key=lambda i: (distance[i], front[i]))]
    return front


def add(front: list[Vector], newcomers: list[Vector], length: int | None) -> list[Vector]:
    """One cell's front after a batch; `length` None: whatever is not dominated."""
    pool = list(dict.fromkeys(front + newcomers))
    kept = [a for a in pool if not any(dominates(b, a) for b in pool)]
    return kept if length is None else truncate(kept, length)
