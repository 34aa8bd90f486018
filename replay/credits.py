"""Who must be named: everything of others that is in a film, with its licence.

Owns the list and the text that goes with a film. Footage and music carry their own licences; voices and fonts are known here.
"""

from __future__ import annotations

import re

from replay.engines import Engines
from replay.manifest import Credit
from schemas.state import ProductionState

_VOICES = {
    "kokoro": ("Kokoro-82M", "Apache-2.0", "hexgrad; ONNX export by thewh1teagle (MIT)"),
    "flite": ("flite voices", "BSD-style", "Carnegie Mellon University"),
}

_ADDRESSES = {
    "MIT": "https://opensource.org/license/mit", "Apache-2.0": "https://www.apache.org/licenses/LICENSE-2.0",
    "OFL-1.1": "https://openfontlicense.org", "CC0-1.0": "https://creativecommons.org/publicdomain/zero/1.0/",
}  # fmt: skip
_CC = re.compile(r"cc[- ](by(?:-(?:nc|nd|sa))*)[- ](\d\.\d)(?:[- ]([a-z]{2}))?", re.IGNORECASE)
_CHANGES = {
    "footage": "cut into clips, scaled, joined in another order, its sound replaced, graphics laid over it",
    "music": "looped, faded, its level changed",
}


def licence_address(licence: str) -> str | None:
    """Where the text of a licence stands; None for one that is not known here."""
    found = _CC.fullmatch(licence.strip())
    if found is None:
        return _ADDRESSES.get(licence)
    kind, version, country = found.groups()
    return f"https://creativecommons.org/licenses/{kind.lower()}/{version}/{f'{country.lower()}/' if country else ''}"


def attribution_text(credits: tuple[Credit, ...]) -> bytes:
    """``ATTRIBUTION.txt``: what of others is in the film, by whom, under which licence, and what was changed. UTF-8, one block a work."""
    lines = ["This film contains works of others.", ""]
    for credit in credits:
        address = licence_address(credit.licence)
        lines.append(f"{credit.kind}: {_line(credit.name)}")
        lines.append(f"  by: {_line(credit.attribution) if credit.attribution else 'not named by its source'}")
        lines.append(f"  licence: {_line(credit.licence)}{f' ({address})' if address else ''}")
        if credit.kind in _CHANGES:
            lines.append(f"  changed: {_CHANGES[credit.kind]}")
        lines.append("")
    return "\n".join(lines).encode()


def _line(text: str) -> str:
    """On one line, without control characters: a name from outside forges no second entry."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def credits_of(state: ProductionState, engines: Engines) -> tuple[Credit, ...]:
    """Credits of the present film: footage by licence, music, voice, fonts. Sorted, each once."""
    pool = {c.clip_id: c for c in state.film.task.pool}
    found: set[tuple[str, str, str, str | None]] = set()
    for shot in state.shots.values():
        clip = pool.get(shot.asset.clip_id) if shot.asset is not None else None
        if clip is not None:
            name = state.film.task.title if clip.origin == "source" else clip.origin
            found.add(("footage", name, clip.licence, clip.attribution))
        if shot.decoration is not None and shot.planned.spotlight is not None:
            found.add(("font", "Inter", "OFL-1.1", "The Inter Project Authors"))
            if state.film.task.language.startswith("zh"):
                found.add(("font", "Noto Sans SC", "OFL-1.1", "Adobe; Google"))
    music = state.film.music
    if music is not None:
        by = next((t.attribution for t in engines.music.tracks if t.track_id == music.track_id), None)
        found.add(("music", music.title, music.licence, by))
    if any(shot.narration is not None for shot in state.shots.values()):
        known = next((v for k, v in _VOICES.items() if engines.speech.name.startswith(k)), None)
        found.add(("voice", *known) if known else ("voice", engines.speech.name, "see the endpoint's terms", None))
    rows = sorted(found, key=lambda r: (r[0], r[1], r[2], r[3] or ""))
    return tuple(Credit.model_validate({"kind": k, "name": n, "licence": lic, "attribution": by}) for k, n, lic, by in rows)
