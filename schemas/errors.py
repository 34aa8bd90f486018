"""The error tree. One flat type for each boundary crossed; every one says what to do next.

``PipelineError`` subclasses carry a stable ``code``, what was expected, what was seen, a next step, and whether a retry can help.
A policy failure (the model asked for something wrong) is never an exception: it is a ``Blocker`` (schemas.blocker).
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any


class Retry(StrEnum):
    """Whether the same work may succeed when tried again."""

    NEVER = "never"
    BACKOFF = "backoff"
    FRESH_ENVIRONMENT = "fresh_environment"


class PipelineError(Exception):
    """Base of all errors that workprint raises on purpose. Pickles with its fields.

    Args:
        code: stable identifier inside the type, lower_snake_case.
        message: what was expected and what was seen.
        next_step: what the user can do now.
    """

    retry: Retry = Retry.NEVER

    def __init__(self, code: str, message: str, next_step: str = "") -> None:
        super().__init__(code, message, next_step)
        self.code = code
        self.message = message
        self.next_step = next_step

    def __str__(self) -> str:
        tail = f" Next: {self.next_step}" if self.next_step else ""
        return f"[{self.code}] {self.message}{tail}"

    def as_json(self) -> dict[str, Any]:
        """Stable form for ``--json`` output and the ``failures`` table."""
        return {
            "type": type(self).__name__,
            "code": self.code,
            "message": self.message,
            "next_step": self.next_step,
            "retry": self.retry.value,
        }


class MediaRejected(PipelineError):
    """The input file is not one we accept (empty, not media, no video, no audio, over a limit). Data, not a crash."""


class ToolFailed(PipelineError):
    """An engine (ffmpeg, renderer, speech) ended without its product for reasons of ours, not of the request."""

    retry = Retry.FRESH_ENVIRONMENT


class OutputRejected(PipelineError):
    """A product came out of the sandbox in a form that is refused (link, device, over the cap, undeclared name)."""


class SandboxUnavailable(PipelineError):
    """A layer of the sandbox is missing on this host. Never a reason to run without it."""


class LimitExceeded(PipelineError):
    """A wall-clock, memory, size or process limit stopped the work."""


class StorageFault(PipelineError):
    """Reading or writing the lake or the artifact store failed; nothing after the fault was acknowledged."""

    retry = Retry.BACKOFF


class StorageFull(StorageFault):
    """No space left on the device of the lake."""

    retry = Retry.NEVER


class DigestMismatch(StorageFault):
    """Stored bytes are not the bytes their name promises."""

    retry = Retry.NEVER


class AlreadyDone(PipelineError):
    """Another worker committed the same stage key first. The work is done; drop this copy."""


class LockHeld(PipelineError):
    """Another process holds an exclusive lock that this command needs."""

    retry = Retry.BACKOFF


class SchemaMismatch(PipelineError):
    """A stored record has a schema version that this release cannot read."""


class ConfigInvalid(PipelineError):
    """The configuration or the command line does not make sense; says which key and which values are allowed."""


class EngineMissing(PipelineError):
    """A configured engine, model or asset is not installed; says which package brings it."""


class EndpointFailed(PipelineError):
    """A remote model endpoint could not be reached or answered outside its protocol."""

    retry = Retry.BACKOFF


class EndpointRefused(EndpointFailed):
    """The server understood and refused (wrong key, unknown model, request too long): trying again will not help."""

    retry = Retry.NEVER


class ExportRefused(PipelineError):
    """Rows cannot be exported without changing what a trainer would read; names them. Nothing was left in the output folder."""
