"""Lets verl's SFT trainer train a tiny model on an export, on a processor, and tells what every step put the loss on.

Runs in verl's environment: ``python verl_steps.py EXPORT MODEL OUT``. The settings are those of the export's README; what is not verl's own
here is the platform (verl 0.9.1 has none without an accelerator) and the process group: verl asks for ``cpu:gloo`` and the platform's in
one, which torch refuses when both are the processor's. Prints one JSON object for every row of the first step, then one of the run.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import sys
from pathlib import Path
from typing import Any

os.environ.update(VERL_PLATFORM="cpu", VERL_ENGINE_DEVICE="cuda")  # the FSDP engine is registered for accelerators only
os.environ.update(RANK="0", LOCAL_RANK="0", WORLD_SIZE="1", MASTER_ADDR="127.0.0.1", MASTER_PORT="0")

import torch
from verl.plugin.platform.platform_base import PlatformBase
from verl.plugin.platform.platform_manager import PlatformRegistry

STEPS = 2
ROWS = 8
"""Rows in a step."""


def _nothing(self: Any, *_: Any, **__: Any) -> None:
    """What a processor need not do."""


for _name in ("memory_reserved", "memory_allocated", "max_memory_reserved", "max_memory_allocated", "empty_cache"):
    setattr(torch.cpu, _name, lambda: 0)  # verl asks for these at every step, and torch has them for accelerators only


@PlatformRegistry.register(platform="cpu")
class PlatformCPU(PlatformBase):  # type: ignore[misc]  # verl is not installed where types are checked
    """One device, the processor, by verl's own hook for platforms."""

    device_name = vendor_name = "cpu"
    device_module = torch.cpu
    set_device = synchronize = set_allocator_settings = empty_cache = profiler_start = profiler_stop = cudart = _nothing

    def is_available(self) -> bool:
        return True

    def current_device(self) -> str:
        return "cpu"

    def device_count(self) -> int:
        return 1

    def manual_seed(self, seed: int) -> None:
        torch.manual_seed(seed)

    manual_seed_all = manual_seed

    def get_device_capability(self, device_index: int = 0) -> tuple[None, None]:
        return None, None

    def communication_backend_name(self) -> str:
        return "gloo"

    def visible_devices_envvar(self) -> str:
        return "CPU_VISIBLE_DEVICES"

    def nvtx_range(self, msg: str) -> Any:
        return contextlib.nullcontext()

    def ray_resource_name(self) -> str:
        return "CPU"

    def ray_noset_envvars(self) -> list[str]:
        return []

    def is_ipc_supported(self) -> bool:
        return False


def settings(export: Path, model: str, out: str) -> Any:
    """The README's overrides on verl's own defaults, and how many steps."""
    import verl.trainer
    from hydra import compose, initialize_config_dir

    (block,) = re.findall(r"```sh\n(.*?)```", (export / "README.md").read_text("utf-8"), re.DOTALL)
    words = shlex.split(block.replace("\\\n", " ").replace("path/to/this/folder", str(export)).replace("Qwen/Qwen3-8B", model))
    told = words[words.index("verl.trainer.sft_trainer") + 1 :]
    more = [
        f"data.train_batch_size={ROWS}", f"data.micro_batch_size_per_gpu={ROWS}", "data.use_dynamic_bsz=False", "data.num_workers=0",
        f"trainer.total_training_steps={STEPS}", f"trainer.total_epochs={STEPS}", "trainer.device=cpu", "trainer.logger=[]",
        f"trainer.default_local_dir={out}", "optim.lr=1e-3", "model.use_remove_padding=False", "engine.strategy=fsdp2",
        "+model.override_config.attn_implementation=sdpa",
    ]  # fmt: skip
    with initialize_config_dir(str(Path(verl.trainer.__file__).parent / "config"), version_base=None):
        return compose("sft_trainer_engine", [*told, *more])


def main(export: Path, model: str, out: str) -> None:
    from verl.trainer.sft_trainer import SFTTrainer
    from verl.utils import tensordict_utils

    torch.distributed.init_process_group("gloo", init_method=f"file://{out}/group", rank=0, world_size=1)
    torch.manual_seed(0)
    trainer = SFTTrainer(settings(export, model, out))
    tokenizer = trainer.model_config.tokenizer
    before = {name: value.detach().clone() for name, value in trainer.engine.module.named_parameters()}
    losses, first, train = [], [], trainer.training_client.train_batch

    def watched(data: Any) -> Any:
        for ids, mask in zip(data["input_ids"].unbind(), data["loss_mask"].unbind(), strict=True):
            first.append([i for i, m in zip(ids.tolist(), mask.tolist(), strict=True) if m])
        output = train(data=data)
        losses.append(tensordict_utils.get(output, "metrics")["loss"])
        return output

    trainer.training_client.train_batch = watched
    trainer.fit()
    for learnt in first[:ROWS]:
        print("@@" + json.dumps({"trained": tokenizer.decode(learnt), "tokens": len(learnt)}))
    moved = [name for name, value in trainer.engine.module.named_parameters() if not value.detach().equal(before[name])]
    print("@@" + json.dumps({"steps": len(losses), "losses": losses, "moved": len(moved)}), flush=True)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    Path(sys.argv[3]).mkdir(parents=True, exist_ok=True)
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3])
