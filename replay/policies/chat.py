"""A chat model as policy, teacher or student: every role context becomes one request, every reply one role output, whatever it is worth.

The model sees the messages and tools of the role context and nothing else; a model that takes pictures also sees those that the context
names, which follow the last message. A reply without sense is an output like any other and is
answered by the runtime with blockers; only the endpoint's failure is an exception. The whole reply is stored beside the output.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any, Literal

from replay.chat import parsing
from replay.chat.model import ChatModel, ChatRequest
from replay.chat.text_tools import with_tools
from schemas.artifact import ArtifactKind
from schemas.canonical import Sha256
from schemas.contract import Role, shown_schema
from schemas.trajectory import Provenance, RoleContext, RoleOutput
from storage.artifacts import ArtifactStore

CALLS_APART = 1_000
"""More calls than any run has: sampling seeds of two runs never meet."""


class ChatPolicy:
    """One model for all three roles.

    Args:
        model: answers requests.
        store: keeps the replies.
        owner: recorded as the provenance of every output.
        seed: of the run; moves the model's sampling seed, so that runs of one project differ.
    """

    def __init__(self, model: ChatModel, store: ArtifactStore, *, owner: Literal["student", "teacher"] = "student", seed: int = 0) -> None:
        self.name = f"chat {model.config.model}"
        self.seed = seed
        self._model = model
        self._store = store
        self._owner = Provenance(owner)

    def act(self, context: RoleContext) -> RoleOutput:
        """Ask the model.

        Raises:
            EndpointFailed: no answer could be had, or the run's budget for the endpoint is spent.
            StorageFault, DigestMismatch: a picture that the context names cannot be read.
        """
        pictures = context.request.pictures if context.request is not None and self._model.config.vision else ()
        reply = self._model.complete(self._request(context, pictures))
        if context.role is Role.ORCHESTRATOR:
            said = parsing.tool_call(reply.content, reply.tool_calls, context.tools)
        else:
            said = parsing.content(reply.content)
        kept = self._store.put_json(
            reply.model_copy(update={"form": said.form, "pictures": pictures}).model_dump(mode="json"), ArtifactKind.REPLY
        )
        counts = {"prompt_tokens": reply.prompt_tokens, "completion_tokens": reply.completion_tokens, "cost_microusd": reply.cost_microusd}
        return RoleOutput(
            role=context.role,
            text=said.text,
            tool=said.tool,
            arguments_json=said.arguments_json if said.tool is not None else None,
            provenance=self._owner,
            usage={name: value for name, value in counts.items() if value is not None},
            reply=kept.sha256,
        )

    def _request(self, context: RoleContext, pictures: Sequence[Sha256]) -> ChatRequest:
        messages: list[dict[str, Any]] = [m.model_dump() for m in context.messages]
        if pictures:
            messages[-1]["content"] = [{"type": "text", "text": messages[-1]["content"]}, *map(self._picture, pictures)]
        form = self._model.config.tool_form
        tools = [shown_schema(tool) for tool in context.tools]
        if tools and form != "native":
            return ChatRequest(with_tools(messages, tools, form), turn=self._turn(context))
        schema = None if context.request is None else context.request.content_schema
        name = "content" if context.request is None else context.request.kind
        return ChatRequest(messages, tools, schema, name, self._turn(context))

    def _turn(self, context: RoleContext) -> int:
        return self.seed * CALLS_APART + context.call_index

    def _picture(self, sha256: Sha256) -> dict[str, Any]:
        data = base64.b64encode(self._store.read(sha256)).decode()
        return {"type": "image_url", "image_url": {"url": f"data:image/jpeg;base64,{data}"}}
