"""The interactive page of one or more runs: their archives, the gait of each solution, and help in choosing one."""

from moqd.explorer.write import write_explorer

__all__ = ["write_explorer"]
