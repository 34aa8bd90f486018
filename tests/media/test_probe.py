"""What a probe says of real and awkward films."""

from __future__ import annotations

import os
import tarfile
from pathlib import Path

import pytest

from media.command import Sandbox
from media.probe import MediaLimits, probe
from schemas.errors import MediaRejected
from schemas.media import AudioStream, MediaInfo, VideoStream
from schemas.time import Rate
from tests.media.clips import FAST, make, picture, tone


def _picture(path: Path, sandbox: Sandbox) -> VideoStream:
    video = probe(path, sandbox).video
    assert video is not None
    return video


def _sound(path: Path, sandbox: Sandbox) -> AudioStream:
    audio = probe(path, sandbox).audio
    assert audio is not None
    return audio


def _code(path: Path, sandbox: Sandbox, limits: MediaLimits | None = None) -> str:
    with pytest.raises(MediaRejected) as caught:
        probe(path, sandbox, limits)
    return caught.value.code


def test_a_plain_film(film: Path, sandbox: Sandbox) -> None:
    info = probe(film, sandbox)
    assert (info.container, info.size_bytes, info.duration_us) == ("mov", film.stat().st_size, 2_000_000)
    assert info.video == VideoStream(
        index=0, codec="h264", pix_fmt="yuv420p", coded_width=160, coded_height=90, rotation=0, sar_num=1, sar_den=1, display_width=160,
        display_height=90, rate=Rate(num=25, den=1), is_vfr=False, start_us=0, duration_us=2_000_000, frames=50,
    )  # fmt: skip
    assert info.audio is not None
    assert (info.audio.codec, info.audio.sample_rate, info.audio.channels, info.audio.start_us) == ("aac", 48_000, 1, 0)
    assert probe(film, sandbox) == info


@pytest.mark.parametrize(
    ("turn", "rotation", "size"), [("0", 0, (160, 90)), ("90", 270, (90, 160)), ("180", 180, (160, 90)), ("-90", 90, (90, 160))]
)
def test_rotation(sandbox: Sandbox, film: Path, tmp_path: Path, turn: str, rotation: int, size: tuple[int, int]) -> None:
    argv = ["-i", "/in/film", "-c", "copy", "-metadata:s:v:0", f"rotate={turn}"]
    video = _picture(make(sandbox, tmp_path / "a.mp4", argv, inputs={"film": film}), sandbox)
    assert (video.rotation, (video.display_width, video.display_height)) == (rotation, size)
    assert (video.coded_width, video.coded_height) == (160, 90)


def test_sample_aspect_ratio(sandbox: Sandbox, tmp_path: Path) -> None:
    video = _picture(make(sandbox, tmp_path / "a.mp4", [*picture(0.4, "144x96"), *FAST, "-vf", "setsar=16/11"]), sandbox)
    assert (video.sar_num, video.sar_den, video.display_width, video.display_height) == (16, 11, 209, 96)


def test_odd_size_and_full_colour(sandbox: Sandbox, tmp_path: Path) -> None:
    argv = [*picture(0.4), "-vf", "scale=161:91,setsar=1", "-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv444p"]
    video = _picture(make(sandbox, tmp_path / "a.mp4", argv), sandbox)
    assert (video.display_width, video.display_height, video.pix_fmt) == (161, 91, "yuv444p")


def test_pictures_at_unequal_distances(sandbox: Sandbox, tmp_path: Path) -> None:
    argv = [*picture(2.0, rate="30"), "-vf", "select='if(gt(t,1),not(mod(n,3)),1)'", "-fps_mode", "vfr", "-enc_time_base", "1:15360", *FAST]
    video = _picture(make(sandbox, tmp_path / "a.mp4", argv), sandbox)
    assert video.is_vfr
    assert video.frames == 40
    assert video.duration_us == pytest.approx(2_000_000, abs=70_000)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("a.avi", ["-c:v", "mpeg4", "-bf", "2"]),  # no presentation times at all
        ("a.mpg", ["-c:v", "mpeg2video", "-bf", "2"]),  # presentation times here and there
        ("a.ts", ["-c:v", "mpeg2video", "-bf", "2"]),
        ("a.mkv", ["-c:v", "libx264", "-bf", "3", "-threads", "1"]),
        ("a.webm", ["-c:v", "libvpx", "-auto-alt-ref", "1", "-lag-in-frames", "16", "-deadline", "realtime", "-b:v", "100k"]),
    ],
)
def test_pictures_that_are_stored_out_of_order(sandbox: Sandbox, tmp_path: Path, name: str, options: list[str]) -> None:
    video = _picture(make(sandbox, tmp_path / name, [*picture(2.0), *options]), sandbox)
    assert (video.frames, video.duration_us, video.is_vfr, video.rate) == (50, 2_000_000, False, Rate(num=25, den=1))


def test_a_start_that_is_not_zero(sandbox: Sandbox, tmp_path: Path) -> None:
    argv = [*picture(1.0), *tone(1.0), *FAST, "-c:a", "aac", "-output_ts_offset", "7"]
    info = probe(make(sandbox, tmp_path / "a.ts", argv), sandbox)
    assert info.video is not None
    assert info.audio is not None
    assert info.video.start_us >= 7_000_000
    assert info.video.duration_us == 1_000_000
    assert abs(info.audio.start_us) < 80_000


@pytest.mark.parametrize("name", ["a.mp4", "a.mkv"])
def test_sound_that_begins_late(sandbox: Sandbox, tmp_path: Path, name: str) -> None:
    argv = [*picture(2.0), "-itsoffset", "0.75", *tone(1.0), *FAST, "-c:a", "pcm_s16le" if name == "a.mkv" else "aac"]
    audio = _sound(make(sandbox, tmp_path / name, argv), sandbox)
    assert audio.start_us == pytest.approx(750_000, abs=23_000)  # AAC puts 1024 samples in front


def test_sound_that_begins_very_late(sandbox: Sandbox, tmp_path: Path) -> None:
    argv = [*picture(11.0, "32x32"), "-itsoffset", "10", *tone(0.5), *FAST, "-c:a", "pcm_s16le"]
    assert _sound(make(sandbox, tmp_path / "a.mkv", argv), sandbox).start_us == 10_000_000


def test_a_sound_track_that_cannot_be_decoded(sandbox: Sandbox, tmp_path: Path) -> None:
    argv = [
        *picture(0.4),
        *tone(0.4),
        *tone(0.4, hertz=800),
        "-map",
        "0",
        "-map",
        "1",
        "-map",
        "2",
        *FAST,
        "-c:a:0",
        "flac",
        "-c:a:1",
        "aac",
    ]
    whole = make(sandbox, tmp_path / "whole.mkv", argv)
    noise = ["-i", "/in/film", "-map", "0:v", "-map", "0:a", "-c", "copy", "-bsf:a:0", "noise=amount=1"]
    info = probe(make(sandbox, tmp_path / "a.mkv", noise, inputs={"film": whole}), sandbox)
    assert info.audio is not None
    assert info.audio.index == 2
    assert info.audio_choice.endswith("; stream 1 (flac) could not be decoded; stream 2 is the next")
    assert info.ignored_streams == ()


def test_a_picture_that_begins_late(sandbox: Sandbox, tmp_path: Path) -> None:
    info = probe(make(sandbox, tmp_path / "a.mkv", [*tone(2.0), "-itsoffset", "0.48", *picture(1.0), *FAST, "-c:a", "pcm_s16le"]), sandbox)
    assert info.video is not None
    assert info.audio is not None
    assert info.video.start_us == 480_000
    assert info.audio.start_us == -480_000
    assert info.duration_us == 1_520_000


def test_an_edit_list_hides_the_beginning(sandbox: Sandbox, film: Path, tmp_path: Path) -> None:
    cut = make(sandbox, tmp_path / "a.mp4", ["-ss", "0.52", "-i", "/in/film", "-c", "copy"], inputs={"film": film})
    video = _picture(cut, sandbox)
    assert video.frames == 37
    assert video.duration_us == pytest.approx(1_480_000, abs=1000)


def _tracks(sandbox: Sandbox, goal: Path, *options: str) -> Path:
    argv = [*picture(0.5), *tone(0.5, hertz=300), *tone(0.5, hertz=600), "-map", "0", "-map", "1", "-map", "2", *FAST, "-c:a", "aac"]
    return make(sandbox, goal, [*argv, *options])


@pytest.mark.parametrize(
    ("options", "index", "words"),
    [
        (["-disposition:a:0", "default", "-disposition:a:1", "0"], 1, "stream 1 is marked default among 2"),
        (["-disposition:a:0", "0", "-disposition:a:1", "default"], 2, "stream 2 is marked default among 2"),
        (["-disposition:a:0", "0", "-disposition:a:1", "0"], 1, "stream 1 comes first among 2"),
        (["-disposition:a:0", "default+comment", "-disposition:a:1", "0"], 2, "stream 1 is a commentary track"),
        (["-disposition:a:0", "default+visual_impaired", "-disposition:a:1", "0"], 2, "description of the picture"),
        (["-disposition:a:0", "default", "-disposition:a:1", "0", "-metadata:s:a:0", "title=Director's Commentary"], 2, "by its title"),
        (["-disposition:a:0", "default+hearing_impaired", "-disposition:a:1", "0"], 2, "stream 1 is a track for the hard of hearing"),
        (["-disposition:a:0", "default", "-disposition:a:1", "0", "-metadata:s:a:0", "title=Audio Description"], 2, "by its title"),
        (["-disposition:a:0", "comment", "-disposition:a:1", "comment"], 1, "all of them asides"),
    ],
)
def test_the_choice_of_a_sound_track(sandbox: Sandbox, tmp_path: Path, options: list[str], index: int, words: str) -> None:
    info = probe(_tracks(sandbox, tmp_path / "a.mkv", *options), sandbox)
    assert info.audio is not None
    assert info.audio.index == index
    assert words in info.audio_choice
    assert len(info.ignored_streams) == 1


def test_cover_art_is_no_picture(sandbox: Sandbox, tmp_path: Path) -> None:
    cover = make(sandbox, tmp_path / "cover.png", [*picture(0.04), "-frames:v", "1"])
    argv = [*tone(0.5), "-i", "/in/cover.png", "-map", "0", "-map", "1", "-c:a", "aac", "-c:v", "copy", "-disposition:v:0", "attached_pic"]
    info = probe(make(sandbox, tmp_path / "a.m4a", argv, inputs={"cover.png": cover}), sandbox)
    assert info.video is None
    assert info.ignored_streams == ("stream 1 (png): cover art",)


def test_a_single_still_without_the_flag_is_no_picture_either(sandbox: Sandbox, tmp_path: Path) -> None:
    info = probe(make(sandbox, tmp_path / "a.mkv", [*tone(0.5), *picture(0.04), "-c:v", "mjpeg", "-c:a", "aac"]), sandbox)
    assert info.video is None


def test_a_film_without_sound(sandbox: Sandbox, tmp_path: Path) -> None:
    info = probe(make(sandbox, tmp_path / "a.mp4", [*picture(0.4), *FAST]), sandbox)
    assert info.audio is None
    assert info.audio_choice == "there is no sound track"


def test_high_dynamic_range_is_noticed(sandbox: Sandbox, tmp_path: Path) -> None:
    argv = [*picture(0.2), "-c:v", "libx265", "-preset", "ultrafast", "-pix_fmt", "yuv420p10le", "-x265-params", "log-level=none:pools=1"]
    colour = ["-color_primaries", "bt2020", "-color_trc", "smpte2084", "-colorspace", "bt2020nc"]
    assert _picture(make(sandbox, tmp_path / "a.mp4", [*argv, *colour]), sandbox).is_hdr


def test_files_that_are_not_there(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "loop").symlink_to("loop")
    os.mkfifo(tmp_path / "pipe")
    assert _code(tmp_path / "none.mp4", sandbox) == "not_found"
    assert _code(tmp_path / "dangling", sandbox) == "not_found"
    assert _code(tmp_path / "loop", sandbox) == "not_found"
    assert _code(tmp_path / "pipe", sandbox) == "not_a_file"
    assert _code(tmp_path, sandbox) == "not_a_file"


def test_a_container_without_its_index(sandbox: Sandbox, film: Path, tmp_path: Path) -> None:
    data = film.read_bytes()
    (tmp_path / "a.mp4").write_bytes(data[: data.rindex(b"moov") - 4])
    assert _code(tmp_path / "a.mp4", sandbox) == "unreadable"


def test_a_codec_that_is_not_accepted(sandbox: Sandbox, tmp_path: Path) -> None:
    assert _code(make(sandbox, tmp_path / "a.mkv", [*picture(0.2), "-c:v", "magicyuv", "-pix_fmt", "yuv420p"]), sandbox) == "codec_refused"


def test_a_second_sound_track_of_another_codec_is_left_out(sandbox: Sandbox, tmp_path: Path) -> None:
    info = probe(_tracks(sandbox, tmp_path / "a.mkv", "-c:a:1", "truehd", "-strict", "-2"), sandbox)
    assert info.audio is not None
    assert info.audio.index == 1
    assert info.ignored_streams == ("stream 2 (truehd): this codec is not accepted",)


def test_subtitles_are_left_out(sandbox: Sandbox, film: Path, tmp_path: Path) -> None:
    argv = ["-i", "/in/film", "-f", "srt", "-i", "/in/words.srt", "-map", "0", "-map", "1", "-c", "copy", "-c:s", "mov_text"]
    texts = {"words.srt": b"1\n00:00:00,100 --> 00:00:01,000\nhello\n"}
    info = probe(make(sandbox, tmp_path / "a.mp4", argv, inputs={"film": film}, texts=texts), sandbox)
    assert info.ignored_streams == ("stream 2 (mov_text): subtitle, neither picture nor sound",)


def test_pictures_that_cannot_be_decoded(sandbox: Sandbox, film: Path, tmp_path: Path) -> None:
    data = bytearray(film.read_bytes())
    start, end = data.index(b"mdat") + 4, data.rindex(b"moov") - 4
    data[start:end] = bytes(end - start)
    (tmp_path / "a.mp4").write_bytes(bytes(data))
    assert _code(tmp_path / "a.mp4", sandbox) == "unreadable"


@pytest.mark.parametrize(
    ("limits", "code"),
    [
        (MediaLimits(max_bytes=1000), "limit_bytes"),
        (MediaLimits(max_pixels=160 * 90 - 1), "limit_pixels"),
        (MediaLimits(max_streams=1), "limit_streams"),
        (MediaLimits(max_duration_us=1_900_000), "limit_duration"),
        (MediaLimits(max_packets=20), "limit_duration"),
    ],
)
def test_limits(film: Path, sandbox: Sandbox, limits: MediaLimits, code: str) -> None:
    assert _code(film, sandbox, limits) == code


NAMES = [
    'it\'s "quoted" $(touch x) & ; [1] {a}.mp4',
    "-show_entries.mp4",
    "line1\nline2.mp4",
    "100%03d done.mp4",
    "concat:a.mp4",
    "a:b\\c|d.mp4",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_changes_nothing(film: Path, film_info: MediaInfo, sandbox: Sandbox, tmp_path: Path, name: str) -> None:
    odd = tmp_path / name
    odd.write_bytes(film.read_bytes())
    assert probe(odd, sandbox) == film_info
    assert sorted(p.name for p in tmp_path.iterdir()) == [name]


CASES: dict[str, tuple[tuple[int, int], int, int, int | None]] = {
    # display size, frames, duration of the picture, start of the sound
    "vfr_30_then_10.mp4": ((320, 180), 160, 7_940_000, None),
    "flash_strobe.mp4": ((320, 180), 150, 6_000_000, None),
    "dissolve_and_white_fade.mp4": ((320, 180), 190, 7_600_000, None),
    "single_shot.mp4": ((320, 180), 125, 5_000_000, None),
    "dark_slides.mp4": ((320, 180), 200, 8_000_000, None),
    "rotate90.mp4": ((180, 320), 100, 4_000_000, 0),
    "audio_starts_1.5s.mkv": ((320, 180), 100, 4_000_000, 1_479_000),
    "audio_8s_video_3s.mp4": ((320, 180), 75, 3_000_000, 0),
    "no_audio.mp4": ((320, 180), 100, 4_000_000, None),
    "two_audio_tracks.mkv": ((320, 180), 100, 4_000_000, -21_000),
    "duplicate_pts.mkv": ((320, 180), 100, 3_921_000, None),
    "mixed_sample_rate.ts": ((320, 180), 124, 4_956_778, -23_222),
    "odd_321x181_yuv444.mp4": ((321, 181), 100, 4_000_000, None),
    "silence_25s_between.mp4": ((320, 180), 160, 31_840_000, 0),
    "numerals_1455.mp4": ((320, 180), 225, 9_000_000, 0),
}


@pytest.mark.parametrize("name", CASES)
def test_reported_cases(shared: Path, sandbox: Sandbox, name: str) -> None:
    info = probe(shared / "cases" / name, sandbox)
    assert info.video is not None
    start = info.audio.start_us if info.audio else None
    assert ((info.video.display_width, info.video.display_height), info.video.frames, info.video.duration_us, start) == CASES[name]


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("no_moov.mp4", "unreadable"),
        ("zero_byte.mp4", "empty_file"),
        ("playlist_local_file.mp4", "manifest_refused"),
        ("ffconcat_named.mp4", "manifest_refused"),
        ("bad_text.json", "not_media"),
        ("weird-names.tar", "not_media"),
    ],
)
def test_reported_refusals(shared: Path, sandbox: Sandbox, name: str, code: str) -> None:
    assert _code(shared / "cases" / name, sandbox) == code


def test_reported_cover_art_and_tracks(shared: Path, sandbox: Sandbox) -> None:
    assert probe(shared / "cases" / "audio_only_cover.m4a", sandbox).video is None
    two = probe(shared / "cases" / "two_audio_tracks.mkv", sandbox)
    assert two.audio is not None
    assert (two.audio.index, two.audio.title) == (2, "Narration")
    assert two.audio_choice == "stream 2 is the only narration: stream 1 is a commentary track"


def test_reported_names_and_links(shared: Path, sandbox: Sandbox, tmp_path: Path) -> None:
    with tarfile.open(shared / "cases" / "weird-names.tar") as tar:
        tar.extractall(tmp_path, filter=lambda member, path: member)  # noqa: S202  (its links are what is tested)
    names = sorted((tmp_path / "names").iterdir())
    assert len(names) == 9
    assert len({probe(path, sandbox).digest() for path in names}) == 1
    assert probe(tmp_path / "links" / "inside.mp4", sandbox).digest() == probe(names[0], sandbox).digest()
    assert _code(tmp_path / "links" / "dangling.mp4", sandbox) == "not_found"
    assert _code(tmp_path / "links" / "loop.mp4", sandbox) == "not_found"
    assert _code(tmp_path / "links" / "outside.mp4", sandbox) == "not_media"
    assert _code(tmp_path / "links" / "dir", sandbox) == "not_a_file"
