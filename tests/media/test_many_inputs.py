"""A command may read more files than the staging keeps for later."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from media.command import Command
from media.sandbox import open_sandbox
from media.staging import KEEP_COPIES


def _files(folder: Path, count: int) -> dict[str, Path]:
    folder.mkdir(mode=0o700)
    out = {}
    for n in range(count):
        path = folder / f"{n:02d}"
        path.write_text(f"{folder.name}{n} ")
        path.chmod(0o600)
        out[f"f/{n:02d}"] = path
    return out


def _read_all(files: dict[str, Path], workdir: Path) -> str:
    workdir.mkdir()
    done = open_sandbox().run(Command(argv=("/bin/cat", *(f"/in/{name}" for name in files)), inputs=files), workdir)
    return done.stdout.decode()


def test_more_inputs_than_are_kept(tmp_path: Path) -> None:
    count = 3 * KEEP_COPIES
    assert _read_all(_files(tmp_path / "a", count), tmp_path / "out") == "".join(f"a{n} " for n in range(count))


def test_runs_at_once_do_not_take_each_others_inputs(tmp_path: Path) -> None:
    names = [f"r{n}" for n in range(6)]
    given = {name: _files(tmp_path / name, KEEP_COPIES) for name in names}
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda name: _read_all(given[name], tmp_path / f"out-{name}"), names))
    assert found == ["".join(f"{name}{n} " for n in range(KEEP_COPIES)) for name in names]
