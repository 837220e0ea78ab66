"""The interactive page of one or more runs: what they found, each solution's gait, and help in choosing one."""

from moqd.explorer.write import write_explorer

__all__ = ["write_explorer"]
