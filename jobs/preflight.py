"""What is wrong with a configuration on this machine, told before any work starts: names of models, addresses, what is not installed.

Looks only where the work will be done by processes of this machine; on a cluster the workers have what they need. Opens nothing large.
"""

from __future__ import annotations

from inversion import asr
from jobs import models
from jobs.config import WorkprintConfig
from media.sandbox import open_sandbox
from replay.build_engines import build_engines
from schemas.errors import ConfigInvalid


def check(config: WorkprintConfig) -> None:
    """Look at everything that a run will open.

    Raises:
        ConfigInvalid: a model that nobody knows, an engine without its address, a recording that is not named.
        EngineMissing: an engine, model or library is not installed; says what brings it.
        SandboxUnavailable: this machine cannot have the sandbox that is configured.
    """
    asr.check(config.inversion.asr)
    for part in models.asked(config):
        models.connect(part, config)
    policy = config.replay.policy
    if policy.name == "recorded" and policy.recording is None:
        raise ConfigInvalid(
            "no_recording", "replay.policy.name is 'recorded' but replay.policy.recording names no trajectory artifact", "name one"
        )
    if config.run.engine == "local" or config.run.ray.address == "local":
        asr.check_installed(config.inversion.asr)
        build_engines(config.replay, open_sandbox(config.run.sandbox))
