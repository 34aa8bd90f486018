"""Table specs: one spec gives Arrow schema, DuckDB view, validation and the reference page (docs/tables.md).

Columns named ``*_json`` hold exact canonical JSON text. Ids have the same name everywhere. ``PROVENANCE`` columns are filled by
the committer and take no part in ``row_digest``. Longer than 500 lines because the specs are one list that is read as a page.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from schemas.canonical import digest_of
from schemas.errors import SchemaMismatch

ColumnType = Literal["text", "int", "float", "bool", "text_list", "int_list"]

_PYTHON: dict[str, tuple[type, ...]] = {
    "text": (str,),
    "int": (int,),
    "float": (float, int),
    "bool": (bool,),
    "text_list": (list, tuple),
    "int_list": (list, tuple),
}

_EXACT: dict[str, type] = {"text": str, "int": int, "float": float, "bool": bool, "text_list": list, "int_list": list}
"""The usual one of them."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column: name, type, meaning; ``null`` says what a null means, None forbids nulls."""

    name: str
    type: ColumnType
    doc: str
    null: str | None = None
    allowed: tuple[str, ...] | None = None


def col(name: str, type: ColumnType, doc: str, null: str | None = None, allowed: tuple[str, ...] | None = None) -> Column:
    """Short form for the specs below."""
    return Column(name, type, doc, null, allowed)


PROVENANCE: tuple[Column, ...] = (
    col("stage_key", "text", "key of the stage execution that wrote the row"),
    col("run_id", "text", "run that wrote the row"),
    col("row_digest", "text", "sha256 over the deterministic columns"),
)


@dataclass(frozen=True, slots=True)
class TableSpec:
    """One table of the lake. ``key`` columns are unique among live rows."""

    name: str
    version: int
    doc: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]

    @property
    def all_columns(self) -> tuple[Column, ...]:
        """Deterministic columns, then provenance."""
        return self.columns + PROVENANCE

    def finish(self, row: dict[str, Any], *, stage_key: str, run_id: str) -> dict[str, Any]:
        """Validate one row against the spec and add provenance.

        Raises:
            SchemaMismatch: unknown or missing column, wrong type, null where none is allowed, value outside the closed set.
        """
        plan, names = _plan(self)
        if not row.keys() <= names:
            extra = sorted(set(row) - names)
            raise SchemaMismatch("unknown_column", f"table {self.name} has no column {extra[0]!r}", "add it to schemas/tables.py")
        out: dict[str, Any] = {}
        for name, exact, allowed, column in plan:  # a commit has a thousand rows: what is plainly right is let through at once
            value = row.get(name)
            if type(value) is not exact or (allowed is not None and value not in allowed):
                value = self._checked(column, value)
            out[name] = value
        digest = digest_of([self.name, self.version, out])
        return {**out, "stage_key": stage_key, "run_id": run_id, "row_digest": digest}

    def _checked(self, c: Column, value: Any) -> Any:
        """A value that is not plainly right: as it is stored."""
        if value is None:
            if c.null is None:
                raise SchemaMismatch("null_value", f"{self.name}.{c.name} is missing or null and may not be")
        elif not isinstance(value, _PYTHON[c.type]) or (c.type in ("int", "float") and isinstance(value, bool)):
            raise SchemaMismatch("wrong_type", f"{self.name}.{c.name} expects {c.type}, got {type(value).__name__}")
        elif c.allowed is not None and value not in c.allowed:
            raise SchemaMismatch("value_not_allowed", f"{self.name}.{c.name} is {value!r}, allowed: {', '.join(c.allowed)}")
        return list(value) if isinstance(value, tuple) else value


_Plan = tuple[tuple[tuple[str, type, tuple[str, ...] | None, Column], ...], frozenset[str]]
_PLANS: dict[int, tuple[TableSpec, _Plan]] = {}
"""What :meth:`TableSpec.finish` asks of each column, by the identity of the spec (its hash costs more than a row)."""


def _plan(spec: TableSpec) -> _Plan:
    found = _PLANS.get(id(spec))
    if found is None:
        columns = tuple((c.name, _EXACT[c.type], c.allowed, c) for c in spec.columns)
        found = _PLANS[id(spec)] = (spec, (columns, frozenset(c.name for c in spec.columns)))
    return found[1]


_PROJECT = col("project_id", "text", "project (source video) the row belongs to")
_TRAJECTORY = col("trajectory_id", "text", "run of the production toolchain")
_CALL = col("call_index", "int", "position of the call in its trajectory, from 0")
_ROLES = ("orchestrator", "generator", "critic")

TABLES: tuple[TableSpec, ...] = (
    TableSpec(
        "sources",
        1,
        "One input as the user named it. The funnel starts here.",
        ("source_key",),
        (
            col("source_key", "text", "digest over uri and content"),
            col("uri", "text", "source as the user named it"),
            col("source_sha256", "text", "digest of the bytes", null="the file could not be read"),
            col("size_bytes", "int", "length of the file", null="the file could not be read"),
            col("project_id", "text", "project these bytes belong to, admitted or not", null="the file could not be read"),
            col("is_duplicate", "bool", "another uri of this run has the same bytes and stands for the project"),
        ),
    ),
    TableSpec(
        "projects",
        1,
        "One admitted source video.",
        ("project_id",),
        (
            _PROJECT,
            col("uri", "text", "source as the user named it"),
            col("title", "text", "title from the manifest, else made from the narration"),
            col("language", "text", "language of the narration, ISO 639-1"),
            col("licence", "text", "licence of the source; 'unknown' if the user gave none"),
            col("attribution", "text", "who must be named", null="nobody was named"),
            col("source_sha256", "text", "digest of the source file"),
            col("duration_us", "int", "length of the picture, microseconds"),
            col("width", "int", "display width, pixels"),
            col("height", "int", "display height, pixels"),
            col("shots", "int", "number of shots"),
            col("sentences", "int", "number of sentences"),
            col("words", "int", "number of words"),
            col("narration_share", "float", "share of the film with speech, 0 to 1"),
            col(
                "split",
                "text",
                "split of the project's own hash; table splits says where near-duplicates went",
                allowed=("train", "validation", "held_out"),
            ),
            col("engines_json", "text", "engines and versions that recovered it"),
        ),
    ),
    TableSpec(
        "rejections",
        1,
        "One refused source, with the reason.",
        ("source_key",),
        (
            col("source_key", "text", "digest over uri and content (or its absence)"),
            col("uri", "text", "source as the user named it"),
            col("code", "text", "closed reason code (schemas.stage.RejectCode)"),
            col("detail", "text", "figures behind the reason"),
            col("source_sha256", "text", "digest of the source file", null="the file could not be read"),
        ),
    ),
    TableSpec(
        "words",
        1,
        "One spoken word.",
        ("project_id", "word_index"),
        (
            _PROJECT,
            col("word_index", "int", "position in the film, from 0"),
            col("text", "text", "the word as recognised"),
            col("start_us", "int", "start, microseconds from the first frame"),
            col("end_us", "int", "end, exclusive"),
            col("confidence", "float", "0 to 1", null="the back end gives none"),
            col("timing", "text", "aligned, recognised, interpolated or sidecar"),
            col("sentence_index", "int", "sentence the word belongs to"),
            col("shot_index", "int", "shot the word belongs to", null="spoken after the last frame"),
        ),
    ),
    TableSpec(
        "sentences",
        1,
        "One sentence of narration.",
        ("project_id", "sentence_index"),
        (
            _PROJECT,
            col("sentence_index", "int", "position, from 0"),
            col("text", "text", "the sentence"),
            col("start_us", "int", "start, microseconds"),
            col("end_us", "int", "end, exclusive"),
            col("language", "text", "ISO 639-1"),
            col("confidence", "float", "mean word confidence", null="the back end gives none"),
            col("shots", "int_list", "shots the sentence lies over"),
            col("flags", "text_list", "e.g. repeated, after_picture"),
        ),
    ),
    TableSpec(
        "shots",
        1,
        "One shot of the source.",
        ("project_id", "shot_index"),
        (
            _PROJECT,
            col("shot_index", "int", "position, from 0"),
            col("start_us", "int", "start, microseconds"),
            col("end_us", "int", "end, exclusive"),
            col("start_frame", "int", "first frame"),
            col("end_frame", "int", "last frame + 1"),
            col("transition_in", "text", "start, cut, dissolve, fade_black or fade_white"),
            col("cut_confidence", "float", "0 to 1"),
            col("has_narration", "bool", "words are spoken over it"),
            col("motion", "float", "mean luma change, 0 to 1"),
            col("luma", "float", "mean luma, 0 to 1"),
            col("text_lines", "text_list", "on-screen text"),
            col("caption", "text", "what is seen"),
            col("key_frame_sha256", "text", "artifact of the key frame"),
            col("spotlight", "text", "kind of graphic", null="none seen or meant"),
        ),
    ),
    TableSpec(
        "alignments",
        1,
        "One sentence over one shot.",
        ("project_id", "sentence_index", "shot_index"),
        (
            _PROJECT,
            col("sentence_index", "int", "sentence"),
            col("shot_index", "int", "shot"),
            col("overlap_us", "int", "microseconds of the sentence's words inside the shot"),
            col("words", "int", "words of the sentence in the shot"),
            col("confidence", "float", "0 to 1"),
        ),
    ),
    TableSpec(
        "storyboards",
        1,
        "The recovered storyboard as a whole.",
        ("project_id",),
        (
            _PROJECT,
            col("storyboard_sha256", "text", "artifact: schemas.storyboard.Storyboard as canonical JSON"),
            col("schema_version", "text", "storyboard.N"),
            col("aspect_ratio", "text", "16:9, 9:16, 1:1 or 4:3"),
            col("segments", "int", "number of segments"),
            col("spotlights", "int", "number of spotlight shots"),
            col("script", "text", "the whole narration"),
        ),
    ),
    TableSpec(
        "fingerprints",
        1,
        "What one admitted source looks like, sounds like and says, as codes (evaluation.fingerprints).",
        ("project_id",),
        (
            _PROJECT,
            col("pictures", "text_list", "64-bit difference hash of every key frame that is not flat, hex"),
            col("sound", "text", "32-bit code for every 0.1 s, hex; empty without sound"),
            col("text_signature", "text", "MinHash of the narration's word 3-grams, hex; empty without words"),
            col("text_grams", "int", "different word 3-grams of the narration"),
        ),
    ),
    TableSpec(
        "splits",
        1,
        "The split of one project, as decided after the run that admitted it.",
        ("project_id",),
        (
            _PROJECT,
            col("split", "text", "train, validation or held_out", allowed=("train", "validation", "held_out")),
            col("group_id", "text", "project whose near-duplicates share the split; the project itself when it has none"),
            col("kin_json", "text", "near-duplicates that were there before, with the shares of picture, sound and text"),
        ),
    ),
    TableSpec(
        "trajectories",
        1,
        "One run of the production toolchain.",
        ("trajectory_id",),
        (
            _TRAJECTORY,
            _PROJECT,
            col("policy", "text", "who decided"),
            col("seed", "int", "seed of the policy's choices"),
            col("outcome", "text", "delivered or incomplete", allowed=("delivered", "incomplete")),
            col("calls", "int", "number of calls of all roles"),
            col("orchestrator_calls", "int", "tool calls counted against the budget"),
            col("refused_calls", "int", "calls answered with blockers"),
            col("repairs", "int", "failure-repair links"),
            col("quality", "float", "final quality of the rule features, 0 to 1"),
            col("duration_us", "int", "length of the delivered film", null="nothing was delivered"),
            col("trajectory_sha256", "text", "artifact: schemas.trajectory.Trajectory as canonical JSON"),
            col("video_sha256", "text", "artifact of the final film", null="nothing was delivered"),
            col("manifest_sha256", "text", "artifact of the delivery manifest", null="nothing was delivered"),
            col("sandbox", "text", "kind of sandbox every engine ran in"),
            col("tool_sequence", "text_list", "tools the orchestrator called, in order"),
        ),
    ),
    TableSpec(
        "calls",
        3,
        "One role output processed by the runtime.",
        ("trajectory_id", "call_index"),
        (
            _TRAJECTORY,
            _PROJECT,
            _CALL,
            col("role", "text", "who spoke", allowed=_ROLES),
            col("tool", "text", "tool called, or the tool that asked for the content", null="the output named none"),
            col("tool_version", "int", "version of its contract", null="unknown tool"),
            col("arguments_json", "text", "arguments exactly as authored", null="generator and critic calls"),
            col("content_json", "text", "content exactly as authored", null="orchestrator calls"),
            col("status", "text", "what became of it", allowed=("committed", "content_requested", "refused")),
            col("provenance", "text", "who authored it"),
            col("observation_json", "text", "what the runtime returned"),
            col("changed", "text_list", "'subject.field' of each committed change"),
            col("context_sha256", "text", "artifact: what the policy saw"),
            col("prompt_sha256", "text", "names the role's prompt, version and text, that stands in it", null="recorded before version 3"),
            col("snapshot_before", "text", "state before, restorable"),
            col("snapshot_after", "text", "state after, restorable"),
            col("state_before", "text", "digest of the state before"),
            col("state_after", "text", "digest of the state after; equal to state_before when refused"),
            col("prompt_tokens", "int", "tokens the endpoint counted in the prompt", null="no endpoint answered, or it did not count"),
            col("completion_tokens", "int", "tokens the endpoint generated", null="no endpoint answered, or it did not count"),
            col("cost_microusd", "int", "millionths of a dollar", null="no endpoint answered, or no price is configured"),
            col("reply_sha256", "text", "artifact: schemas.reply.ModelReply", null="no endpoint answered"),
        ),
    ),
    TableSpec(
        "blockers",
        1,
        "One reason for a refusal.",
        ("trajectory_id", "call_index", "blocker_index"),
        (
            _TRAJECTORY,
            _PROJECT,
            _CALL,
            col("blocker_index", "int", "position in the refusal, from 0"),
            col("code", "text", "closed code (schemas.blocker.BlockerCode)"),
            col("subject", "text", "what is wrong"),
            col("message", "text", "in words"),
            col("needs", "text_list", "missing facts"),
            col("remedies", "text_list", "tools that can produce them"),
        ),
    ),
    TableSpec(
        "artifacts",
        1,
        "One artifact as used by a project; trajectories of one project share many.",
        ("project_id", "sha256", "subject", "trajectory_id"),
        (
            _PROJECT,
            col("sha256", "text", "digest of the bytes; the file's name in the artifact store"),
            col("kind", "text", "what the bytes are"),
            col("media_type", "text", "MIME type"),
            col("size_bytes", "int", "length"),
            col("subject", "text", "shot id, 'film', or the word 'source'"),
            col("trajectory_id", "text", "run that made it", null="made by inversion"),
            col("call_index", "int", "call that made it", null="made by inversion"),
        ),
    ),
    TableSpec(
        "snapshots",
        1,
        "One restorable state.",
        ("trajectory_id", "snapshot_id"),
        (
            _TRAJECTORY,
            _PROJECT,
            col("snapshot_id", "text", "name of the snapshot"),
            col("snapshot_sha256", "text", "artifact: schemas.snapshot.Snapshot"),
            col("state_digest", "text", "digest of the state"),
            col("first_call_index", "int", "first call that starts in it"),
        ),
    ),
    TableSpec(
        "verdicts",
        1,
        "One inspection result for one subject.",
        ("trajectory_id", "call_index", "subject"),
        (
            _TRAJECTORY,
            _PROJECT,
            _CALL,
            col("subject", "text", "shot id or 'film'"),
            col("passed", "bool", "no error-severity defect"),
            col("score", "float", "0 to 1"),
            col("judge", "text", "structured, embedded or endpoint"),
            col("defects_json", "text", "the defects found"),
        ),
    ),
    TableSpec(
        "repairs",
        3,
        "One failure-repair link.",
        ("trajectory_id", "defect_id", "call_mended"),
        (
            _TRAJECTORY,
            _PROJECT,
            col("defect_id", "text", "the defect"),
            col("code", "text", "closed code (schemas.verdict.DefectCode)"),
            col("subject", "text", "shot id or 'film'"),
            col("cause", "text", "the critic's account"),
            col("mend", "text", "closed code (schemas.verdict.MendCode)"),
            col(
                "call_failed",
                "int",
                "call that made the faulty artifact",
                null="nothing faulty had been made; versions 1 and 2",
            ),
            col("call_found", "int", "call that found it"),
            col("call_mended", "int", "call that mended it"),
            col("call_verified", "int", "call that verified it", null="not inspected again"),
            col("artifact_before", "text", "faulty artifact", null="nothing had been made"),
            col("artifact_after", "text", "its replacement", null="nothing was made"),
            col("score_before", "float", "score of the subject before"),
            col("score_after", "float", "score after", null="not inspected again"),
            col("outcome", "text", "verified, not_verified or kept_previous"),
            col("injected_fault", "text", "fault put in on purpose that this mends", null="natural defect"),
            col(
                "mend_calls",
                "int_list",
                "calls from the mend to its verification that made something of the subject or the film anew",
                null="not counted in version 1",
            ),
            col("calls_spent", "int", "cost: orchestrator calls from the repair to its verification", null="not counted in version 1"),
            col("artifacts_made", "int", "cost: artifacts those calls made for the subject or the film", null="not counted in version 1"),
        ),
    ),
    TableSpec(
        "recoveries",
        1,
        "One blocker as a failure-repair link: what was refused, how it was answered, what shows that it was got over.",
        ("trajectory_id", "call_index", "blocker_index"),
        (
            _TRAJECTORY,
            _PROJECT,
            col("call_index", "int", "the failing call"),
            col("blocker_index", "int", "position in its refusal, from 0"),
            col("code", "text", "closed code (schemas.blocker.BlockerCode)"),
            col("subject", "text", "what is wrong"),
            col("role", "text", "who was refused", allowed=_ROLES),
            col("tool", "text", "tool of the failing call", null="it named none"),
            col("cause", "text", "the runtime's account"),
            col("diagnosis", "text", "what the author of the next output said of it", null="nothing"),
            col(
                "answered",
                "text",
                "the call again, set right; what it lacked made first; gone on without it; or nothing accepted after it",
                allowed=("corrected", "produced", "avoided", "open"),
            ),
            col("mend_calls", "int_list", "accepted calls that answered it"),
            col("call_verified", "int", "call that shows that it was got over", null="none does"),
            col("calls_spent", "int", "cost: orchestrator calls after it, to the verification"),
            col("artifacts_made", "int", "cost: artifacts that the answering calls made"),
            col("state_before", "text", "digest of the state that refused it"),
            col("state_after", "text", "digest of the state after the verification", null="none"),
            col("quality_before", "float", "completion of that state (evaluation.quality), 0 to 1"),
            col("quality_after", "float", "completion of the state after the verification", null="none"),
            col("injected_fault", "text", "fault put in on purpose behind it", null="natural"),
        ),
    ),
    TableSpec(
        "timings",
        1,
        "How long one call took. Clock time differs from run to run of the same input: no digest, id or other table depends on it.",
        ("trajectory_id", "call_index"),
        (
            _TRAJECTORY,
            _PROJECT,
            _CALL,
            col(
                "wall_us",
                "int",
                "from the output's arrival to its commit, microseconds; a model's thinking is not in it",
                null="the call was made by an earlier process, or by the run that this one takes up",
            ),
        ),
    ),
    TableSpec(
        "faults",
        1,
        "One fault put in on purpose, its cause, and what became of it (repair.outcomes).",
        ("trajectory_id", "fault_id"),
        (
            _TRAJECTORY,
            col("fault_id", "text", "the fault; 'repairs.injected_fault' names it"),
            _PROJECT,
            col("kind", "text", "closed kind (repair.fault_kinds)"),
            col("level", "text", "where it was put in", allowed=("plan", "execution", "infrastructure")),
            col("subject", "text", "what was spoiled: shot id, 'film', or the argument, tool or shot that a call was spoiled in"),
            col("detail", "text", "what was done"),
            col("base_trajectory_id", "text", "run that was taken up again with this fault", null="put in while the run was first made"),
            col("call_struck", "int", "call it struck", null="infrastructure: no call shows it"),
            col("artifact_sha256", "text", "the faulty artifact", null="none was made"),
            col("call_found", "int", "first call that shows a symptom", null="never found"),
            col("code", "text", "defect or blocker code it was found by", null="never found"),
            col("located", "bool", "the finding names the faulty artifact, or its shot where none was made"),
            col("diagnosed", "bool", "the fault's own defect was reported, and none of its artifact that it does not show by"),
            col("mends", "text_list", "mends tried for it, in order"),
            col("call_closed", "int", "call that confirmed the mend", null="none did"),
            col("recovered", "bool", "delivered, nothing of it open, and the faulty artifact gone"),
        ),
    ),
    TableSpec(
        "rft",
        1,
        "One student run, the teacher's continuation of it, and whether it may be learned from (evaluation.rft).",
        ("student_trajectory_id",),
        (
            col("student_trajectory_id", "text", "run that failed, or succeeded by itself"),
            _PROJECT,
            col("failure_call", "int", "first failing call t*; the run is restored before it", null="complete success"),
            col("failure_kind", "text", "blocker, defect or incomplete", null="complete success"),
            col("failure_code", "text", "closed code of the blocker or defect", null="complete success"),
            col("failure_message", "text", "subject and figures", null="complete success"),
            col("snapshot_id", "text", "restored snapshot", null="complete success"),
            col("trajectory_id", "text", "run that is learned from", null="none could be made"),
            col("provenance", "text", "who authored it", allowed=("student", "teacher_assisted", "scripted")),
            col("replayed", "bool", "executed again from the snapshot, through the same states"),
            col("failed_checks", "text_list", "schema, prerequisite, artifact_reference, render, duration, narration, lint, black_frame"),
            col("quality", "float", "Q_RFT of the run", null="none could be made"),
            col("admitted", "bool", "passed the checks, q_RFT and the quota of its project"),
            col("reason", "text", "why, or why not"),
            col("hard_case", "bool", "kept in the class-balanced, capped pool for later rollouts"),
            col("hard_class", "text", "what the pool balances by", null="not in the pool"),
            col("mixing", "float", "probability eta with which a later rollout starts from the pool"),
        ),
    ),
    TableSpec(
        "examples",
        1,
        "One training example.",
        ("example_id",),
        (
            col("example_id", "text", "stable id over context, output and kind"),
            _PROJECT,
            _TRAJECTORY,
            _CALL,
            col("role", "text", "who speaks in the completion", allowed=_ROLES),
            col("kind", "text", "what it teaches (schemas.example.ExampleKind)"),
            col("provenance", "text", "who authored the completion"),
            col("licence", "text", "licence of the source"),
            col("attribution", "text", "who must be named", null="nobody was named"),
            col("split", "text", "split by project", allowed=("train", "validation", "held_out")),
            col("config_digest", "text", "configuration of the run"),
            col("verified", "bool", "accepted by the runtime in a delivered run"),
            col("snapshot_id", "text", "state the output was authored in"),
            col("context_sha256", "text", "artifact: what the policy saw"),
            col("prompt_json", "text", "messages of the prompt, exact"),
            col("tools_json", "text", "tool schemas, exact; '[]' for generator and critic"),
            col("completion_json", "text", "assistant message, exact; tool-call arguments are JSON text"),
            col("prompt_tokens", "int", "tokens of the rendered prompt", null="no tokenizer configured"),
            col("completion_tokens", "int", "tokens of the completion", null="no tokenizer configured"),
        ),
    ),
    TableSpec(
        "distillation",
        1,
        "One turn of a teacher or a student, with its prefix state: a record for on-policy distillation.",
        ("trajectory_id", "call_index"),
        (
            _TRAJECTORY,
            _PROJECT,
            _CALL,
            col("role", "text", "who speaks", allowed=_ROLES),
            col("turn_owner", "text", "whose turn it was", allowed=("teacher", "student")),
            col("beta", "float", "chance that the turn was the teacher's (eq. 6)", null="one model took all turns"),
            col("update", "int", "training update the run belongs to", null="one model took all turns"),
            col("status", "text", "what became of the output", allowed=("committed", "content_requested", "refused")),
            col("split", "text", "split by project", allowed=("train", "validation", "held_out")),
            col("licence", "text", "licence of the source"),
            col("attribution", "text", "who must be named", null="nobody was named"),
            col("snapshot_id", "text", "prefix state, restorable"),
            col("context_sha256", "text", "artifact: what the model saw"),
            col("prompt_json", "text", "messages of the prompt, exact"),
            col("tools_json", "text", "tool schemas, exact; '[]' for generator and critic"),
            col("completion_json", "text", "assistant message as authored, exact"),
            col("model", "text", "the model that answered", null="no endpoint was asked"),
            col("sampling_json", "text", "sampling settings sent", null="no endpoint was asked"),
            col("prompt_token_ids", "int_list", "tokens of the prompt", null="the endpoint gives none"),
            col("completion_token_ids", "int_list", "tokens of the answer", null="the endpoint gives none"),
            col("logprobs_json", "text", "log probability of each token of the answer under its author", null="the endpoint gives none"),
        ),
    ),
    TableSpec(
        "groups",
        2,
        "One set of candidates under a matched key.",
        ("group_id",),
        (
            col("group_id", "text", "stable id over the matched key"),
            _PROJECT,
            _TRAJECTORY,
            _CALL,
            col("role", "text", "who speaks", allowed=_ROLES),
            col("snapshot_id", "text", "restored state all candidates start from"),
            col("matched_key_json", "text", "what is held fixed"),
            col("tool", "text", "tool called in the recorded run, or the tool that asked for the content", null="the output named none"),
            col("candidates", "int", "number of candidates"),
            col("variance", "float", "variance of their rewards"),
            col("rounds", "int", "times candidates were drawn"),
            col("status", "text", "accepted, or queued for coverage: too little variance to learn from", allowed=("accepted", "queued")),
        ),
    ),
    TableSpec(
        "candidates",
        3,
        "One output of a group, executed.",
        ("group_id", "candidate_index"),
        (
            col("group_id", "text", "group"),
            _PROJECT,
            col("candidate_index", "int", "position, from 0"),
            col("origin", "text", "where it came from", allowed=("recorded", "alternative", "mistake", "sample")),
            col("output_json", "text", "the role output, exact"),
            col("refused", "bool", "the runtime refused it"),
            col("observation_json", "text", "what the runtime answered to the output itself, exact", null="executed before version 3"),
            col("state_after", "text", "digest of the state that the output itself led to", null="executed before version 3"),
            col("calls", "int", "calls of its branches, continuations included"),
            col("reward", "float", "reward of eq. 10"),
            col("reward_parts_json", "text", "its parts; rule and judge scores apart"),
            col("advantage", "float", "eq. 8, inside its group", null="the group is queued"),
        ),
    ),
    TableSpec(
        "audits",
        1,
        "One stored thing that was executed again, and whether it came out as recorded. The last audit of each kind.",
        ("kind", "subject"),
        (
            col("kind", "text", "what was executed again", allowed=("trajectory", "example", "group")),
            col("subject", "text", "its id"),
            _PROJECT,
            col("equal", "bool", "everything compared is as recorded"),
            col("parts", "int", "things compared: calls with film and sound, context with observation and state, or candidates"),
            col("equal_parts", "int", "how many of them are as recorded"),
            col("difference", "text", "where it first differs", null="it does not"),
            col("stored", "int", "how many of the kind the lake held; fewer are audited when a sample was asked for"),
            col("seed", "int", "seed of the sample"),
        ),
    ),
    TableSpec(
        "stage_runs",
        1,
        "One finished stage of one project.",
        ("stage_key",),
        (
            col("stage", "text", "invert, replay or materialize"),
            col("subject", "text", "project id or source key"),
            col("status", "text", "done or rejected", allowed=("done", "rejected")),
            col("output_sha256", "text", "artifact with the stage's output", null="rejected"),
            col("rows_out", "int", "rows written"),
        ),
    ),
    TableSpec(
        "failures",
        1,
        "One infrastructure failure (never shown to a policy).",
        ("failure_id",),
        (
            col("failure_id", "text", "digest over stage, subject, attempt and error"),
            col("stage", "text", "stage that failed"),
            col("subject", "text", "project id or source key"),
            col("uri", "text", "source as the user named it"),
            col("error_type", "text", "type of the error"),
            col("code", "text", "its code"),
            col("message", "text", "what was expected and seen"),
            col("attempts", "int", "attempts made"),
            col("quarantined", "bool", "given up after the last attempt"),
        ),
    ),
)

TABLE: dict[str, TableSpec] = {t.name: t for t in TABLES}
