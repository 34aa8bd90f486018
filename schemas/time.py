"""Integer time: microseconds, exact frame rates, half-open ranges. No floats."""

from __future__ import annotations

from fractions import Fraction
from math import gcd

from pydantic import Field, model_validator

from schemas.canonical import Frozen

US = 1_000_000
"""Microseconds in a second."""


class Rate(Frozen):
    """Frames per second as an exact fraction, in lowest terms (24000/1001, 15/1)."""

    num: int = Field(gt=0)
    den: int = Field(gt=0)

    @model_validator(mode="before")
    @classmethod
    def _lowest(cls, data: object) -> object:
        if isinstance(data, dict) and isinstance(data.get("num"), int) and isinstance(data.get("den"), int):
            g = gcd(data["num"], data["den"]) or 1
            return {"num": data["num"] // g, "den": data["den"] // g}
        return data

    @property
    def fraction(self) -> Fraction:
        """Frames per second."""
        return Fraction(self.num, self.den)

    def frame_at(self, us: int) -> int:
        """Nearest frame index of a time in microseconds (half rounds up)."""
        return (2 * us * self.num + US * self.den) // (2 * US * self.den)

    def us_at(self, frame: int) -> int:
        """Time of a frame in microseconds, nearest (half rounds up)."""
        return (2 * frame * US * self.den + self.num) // (2 * self.num)


class Span(Frozen):
    """A half-open range of microseconds: ``start_us`` belongs to it, ``end_us`` does not."""

    start_us: int
    end_us: int

    @model_validator(mode="after")
    def _ordered(self) -> Span:
        if self.end_us < self.start_us:
            raise ValueError(f"end_us {self.end_us} lies before start_us {self.start_us}")
        return self

    @property
    def duration_us(self) -> int:
        """Length in microseconds."""
        return self.end_us - self.start_us

    def overlap_us(self, other: Span) -> int:
        """Microseconds shared with another range, 0 if none."""
        return max(0, min(self.end_us, other.end_us) - max(self.start_us, other.start_us))
