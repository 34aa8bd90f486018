"""Makes one narrated film from a seed and writes its exact truth beside it.

Owns the order of the work: speak, plan, draw, encode, tell. The same seed and options give the same bytes on the same machine. Needs no
network: voices, music, fonts and footage are parts that are installed, and what is missing is named.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Literal

import numpy as np

from evaluation.studio.edit import boundaries, frames
from evaluation.studio.footage import CREDIT as FOOTAGE_CREDIT
from evaluation.studio.footage import Footage
from evaluation.studio.pictures import Picture
from evaluation.studio.plan import KINDS, Plan, lay_out, make_plan
from evaluation.studio.texts import ENGLISH, MANDARIN, Topic
from evaluation.studio.truth import (
    Credit,
    FilmTruth,
    Flashed,
    TrueJoin,
    TrueLine,
    TrueSentence,
    TrueShot,
    TrueSpotlight,
    TrueWord,
)
from evaluation.studio.voices import RATE, FliteSpeaker, KokoroSpeaker, Recordings, Speaker, Utterance
from media.assets import asset
from media.audio import write_wav
from media.command import Sandbox
from media.ffmpeg import TIMESCALE, TO_HOUSE_COLOUR, house_audio, house_video, run_ffmpeg
from replay.engines import Samples
from schemas.errors import ConfigInvalid
from schemas.time import US
from storage.durable import digest_file, make_folder, remove, write_file

ENGINE = 1
"""Version of everything that decides a film's bytes besides its options: part of the key of kept films."""
FILM, TRUTH = "film.mp4", "truth.json"

_VOICES = {"en": ("af_heart", "am_michael"), "zh": ("zf_xiaoxiao", "zm_yunxi")}
_MANDARIN_SHARE = 0.3
_MUSIC_DB = (-24.0, -16.0)
"""Music against the voice, decibels."""


@dataclass(frozen=True)
class Order:
    """What film is wanted. ``kind`` and ``language`` are drawn from the seed where they are None.

    ``speech``: ``kokoro``, ``flite``, or a folder of recordings with a metadata.csv. ``seconds``: length, to a sentence.
    """

    seed: int
    kind: str | None = None
    language: str | None = None
    seconds: float = 20.0
    speech: str = "kokoro"


def make_film(order: Order, out: Path, sandbox: Sandbox) -> FilmTruth:
    """Write ``film.mp4`` and ``truth.json`` into a folder.

    Raises:
        ConfigInvalid: unknown kind, language or speech.
        EngineMissing: a part (voice, font, music, footage) is not installed.
        StorageFault, ToolFailed, SandboxUnavailable: as they say.
    """
    kind = order.kind or list(KINDS)[order.seed % len(KINDS)]
    if kind not in KINDS:
        raise ConfigInvalid("unknown_film_kind", f"there is no kind {kind!r}", f"kinds: {', '.join(KINDS)}")
    if order.language not in (None, "en", "zh"):
        raise ConfigInvalid("unknown_film_language", f"films are spoken in en or zh, not {order.language!r}")
    if not 4 <= order.seconds <= 600:
        raise ConfigInvalid("film_seconds", f"{order.seconds:g} seconds", "ask for 4 to 600")
    rng = np.random.default_rng([order.seed, list(KINDS).index(kind), ENGINE])
    by_seed = "zh" if rng.random() < _MANDARIN_SHARE and order.speech == "kokoro" else "en"
    language = order.language or by_seed
    topic = (ENGLISH if language == "en" else MANDARIN)[int(rng.integers(0, len(ENGLISH if language == "en" else MANDARIN)))]
    speaker = _speaker(rng, order.speech, language, sandbox)
    sounds = lay_out(rng, _said(rng, speaker, topic, order.seconds))
    plan = make_plan(rng, kind, topic, sounds, Footage(sandbox), [], exact_words=speaker.exact_words)
    make_folder(out)
    music, credit = _music(rng, out, sandbox) if plan.music else (None, None)
    sound = _mixed(rng, plan, music)
    _encode(plan, sound, out, sandbox)
    credits = (*speaker.credits, *((credit,) if credit else ()), *((FOOTAGE_CREDIT,) if plan.footage else ()))
    truth = _truth(order.seed, plan, language, speaker, credit.what if credit else None, credits, digest_file(out / FILM)[0])
    write_file(out / TRUTH, truth.model_dump_json(indent=1).encode() + b"\n")
    return truth


def _speaker(rng: np.random.Generator, speech: str, language: str, sandbox: Sandbox) -> Speaker:
    if speech == "kokoro":
        voices = _VOICES[language]
        return KokoroSpeaker(language, voices[int(rng.integers(0, len(voices)))])
    if speech == "flite":
        return FliteSpeaker(sandbox, language, ("slt", "rms", "awb")[int(rng.integers(0, 3))])
    if not Path(speech).is_dir():
        raise ConfigInvalid("unknown_speech", f"{speech!r} is no speech", "give kokoro, flite, or a folder of recordings")
    if language != "en":
        raise ConfigInvalid("recordings_language", "recordings are taken for English", "leave --language out")
    return Recordings(Path(speech), sandbox)


def _said(rng: np.random.Generator, speaker: Speaker, topic: Topic, seconds: float) -> list[Utterance]:
    """Sentences in their order from a drawn one on, until the film is long enough."""
    texts = speaker.texts if isinstance(speaker, Recordings) else topic.sentences
    first = int(rng.integers(0, len(texts)))
    out: list[Utterance] = []
    length = 1.8
    while not out or length < seconds:
        out.append(speaker.speak(texts[(first + len(out)) % len(texts)]))
        length += len(out[-1].samples) / RATE + 0.58
    return out


def _music(rng: np.random.Generator, out: Path, sandbox: Sandbox) -> tuple[Samples, Credit]:
    tracks = sorted(p for p in asset("music-library").rglob("*") if p.suffix in (".opus", ".ogg", ".mp3"))
    track = tracks[int(rng.integers(0, len(tracks)))]
    argv = ["-i", "/in/track", "-t", "120", "-ac", "1", "-ar", str(RATE), "-f", "f32le", "/out/music.f32"]
    done = run_ffmpeg(argv, inputs={"track": track}, outputs=("music.f32",), sandbox=sandbox, workdir=out)
    samples = np.fromfile(done.outputs["music.f32"], "<f4").astype(np.float32)
    remove(done.outputs["music.f32"])
    return samples, Credit(what=f"music {track.parent.name}/{track.stem}", author="immich-memories-music", licence="MIT")


def _mixed(rng: np.random.Generator, plan: Plan, music: Samples | None) -> Samples:
    """The film's sound, mono at :data:`RATE`, as long as the picture."""
    out = np.zeros(plan.length * RATE // plan.rate, np.float32)
    for sound in plan.sounds:
        at = sound.at_us * RATE // US
        part = sound.said.samples[: max(0, len(out) - at)]
        out[at : at + len(part)] += part
    level = float(np.sqrt(np.mean(out[out != 0] ** 2))) or 0.1
    out *= np.float32(0.1 / level)
    if music is not None:
        gain = 0.1 * 10 ** (float(rng.uniform(*_MUSIC_DB)) / 20) / max(float(np.sqrt(np.mean(music**2))), 1e-4)
        out += np.float32(gain) * np.resize(music, len(out))
    return np.clip(out, -0.98, 0.98)


def _drawn(plan: Plan) -> Iterator[Picture]:
    """Every frame with its caption, whether kept or not."""
    caption = 0
    for number, picture in enumerate(frames([s.cutaway for s in plan.shots], plan.size)):
        while caption < len(plan.captions) and plan.captions[caption].until <= number:
            caption += 1
        if caption < len(plan.captions) and plan.captions[caption].since <= number:
            picture = plan.captions[caption].layer.over(picture)
        yield picture


def _encode(plan: Plan, sound: Samples, out: Path, sandbox: Sandbox) -> None:
    """Encode the kept frames, each at its time. Odd sizes are kept by not thinning out colour."""
    width, height = plan.size
    raw, wav = out / "frames.rgb", out / "sound.wav"
    kept = set(plan.kept)
    remove(out / FILM)
    try:
        with raw.open("wb") as file:
            for number, picture in enumerate(_drawn(plan)):
                if number in kept:
                    file.write(np.ascontiguousarray(picture).tobytes())
        write_file(wav, write_wav(sound, RATE))
        times = ""
        if plan.vfr:
            times = f"setpts='round({_number_expression(plan.kept)}/{plan.rate}/TB)',"
        even = width % 2 == 0 and height % 2 == 0
        colour = TO_HOUSE_COLOUR if even else TO_HOUSE_COLOUR.replace("yuv420p", "yuv444p")
        graph = f"[0:v]{times}{colour}[v]".encode()
        video = [w if even or w != "yuv420p" else "yuv444p" for w in house_video(23)]
        run_ffmpeg(
            [
                *("-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}", "-framerate", str(plan.rate), "-i", "/in/frames"),
                *("-i", "/in/sound.wav", "-filter_complex_script", "/in/picture.graph", "-map", "[v]", "-map", "1:a"),
                *("-fps_mode", "passthrough" if plan.vfr else "cfr", *video, *house_audio("128k"), f"/out/{FILM}"),
            ],
            inputs={"frames": raw, "sound.wav": wav},
            texts={"picture.graph": graph},
            outputs=(FILM,),
            sandbox=sandbox,
            workdir=out,
        )
    finally:
        remove(raw)
        remove(wav)


def _number_expression(kept: tuple[int, ...]) -> str:
    """The number that a kept frame had before any were left out, as an ffmpeg expression over ``N``: one term for every change of pace."""
    terms, step = ["N"], 1
    for k in range(1, len(kept)):
        here = kept[k] - kept[k - 1]
        if here != step:
            terms.append(f"gte(N,{k})*(N-{k - 1})*({here - step})")
            step = here
    return f"({'+'.join(terms)})"


def _truth(
    seed: int, plan: Plan, language: str, speaker: Speaker, music: str | None, credits: tuple[Credit, ...], sha256: str
) -> FilmTruth:
    def moment(frame: int) -> int:
        ticks = (2 * frame * TIMESCALE + plan.rate) // (2 * plan.rate)
        return (2 * ticks * US + TIMESCALE) // (2 * TIMESCALE)

    kept_us = tuple(moment(f) for f in plan.kept)

    def place(frame: int) -> int:
        """Number of the first kept frame at or after a frame."""
        return bisect_left(plan.kept, frame)

    def at_us(number: int) -> int:
        return kept_us[number] if number < len(kept_us) else moment(plan.length)

    starts = [0]
    for shown in plan.shots:
        starts.append(starts[-1] + shown.cutaway.frames)
    shots: list[TrueShot] = []
    flashes: list[Flashed] = []
    for shown, (start, end) in zip(plan.shots, pairwise(starts), strict=True):
        first, last = place(start), place(end)
        since, until = at_us(first), at_us(last)
        card = shown.card
        role: Literal["card", "lower_third"] = "lower_third" if shown.what == "lower_third" else "card"
        lines = tuple(
            TrueLine(text=t, x=x, y=y, width=w, height=h, since_us=since, until_us=until, role=role)
            for t, (x, y, w, h) in (card.lines if card else ())
        )
        lines += tuple(n for c in plan.captions for n in c.lines if n.since_us < until and n.until_us > since)
        spotlight = TrueSpotlight(kind=card.kind, slots=card.slots) if card else None
        shots.append(
            TrueShot(start_us=since, end_us=until, start_frame=first, end_frame=last, what=shown.what, spotlight=spotlight, lines=lines)
        )
        flashes += [Flashed(start_us=moment(start + a), end_us=moment(start + b)) for a, b in shown.flashes]
    joins = tuple(
        TrueJoin(
            kind=b.kind,
            at_us=at_us(place(b.at)),
            start_us=at_us(place(b.start)),
            end_us=at_us(place(b.end)),
            at_frame=place(b.at),
            start_frame=place(b.start),
            end_frame=place(b.end),
        )
        for b in boundaries([s.cutaway for s in plan.shots])
    )
    words, sentences = _told(plan)
    return FilmTruth(
        seed=seed,
        kind=plan.kind,
        language=language,
        width=plan.size[0],
        height=plan.size[1],
        rate=plan.rate,
        vfr=plan.vfr,
        frames=len(plan.kept),
        duration_us=moment(plan.length),
        frame_us=kept_us,
        speech=speaker.name,
        word_times="exact" if speaker.exact_words else "sentence",
        music=music,
        captions=bool(plan.captions),
        words=words,
        sentences=sentences,
        shots=tuple(shots),
        joins=joins,
        flashes=tuple(flashes),
        credits=credits,
        film_sha256=sha256,
    )


def _told(plan: Plan) -> tuple[tuple[TrueWord, ...], tuple[TrueSentence, ...]]:
    owner = [k for k, shown in enumerate(plan.shots) for _ in range(*shown.words)]
    words: list[TrueWord] = []
    sentences: list[TrueSentence] = []
    for index, sound in enumerate(plan.sounds):
        first = len(words)
        for w in sound.said.words:
            words.append(
                TrueWord(
                    text=w.text,
                    start_us=sound.at_us + w.start_us,
                    end_us=sound.at_us + w.end_us,
                    sentence=index,
                    shot=owner[len(words)],
                    space_after=w.space_after,
                )
            )
        own = words[first:]
        sentences.append(
            TrueSentence(
                text=sound.said.text,
                start_us=own[0].start_us,
                end_us=own[-1].end_us,
                first_word=first,
                end_word=len(words),
                shots=tuple(sorted({w.shot for w in own})),
            )
        )
    return tuple(words), tuple(sentences)
