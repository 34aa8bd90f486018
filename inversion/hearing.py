"""The windows of a film recognised, several at once, while the words of finished ones are aligned.

Owns who works beside whom, and the choice of a language where none is given. What comes out does not depend on which window is finished
first. Must not judge what was heard beyond leaving out what holds no words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future

from inversion import force
from inversion.asr import Heard, Recogniser
from inversion.config import InversionConfig
from inversion.guards import drop_notes
from inversion.place import aligned, on_film
from inversion.speech import Sound, Window
from inversion.transcript import SpokenSegment
from media.crew import Crew, result

SURE = 0.8
"""A language this probable in one window needs no second opinion."""
_OPINIONS = 3
_CLOSE = 0.15


def hear(
    audio: Sound,
    windows: Sequence[Window],
    recogniser: Recogniser,
    config: InversionConfig,
    language: str | None,
    *,
    align: bool = True,
    note: Callable[[str], None] = lambda _: None,
) -> tuple[list[SpokenSegment], str | None]:
    """Segments of all windows in order, on the film's clock, and the language they are in.

    Args:
        language: ISO 639-1; None: windows are recognised one by one until the recogniser names one, which holds for the rest.
        align: find the words in the sound where the language allows it.
        note: told of every window; what it raises ends the work.
    """

    def place(window: Window, segments: Sequence[SpokenSegment], spoken: str | None) -> list[SpokenSegment]:
        return placed(audio, segments, window, align=align and aligns(recogniser, config, spoken))

    with (
        Crew(max_workers=1, thread_name_prefix="align") as helper,
        Crew(max_workers=max(1, recogniser.at_once), thread_name_prefix="hear") as ears,
    ):

        def listen(window: Window, spoken: str | None) -> tuple[Heard, Future[list[SpokenSegment]]]:
            heard = recogniser.recognise(window.sound(audio), spoken)
            return heard, helper.submit(place, window, drop_notes(heard.segments), spoken or heard.language)

        found: list[Future[list[SpokenSegment]]] = []

        def heard(part: tuple[Heard, Future[list[SpokenSegment]]]) -> str | None:
            found.append(part[1])
            note(f"heard {len(found)} of {len(windows)} windows")
            return part[0].language

        try:
            ahead = list(windows)
            while ahead and not language:
                language = heard(listen(ahead.pop(0), None))
            for waiting in [ears.submit(listen, window, language) for window in ahead]:
                heard(result(waiting))
            return [segment for future in found for segment in result(future)], language
        except BaseException:
            ears.shutdown(wait=False, cancel_futures=True)
            helper.shutdown(wait=False, cancel_futures=True)
            raise


def placed(audio: Sound, segments: Sequence[SpokenSegment], window: Window, *, align: bool) -> list[SpokenSegment]:
    """Segments of one window on the film's clock, their words aligned where asked for."""
    return [on_film(s, window) for s in (aligned(window.sound(audio), segments) if align and segments else segments)]


def aligns(recogniser: Recogniser, config: InversionConfig, language: str | None) -> bool:
    """Whether words of a language are to be found in the sound after they were recognised."""
    return config.timing.aligner == "pocketsphinx" and language in force.LANGUAGES and not recogniser.gives_aligned


def spoken_language(audio: Sound, windows: Sequence[Window], recogniser: Recogniser) -> tuple[str | None, float | None]:
    """Most probable language over the longest windows, and its probability. Asks for further opinions while unsure; of two languages that
    stay close (a strong accent) the one is taken in which a window is recognised with more confidence. None: the engine cannot tell."""
    by_length = sorted(range(len(windows)), key=lambda k: (-windows[k].duration_us, k))
    votes: dict[str, float] = {}
    asked = 0
    for k in by_length[:_OPINIONS]:
        for code, probability in recogniser.detect(windows[k].sound(audio)).items():
            votes[code] = votes.get(code, 0.0) + probability
        asked += 1
        if votes and max(votes.values()) / asked >= SURE:
            break
    if not votes:
        return None, None
    ranked = sorted(votes, key=lambda code: (-votes[code], code))
    if len(ranked) > 1 and (votes[ranked[0]] - votes[ranked[1]]) / asked < _CLOSE:
        sound = windows[by_length[0]].sound(audio)
        ranked[:2] = sorted(ranked[:2], key=lambda code: -(recogniser.recognise(sound, code).confidence or 0.0))
    return ranked[0], votes[ranked[0]] / asked
