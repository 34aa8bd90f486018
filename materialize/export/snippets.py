"""How each consumer loads a Parquet folder: the code in dataset cards. Every block is run by a test of that consumer (tests/consumers).

In it ``{first}`` stands for the first shard, ``{split}`` for its split, and ``{check}`` for the first shard to validate with.
"""

from __future__ import annotations

_DATASETS = """```python
from datasets import load_dataset  # 4.7 or later

data = load_dataset("path/to/this/folder")
```
"""

_PLAIN = """```python
import duckdb
import pandas

frame = pandas.concat(pandas.read_parquet(path) for path in ["path/to/this/folder/{first}"])
counts = duckdb.sql("select source_project, count(*) from 'path/to/this/folder/data/*.parquet' group by 1")
```

Both see tool calls and tool schemas as JSON text.
"""

_SFT = """```python
from datasets import load_dataset
from trl import SFTConfig, SFTTrainer

data = load_dataset("path/to/this/folder")
trainer = SFTTrainer(
    model="Qwen/Qwen3-8B",
    args=SFTConfig(output_dir="out", max_length=None),
    train_dataset=data["{split}"],
)
trainer.train()
```

TRL puts the loss on `completion` because the rows are prompt and completion. `max_length=None` keeps it from cutting: a row cut before
its completion trains nothing. `chat_template_kwargs` turns thinking off, so that the template's empty thinking block belongs to the prompt;
ask the trained model in the same way.
"""

_DPO = """```python
from datasets import load_dataset
from trl import DPOConfig, DPOTrainer

data = load_dataset("path/to/this/folder")
trainer = DPOTrainer(model="Qwen/Qwen3-8B", args=DPOConfig(output_dir="out", max_length=None), train_dataset=data["{split}"])
trainer.train()
```
"""

_KTO = """```python
from datasets import load_dataset
from trl.experimental.kto import KTOConfig, KTOTrainer

data = load_dataset("path/to/this/folder")
trainer = KTOTrainer(model="Qwen/Qwen3-8B", args=KTOConfig(output_dir="out", max_length=None), train_dataset=data["{split}"])
trainer.train()
```
"""

_DISTILLATION = """```python
from datasets import load_dataset
from trl.experimental.distillation import DistillationConfig, DistillationTrainer

data = load_dataset("path/to/this/folder")
trainer = DistillationTrainer(
    model="Qwen/Qwen3-0.6B",
    teacher_model="Qwen/Qwen3-8B",
    args=DistillationConfig(output_dir="out"),
    train_dataset=data["{split}"].select_columns(["prompt"]),
)
trainer.train()
```

TRL samples from `prompt` and asks the teacher itself; it ignores `tools` and has no loader for recorded log probabilities.
"""

_GRPO = """```python
from datasets import load_dataset
from materialize.adapters.trl import environment_class
from materialize.recorded import LakeRuns
from trl import GRPOConfig, GRPOTrainer

data = load_dataset("path/to/this/folder")
trainer = GRPOTrainer(
    model="Qwen/Qwen3-8B",
    args=GRPOConfig(output_dir="out", num_generations=4),
    train_dataset=data["{split}"],
    environment_factory=environment_class(LakeRuns.at("path/to/lake")),
)
trainer.train()
```

Every rollout of a row restores the same recorded state (`trajectory_sha256`, `call_index`), calls are executed, and the reward is the
environment's. TRL ignores `tools` here: the environment's methods are the tools.
"""

_VERL_SFT = """```sh
torchrun --standalone --nproc_per_node=1 -m verl.trainer.sft_trainer \\
  data.train_files=path/to/this/folder/{first} data.max_length=32768 data.pad_mode=no_padding \\
  data.custom_cls.path=pkg://materialize.export.verl_dataset data.custom_cls.name=WorkprintSFTDataset \\
  model.path=Qwen/Qwen3-8B
```

verl's own reader renders a chat message by message and loses or spoils tool calls with typed arguments; `WorkprintSFTDataset` renders the
whole chat once and puts the loss on `completion`. It needs this project in verl's environment (`pip install --no-deps workprint`).
"""

_VERL_RL = """```sh
python -m verl.trainer.main_ppo algorithm.adv_estimator=grpo \\
  data.train_files=path/to/this/folder/{first} data.val_files=path/to/this/folder/{check} \\
  data.max_prompt_length=16384 data.max_response_length=8192 data.return_raw_chat=True \\
  +data.apply_chat_template_kwargs.enable_thinking=False \\
  actor_rollout_ref.rollout.n=4 actor_rollout_ref.rollout.agent.agent_loop_config_path=path/to/this/folder/agent.yaml \\
  actor_rollout_ref.model.path=Qwen/Qwen3-8B
```

Put the place of your lake into `agent.yaml`. The tools come from the restored environment, so that their text is that of the SFT
export, and so does the reward.
"""

_SKYRL_RL = """```python
import ray
from materialize.adapters.skyrl import register
from skyrl.train.config import SkyRLTrainConfig
from skyrl.train.entrypoints.main_base import BasePPOExp
from skyrl.train.utils import validate_cfg
from skyrl.train.utils.utils import initialize_ray


@ray.remote(num_cpus=1)
def train(config):
    register("path/to/lake", tokenizer="Qwen/Qwen3-8B")
    BasePPOExp(config).run()


config = SkyRLTrainConfig.from_cli_overrides(
    [
        "data.train_data=['path/to/this/folder/{first}']",
        "data.val_data=['path/to/this/folder/{check}']",
        "trainer.policy.model.path=Qwen/Qwen3-8B",
        "trainer.max_prompt_length=16384",
        "generator.max_input_length=24576",
        "generator.max_turns=40",
        "generator.chat_template_kwargs.enable_thinking=False",
    ]
)
validate_cfg(config)
initialize_ray(config)
ray.get(train.remote(config))
```

`register` makes the environment `workprint` known in the process that trains. It writes the tools of the restored state into the prompt.
"""

_INSPECT = """```sh
inspect eval workprint/edit -T rows=path/to/this/folder -T lake=path/to/lake --model openai/gpt-5-mini
```

Every sample restores the recorded state, the model's calls are executed, and the score is the executed reward. Needs
`pip install 'workprint[inspect]'`.
"""

_VERIFIERS = """```sh
vf-eval workprint --env.taskset.rows path/to/this/folder --env.taskset.task.lake path/to/lake \\
  --env.agent.runtime.type subprocess --no-push --model openai/gpt-5-mini
```

The same states and rewards in verifiers. Needs `pip install 'workprint[verifiers]'`, and `uv` on the path.
"""

_BY_KIND: dict[str, tuple[tuple[str, str], ...]] = {
    "sft": (("TRL", _SFT), ("verl", _VERL_SFT)),
    "rft": (("TRL", _SFT), ("verl", _VERL_SFT)),
    "pref": (("TRL", _DPO),),
    "kto": (("TRL", _KTO),),
    "opd": (("TRL", _DISTILLATION),),
    "rl": (("TRL", _GRPO), ("Inspect", _INSPECT), ("verifiers", _VERIFIERS)),
    "groups": (),
    "benchmark": (("Inspect", _INSPECT), ("verifiers", _VERIFIERS)),
}


TOKENS = (
    (
        "TRL",
        """```python
from datasets import load_dataset
from trl import SFTConfig, SFTTrainer

data = load_dataset("path/to/this/folder")
trainer = SFTTrainer(
    model="Qwen/Qwen3-8B",
    args=SFTConfig(output_dir="out", max_length=None),
    train_dataset=data["{split}"],
)
trainer.train()
```

Rows are tokens of the tokenizer that `manifest.json` names with digests; train a model that has it. TRL takes `input_ids` and `labels` as
they are. Thinking is off in every row; ask the trained model in the same way.
""",
    ),
)
"""How rows are loaded that are tokens already."""


def snippets(kind: str, consumer: str) -> tuple[tuple[str, str], ...]:
    """(who, how) for the card of an export."""
    general = (("datasets", _DATASETS), ("pandas and DuckDB", _PLAIN))
    if consumer == "hf":
        return (*general, *_BY_KIND[kind])
    if consumer == "trl":
        return (*general[:1], *(s for s in _BY_KIND[kind] if s[0] == "TRL"))
    if consumer == "verl":
        return (("verl", _VERL_RL if kind in ("rl", "opd") else _VERL_SFT),)
    return (("SkyRL", _SKYRL_RL),)
