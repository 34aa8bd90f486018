"""The film studio: what is written beside a film is true of its bytes, and the same seed gives the same bytes."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from evaluation.studio.cards import make_card
from evaluation.studio.edit import Cutaway, boundaries, frames
from evaluation.studio.make import FILM, TRUTH, Order, make_film
from evaluation.studio.scenes import Slide
from evaluation.studio.texts import ENGLISH, MANDARIN, Topic
from evaluation.studio.truth import FilmTruth
from evaluation.studio.voices import RATE, KokoroSpeaker, Recordings, loudness, settle_times
from media.assets import asset
from media.audio import read_audio
from media.command import Sandbox
from media.frames import stream_frames
from media.probe import probe
from media.sandbox import open_sandbox
from schemas.errors import ConfigInvalid, EngineMissing
from schemas.storyboard import SpotlightKind
from schemas.time import US


@pytest.fixture(scope="module")
def sandbox() -> Sandbox:
    return open_sandbox()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("studio")


def parts_or_skip(*names: str) -> None:
    for name in names:
        try:
            asset(name)
        except EngineMissing as error:
            pytest.skip(f"{name} is not installed: {error.next_step}")


@pytest.fixture(scope="module")
def spoken(sandbox: Sandbox, folder: Path) -> FilmTruth:
    """A film of the neural voice, five to ten seconds."""
    parts_or_skip("kokoro-model", "kokoro-voices", "fonts-inter", "fonts-noto-sc", "demo-video", "music-library")
    return make_film(Order(39, kind="vfr", seconds=6), folder / "spoken", sandbox)


@pytest.fixture(scope="module")
def quick(sandbox: Sandbox, folder: Path) -> FilmTruth:
    """A film of the fast voice."""
    parts_or_skip("fonts-inter", "fonts-noto-sc", "demo-video", "music-library")
    return make_film(Order(11, kind="gradual", seconds=6, speech="flite"), folder / "quick", sandbox)


def test_frames_are_presented_when_the_truth_says(spoken: FilmTruth, sandbox: Sandbox, folder: Path) -> None:
    path = folder / "spoken" / FILM
    times = [f.pts_us for f in stream_frames(path, probe(path, sandbox), sandbox, width=32, height=18)]
    assert spoken.vfr
    assert len(set(np.diff(times).round(-3).tolist())) > 1
    assert len(times) == spoken.frames
    assert max(abs(a - b) for a, b in zip(times, spoken.frame_us, strict=True)) <= 1


def test_the_picture_changes_where_a_cut_is_said_to_be(spoken: FilmTruth, sandbox: Sandbox, folder: Path) -> None:
    path = folder / "spoken" / FILM
    small = [f.array.astype(int) for f in stream_frames(path, probe(path, sandbox), sandbox, width=32, height=18)]
    step = [0.0, *(float(np.abs(b - a).mean()) for a, b in pairwise(small))]
    cuts = [j.at_frame for j in spoken.joins if j.kind == "cut"]
    assert cuts
    for at in cuts:
        assert step[at] == max(step[max(1, at - 3) : at + 4])


def test_words_are_heard_where_they_are_said_to_be(spoken: FilmTruth, sandbox: Sandbox, folder: Path) -> None:
    """Against sound energy alone: pauses between words are silent, words begin and end at audible sound."""
    path = folder / "spoken" / FILM
    sound = read_audio(path, probe(path, sandbox), sandbox, RATE)
    assert spoken.music is None
    level = loudness(sound)
    loud = 20 * np.log10(np.maximum(level, 1e-6) / level.max())

    def stretch(start_us: int, end_us: int) -> np.ndarray:  # type: ignore[type-arg]
        return loud[start_us * 200 // US : max(end_us * 200 // US, start_us * 200 // US + 1)]

    pauses = [(a.end_us, b.start_us) for a, b in pairwise(spoken.words) if b.start_us - a.end_us > 150_000]
    assert pauses
    for end, start in pauses:
        assert stretch(end + 30_000, start - 30_000).max() < -30
        assert stretch(start, start + 40_000).max() > -38
        assert stretch(end - 60_000, end).max() > -42
    assert all(stretch(w.start_us, w.end_us).max() > -25 for w in spoken.words)


def test_words_rise_and_lie_in_their_sentences(spoken: FilmTruth) -> None:
    for word, after in pairwise(spoken.words):
        assert word.start_us < word.end_us <= after.start_us
    for index, sentence in enumerate(spoken.sentences):
        own = spoken.words[sentence.first_word : sentence.end_word]
        assert {w.sentence for w in own} == {index}
        assert (own[0].start_us, own[-1].end_us) == (sentence.start_us, sentence.end_us)
        assert sentence.shots == tuple(sorted({w.shot for w in own}))


def test_shots_cover_the_film_and_joins_stand_between_them(quick: FilmTruth) -> None:
    assert (quick.shots[0].start_us, quick.shots[-1].end_us) == (0, quick.duration_us)
    assert [s.start_us for s in quick.shots[1:]] == [s.end_us for s in quick.shots[:-1]] == [j.at_us for j in quick.joins]
    assert quick.word_times == "sentence"


def test_the_same_seed_gives_the_same_bytes(quick: FilmTruth, sandbox: Sandbox, folder: Path) -> None:
    again = make_film(Order(11, kind="gradual", seconds=6, speech="flite"), folder / "again", sandbox)
    assert again == quick
    for name in (FILM, TRUTH):
        assert (folder / "again" / name).read_bytes() == (folder / "quick" / name).read_bytes()
    assert sorted(p.name for p in (folder / "again").iterdir()) == [FILM, TRUTH]


def test_the_truth_is_read_back_from_its_file(quick: FilmTruth, folder: Path) -> None:
    assert FilmTruth.model_validate_json((folder / "quick" / TRUTH).read_bytes()) == quick
    assert quick.schema_version == "film_truth.1"
    assert quick.credits


@pytest.mark.parametrize(
    ("order", "code"),
    [
        (Order(1, kind="western"), "unknown_film_kind"),
        (Order(1, language="fr"), "unknown_film_language"),
        (Order(1, seconds=0.5), "film_seconds"),
        (Order(1, language="en", speech="/nowhere"), "unknown_speech"),
    ],
)
def test_orders_that_make_no_sense_are_refused(order: Order, code: str, sandbox: Sandbox, tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid) as raised:
        make_film(order, tmp_path, sandbox)
    assert raised.value.code == code


def test_a_folder_without_recordings_is_refused(sandbox: Sandbox, tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid, match="metadata"):
        Recordings(tmp_path, sandbox)


@pytest.mark.shared
def test_recordings_are_spoken_by_their_text(sandbox: Sandbox, shared: Path) -> None:
    speaker = Recordings(shared / "media" / "speech" / "ljspeech_en", sandbox)
    text = next(t for t in speaker.texts if t.startswith("in being comparatively modern"))
    said = speaker.speak(text)
    assert 1.2 < len(said.samples) / RATE < 2.2
    assert [w.text for w in said.words] == ["in", "being", "comparatively", "modern."]
    assert not speaker.exact_words


def test_mandarin_words_are_timed(sandbox: Sandbox) -> None:
    parts_or_skip("kokoro-model", "kokoro-voices")
    said = KokoroSpeaker("zh", "zf_xiaoxiao").speak("活字印刷是一项重要的发明。")
    assert [w.text for w in said.words] == ["活字印刷", "是", "一项", "重要", "的", "发明。"]
    assert all(a.end_us <= b.start_us for a, b in pairwise(said.words))
    assert not any(w.space_after for w in said.words)


def test_a_pause_that_durations_count_to_a_word_is_taken_out() -> None:
    """Two bursts of noise with silence between; the durations give the silence to the first and are 40 ms late."""
    rng = np.random.default_rng(3)
    wave = np.zeros(RATE * 2, np.float32)
    wave[RATE // 2 : RATE] = rng.normal(0, 0.2, RATE // 2)
    wave[RATE * 5 // 4 : RATE * 7 // 4] = rng.normal(0, 0.2, RATE // 2)
    late = RATE // 25
    spans = [(RATE // 2 + late, RATE * 5 // 4 - late), (RATE * 5 // 4 + late, RATE * 2)]
    found = settle_times(wave, [(float(a), float(b)) for a, b in spans])
    assert found == [(RATE // 2, RATE), (RATE * 5 // 4, RATE * 7 // 4)]


@pytest.mark.parametrize("kind", [k for k in SpotlightKind if k is not SpotlightKind.LOWER_THIRD])
@pytest.mark.parametrize(("topic", "size"), [(ENGLISH[0], (480, 270)), (MANDARIN[0], (270, 480))])
def test_lettering_lies_in_its_box(kind: SpotlightKind, topic: Topic, size: tuple[int, int]) -> None:
    parts_or_skip("fonts-inter", "fonts-noto-sc")
    card = make_card(kind, topic, np.random.default_rng(1), size)
    assert card.picture is not None
    assert set("".join(card.slots.values()).replace(" ", "")) <= set("".join(t for t, _ in card.lines))
    for _, (x, y, w, h) in card.lines:
        assert x >= 0
        assert y >= 0
        assert x + w <= size[0]
        assert y + h <= size[1]
        assert np.ptp(card.picture[y : y + h, x : x + w].astype(int)) > 80


@pytest.mark.parametrize("join", ["wipe", "push"])
def test_slides_move_from_one_picture_to_the_other(join: str) -> None:
    edit = [Cutaway(Slide((10, 10, 10)), 20), Cutaway(Slide((250, 250, 250)), 20, join, 8)]  # type: ignore[arg-type]
    (found,) = boundaries(edit)
    assert (found.start, found.at, found.end) == (16, 20, 24)
    share = [float((f > 128).mean()) for f in frames(edit, (90, 36))]
    assert share[15] == 0.0
    assert share[24] == 1.0
    assert all(a < b for a, b in pairwise(share[15:25]))
