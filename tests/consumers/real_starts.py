"""Loads the benchmark of a lake with ``datasets`` and restores every row in the environment that TRL's trainer is given.

Runs in TRL's environment: ``python real_starts.py LAKE ROWS``. One JSON object a row.
"""

from __future__ import annotations

import json
import sys

from datasets import load_dataset

from materialize.adapters.trl import environment_class
from materialize.recorded import LakeRuns

if __name__ == "__main__":
    place, rows = sys.argv[1:3]
    environments = environment_class(LakeRuns.at(place))
    for split, data in load_dataset(rows).items():
        for row in data:
            environment = environments()
            environment.reset(**row)
            seen = environment.search_music()
            roles = [m["role"] for m in row["prompt"]]
            print("@@" + json.dumps({"split": split, "roles": roles, "columns": sorted(row), "seen": seen}))
