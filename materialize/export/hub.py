"""SFT as the canonical folder: the Parquet shards of the TRL export, with the split map and the tool schemas beside them."""

from __future__ import annotations

from typing import Any

import orjson

from materialize.export.folder import ExportFolder
from materialize.export.options import ExportReport
from materialize.export.selection import Selection
from materialize.export.trl import Trl
from schemas.canonical import sha256_bytes

_PRETTY = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE


class Hub(Trl):
    """``export sft --to hf``."""

    name = "hf"

    def documents(self, folder: ExportFolder, report: ExportReport, selection: Selection) -> None:
        """Card, sources, the split of every project of the lake (held-out ones too), and the tool schemas by digest."""
        super().documents(folder, report, selection)
        pairs = selection.connection.execute("select distinct project_id, split from examples order by 1, 2").fetchall()
        folder.write("splits.json", orjson.dumps(dict(pairs), option=_PRETTY))
        texts = selection.connection.execute("select distinct tools_json from examples where tools_json <> '[]' order by 1").fetchall()
        registries: list[dict[str, Any]] = [{"sha256": sha256_bytes(t.encode()), "tools": orjson.loads(t)} for (t,) in texts]
        folder.write("tools.json", orjson.dumps(registries, option=_PRETTY))
