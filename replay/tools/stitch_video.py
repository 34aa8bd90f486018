"""``stitch_video``: renders joined without encoding again, one sound track, one AAC encode, a manifest, and the validation of it all."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from media.audio import read_audio
from media.ffmpeg import SAMPLE_RATE, house_audio, run_ffmpeg
from media.measure import AudioMeasure
from replay import facts
from replay.captions import to_srt
from replay.credits import attribution_text, credits_of
from replay.delivery import Problem, Seen, judge, look
from replay.drift import drift_us
from replay.encoder import ffmpeg_version
from replay.lineage import delivery_inputs
from replay.manifest import ATTRIBUTION, CAPTIONS, VIDEO, FileEntry, Manifest, PictureEntry, ShotEntry, SoundEntry, SpokenEntry
from replay.measured import measured_audio, measured_video
from replay.mix import film_sound, spoken, write_track
from replay.picture import timescale
from replay.sound import FilmSound
from replay.state import film_change
from replay.tool import Arguments, Contents, Product, Refusal, ToolEnv
from schemas.artifact import ArtifactKind, ArtifactRef
from schemas.blocker import Blocker, BlockerCode
from schemas.canonical import digest_of
from schemas.contract import ContentRequest, Fact, ToolContract
from schemas.errors import MediaRejected, ToolFailed
from schemas.state import Delivery, ProductionState, TimelineItem
from schemas.time import US, Rate

FILM = "film.5"
"""Version of mixing and joining; part of every film's key in the store."""
CAPTIONS_TYPE = "application/x-subrip"
_OF_A_SHOT = {"shot_id", "planned", "asset", "narration", "decoration", "render"}
OF_THE_MATERIAL = ("black", "silent", "loudness")
"""Problems that come from what was chosen and can be mended by choosing again; all others are faults of ours."""


class StitchVideo:
    """Delivers the film."""

    contract = ToolContract(
        name="stitch_video",
        version=1,
        summary="Deliver the film: join the renders, mix narration and music into one track, encode it once, write and check the manifest.",
        args=(),
        needs=(Fact.TIMELINE, Fact.RENDERS, Fact.NARRATION, Fact.MUSIC),
        produces=(Fact.DELIVERY,),
        checks=(
            "every render has the size and the frames of its slot",
            "the film decodes as H.264 and AAC with the timeline's frames, each where its number says, and the canvas size",
            "picture and sound are of one length and nowhere more than a frame apart",
            "the film is neither black nor silent, and peaks nowhere above -1 dBTP",
            "the manifest names digests, lengths, coverage, loudness and licences, and agrees with the bytes",
        ),
        wall_s=3600,
        max_output_bytes=8 * 1024 * 1024 * 1024,
    )

    def resolve(self, state: ProductionState, arguments: Arguments) -> tuple[Blocker, ...]:
        """Nothing to resolve."""
        return ()

    def need(self, state: ProductionState, arguments: Arguments, given: Contents, env: ToolEnv) -> ContentRequest | None:
        """Nothing is asked."""
        return None

    def accept(self, state: ProductionState, arguments: Arguments, given: Contents, content: dict[str, Any]) -> tuple[Blocker, ...]:
        """Never called."""
        return ()

    def execute(self, state: ProductionState, arguments: Arguments, given: Contents, env: ToolEnv) -> Product | Refusal:
        """Make the film, or take it out of the store if it was made from the same parts before."""
        key = _key(state, env)
        made = _known(key, env) or _make(state, env)
        if isinstance(made, Refusal):
            return made
        manifest, ref = made
        env.store.remember(key, ref)
        video = _ref(manifest.video, ArtifactKind.VIDEO, "video/mp4")
        captions = () if manifest.captions is None else (_ref(manifest.captions, ArtifactKind.OTHER, CAPTIONS_TYPE),)
        attribution = _ref(manifest.attribution, ArtifactKind.OTHER, "text/plain")
        delivery = Delivery(
            video=video,
            manifest=ref,
            duration_us=manifest.picture.duration_us,
            loudness_lufs=manifest.sound.loudness_lufs,
            inputs_digest=delivery_inputs(state),
        )
        results: dict[str, Any] = {
            "duration_ms": manifest.picture.duration_us // 1000,
            "frames": manifest.picture.frames,
            "shots": len(manifest.shots),
            "loudness_lufs": manifest.sound.loudness_lufs,
            "coverage": manifest.coverage,
            "drift_us": manifest.sound.drift_us,
            "open_defects": len(facts.open_defects(state)),
        }
        artifacts = (video, ref, attribution, *captions)
        return Product(changes=(film_change("delivery", delivery),), results=results, artifacts=artifacts)


def _key(state: ProductionState, env: ToolEnv) -> str:
    """Names everything a film and its manifest are made from."""
    film = state.film
    parts = [
        "film",
        FILM,
        film.task.model_dump(mode="json", exclude={"pool", "tools_digest"}),
        [state.shots[sid].model_dump(mode="json", include=_OF_A_SHOT) for sid in film.shot_order],
        film.timeline.model_dump(mode="json") if film.timeline is not None else None,
        film.music.model_dump(mode="json") if film.music is not None else None,
        env.config.mix.model_dump(mode="json"),
        [c.model_dump(mode="json") for c in credits_of(state, env.engines)],
        env.engines.versions(),
        env.sandbox.name,
        ffmpeg_version(env.sandbox),
    ]
    return digest_of(parts)


def _known(key: str, env: ToolEnv) -> tuple[Manifest, ArtifactRef] | None:
    """A film that was made and validated from the same parts before, if the store still holds it."""
    ref = env.store.recall(key)
    if ref is None:
        return None
    manifest = Manifest.model_validate(env.store.read_json(ref.sha256))
    names = [manifest.video.sha256, manifest.attribution.sha256] + ([] if manifest.captions is None else [manifest.captions.sha256])
    return (manifest, ref) if all(env.store.has(name) for name in names) else None


def _make(state: ProductionState, env: ToolEnv) -> tuple[Manifest, ArtifactRef] | Refusal:
    """Look at the parts, join, mix, encode, measure, validate, and only then store."""
    unfit = _unfit_renders(state, env)
    if unfit:
        return Refusal(unfit)
    music = measured_audio(state.film.music.ref, env.store, env.sandbox) if state.film.music is not None else None
    sound = film_sound(state, music, env)
    file = _join(state, sound, env)
    env.note("film joined; measuring it")
    seen = look(file, env.sandbox)
    heard = read_audio(file, seen.info, env.sandbox, rate=SAMPLE_RATE)
    captions = to_srt(spoken(state))
    ref = env.store.put_bytes(captions, ArtifactKind.OTHER, CAPTIONS_TYPE) if captions else None
    named = env.store.put_bytes(attribution_text(credits_of(state, env.engines)), ArtifactKind.OTHER, "text/plain")
    manifest = _manifest(state, seen, drift_us(heard, sound), ref, named, env)
    problems = judge(manifest, seen)
    if problems:
        return _refused(problems)
    env.store.put_file(file, ArtifactKind.VIDEO, "video/mp4")
    return manifest, env.store.put_json(manifest, ArtifactKind.MANIFEST)


def _ref(entry: FileEntry, kind: ArtifactKind, media_type: str) -> ArtifactRef:
    return ArtifactRef(sha256=entry.sha256, kind=kind, media_type=media_type, size_bytes=entry.size_bytes)


def _unfit_renders(state: ProductionState, env: ToolEnv) -> tuple[Blocker, ...]:
    """Renders that have not the size or length of their slots: the film could not be joined from them, and rendering again mends it."""
    task = state.film.task
    out: list[Blocker] = []
    for item in state.film.timeline.items if state.film.timeline is not None else ():
        render = state.shots[item.shot_id].render
        if render is None:
            continue
        try:
            m = measured_video(render.ref, env.store, env.sandbox)
            seen = f"{m.frames} frames of {m.width}x{m.height}"
        except MediaRejected as error:
            seen = f"no picture that decodes ({error.message})"
        wanted = f"{item.frames} frames of {task.width}x{task.height}"
        if seen != wanted:
            out.append(
                Blocker(
                    code=BlockerCode.PRODUCT_REJECTED,
                    subject=f"shot:{item.shot_id}",
                    message=f"the render of {item.shot_id} has {seen}, its slot needs {wanted}; render this shot again",
                    needs=(Fact.RENDERS.value,),
                    remedies=("render_shots",),
                )
            )
    return tuple(out)


def _join(state: ProductionState, sound: FilmSound, env: ToolEnv) -> Path:
    """The film as a file of the call's folder."""
    folder = Path(env.workdir) / "film"
    folder.mkdir()
    track = folder / "sound.wav"
    write_track(sound, track)
    inputs: dict[str, Path] = {"sound.wav": track}
    lines = ["ffconcat version 1.0"]
    for number, item in enumerate(state.film.timeline.items if state.film.timeline is not None else ()):
        render = state.shots[item.shot_id].render
        if render is None:
            raise ToolFailed("render_missing", f"{item.shot_id} has no render although all renders are current")
        inputs[f"shots/{number:04d}.mp4"] = env.store.path(render.ref.sha256)
        lines += [f"file '/in/shots/{number:04d}.mp4'", f"duration {_slot_seconds(item, state.film.task.frame_rate)}"]
    argv = (
        "-f", "concat", "-safe", "0", "-i", "/in/film.ffconcat", "-i", "/in/sound.wav", "-map", "0:v:0", "-map", "1:a:0", "-c:v", "copy",
        *house_audio(), "-video_track_timescale", str(timescale(state.film.task.frame_rate)), "-movflags", "+faststart", f"/out/{VIDEO}",
    )  # fmt: skip
    run_ffmpeg(
        argv,
        inputs=inputs,
        texts={"film.ffconcat": "\n".join(lines).encode() + b"\n"},
        outputs=(VIDEO,),
        sandbox=env.sandbox,
        workdir=folder,
    )
    return folder / VIDEO


def _slot_seconds(item: TimelineItem, rate: Rate) -> str:
    """How long a shot lasts in the joined film: from frame border to frame border, rounded cumulatively.

    A file's own duration is kept in whole milliseconds, rounded up; without this line every cut would push the picture back by some of one.
    """
    us = rate.us_at(item.start_frame + item.frames) - rate.us_at(item.start_frame)
    return f"{us // US}.{us % US:06d}"


def _manifest(
    state: ProductionState, seen: Seen, drift: int, captions: ArtifactRef | None, attribution: ArtifactRef, env: ToolEnv
) -> Manifest:
    task = state.film.task
    said = {s.shot_id: s for s in spoken(state)}
    characters = sum(1 for c in task.script if not c.isspace())
    carried = min(characters, sum(1 for sid in said for c in state.shots[sid].planned.text if not c.isspace()))
    return Manifest(
        project_id=task.project_id,
        title=task.title,
        language=task.language,
        video=FileEntry(file=VIDEO, sha256=seen.sha256, size_bytes=seen.size_bytes),
        captions=None if captions is None else FileEntry(file=CAPTIONS, sha256=captions.sha256, size_bytes=captions.size_bytes),
        attribution=FileEntry(file=ATTRIBUTION, sha256=attribution.sha256, size_bytes=attribution.size_bytes),
        picture=PictureEntry(
            codec=seen.info.video.codec if seen.info.video is not None else "none",
            stream_sha256=seen.streams[0],
            width=task.width,
            height=task.height,
            frame_rate=task.frame_rate,
            frames=state.film.timeline.total_frames if state.film.timeline is not None else 0,
            duration_us=seen.video.duration_us,
            black_share=round(seen.video.black_share, 4),
            frozen_share=round(seen.video.frozen_share, 4),
        ),
        sound=_sound(seen.audio, seen, drift),
        script_characters=characters,
        spoken_characters=carried,
        coverage=round(carried / characters, 4) if characters else 1.0,
        feasible_us=(task.duration_min_us, task.duration_max_us),
        shots=_shots(state),
        credits=credits_of(state, env.engines),
        engines={"sandbox": env.sandbox.name, **env.engines.versions()},
    )


def _sound(audio: AudioMeasure, seen: Seen, drift: int) -> SoundEntry:
    loudness = audio.loudness_lufs
    return SoundEntry(
        codec=seen.info.audio.codec if seen.info.audio is not None else "none",
        stream_sha256=seen.streams[1],
        sample_rate=audio.sample_rate,
        channels=audio.channels,
        duration_us=audio.duration_us,
        loudness_lufs=round(loudness, 1) if loudness is not None and math.isfinite(loudness) else -70.0,
        peak_dbfs=round(audio.peak_dbfs, 1),
        true_peak_dbtp=round(audio.true_peak_dbtp, 1),
        silent_share=round(audio.silent_share, 4),
        drift_us=drift,
    )


def _shots(state: ProductionState) -> tuple[ShotEntry, ...]:
    said = {s.shot_id: s for s in spoken(state)}
    out: list[ShotEntry] = []
    for item in state.film.timeline.items if state.film.timeline is not None else ():
        shot = state.shots[item.shot_id]
        if shot.render is None or shot.asset is None:
            raise ToolFailed("render_missing", f"{item.shot_id} has no render although all renders are current")
        voice = said.get(item.shot_id)
        graphic = shot.decoration if shot.planned.spotlight is not None else None
        out.append(
            ShotEntry(
                shot_id=item.shot_id,
                start_frame=item.start_frame,
                frames=item.frames,
                render_sha256=shot.render.ref.sha256,
                clip_id=shot.asset.clip_id,
                clip_sha256=shot.asset.ref.sha256,
                narration=None if voice is None else SpokenEntry(sha256=voice.sha256, start_us=voice.start_us, end_us=voice.end_us),
                graphic=None if graphic is None else graphic.template,
                graphic_sha256=None if graphic is None else graphic.ref.sha256,
            )
        )
    return tuple(out)


def _refused(problems: list[Problem]) -> Refusal:
    """Problems of the material are the policy's to mend; anything else is ours."""
    ours = [p for p in problems if p.code not in OF_THE_MATERIAL]
    if ours:
        raise ToolFailed("film_wrong", "; ".join(f"{p.code}: {p.message}" for p in ours[:3]))
    remedies = {"black": ("retrieve_visuals", "render_shots"), "silent": ("synthesize_narration",), "loudness": ("synthesize_narration",)}
    return Refusal(
        tuple(
            Blocker(code=BlockerCode.PRODUCT_REJECTED, subject="film", message=f"{p.code}: {p.message}", remedies=remedies[p.code])
            for p in problems
        )
    )


TOOL = StitchVideo()
