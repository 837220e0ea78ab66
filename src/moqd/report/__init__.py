"""Reports: of a run, and of a study."""

from moqd.report.run import write_report
from moqd.report.study import write_study_report

__all__ = ["write_report", "write_study_report"]
