"""Every block of docs/rl.md runs, in order, in one folder with a lake of real tools in which a model took part. What stands for something
of the reader's is put in: names of states, groups and runs, the model and where it is reached; the audit looks at fewer rows."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from storage.lake import Lake
from tests.consumers.conftest import OFFLINE, ROOT, python_of
from tests.consumers.test_card_commands import INSPECT, _streamed
from tests.consumers.test_real_runs import place  # noqa: F401 - a fixture
from tests.media.servers import Reply, serve
from tests.replay.test_chat_policy import answer

pytestmark = pytest.mark.full

BLOCK = re.compile(r"(?<=\n\n)(?:    .*\n|\n(?=    ))+")
STUDENT = 'replay: {policy: {student: {model: MODEL, temperature: 0.8}}}\nrun: {endpoints: {student: {endpoint_url: "URL"}}}\n'


def blocks() -> list[tuple[str, str]]:
    """(heading, code) of every indented block."""
    text = (ROOT / "docs" / "rl.md").read_text("utf-8")
    found = []
    for match in BLOCK.finditer(text):
        heading = re.findall(r"^#+ (.*)$", text[: match.start()], re.MULTILINE)[-1]
        found.append((heading, re.sub(r"^    ", "", match[0], flags=re.MULTILINE)))
    return found


class Page:
    """The reader's folder."""

    def __init__(self, folder: Path, tokenizer: Path) -> None:
        self.folder = folder
        self.tokenizer = tokenizer

    def command(self, line: str) -> str:
        """Run one command by the program it names, each in the environment of its consumer."""
        program, *argv = shlex.split(line)
        start = {
            "workprint": [sys.executable, "-c", "from jobs.cli import main; main()"],
            "vf-eval": [str(Path(python_of("verifiers")).with_name("vf-eval"))],
            "inspect": [python_of("inspect"), "-c", INSPECT],
        }[program]
        few = {"vf-eval": ["-n", "1", "-c", "1", "--no-rich", "-o", "runs"], "inspect": ["--limit", "1", "--display", "plain"]}
        path = {} if program == "workprint" else {"PATH": f"{Path(start[0]).parent}:{os.environ['PATH']}"}
        return self._run([*start, *argv, *few.get(program, [])], **path)

    def python(self, code: str, environment: str | None = None) -> str:
        return self._run([sys.executable if environment is None else python_of(environment), "-c", code])

    def value(self, sql: str) -> str:
        """The first value of a query over the lake."""
        return str(Lake(self.folder / "lake", create=False).query(sql).rows[0][0])

    def environment(self, **more: str) -> dict[str, str]:
        return os.environ | OFFLINE | {"HF_HOME": str(self.folder / "hf"), "PYTHONPATH": str(ROOT), "KEY": "none"} | more

    def _run(self, argv: list[str], **more: str) -> str:
        done = subprocess.run(argv, cwd=self.folder, env=self.environment(**more), capture_output=True, text=True, timeout=500)
        assert done.returncode == 0, f"{argv[-8:]}\n{done.stdout[-3000:]}\n{done.stderr[-4000:]}"
        return done.stdout


@pytest.fixture(scope="module")
def page(place: Path, tokenizers: Path, tmp_path_factory: pytest.TempPathFactory) -> Page:  # noqa: F811
    """The folder after the first block, which makes the groups that the others tell of."""
    folder = tmp_path_factory.mktemp("page")
    shutil.copytree(place, folder / "lake")
    made = Page(folder, tokenizers / "qwen3")
    drawn, restored, sampled, explained = lines(blocks()[0][1])
    made.command(drawn)
    made.command(restored.replace("snp_…", made.value("select snapshot_before from calls where tool = 'stitch_video' order by all")))
    with serve([answer("", "compose_timeline", "{}"), answer("I am done.", None, "{}")]) as server:
        (folder / "student.yaml").write_text(STUDENT.replace("URL", server.url), "utf-8")
        made.command(sampled)
    assert server.requests[0]["model"] == "MODEL"
    group = made.value("select group_id from candidates where candidate_index = 2 order by all")
    assert "reward" in made.command(explained.replace("grp_…", group))
    return made


def lines(code: str) -> list[str]:
    return code.replace("\\\n", " ").strip().split("\n")


def code_of(heading: str) -> list[str]:
    """The blocks below a heading."""
    return [code for found, code in blocks() if found == heading]


def test_the_page_has_no_block_that_is_not_run() -> None:
    assert [heading for heading, _ in blocks()] == [
        "Groups", "Preference sets", "Distillation records", "Environment", "verifiers and Inspect", "NeMo Gym", "NeMo Gym", "SkyRL",
        "Does it reproduce",
    ]  # fmt: skip


@pytest.mark.parametrize("heading", ["Preference sets", "Distillation records"])
def test_the_sets_are_written(page: Page, heading: str) -> None:
    (code,) = code_of(heading)
    for line in lines(code):
        page.command(line)
        assert json.loads((page.folder / shlex.split(line)[-1] / "manifest.json").read_bytes())["rows"]["train"] > 0


def test_the_environment_executes_what_the_run_said(page: Page) -> None:
    (code,) = code_of("Environment")
    trajectory = page.value("select trajectory_id from calls where call_index = 12 order by all")
    assert "value=" in page.python(code.replace("trj_…", trajectory))


def test_the_evaluators_play_exported_rows(page: Page) -> None:
    export, evaluate, inspect = lines(code_of("verifiers and Inspect")[0])
    for name in ("verifiers", "inspect"):
        python_of(name)
    page.command(export)
    with serve([Reply(_streamed("Enough."), headers={"Content-Type": "text/event-stream"})]) as server:
        page.command(evaluate.replace("http://127.0.0.1:8000/v1", server.url))
    (trace,) = [json.loads(line) for path in (page.folder / "runs").rglob("traces.jsonl") for line in path.read_text("utf-8").splitlines()]
    assert trace["traces"][0]["errors"] == []
    assert "workprint_reward" in page.command(inspect.replace("openai/MODEL", "mockllm/model"))


def test_nemo_gyms_server_is_made_and_answers(page: Page) -> None:
    launched, served = code_of("NeMo Gym")
    page.python(launched.replace('"__main__"', '"__run__"') + "\nassert WorkprintServer.seed_session", "nemo-gym")
    assert status(page, served) == 400  # a call without a session


def test_skyrls_environment_is_registered(page: Page) -> None:
    (code,) = code_of("SkyRL")
    more = '\nimport skyrl_gym\nassert "workprint" in skyrl_gym.envs.registration.registry'
    page.python(code.replace("Qwen/Qwen3-8B", str(page.tokenizer)) + more, "skyrl")


def test_what_was_made_comes_out_again(page: Page) -> None:
    (code,) = code_of("Does it reproduce")
    said = page.command(code.strip().replace("--sample 50", "--sample 5"))
    assert said.count("100.0 %") == 2, said


def status(page: Page, code: str) -> int:
    """What the served application answers to a call without a session."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [python_of("nemo-gym"), "-c", code.replace("8000", str(port))], cwd=page.folder, env=page.environment(), stderr=subprocess.PIPE
    )
    try:
        for _ in range(600):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert server.poll() is None, server.stderr
            time.sleep(0.2)
        asked = urllib.request.Request(f"http://127.0.0.1:{port}/render_shots", b"{}", {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(asked, timeout=60) as answered:  # noqa: S310 - loopback
                return int(answered.status)
        except urllib.error.HTTPError as refused:
            return refused.code
    finally:
        server.terminate()
        server.wait(20)
