"""One configuration for a whole run, read from YAML. Every key has a default and a meaning; unknown keys are refused.

``configs/local.yaml`` (CPU, offline, keyless), ``configs/cluster.yaml`` (GPU, endpoints) and ``configs/ci.yaml`` (fast, small) come with
the package and can be named by their stem.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, model_validator

from inversion.config import InversionConfig
from jobs.config_file import read_settings
from materialize.config import GroupConfig, MaterializeConfig, RewardConfig
from media.assets import ASSETS
from media.gate import ServiceLimits
from repair.config import RepairConfig
from replay.chat.config import EndpointLimits
from replay.config import ReplayConfig
from schemas.canonical import Frozen
from schemas.errors import ConfigInvalid

BUILTIN = ("local", "cluster", "ci", "demo")


class PoolConfig(Frozen):
    """Processes that hold one engine for all workers of a run. What they reserve is theirs for as long as the run lasts."""

    count: int = Field(default=1, ge=1, le=1000, description="processes")
    cpus: float = Field(default=1.0, ge=0, description="CPUs each reserves")
    gpus: float = Field(default=0.0, ge=0, le=8.0, description="GPUs each reserves, or a share of one")
    memory_bytes: int | None = Field(default=None, ge=1, description="memory each reserves")
    resources: dict[str, float] = Field(default={}, description="further resources of Ray's nodes that each reserves, by name")
    concurrency: int = Field(default=1, ge=1, le=4096, description="calls each answers at the same time; more wait in the order they came")
    timeout_s: float | None = Field(default=600.0, gt=0, description="seconds one call may take; over it the process is started anew")
    attempts: int = Field(default=3, ge=1, le=10, description="tries of a call whose process died under it")
    rise_s: float = Field(
        default=300.0, gt=0, description="seconds a process that died is given to start again; then calls go to the others, or fail at once"
    )

    @property
    def slots(self) -> int:
        """Calls that all its processes answer at the same time."""
        return self.count * self.concurrency


class ActorsConfig(Frozen):
    """Engines that Ray actors hold instead of every worker; one that is not named here is loaded in each worker. Rows are the same."""

    asr: PoolConfig | None = Field(default=None, description="speech recognition (inversion.asr)")
    ocr: PoolConfig | None = Field(default=None, description="text recognition, of key frames and by the embedded judge")
    tts: PoolConfig | None = Field(default=None, description="speech (replay.speech)")
    judge: PoolConfig | None = Field(
        default=None, description="the model of repair.judge, which is an actor without this too; one process, for its limits are the run's"
    )

    @model_validator(mode="after")
    def _one_judge(self) -> ActorsConfig:
        if self.judge is not None and self.judge.count != 1:
            raise ValueError("judge.count must be 1: the limits of its endpoint belong to the run; raise judge.concurrency instead")
        return self


class RayConfig(Frozen):
    """How Ray is used."""

    address: Literal["local", "auto"] | str = Field(
        default="local", description="'local' starts a private Ray; 'auto' or an address joins one"
    )
    network: Literal["auto", "private", "machine"] = Field(
        default="auto",
        description="where the ports of a private Ray are: 'private' gives it a network of its own (needs root), 'machine' the machine's, "
        "'auto' is private where that works and no engine needs the network",
    )
    object_store_bytes: int = Field(default=200_000_000, ge=80_000_000)
    cpus_per_project: int = Field(default=2, ge=1, description="CPUs one project reserves; set to the cores a model run may use")
    gpus_per_project: float = Field(default=0.0, ge=0.0, le=8.0, description="share of a GPU one project reserves; 0.25 puts four on one")
    memory_per_project_bytes: int | None = Field(default=None, ge=1, description="memory one project reserves; none leaves it to Ray")
    batch: int = Field(default=1, ge=1, le=256, description="projects in one Ray task; more than 1 pays for projects of under a second")
    actors: ActorsConfig = ActorsConfig()


class LimitsConfig(Frozen):
    """What a stage of one project may take in its worker. Engines in the sandbox have their own, tighter limits."""

    invert_s: float | None = Field(default=7200.0, gt=0, description="seconds an inversion may take")
    replay_s: float | None = Field(default=21600.0, gt=0, description="seconds a replay with its repairs may take")
    materialize_s: float | None = Field(default=1800.0, gt=0, description="seconds making examples may take")
    memory_bytes: int | None = Field(
        default=None,
        ge=100_000_000,
        description="memory of a worker and all its children; over it the worker ends and the project is tried again",
    )
    grace_s: float = Field(default=10.0, ge=0, description="seconds between telling a stage that its time is over and ending its worker")

    def seconds(self, stage: str) -> float | None:
        """The time limit of a stage; None for those that have none."""
        return {"invert": self.invert_s, "replay": self.replay_s, "materialize": self.materialize_s}.get(stage)


class EndpointsConfig(Frozen):
    """Servers, and how hard they may be worked. Which chat model is asked, and how it is sampled, is ``replay.policy.student``,
    ``.teacher`` and ``repair.judge``; the addresses of the last three are ``inversion.asr.endpoint_url``,
    ``inversion.evidence.caption_endpoint_url`` and ``replay.speech.endpoint_url``."""

    student: EndpointLimits = EndpointLimits()
    teacher: EndpointLimits = EndpointLimits()
    judge: EndpointLimits = EndpointLimits()
    recogniser: ServiceLimits = ServiceLimits()
    caption: ServiceLimits = ServiceLimits()
    speech: ServiceLimits = ServiceLimits()


class RunConfig(Frozen):
    """How a batch runs. Not part of any stage key: it never changes a result."""

    engine: Literal["ray", "local"] = "ray"
    sandbox: Literal["bubblewrap", "process"] = Field(default="bubblewrap", description="'process' has no isolation and must be asked for")
    window: int = Field(default=4, ge=1, le=1000, description="projects in flight at once")
    attempts: int = Field(default=3, ge=1, le=3, description="tries a stage gets before its project is quarantined")
    stop_s: float = Field(
        default=25.0,
        ge=0,
        le=3600,
        description="seconds that projects under way are given to end their stage after the first ctrl-C or SIGTERM "
        "(Slurm and Kubernetes kill after 30)",
    )
    limits: LimitsConfig = LimitsConfig()
    ray: RayConfig = RayConfig()
    endpoints: EndpointsConfig = EndpointsConfig()


class WorkprintConfig(Frozen):
    """All settings."""

    sources: tuple[str, ...] = Field(default=(), description="inputs, for configurations that are run by themselves")
    inversion: InversionConfig = InversionConfig()
    replay: ReplayConfig = ReplayConfig()
    repair: RepairConfig = RepairConfig()
    materialize: MaterializeConfig = MaterializeConfig()
    groups: GroupConfig = GroupConfig()
    rewards: RewardConfig = RewardConfig()
    run: RunConfig = RunConfig()

    def reaches_out(self) -> tuple[str, ...]:
        """Keys of this configuration that make a worker use the network: endpoints, and models named as on a hub."""
        found = [key for key, value in _leaves(self.model_dump(mode="json")) if key.endswith("endpoint_url") and value is not None]
        asr = self.inversion.asr
        if asr.engine != "endpoint" and asr.model not in ASSETS and not Path(asr.model).exists():
            found.append("inversion.asr.model")
        return tuple(found)


def _leaves(tree: dict[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{above}{key}.")
        else:
            yield above + key, value


def load_config(name: str | None) -> WorkprintConfig:
    """Read a configuration.

    Args:
        name: path of a YAML file, or the stem of a built-in one; None is ``local``.

    Raises:
        ConfigInvalid: no such file, no YAML, an unknown or repeated key, or a value that is not allowed. Says which key, on which line.
    """
    path = _find(name or "local")
    settings = read_settings(path)
    try:
        return WorkprintConfig.model_validate(settings.data)
    except ValidationError as e:
        first, *more = e.errors()
        place = tuple(str(p) for p in first["loc"])
        line = settings.line_of(place)
        at = str(path) if line is None else f"{path}, line {line}"
        others = f" (and {len(more)} more)" if more else ""
        raise ConfigInvalid(
            "config_value", f"{at}: '{'.'.join(place)}': {first['msg']}{others}", "see docs/config.md for keys and allowed values"
        ) from e


def _find(name: str) -> Path:
    path = Path(name)
    try:
        there = path.exists()
        if path.is_file():
            return path
    except (OSError, ValueError):  # a name that no file can have
        there = False
    if there and name not in BUILTIN:
        what = "a folder" if path.is_dir() else "no regular file"
        raise ConfigInvalid("config_missing", f"{name} is {what}", f"name a YAML file, or one of {', '.join(BUILTIN)}")
    if path.suffix.lower() in (".yaml", ".yml"):
        raise ConfigInvalid("config_missing", f"there is no configuration file {name}", f"name a file, or one of {', '.join(BUILTIN)}")
    here = Path(__file__).resolve().parent
    for folder in (here / "configs", here.parent / "configs"):
        built_in = folder / f"{name}.yaml"
        if name in BUILTIN and built_in.is_file():
            return built_in
    raise ConfigInvalid("config_missing", f"there is no configuration named {name!r}", f"name a file, or one of {', '.join(BUILTIN)}")
