"""The canonical folder described in Croissant 1.0 (MLCommons), so that crawlers and loaders know its files and fields."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from materialize.export.hub_parquet import Table
from materialize.export.licences import NONE, TEXTS, spdx
from materialize.export.options import ExportedFile, ExportReport

_CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileProperty": "cr:fileProperty",
    "fileObject": "cr:fileObject",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}
_TYPES = {"string": "sc:Text", "int64": "sc:Integer", "float64": "sc:Float", "bool": "sc:Boolean"}


def croissant(report: ExportReport, table: Table, files: Sequence[ExportedFile]) -> dict[str, Any]:
    """The description as JSON-LD. Every shard is a file with its digest, and a record set of its own with all plain columns.

    Columns of messages and tool schemas are nested and typed as JSON; Croissant has no type for them, so they are left to the Parquet
    schema and to ``schemas/row.schema.json``.
    """
    shards = [f for f in files if f.path.startswith("data/")]
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": f"workprint-{table.name}",
        "description": f"Editing decisions for tool-using agents ({table.name}): {sum(report.rows.values())} rows of"
        f" {len(report.projects)} source videos.",
        "license": _licences(report),
        "version": report.schema_version.replace("export.", "") + ".0.0",
        "url": "./README.md",
        "rai:dataCollection": "Recovered from finished videos and executed with production tools; see README.md.",
        "rai:dataUseCases": "Evaluation only." if report.kind == "benchmark" else "Training of agents that edit video.",
        "distribution": [
            {
                "@type": "cr:FileObject",
                "@id": f.path,
                "name": f.path,
                "contentUrl": f.path,
                "contentSize": f"{f.size_bytes} B",
                "encodingFormat": "application/x-parquet",
                "sha256": f.sha256,
            }
            for f in shards
        ],
        "recordSet": [_records(table, f) for f in shards],
    }


def _records(table: Table, file: ExportedFile) -> dict[str, Any]:
    name = file.path.removeprefix("data/").removesuffix(".parquet")
    plain = [c for c in table.columns if c.feature.get("_type") == "Value"]
    return {
        "@type": "cr:RecordSet",
        "@id": name,
        "name": name,
        "description": f"{file.rows} rows.",
        "field": [
            {
                "@type": "cr:Field",
                "@id": f"{name}/{c.name}",
                "name": f"{name}/{c.name}",
                "description": c.doc,
                "dataType": _TYPES[c.feature["dtype"]],
                "source": {"fileObject": {"@id": file.path}, "extract": {"column": c.name}},
            }
            for c in plain
        ],
    }


def _licences(report: ExportReport) -> list[str]:
    names = sorted({spdx(given) for given in report.by_licence})
    return [TEXTS[n][1] if n in TEXTS else "https://spdx.org/licenses/" if n != NONE else NONE for n in names]
