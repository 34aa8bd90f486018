"""Takes apart the commands of dataset cards with the parsers and readers of the programs that they start, in the environments of these.

``python card_commands.py NAME CODE [TOKENIZER]``; CODE is a block of a card, with real places in it. Trainers are started in
``trainer_steps.py``; here nothing is trained: verl's and SkyRL's need GPUs.
"""

from __future__ import annotations

import json
import shlex
import sys
import types
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from typing import Any
from unittest.mock import MagicMock


def say(**values: object) -> None:
    print("@@" + json.dumps(values), flush=True)


def words(code: str) -> list[str]:
    """A shell command's words."""
    return shlex.split(code.replace("\\\n", " "))


def verl_sft(code: str, tokenizer: str) -> None:
    """verl's configuration of the command, and the rows that its trainer would make of it."""
    from hydra import compose, initialize_config_module
    from transformers import AutoTokenizer
    from verl.trainer.sft_trainer import create_sft_dataset

    argv = words(code)
    with initialize_config_module("verl.trainer.config", version_base=None):
        config = compose("sft_trainer_engine", overrides=argv[argv.index("verl.trainer.sft_trainer") + 1 :])
    rows = create_sft_dataset(config.data.train_files, config.data, AutoTokenizer.from_pretrained(tokenizer), None)
    say(rows=len(rows), trained=[int(rows[i]["loss_mask"].sum()) for i in range(len(rows))], model=config.model.path)


def verl_rl(code: str, tokenizer: str) -> None:
    """verl's configuration of the command, the prompts that it would read, and the agent loop that they name."""
    from hydra import compose, initialize_config_module
    from hydra.utils import get_object
    from omegaconf import OmegaConf
    from transformers import AutoTokenizer
    from verl.utils.dataset.rl_dataset import RLHFDataset

    argv = words(code)
    with initialize_config_module("verl.trainer.config", version_base=None):
        config = compose("ppo_trainer", overrides=argv[argv.index("verl.trainer.main_ppo") + 1 :])
    (loop,) = OmegaConf.load(config.actor_rollout_ref.rollout.agent.agent_loop_config_path)
    get_object(loop["_target_"])
    words_of = AutoTokenizer.from_pretrained(tokenizer)
    found = {key: RLHFDataset(config.data[key], words_of, config.data) for key in ("train_files", "val_files")}
    say(
        rows={key: len(rows) for key, rows in found.items()},
        loop=loop["name"],
        agents=sorted({r["agent_name"] for r in found["train_files"]}),
    )


class _Backends(MetaPathFinder, Loader):
    """What runs models stays away: SkyRL's backends need a GPU's libraries."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        away = name.startswith("skyrl.backends") or name.split(".")[0] in ("torch", "cloudpathlib")
        return ModuleSpec(name, self, is_package=True) if away else None

    def create_module(self, spec: ModuleSpec) -> Any:
        module = MagicMock(name=spec.name)
        module.__path__, module.__spec__, module.__name__ = [], spec, spec.name
        return module

    def exec_module(self, module: Any) -> None:
        pass


def skyrl_sft(code: str) -> None:
    """SkyRL's configuration of the command; its reader of rows is tried in test_readers."""
    sys.meta_path.insert(0, _Backends())
    from skyrl.train.config.sft_config import SFTConfig

    argv = words(code)
    config = SFTConfig.from_cli_overrides(argv[argv.index("skyrl.train.main_sft") + 1 :])
    say(folder=config.train_datasets, splits=config.train_dataset_splits, length=config.max_length)


def skyrl_rl(code: str) -> None:
    """The block itself, in one process and with the trainer replaced by a look at what it is given."""
    sys.meta_path.insert(0, _Backends())
    import pyarrow.parquet as pq
    import skyrl_gym
    from skyrl.train.config import SkyRLTrainConfig

    class Look:
        def __init__(self, config: SkyRLTrainConfig) -> None:
            self.config = config

        def run(self) -> None:
            for key in ("train_data", "val_data"):
                rows = pq.read_table(getattr(self.config.data, key)).to_pylist()
                row = rows[0]
                extras = {k: v for k, v in row.items() if k not in ("prompt", "env_class")} | {"max_turns": self.config.generator.max_turns}
                history, _ = skyrl_gym.make(row["env_class"], env_config={}, extras=extras).init(row["prompt"])
                say(
                    rows=len(rows), roles=[m["role"] for m in history], told=row["tools_json"] == "[]" or "<tools>" in history[0]["content"]
                )

    def module(name: str, **values: Any) -> None:
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].__dict__.update(values)

    module("skyrl.train.entrypoints.main_base", BasePPOExp=Look)
    module("skyrl.train.utils", validate_cfg=lambda config: None)
    module("skyrl.train.utils.utils", initialize_ray=lambda config: None)
    module("ray", remote=lambda **_: lambda f: types.SimpleNamespace(remote=f), get=lambda done: done)
    exec(code, {})  # noqa: S102 - a block of our own card


def nemo_gym(code: str) -> None:
    """NeMo Gym's configuration of the command."""
    from hydra import compose, initialize
    from nemo_gym.rollout_collection import RolloutCollectionConfig
    from omegaconf import OmegaConf

    argv = words(code)
    with initialize(version_base=None):
        given = OmegaConf.to_container(compose(overrides=argv[1:]))
    config = RolloutCollectionConfig.model_validate(given)
    say(command=argv[0], agent=config.agent_name, rows=sum(1 for _ in open(config.input_jsonl_fpath)))


def plain(code: str) -> None:
    """A Python block as it stands."""
    exec(code, {})  # noqa: S102 - a block of our own card
    say(done=True)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
