"""A small studio for the tests of production tools: generated clips and music, a fast voice, a hashing embedder, the real sandbox."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from media.command import Sandbox
from media.ffmpeg import house_video, run_ffmpeg
from replay.config import ReplayConfig
from replay.embed import HashingEmbedder
from replay.engines import Engines
from replay.graphics.pack import load_templates
from replay.music import open_music
from replay.speech import FliteSpeech
from replay.state import apply, film_change, initial, put_shot
from replay.tool import Contents, Product, Refusal, Tool, ToolEnv
from schemas.artifact import ArtifactKind
from schemas.state import PlannedShot, PoolClip, ProductionState, Segment, ShotRecord, SpotlightPlan, Task
from schemas.storyboard import SpotlightKind
from schemas.time import Rate
from storage.artifacts import ArtifactStore

RATE = Rate(num=30, den=1)
SIZE = (320, 180)

SOURCES: dict[str, tuple[str, float]] = {
    "a colour test card with a running clock": ("testsrc2=s=320x180:r=30", 3.0),
    "a fractal that grows slowly": ("mandelbrot=s=320x180:r=30", 4.0),
    "cells that live and die": ("life=s=320x180:r=30:mold=10:ratio=0.2:seed=1:death_color=#a03030:life_color=#30ff80", 3.0),
    "nothing but darkness": ("color=black:s=320x180:r=30", 3.0),
    "a small square test card": ("testsrc2=s=180x180:r=15", 1.0),
}
"""Clips of the pool: text, ffmpeg source, seconds."""

SCRIPT = "The clock runs on a card. A fractal grows. Nobody speaks of the cells."


@dataclass(frozen=True)
class Deaf:
    """A reader that reads nothing."""

    name: str = "deaf"

    def read(self, image: Any) -> tuple[()]:
        return ()


class Studio:
    """Stores, sandbox, engines and a pool, made once for a test module."""

    def __init__(self, root: Path, sandbox: Sandbox) -> None:
        self.root = root
        self.sandbox = sandbox
        self.store = ArtifactStore(root / "artifacts")
        self.pool = {text: self._clip(text, source, seconds) for text, (source, seconds) in SOURCES.items()}
        self.engines = Engines(
            speech=FliteSpeech(sandbox),
            embedder=HashingEmbedder(),
            music=open_music(str(self._music())),
            templates=load_templates(),
            reader=Deaf(),
        )
        self._calls = 0

    def ffmpeg(self, name: str, *argv: str, inputs: dict[str, Path] | None = None) -> Path:
        """Run ffmpeg in the sandbox; returns the output ``/out/<name>``."""
        folder = self.root / f"make-{len(list(self.root.iterdir()))}"
        folder.mkdir()
        run_ffmpeg(argv, inputs=inputs or {}, outputs=(name,), sandbox=self.sandbox, workdir=folder)
        return folder / name

    def _clip(self, text: str, source: str, seconds: float) -> PoolClip:
        file = self.ffmpeg(
            "clip.mp4",
            "-f",
            "lavfi",
            "-i",
            source,
            "-frames:v",
            str(round(seconds * 30)),
            "-an",
            *house_video(preset="ultrafast"),
            "/out/clip.mp4",
        )
        ref = self.store.put_file(file, ArtifactKind.CLIP, "video/mp4")
        width, height = (180, 180) if "square" in text else SIZE
        return PoolClip(
            clip_id=f"clip_{ref.sha256[:12]}",
            ref=ref,
            text=text,
            duration_us=round(seconds * 1e6),
            width=width,
            height=height,
            rate=RATE,
            licence="CC0-1.0",
            attribution="the test studio",
            origin="source",
        )

    def _music(self) -> Path:
        folder = self.root / "music"
        folder.mkdir()
        tracks = {
            "hum": ("sine=frequency=110:sample_rate=48000", ["calm"]),
            "beat": ("aevalsrc='0.5*sin(440*t)*gt(mod(t,0.5),0.4)':s=48000", ["energetic"]),
            "hush": ("anullsrc=r=48000", ["silence"]),
        }
        index = []
        for name, (source, moods) in tracks.items():
            made = self.ffmpeg("track.flac", "-f", "lavfi", "-i", source, "-t", "8", "/out/track.flac")
            made.rename(folder / f"{name}.flac")
            index.append(
                {"file": f"{name}.flac", "title": name.capitalize(), "moods": moods, "licence": "CC0-1.0", "attribution": "nobody"}
            )
        (folder / "music.json").write_text(json.dumps({"name": "tones", "tracks": index}))
        return folder

    def config(self, **changes: Any) -> ReplayConfig:
        """Settings of a small, fast film."""
        base = {
            "speech": {"engine": "flite"},
            "retrieval": {"embedder": "hashing"},
            "render": {"height": 180, "preset": "ultrafast", "crf": 28},
        }
        return ReplayConfig.model_validate({**base, **changes})

    def env(self, config: ReplayConfig | None = None) -> ToolEnv:
        """A fresh environment of one call."""
        self._calls += 1
        workdir = self.root / f"call-{self._calls}"
        workdir.mkdir()
        return ToolEnv(self.store, self.sandbox, self.engines, config or self.config(), workdir)

    def task(self, **changes: Any) -> Task:
        """The task of the small film."""
        values: dict[str, Any] = {
            "project_id": "prj_studio",
            "title": "Cards",
            "language": "en",
            "script": SCRIPT,
            "aspect_ratio": "16:9",
            "width": 320,
            "height": 180,
            "frame_rate": RATE,
            "duration_min_us": 1_000_000,
            "duration_max_us": 60_000_000,
            "pool": tuple(self.pool.values()),
            "music_library": self.engines.music.name,
            "voice": "slt",
            "tools_digest": "0" * 64,
            "licence": "CC0-1.0",
        }
        return Task(**{**values, **changes})

    def planned(
        self, shots: Sequence[tuple[str, str, int]] | None = None, spotlights: dict[str, str] | None = None, **task: Any
    ) -> ProductionState:
        """A state after planning.

        Args:
            shots: (text, query, target in ms) for each shot; texts joined by spaces are the script.
            spotlights: shot id to kind.
        """
        rows = shots or [
            ("The clock runs on a card.", "colour test card with a clock", 2500),
            ("A fractal grows.", "growing fractal", 2000),
            ("", "living cells", 1200),
            ("Nobody speaks of the cells.", "cells live and die", 2000),
        ]
        script = " ".join(t for t, _, _ in rows if t)
        changes = [film_change("segments", (Segment(index=0, title="All", script_start=0, script_end=len(script)),))]
        order: list[str] = []
        at = 0
        for number, (text, query, ms) in enumerate(rows):
            sid = f"s{number + 1:03d}"
            start = script.index(text, at) if text else at
            at = start + len(text)
            kind = (spotlights or {}).get(sid)
            spotlight = None if kind is None else SpotlightPlan(kind=SpotlightKind(kind), brief=f"say it: {text}")
            planned = PlannedShot(
                segment=0,
                script_start=start,
                script_end=at,
                text=text,
                visual_query=query,
                target_duration_us=ms * 1000,
                spotlight=spotlight,
            )
            changes.append(put_shot(ShotRecord(shot_id=sid, planned=planned)))
            order.append(sid)
        changes.append(film_change("shot_order", order))
        return apply(initial(self.task(script=script, **task)), changes)

    def run(
        self,
        tool: Tool,
        state: ProductionState,
        arguments: dict[str, Any] | None = None,
        contents: Contents = (),
        config: ReplayConfig | None = None,
    ) -> tuple[ProductionState, Product]:
        """Run a tool as the runtime does, ladder and all; the product must not be refused."""
        done = self.attempt(tool, state, arguments, contents, config)
        assert isinstance(done, Product), done
        return apply(state, done.changes), done

    def attempt(
        self,
        tool: Tool,
        state: ProductionState,
        arguments: dict[str, Any] | None = None,
        contents: Contents = (),
        config: ReplayConfig | None = None,
    ) -> Product | Refusal:
        """As :meth:`run`, without expecting success."""
        args = arguments or {}
        assert tool.resolve(state, args) == ()
        env = self.env(config)
        given: list[dict[str, Any]] = []
        for content in contents:
            assert tool.need(state, args, tuple(given), env) is not None
            assert tool.accept(state, args, tuple(given), content) == ()
            given.append(content)
        assert tool.need(state, args, tuple(given), env) is None
        return tool.execute(state, args, tuple(given), env)


def queries(state: ProductionState, shots: Sequence[str] | None = None) -> dict[str, Any]:
    """The planned queries as the generator's answer."""
    return {"queries": [{"shot_id": s, "query": state.shots[s].planned.visual_query} for s in shots or state.film.shot_order]}
