"""Numbers for people: short, and formatted alike within a column. The CSV files have them in full."""

import math
from collections.abc import Collection, Iterable
from typing import NamedTuple

NOTHING = "\N{EN DASH}"
"""Shown in place of a missing number."""
MINUS = "\N{MINUS SIGN}"
SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


class Scale(NamedTuple):
    """How all numbers of a column are shown: in units of ten to the exponent, with the same number of decimals."""

    exponent: int
    decimals: int

    @property
    def unit(self) -> str:
        """The unit, for the head of the column."""
        power = str(self.exponent).translate(SUPERSCRIPT)
        return f"\N{MULTIPLICATION SIGN}10{power}" if self.exponent else ""

    def show(self, value: float) -> str:
        """The number; one that is tiny compared with the others gets more decimals, so that it is not shown as 0."""
        if not math.isfinite(value):
            return NOTHING if math.isnan(value) else number(value)
        scaled = value / 10.0**self.exponent
        too_short = scaled and abs(scaled) < 9.5 * 10.0**-self.decimals
        return signed(f"{scaled:.2g}" if too_short else f"{scaled:,.{self.decimals}f}")


def scale_of(values: Iterable[float]) -> Scale:
    """Four digits for the largest, and a power of a thousand where it would be long or small."""
    largest = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    if not largest:
        return Scale(0, 0)
    magnitude = math.floor(math.log10(largest))
    exponent = 3 * (magnitude // 3) if magnitude >= 5 or magnitude < -1 else 0
    return Scale(exponent, max(0, 3 - (magnitude - exponent)))


def number(value: float) -> str:
    """A number on its own, with six digits."""
    return f"{value:.6g}" if math.isfinite(value) else "none"


def count(value: float) -> str:
    """An integer, such as a number of evaluations."""
    return f"{value:,.0f}" if math.isfinite(value) else NOTHING


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + "s" * (number != 1)


def seeds_in(counts: Collection[int]) -> str:
    """Numbers of seeds, which need not be the same everywhere."""
    least, most = min(counts), max(counts)
    return counted(most, "seed") if least == most else f"{least} to {most} seeds"


def probability(p: float) -> str:
    """A p value, with three digits, so that 0.0496 is not taken for 0.05."""
    if math.isnan(p):
        return NOTHING
    return "< 0.001" if p < 0.001 else f"{p:.3g}"


def duration_of(seconds: float, whole: float) -> str:
    """A part of a time, in the unit of the whole."""
    unit, length = ("h", 3600) if whole >= 7200 else ("min", 60) if whole >= 120 else ("s", 1)
    return f"{seconds / length:,.1f} of {whole / length:,.1f} {unit}"


def duration(seconds: float) -> str:
    if not math.isfinite(seconds):
        return NOTHING
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s"


def signed(shown: str) -> str:
    return shown.replace("-", MINUS)
