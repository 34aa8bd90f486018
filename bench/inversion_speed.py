"""Wall and processor time of a whole inversion against the sum of its bare engines on the same file, in one run.

Bare engines: recognition alone (faster-whisper over the whole sound with its own voice activity, same model, beam and threads), one ffmpeg
decode of the picture to nowhere, and OCR of one frame a shot. Prints a table; ``--json`` writes the figures. Wall times mean something on a
quiet machine only: inversion uses both cores at once where the bare engines mostly use one, so other work hits it twice.

    python bench/inversion_speed.py VIDEO [--repeat 3] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from faster_whisper import WhisperModel

from inversion.asr import _load, model_path, recogniser
from inversion.config import InversionConfig
from inversion.force import align_words
from inversion.invert import invert
from media.audio import read_audio
from media.frames import grab_frames
from media.ocr import RapidReader
from media.probe import probe
from media.sandbox import open_sandbox
from schemas.media import SourceItem
from schemas.stage import Done
from storage.artifacts import ArtifactStore


def timed(work: Callable[[], Any]) -> tuple[float, float, Any]:
    """(wall seconds, processor seconds with children, result)."""
    before = os.times()
    started = time.perf_counter()
    result = work()
    wall = time.perf_counter() - started
    after = os.times()
    return wall, sum(after[k] - before[k] for k in range(4)), result


def measure(path: Path, config: InversionConfig) -> dict[str, tuple[float, float]]:
    """One run: wall and processor seconds of each bare engine and of the whole."""
    sandbox = open_sandbox()
    asr = config.asr
    bare = WhisperModel(str(model_path(asr.model)), device=asr.device, compute_type=asr.compute_type, cpu_threads=asr.cpu_threads)
    _load.cache_clear()  # nothing of an earlier run is remembered; loading is timed on neither side
    recogniser(asr)
    align_words(np.zeros(16_000, dtype=np.float32), ["warm"])
    reader = RapidReader(threads=config.evidence.ocr_threads)
    info = probe(path, sandbox)
    sound = read_audio(path, info, sandbox)
    figures: dict[str, tuple[float, float]] = {}

    def listen() -> None:
        segments, _ = bare.transcribe(
            sound,
            beam_size=asr.beam_size,
            temperature=[0.0],
            condition_on_previous_text=False,
            vad_filter=True,
            vad_parameters={"min_silence_duration_ms": asr.vad_min_silence_ms},
            word_timestamps=True,
        )
        for _ in segments:
            pass

    wall, cpu, _ = timed(listen)
    figures["recognition"] = (wall, cpu)
    decode = ["ffmpeg", "-v", "error", "-threads", "2", "-i", str(path), "-map", "0:v:0", "-f", "null", "-"]
    wall, cpu, _ = timed(lambda: subprocess.run(decode, check=True, stdin=subprocess.DEVNULL))
    figures["decode"] = (wall, cpu)
    with tempfile.TemporaryDirectory() as folder:
        store = ArtifactStore(Path(folder))
        wall, cpu, done = timed(lambda: invert(SourceItem(uri=path.name), path, config, sandbox=sandbox, store=store, reader=reader))
    assert isinstance(done, Done), done
    figures["inversion"] = (wall, cpu)
    times = [(s.shot.start_us + s.shot.end_us) // 2 for s in done.output.shots]
    frames = grab_frames(path, info, sandbox, times, config.evidence.max_side)
    wall, cpu, _ = timed(lambda: [reader.read(f) for f in frames])
    figures["ocr"] = (wall, cpu)
    return figures


BARE = ("recognition", "decode", "ocr")


def ratio(run: dict[str, tuple[float, float]]) -> float:
    """Wall time of inversion over the sum of its bare engines' wall times."""
    return run["inversion"][0] / sum(run[k][0] for k in BARE)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("video", type=Path)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    config = InversionConfig()
    runs = [measure(given.video, config) for _ in range(given.repeat)]
    runs.sort(key=ratio)
    middle = runs[(len(runs) - 1) // 2]
    bare = [sum(middle[k][i] for k in BARE) for i in (0, 1)]
    print(f"{given.video.name}, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; run with the middle ratio of {given.repeat}")
    print(f"{'':14}{'wall s':>9}{'cpu s':>9}")
    for name in BARE:
        print(f"{name:14}{middle[name][0]:9.2f}{middle[name][1]:9.2f}")
    print(f"{'sum':14}{bare[0]:9.2f}{bare[1]:9.2f}")
    print(f"{'inversion':14}{middle['inversion'][0]:9.2f}{middle['inversion'][1]:9.2f}")
    print(f"{'ratio':14}{middle['inversion'][0] / bare[0]:9.2f}{middle['inversion'][1] / bare[1]:9.2f}")
    print("all wall ratios", " ".join(f"{ratio(r):.2f}" for r in runs))
    print(f"peak memory of this process {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MiB")
    if given.json is not None:
        rows = [{k: {"wall_s": round(w, 3), "cpu_s": round(c, 3)} for k, (w, c) in run.items()} for run in runs]
        given.json.write_text(json.dumps({"video": given.video.name, "runs": rows}, indent=2))


if __name__ == "__main__":
    main()
