"""The environment core as a resources server of NeMo Gym (0.4): seed a session with a row, one POST a tool, ``verify`` gives the reward.

Rows are those of ``workprint export rl --to nemo-gym``. In the folder ``resources_servers/workprint`` of a NeMo Gym project, ``app.py``:

    from materialize.adapters.nemo_gym import server_class

    WorkprintServer = server_class()
    if __name__ == "__main__":
        WorkprintServer.run_webserver()

and in its configuration, beside ``entrypoint: app.py``, ``lake: /data/lake`` and, where wanted, ``calls: 1``. :func:`application` is the
same server without NeMo Gym's launcher. Sessions lie in the memory of one process, so ``num_workers`` stays 1. Imports nemo_gym only when
asked.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from functools import cache
from typing import Any

import orjson
from pydantic import ConfigDict, PrivateAttr

from materialize.adapters.frameworks import module
from materialize.recorded import LakeRuns
from materialize.rollout import Rollout
from schemas.errors import ConfigInvalid, PipelineError


class _Session:
    """A rollout with the lock under which it is used. ``fault`` is what broke on our side; such a session has no reward."""

    def __init__(self, rollout: Rollout) -> None:
        self.rollout = rollout
        self.lock = threading.Lock()
        self.fault: PipelineError | None = None


class Sessions:
    """Rollouts by the name of their session; the one that was idle longest makes room for a new one.

    Args:
        runs: where decisions come from.
        calls: calls an agent may make before the frozen policy plays on.
        seed: of the frozen policy.
        limit: sessions that may be open at once.
    """

    def __init__(self, runs: Any, calls: int | None, seed: int, limit: int) -> None:
        self._runs, self._calls, self._seed, self._limit = runs, calls, seed, limit
        self._open: OrderedDict[str, _Session] = OrderedDict()
        self._lock = threading.Lock()

    def seed(self, name: str, row: dict[str, Any]) -> None:
        """Restore the decision that a row names.

        Raises:
            ConfigInvalid: the row names none.
        """
        rollout = Rollout(self._runs, self._seed)
        rollout.reset(row, calls=self._calls)
        with self._lock:
            dropped = [self._open.pop(name)] if name in self._open else []
            self._open[name] = _Session(rollout)
            while len(self._open) > self._limit:
                dropped.append(self._open.popitem(last=False)[1])
        for session in dropped:
            with session.lock:
                session.rollout.close()

    def call(self, name: str, tool: str, arguments: str) -> str:
        """Execute a call; what the agent reads next.

        Raises:
            KeyError: there is no such session.
            ConfigInvalid: its decision is not the orchestrator's.
            PipelineError: a fault of ours, now or earlier in this session.
        """
        session = self._of(name)
        with session.lock:
            if session.fault is not None:
                raise session.fault
            try:
                return session.rollout.call(tool, arguments)
            except ConfigInvalid:
                raise
            except PipelineError as error:
                session.fault = error
                raise

    def verify(self, name: str, said: list[tuple[str, str]], text: str) -> Any:
        """End a session with its reward.

        Args:
            said: calls in the agent's transcript; read only when none of them reached the session, because its arguments were no JSON.
            text: its last text.

        Raises:
            KeyError: there is no such session.
            PipelineError: a fault of ours, now or earlier in this session.
        """
        session = self._of(name)
        with session.lock:
            if session.fault is not None:
                raise session.fault
            rollout = session.rollout
            if not rollout.made and said and rollout.tools:
                rollout.call(*said[0])
            if not rollout.made:
                rollout.say(text)
            reward = rollout.reward()
            rollout.close()
        with self._lock:
            self._open.pop(name, None)
        return reward

    def _of(self, name: str) -> _Session:
        with self._lock:
            session = self._open[name]
            self._open.move_to_end(name)
            return session


@cache
def server_class() -> Any:
    """The server as a subclass of NeMo Gym's SimpleResourcesServer; its configuration names the lake.

    Raises:
        EngineMissing: nemo_gym is not installed.
    """
    base: Any = module("nemo_gym", "nemo_gym.base_resources_server")
    naming: Any = module("nemo_gym", "nemo_gym.server_utils")
    fastapi: Any = module("nemo_gym", "fastapi")
    aside: Any = module("nemo_gym", "starlette.concurrency").run_in_threadpool
    request_type = fastapi.Request

    class WorkprintConfig(base.BaseResourcesServerConfig):  # type: ignore[misc]  # its base is known at run time only
        lake: str
        calls: int | None = None
        seed: int = 0
        sessions: int = 256

    class WorkprintSeed(base.BaseSeedSessionRequest):  # type: ignore[misc]  # likewise
        model_config = ConfigDict(extra="allow")

    class WorkprintVerify(base.BaseVerifyRequest):  # type: ignore[misc]  # likewise
        model_config = ConfigDict(extra="allow")

    class WorkprintVerified(base.BaseVerifyResponse):  # type: ignore[misc]  # likewise
        model_config = ConfigDict(extra="allow")

    class WorkprintServer(base.SimpleResourcesServer):  # type: ignore[misc]  # likewise
        """Recorded decisions of a lake."""

        config: WorkprintConfig
        _sessions: Sessions = PrivateAttr()

        def model_post_init(self, context: Any, /) -> None:
            config = self.config
            self._sessions = Sessions(LakeRuns.at(config.lake), config.calls, config.seed, config.sessions)
            super().model_post_init(context)

        def setup_webserver(self) -> Any:
            app = super().setup_webserver()
            app.router.add_route("/{tool}", self.call_tool, methods=["POST"])
            return app

        async def seed_session(self, request, body):  # type: ignore[no-untyped-def]  # FastAPI reads the types set below
            await _ours(aside(self._sessions.seed, request.session[naming.SESSION_ID_KEY], body.model_dump()), fastapi.HTTPException)
            return base.BaseSeedSessionResponse()

        async def call_tool(self, request: Any) -> Any:
            """The body of the request are the arguments, as exact text; the answer is what the next context says."""
            arguments = (await request.body()).decode("utf-8", "replace")
            name, tool = request.session[naming.SESSION_ID_KEY], request.path_params["tool"]
            answer = await _ours(aside(self._sessions.call, name, tool, arguments), fastapi.HTTPException)
            return fastapi.responses.PlainTextResponse(answer)

        async def verify(self, request, body):  # type: ignore[no-untyped-def]  # likewise
            name = request.session[naming.SESSION_ID_KEY]
            said, text = _said(body.response.model_dump()["output"])
            reward = await _ours(aside(self._sessions.verify, name, said, text), fastapi.HTTPException)
            return WorkprintVerified(**body.model_dump(), reward=reward.value, reward_parts=dict(reward.parts))

    WorkprintServer.seed_session.__annotations__ = {"request": request_type, "body": WorkprintSeed, "return": base.BaseSeedSessionResponse}
    WorkprintServer.verify.__annotations__ = {"request": request_type, "body": WorkprintVerify, "return": WorkprintVerified}
    WorkprintServer.model_rebuild(_types_namespace={"WorkprintConfig": WorkprintConfig, "Sessions": Sessions})
    return WorkprintServer


def application(
    lake: str, *, calls: int | None = None, seed: int = 0, sessions: int = 256, host: str = "127.0.0.1", port: int = 8000
) -> Any:
    """The server as a FastAPI application, without NeMo Gym's launcher and head server.

    Raises:
        EngineMissing: nemo_gym is not installed.
        ConfigInvalid: there is no lake.
    """
    made = server_class()
    utils, types, omegaconf = (module("nemo_gym", n) for n in ("nemo_gym.server_utils", "nemo_gym.config_types", "omegaconf"))
    config = made.model_fields["config"].annotation(
        name="workprint", entrypoint="app.py", host="127.0.0.1", port=8000, lake=lake, calls=calls, seed=seed, sessions=sessions
    )
    head = types.BaseServerConfig(host="127.0.0.1", port=11000)
    client = utils.ServerClient(head_server_config=head, global_config_dict=omegaconf.OmegaConf.create({}))
    server = made(config=config, server_client=client)
    app = server.setup_webserver()
    server.setup_liveness(app)
    server.setup_exception_middleware(app)
    return app


async def _ours(work: Any, refusal: Any) -> Any:
    """The outcome; a fault of ours as a status that no agent or trainer takes for an answer."""
    try:
        return await work
    except KeyError:
        raise refusal(400, "this session has no state: POST /seed_session first, and keep its cookie") from None
    except ConfigInvalid as error:
        raise refusal(400, orjson.dumps(error.as_json()).decode()) from error
    except PipelineError as error:
        raise refusal(500, orjson.dumps(error.as_json()).decode()) from error


def _said(output: list[dict[str, Any]]) -> tuple[list[tuple[str, str]], str]:
    """Tool calls and the last text of a Responses output."""
    calls = [(str(i["name"]), str(i["arguments"])) for i in output if i.get("type") == "function_call"]
    texts = [i["content"] for i in output if i.get("type") == "message" and i.get("role") == "assistant"]
    if not texts:
        return calls, ""
    last = texts[-1]
    return calls, last if isinstance(last, str) else "".join(str(part.get("text") or "") for part in last)
