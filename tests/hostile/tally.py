"""Counts what the hostile tests show, and writes the counts into SECURITY.md.

    WORKPRINT_COUNTS=docs/hostile.json make test-hostile     the counts of this run, as JSON
    python -m tests.hostile.tally                            the table in SECURITY.md, from that JSON

Every row names the tests it counts: a case that passed is one that held. The attempts to escape run many in one process, and report their
number as a property of their test.
"""

from __future__ import annotations

import json
import platform
import re
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
COUNTS = ROOT / "docs" / "hostile.json"
PAGE = ROOT / "SECURITY.md"
BEGIN, END = "<!-- counts: written by python -m tests.hostile.tally -->", "<!-- end of counts -->"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table. ``tests``: pattern of test names in a file; ``number``: property that holds the count, if not the cases."""

    name: str
    what: str
    target: int
    file: str
    tests: str = r".*"
    number: str = ""


ROWS = (
    Row("S1", "attempts to get out, started by root: each fails with its expected error", 43, "test_escape.py",
        "test_every_attempt_fails_for_the_expected_reason", "attempts"),
    Row("S1", "the same, started by uid 65534", 43, "test_escape.py", "test_the_same_holds_when_an_ordinary_user_starts_it", "attempts"),
    Row("S1", "of these outside the sandbox (control): end differently there", 43, "test_escape.py",
        "test_the_same_attempts_succeed_or_fail_otherwise_outside", "controlled"),
    Row("S2", "hosts with a layer missing or lying: refused with `SandboxUnavailable`", 8, "test_degraded.py",
        r"(?!test_the_whole_host_is_accepted|test_process_is_only_had_by_name).*"),
    Row("S3", "processes, memory, disk, processor, wall clock, output, file size, descriptors: bounded, ended within the limit and 2 s", 8,
        "test_exhaustion.py", r"(?!.*\[(asleep|stopped|deaf|detached)\]).*"),
    Row("R18", "stuck children (asleep, stopped, deaf to signals, detached): ended within the limit and 2 s, nothing left", 3,
        "test_exhaustion.py", r"test_limit_ends_the_run\[(asleep|stopped|deaf|detached)\]"),
    Row("S4", "damaged files (seeded mutations): a result or a typed error", 20, "test_bombs.py",
        "test_damage_ends_in_a_result_or_a_typed_error.*"),
    Row("S5", "manifests posing as films: refused, no other file opened (inotify), no request made", 12, "test_manifests.py",
        "test_it_is_refused_and_nothing_else_is_opened.*"),
    Row("S6", "exaggerated files (pixels, hours, streams, rates, boxes, tables, tags): refused or capped", 12, "test_bombs.py",
        r"(?!test_damage).*"),
    Row("S7", "hostile texts, names, tags and captions: the same arguments as for harmless ones, no other file opened", 60,
        "test_arguments.py", r"(?!test_there_are_sixty).*"),
    Row("S8", "hostile outputs (links, pipes, sockets, giants, names): refused, the host's file unread", 15, "test_outputs.py",
        "test_(refused|two_names|a_socket|a_sparse|a_declared_name).*"),
    Row("S9", "unlisted codecs: refused at probe and at decode", 5, "test_manifests.py", "test_a_codec_that_is_not_listed.*"),
    Row("S10", "films that give orders: the same tools, arguments and references as for harmless twins, and the same text around the data",
        50, "test_injection.py", r"test_a_film_that_gives_orders_is_produced_as_its_harmless_twin.*"),
    Row("S14", "places with a secret of the host: not found inside, nor in what a run keeps or says", 5, "test_secrets.py",
        number="canaries"),
    Row("S17", "tampered deliveries: not verified", 12, "test_tampering.py", r"(?!test_the_honest_folder_is_verified).*"),
)  # fmt: skip


@dataclass
class Tally:
    """What the tests of one run came to."""

    outcomes: dict[str, str] = field(default_factory=dict)
    numbers: dict[str, dict[str, int]] = field(default_factory=dict)

    def note(self, nodeid: str, outcome: str, properties: list[tuple[str, Any]]) -> None:
        """One phase of one test; anything but a pass sticks."""
        if self.outcomes.get(nodeid, "passed") == "passed":
            self.outcomes[nodeid] = outcome
        self.numbers.setdefault(nodeid, {}).update({name: int(value) for name, value in properties if isinstance(value, int)})

    def as_json(self) -> dict[str, Any]:
        """Counts of every row, and where and when they were taken."""
        return {
            "date": datetime.now(UTC).date().isoformat(),
            "host": f"{_release()}, Linux {'.'.join(platform.release().split('.')[:2])}, {platform.machine()}",
            "versions": {
                "bubblewrap": _version("bwrap", "--version"),
                "ffmpeg": _version("ffmpeg", "-version"),
                "python": platform.python_version(),
            },
            "rows": [self._row(row) for row in ROWS],
        }

    def _row(self, row: Row) -> dict[str, Any]:
        pattern = re.compile(rf"(?:.*/)?{re.escape(row.file)}::(?:{row.tests})")
        mine = {nodeid: outcome for nodeid, outcome in self.outcomes.items() if pattern.fullmatch(nodeid)}
        count = Counter(mine.values())
        if row.number:
            values = [self.numbers.get(nodeid, {}).get(row.number, 0) for nodeid, outcome in mine.items() if outcome == "passed"]
            tried = max(values, default=0)
            held = tried if values and count["passed"] == len(mine) else 0
        else:
            tried, held = len(mine) - count["skipped"], count["passed"]
        return {"id": row.name, "what": row.what, "target": row.target, "tried": tried, "held": held, "skipped": count["skipped"]}


def _release() -> str:
    found = re.search(r'^PRETTY_NAME="?([^"\n]*)', Path("/etc/os-release").read_text(), re.MULTILINE)
    return found.group(1) if found else platform.system()


def _version(program: str, option: str) -> str:
    try:
        words = subprocess.run([program, option], capture_output=True, text=True, check=False).stdout.split()
    except OSError:
        return "missing"
    return next((w for w in words if w[:1].isdigit()), "unknown")


def table(counts: dict[str, Any]) -> str:
    """The counts as the lines between the marks of SECURITY.md."""
    versions = ", ".join(f"{name} {value}" for name, value in counts["versions"].items())
    lines = [
        BEGIN,
        f"Counts of {counts['date']}: {counts['host']}; {versions}.",
        "",
        "| | what | held | of | at least |",
        "| --- | --- | --- | --- | --- |",
        *(f"| {r['id']} | {r['what']} | {r['held']} | {r['tried']} | {r['target']} |" for r in counts["rows"]),
        END,
    ]
    return "\n".join(lines)


def written(page: str, counts: dict[str, Any]) -> str:
    """The page with its table replaced. Raises ValueError where the marks are missing."""
    before, _, rest = page.partition(BEGIN)
    _, mark, after = rest.partition(END)
    if not mark:
        raise ValueError(f"{PAGE.name} lacks the lines '{BEGIN}' and '{END}'")
    return before + table(counts) + after


def main() -> int:
    """Rewrite the page."""
    PAGE.write_text(written(PAGE.read_text(), json.loads(COUNTS.read_text())))
    print(f"wrote the counts of {COUNTS.relative_to(ROOT)} into {PAGE.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
