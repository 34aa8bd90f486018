"""Every template as it is drawn: whole texts, contrast on pixels, reference pictures, literal texts, a page that reaches nothing."""

from __future__ import annotations

import hashlib
import http.server
import json
import threading
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from PIL import Image

from media.assets import asset
from media.frames import grab_frames
from media.probe import probe
from media.sandbox import open_sandbox
from replay.graphics.conformance import reference_clip
from replay.graphics.pack import check_fill, load_pack
from replay.graphics.project import CardProject, build_project
from replay.graphics.render import TextPlace, draw_clips, draw_stills, faults, font_folders
from replay.graphics.theme import THEMES, Theme, contrast, rgb, theme_of
from schemas.errors import EngineMissing
from schemas.storyboard import SpotlightKind
from schemas.time import Rate
from tests.replay import golden
from tests.replay.cards import CHINESE, ENGLISH
from tests.replay.doubles_tools import pool_entry

GATE = (("16:9", "en"), ("4:3", "zh"), ("9:16", "zh"), ("1:1", "en"))
READABLE = 4.5
"""WCAG 2.2, 1.4.3, for text of any size."""


@pytest.fixture(scope="module", autouse=True)
def _renderer() -> None:
    try:
        for name in ("hyperframes", "node", "browser", "fonts-inter", "fonts-noto-sc"):
            asset(name)
    except EngineMissing as missing:
        pytest.skip(str(missing))


def card(name: str, texts: dict[str, str], size: tuple[int, int] = (640, 360), theme: Theme = THEMES["night"]) -> CardProject:
    return build_project(load_pack()[name], texts, width=size[0], height=size[1], language="en", font_folders=font_folders(), theme=theme)


# -- reference pictures ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str, str], golden.Cell]:
    """Half of the cells of every sheet: every template in every shape, every template in both languages."""
    wanted = [(name, shape, language) for name in sorted(load_pack()) for shape, language in GATE]
    projects = [golden.project_for(*cell) for cell in wanted]
    drawings = draw_stills(projects, open_sandbox(), tmp_path_factory.mktemp("cells"))
    return {
        cell: golden.Cell(*cell, load_pack()[cell[0]], project, drawing, golden.small(drawing.stills[0]))
        for cell, project, drawing in zip(wanted, projects, drawings, strict=True)
    }


def references(name: str) -> dict[tuple[str, str], golden.Picture]:
    shapes = []
    for shape in golden.CANVASES:
        width, height = load_pack()[name].size(*golden.CANVASES[shape])
        shapes += [(height * golden.CELL // 360, width * golden.CELL // 360)] * 2
    keys = [(shape, language) for shape in golden.CANVASES for language in ("en", "zh")]
    return dict(zip(keys, golden.reference(name, shapes), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(load_pack()))
def test_every_template_looks_as_it_did(name: str, cells: dict[tuple[str, str, str], golden.Cell]) -> None:
    known = references(name)
    found = {key: golden.differs(cells[name, *key].picture, known[key]) for key in GATE}
    assert found == dict.fromkeys(GATE), "look at it; if it is meant: python -m tests.replay.golden --write"


@pytest.mark.full
def test_every_cell_of_every_sheet_looks_as_it_did(tmp_path: Path) -> None:
    for cell in golden.draw_cells(sorted(load_pack()), open_sandbox(), tmp_path):
        known = references(cell.template)[cell.shape, cell.language]
        assert golden.differs(cell.picture, known) is None, (cell.template, cell.shape, cell.language)
        assert faults(cell.drawing, cell.entry, (cell.project.width, cell.project.height)) == ()


@pytest.mark.slow
@pytest.mark.parametrize("change", ["word", "colour", "size", "moved", "missing"])
def test_a_changed_picture_is_noticed(change: str, cells: dict[tuple[str, str, str], golden.Cell], tmp_path: Path) -> None:
    project = cells["title", "16:9", "en"].project
    page = project.texts["index.html"]
    texts = json.loads(project.texts["slots.json"])
    changed = {
        "word": lambda: (page, texts | {"title": "The clock that hangs on a tree"}),
        "colour": lambda: (page.replace(b"--ink: #faf6fd", b"--ink: #9fe0b0"), texts),
        "size": lambda: (page.replace(b"--fit-title: 12.5", b"--fit-title: 11.6"), texts),
        "moved": lambda: (page.replace(b"margin-top: calc(var(--u) * 4.5)", b"margin-top: calc(var(--u) * 7)"), texts),
        "missing": lambda: (page, texts | {"subtitle": ""}),
    }[change]()
    assert changed != (page, texts)
    other = replace(project, texts={"index.html": changed[0], "slots.json": json.dumps(changed[1]).encode()})
    drawn = draw_stills([other], open_sandbox(), tmp_path)[0]
    assert golden.differs(golden.small(drawn.stills[0]), references("title")["16:9", "en"]) is not None


@pytest.mark.slow
def test_texts_stand_whole_clear_of_each_other_and_inside_the_safe_area(cells: dict[tuple[str, str, str], golden.Cell]) -> None:
    found = {key: faults(c.drawing, c.entry, (c.project.width, c.project.height)) for key, c in cells.items()}
    assert {key: f for key, f in found.items() if f} == {}
    assert sum(len(c.drawing.places) for c in cells.values()) > 250


WORDS = "the remarkable measurement of pendulum movement shows that a theory predicts experiments "
HAN = "为什么更重的球摆得不更快这是一个用十次摆动来做的简单实验"


def longest(name: str, size: tuple[int, int], text: str) -> dict[str, str]:
    """The longest texts of this kind that the judge lets through."""
    entry = load_pack()[name]
    out: dict[str, str] = {}
    for n in range(max(s.max_chars for s in entry.template.slots), 0, -4):
        out = {s.name: (text * 9)[: min(n, s.max_chars)].strip() for s in entry.template.slots}
        out |= {s: "45%" if entry.share else "12 bn" if entry.bars else "1234567890" * 2 for s in out if s.startswith("value")}
        if not check_fill(name, out, kind=entry.template.kind, width=size[0], height=size[1]):
            return out
    raise AssertionError(f"no text fits {name}")


@pytest.mark.slow
@pytest.mark.parametrize("text", [WORDS, HAN, "WWWWWWWWWWWWWWWW "], ids=["words", "han", "wide"])
def test_no_text_that_is_let_through_is_cut(text: str, tmp_path: Path) -> None:
    shapes = ((640, 360), (480, 360), (360, 640), (360, 360))
    wanted = [(name, shapes[(i + len(text)) % 4]) for i, name in enumerate(sorted(load_pack()))]
    drawings = draw_stills([card(name, longest(name, size, text), size) for name, size in wanted], open_sandbox(), tmp_path)
    found = {
        (name, size): faults(d, load_pack()[name], load_pack()[name].size(*size)) for (name, size), d in zip(wanted, drawings, strict=True)
    }
    assert {key: f for key, f in found.items() if f} == {}


def test_a_text_over_another_or_cut_off_is_a_fault() -> None:
    entry = load_pack()["title"]
    one = TextPlace("title", "x", 100, 100, 300, 140, 1, 40, 700, ())
    below = replace(one, slot="subtitle", top=150, bottom=180, size_px=20)
    drawing = golden.Drawing(None, (), (one, below), (), 0, 10, "title")
    assert faults(drawing, entry, (640, 360)) == ()
    assert faults(replace(drawing, places=(one, replace(below, top=120))), entry, (640, 360)) == (("title", "over the text of subtitle"),)
    assert faults(replace(drawing, places=(replace(one, cut=("frame",)),)), entry, (640, 360)) == (("title", "cut off by frame"),)
    assert faults(replace(drawing, places=(replace(one, right=630),)), entry, (640, 360)) == (("title", "beyond the safe area"),)


# -- colours -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
def test_every_pair_of_colours_that_carries_text_is_readable(theme: Theme) -> None:
    pairs = [(text, under) for text in ("ink", "soft", "accent") for under in ("ground", "panel")]
    pairs += [("second", "panel"), ("on_accent", "accent"), ("ground", "ink"), ("ink", "glow"), ("soft", "glow")]
    poor = {p: round(contrast(rgb(getattr(theme, p[0])), rgb(getattr(theme, p[1]))), 2) for p in pairs}
    assert {p: c for p, c in poor.items() if c < READABLE} == {}


def seen_contrast(still: Path, place: TextPlace) -> float:
    """Contrast of a text with what lies behind it: the median of its box against the pixels farthest from that."""
    with Image.open(still) as image:
        box = image.convert("RGB").crop((int(place.left), int(place.top), int(place.right) + 1, int(place.bottom) + 1))
        pixels = np.asarray(box).reshape(-1, 3) / 255
    linear = np.where(pixels <= 0.04045, pixels / 12.92, ((pixels + 0.055) / 1.055) ** 2.4)
    light = linear @ np.array([0.2126, 0.7152, 0.0722])
    behind, low, high = (float(np.percentile(light, q)) for q in (50, 1, 99))
    return max((behind + 0.05) / (low + 0.05), (high + 0.05) / (behind + 0.05))


@pytest.mark.slow
def test_drawn_texts_are_readable_in_every_theme(tmp_path: Path) -> None:
    names = sorted(load_pack())
    wanted = [(name, list(THEMES.values())[i % 6]) for i, name in enumerate(names)]
    wanted += [("versus", theme) for theme in THEMES.values()]
    projects = [card(name, ENGLISH[name], (1280, 720), theme) for name, theme in wanted]
    drawings = draw_stills(projects, open_sandbox(), tmp_path)
    poor = [
        (name, theme.name, place.slot, round(seen_contrast(drawing.stills[0], place), 2))
        for (name, theme), drawing in zip(wanted, drawings, strict=True)
        for place in drawing.places
        if seen_contrast(drawing.stills[0], place) < READABLE
    ]
    assert poor == []


@pytest.mark.parametrize(
    ("colour", "name"),
    [
        ((128, 128, 128), "night"),
        ((210, 208, 204), "paper"),
        ((140, 90, 60), "ember"),
        ((70, 120, 60), "forest"),
        ((60, 130, 140), "lagoon"),
        ((60, 80, 160), "night"),
        ((140, 70, 150), "plum"),
        ((170, 60, 70), "ember"),
    ],
)
def test_the_theme_follows_the_footage(colour: tuple[int, int, int], name: str) -> None:
    own = pool_entry("shot", 4).model_copy(update={"colour": colour})
    theirs = pool_entry("other", 400).model_copy(update={"colour": (0, 255, 0), "origin": "theirs.mp4"})
    assert theme_of([own, theirs]).name == name
    assert theme_of([]).name == "night"


# -- hostile texts -----------------------------------------------------------------------------------------------------------------

LITERAL = {
    "markup": "<h1>big</h1>",
    "script": "<script>document.title='ran'</script>",
    "closing tags": "</style></p></div></body>",
    "event": "<img src=x onerror=\"document.title='ran'\">",
    "style": "<style>*{display:none}</style>",
    "css": "} body { background: url(file:///etc/passwd) } .x {",
    "import": "@import 'http://127.0.0.1/x.css';",
    "link": "javascript:document.title='ran'",
    "template": "@@BODY@@ {{x}} ${x} <%= x %>",
    "slot mark": "<!--slot:subtitle--> x <!--end:subtitle-->",
    "binding": '" data-var-text="subtitle',
    "entity": "&lt;b&gt; &amp; &#60;",
    "quotes": "\"'`\\ \\u003c \\00003c",
    "json": '"},{"id":"x","default":"y"',
    "filter": "%{eif:1+1:d} [0:v]drawtext=textfile=/etc/passwd;",
    "shell": "$(id) `id` ; rm -rf / | cat",
}
"""Texts that must be shown as they stand."""

REFUSED = {
    "right to left override": "abc\u202edef",
    "isolate": "abc\u2067def\u2069",
    "zero width": "a\u200bb",
    "joiner": "a\u200db",
    "soft hyphen": "a\u00adb",
    "byte order mark": "\ufeffa",
    "bell": "a\x07b",
    "null": "a\x00b",
    "escape": "a\x1b[31mb",
    "lone surrogate": "a\ud800b",
    "private use": "a\ue000b",
    "unassigned": "a\u0378b",
    "64 KiB": "a" * 65536,
    "64 KiB of marks": "a" + "\u0301" * 65536,
    "only white space": " \n\t ",
}


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED)
def test_texts_that_cannot_be_shown_are_refused(text: str) -> None:
    found = check_fill("title", {"title": text}, kind=SpotlightKind.TITLE, width=1280, height=720)
    assert [b.subject for b in found][:1] == ["content.slots.title"]
    assert all(len(b.message) < 300 for b in found)


@pytest.mark.slow
def test_hostile_texts_are_shown_literally_and_ask_for_nothing(tmp_path: Path) -> None:
    benign, *drawn = draw_stills([card("title", {"title": t}) for t in ("A plain title", *LITERAL.values())], open_sandbox(), tmp_path)
    for (name, text), drawing in zip(LITERAL.items(), drawn, strict=True):
        assert [(p.slot, p.text) for p in drawing.places] == [("title", text)], name
        assert (drawing.elements, drawing.title, drawing.refused) == (benign.elements, benign.title, ()), name


class _Counting(http.server.BaseHTTPRequestHandler):
    hits: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.hits.append(self.path)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"canary")

    def log_message(self, *_: object) -> None:
        return


@pytest.fixture
def server() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Counting) as httpd:
        threading.Thread(target=httpd.serve_forever, daemon=True).start()
        _Counting.hits.clear()
        yield f"http://127.0.0.1:{httpd.server_address[1]}"
        httpd.shutdown()


PAGES = {
    "image": '<img src="{there}/a.png">',
    "style sheet": '<link rel="stylesheet" href="{there}/a.css">',
    "import": "<style>@import url('{there}/b.css'); p {{ background: url({there}/c.png) }}</style>",
    "font": "<style>@font-face {{ font-family: Inter; src: url('{there}/f.woff2') }}</style>",
    "script": "<script>document.title='ran'; fetch('{there}/d')</script>",
    "script from outside": '<script src="{there}/e.js"></script>',
    "event": "<img src=x onerror=\"document.title='ran'\"><svg onload=\"document.title='ran'\"></svg>",
    "frame": '<iframe src="{there}/g.html"></iframe><object data="{there}/h"></object><embed src="{there}/i">',
    "refresh": '<meta http-equiv="refresh" content="0; url={there}/j">',
    "base": '<base href="{there}/"><img src="k.png">',
    "prefetch": '<link rel="prefetch" href="{there}/l"><link rel="preconnect" href="{there}"><link rel="dns-prefetch" href="//x.example">',
    "media": '<video autoplay src="{there}/m.mp4"></video><audio src="{there}/n"></audio>',
    "form": '<form action="{there}/o"><button autofocus></button></form>',
}
"""Markup that no slot can bring in: the page's walls must hold even if one could."""


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["http", "file"])
def test_a_page_reaches_neither_network_nor_files_and_runs_no_script(scheme: str, server: str, tmp_path: Path) -> None:
    plain = card("title", {"title": "A plain title"})
    there = server if scheme == "http" else "file:///etc"
    projects = []
    for markup in PAGES.values():
        page = plain.texts["index.html"].replace(b'<div class="ground"></div>', markup.format(there=there).encode(), 1)
        projects.append(replace(plain, texts=plain.texts | {"index.html": page}))
    drawings = draw_stills(projects, open_sandbox(), tmp_path)
    assert _Counting.hits == []
    assert {name: d.title for name, d in zip(PAGES, drawings, strict=True)} == dict.fromkeys(PAGES, "title")
    assert [p.text for d in drawings for p in d.places] == ["A plain title"] * len(PAGES)
    with urllib.request.urlopen(f"{server}/control") as answer:  # noqa: S310 - our own server
        assert answer.read() == b"canary"
    assert _Counting.hits == ["/control"]


# -- clips -------------------------------------------------------------------------------------------------------------------------

RATE = Rate(num=30, den=1)


def sha(path: Path | None) -> str:
    assert path is not None
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.slow
def test_a_clip_depends_on_its_card_alone_and_only_moving_pictures_are_drawn(tmp_path: Path) -> None:
    cards = [(card(name, ENGLISH[name], theme=THEMES[theme]), 2_000_000) for name, theme in (("title", "night"), ("dial", "ember"))]
    for name in ("one", "other", "slow", "plain"):
        (tmp_path / name).mkdir()
    together = draw_clips(cards, RATE, open_sandbox(), tmp_path / "one")
    turned = draw_clips(cards[::-1], RATE, open_sandbox(), tmp_path / "other")
    assert [sha(d.clip) for d in together] == [sha(d.clip) for d in turned[::-1]]
    assert [d.drawn for d in together] == [41, 44]
    plain = draw_clips(cards[:1], RATE, open_sandbox("process"), tmp_path / "plain")
    assert sha(plain[0].clip) == sha(together[0].clip)
    info = probe(together[0].clip or Path(), open_sandbox())
    assert info.video is not None
    assert (info.video.display_width, info.video.display_height, info.video.frames) == (640, 360, 60)
    slower = draw_clips(cards[:1], Rate(num=24000, den=1001), open_sandbox(), tmp_path / "slow")[0]
    assert (slower.drawn, probe(slower.clip or Path(), open_sandbox()).video.rate) == (33, Rate(num=24000, den=1001))  # type: ignore[union-attr]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["title", pytest.param("line", marks=pytest.mark.full), pytest.param("dial", marks=pytest.mark.full)])
def test_the_hyperframes_cli_draws_the_same_pictures(name: str, tmp_path: Path) -> None:
    sandbox = open_sandbox()
    project = card(name, ENGLISH[name])
    for folder in ("ours", "theirs"):
        (tmp_path / folder).mkdir()
    ours = draw_clips([(project, 2_000_000)], RATE, sandbox, tmp_path / "ours")[0].clip
    theirs = reference_clip(project, sandbox, tmp_path / "theirs")
    times = [100_000, 500_000, 900_000, 1_900_000]
    pairs = zip(*(grab_frames(f, probe(f, sandbox), sandbox, times, 640) for f in (ours or Path(), theirs)), strict=True)
    off = [round(float(np.abs(a.astype(np.int16) - b.astype(np.int16)).mean()), 2) for a, b in pairs]
    assert max(off) < 1.0, off
    first, *_, last = grab_frames(theirs, probe(theirs, sandbox), sandbox, times, 640)
    assert np.abs(first.astype(np.int16) - last.astype(np.int16)).mean() > 1.0


def test_both_languages_have_texts_for_every_template() -> None:
    assert set(ENGLISH) == set(CHINESE) == set(load_pack())
    for name, texts in [*ENGLISH.items(), *CHINESE.items()]:
        kind = load_pack()[name].template.kind
        assert all(check_fill(name, texts, kind=kind, width=w, height=h) == () for w, h in golden.CANVASES.values()), name
