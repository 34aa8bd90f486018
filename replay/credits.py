"""Who must be named: everything of others that is in a film, with its licence.

Owns the list. Footage and music carry their own licences; voices and fonts are known here.
"""

from __future__ import annotations

from replay.delivery import Credit
from replay.engines import Engines
from schemas.state import ProductionState

_VOICES = {
    "kokoro": ("Kokoro-82M", "Apache-2.0", "hexgrad; ONNX export by thewh1teagle (MIT)"),
    "flite": ("flite voices", "BSD-style", "Carnegie Mellon University"),
}


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
