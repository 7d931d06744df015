"""Every fact of the note that was really published for 25.02 is in the generated one, in its section.

A row is: section, fact, what the English note must hold, what the Chinese one must hold. The words are the note's own;
the facts are what people read when the release came out.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

import pytest

HEADINGS = {
    "title": ("# training-nv-pytorch 25.02", "# training-nv-pytorch 25.02"),
    "features": ("### Main features", "### 主要特性"),
    "fixes": ("### Bug fixes", "### 问题修复"),
    "contents": ("## Contents", "## 镜像内容"),
    "public": ("### Public image", "### 公网镜像"),
    "vpc": ("### VPC image", "### VPC 镜像"),
    "compile": ("### Compile optimisation of PyTorch", "### PyTorch 编译优化"),
    "recompute": ("### Recompute optimisation of GPU memory", "### 重计算显存优化"),
    "accl": ("### ACCL communication library", "### ACCL 通信库"),
    "assessment": ("### End-to-end performance assessment", "### 端到端性能评估"),
    "pull": ("### Pull the image", "### 拉取镜像"),
    "enable": ("### Turn the optimisations on", "### 开启优化"),
    "start": ("### Start a container", "### 启动容器"),
    "launch": ("### Run a benchmark in it", "### 在容器中运行基准测试"),
    "usage": ("### Usage notes", "### 使用须知"),
}
"""Section -> its heading in English and in Chinese."""

PUBLIC = "egslingjun-registry.cn-wulanchabu.cr.aliyuncs.com/egslingjun/training-nv-pytorch:25.02-serverless"
TRAINER = "TrainingArguments(bf16=True, gradient_checkpointing=True, torch_compile=True)"
BUCKET = "`zero_optimization.stage3_prefetch_bucket_size`"


class Fact(NamedTuple):
    section: str
    name: str
    en: tuple[str, ...]
    zh: tuple[str, ...]


def same(section: str, name: str, *strings: str) -> Fact:
    """A fact that reads the same in both languages."""
    return Fact(section, name, strings, strings)


FACTS = (
    Fact("title", "product", ("Container Compute Service (ACS)",), ("容器计算服务 ACS",)),
    same("title", "image and release", "training-nv-pytorch", "25.02"),
    Fact("features", "base aligned with NGC 25.01", ("aligned with NGC 25.01",), ("对齐 NGC 25.01",)),
    same("features", "CUDA", "CUDA 12.8.0"),
    same("features", "cuDNN", "cuDNN 9.7.0.66"),
    Fact("features", "ACCL-N and ACCL-Barex", ("ACCL-N 2.23.4.11", "ACCL-Barex"), ("ACCL-N 2.23.4.11", "ACCL-Barex")),
    Fact("features", "ACCL-Barex is new", ("now supports",), ("现已支持",)),
    same("features", "Transformers", "Transformers 4.48.3+ali"),
    Fact("features", "what Transformers 4.48 brings", ("ModernBERT",), ("ModernBERT",)),
    same("features", "vLLM, and what it brings", "vLLM 0.7.2", "`--model-impl transformers`", "DeepSeek"),
    Fact("features", "Ray, and what it brings", ("Ray 2.42.1", "maintenance release"), ("Ray 2.42.1", "维护版本")),
    Fact("fixes", "no bug fixes", ("None",), ("暂无",)),
    Fact("contents", "scenario and framework", ("| Training |", "| PyTorch |"), ("| 训练 |", "| PyTorch |")),
    same("contents", "base image", "nvcr.io/nvidia/pytorch:25.01-py3"),
    same("contents", "CUDA and cuDNN", "| CUDA | 12.8.0 |", "| cuDNN | 9.7.0.66 |"),
    same("contents", "ACCL-N", "| ACCL-N | 2.23.4.11 |", "ACCL-Barex"),
    same("contents", "Python stack", "| Transformers | 4.48.3+ali |", "| vLLM | 0.7.2 |", "| Ray | 2.42.1 |"),
    same("public", "the public image", PUBLIC),
    same("vpc", "the VPC image", "acs-registry-vpc.{region-id}.cr.aliyuncs.com/egslingjun/{image:tag}"),
    Fact(
        "vpc",
        "region-id",
        ("`{region-id}`", "the region in which you have activated Container Compute Service (ACS)"),
        ("`{region-id}`", "已开通容器计算服务 ACS 的地域"),
    ),
    same("vpc", "example regions", "`cn-beijing`", "`cn-wulanchabu`"),
    Fact("vpc", "image:tag", ("`{image:tag}`", "name and tag"), ("`{image:tag}`", "名称与标签")),
    same("vpc", "image:tag filled in", "training-nv-pytorch:25.02-serverless"),
    Fact(
        "compile",
        "torch.compile helps small work on one GPU most",
        ("`torch.compile`", "PyTorch 2.0", "small work on a single GPU most"),
        ("`torch.compile`", "PyTorch 2.0", "单卡小规模任务的收益最明显"),
    ),
    Fact(
        "compile",
        "LLMs depend on memory optimisation and FSDP or DeepSpeed",
        ("memory optimisation", "FSDP or DeepSpeed", "may gain little, or even lose"),
        ("显存优化", "FSDP、DeepSpeed", "可能收益甚微，甚至带来损失"),
    ),
    Fact(
        "compile",
        "communication granularity in DeepSpeed",
        ("In DeepSpeed, the granularity of communication is controlled", "fuller graph"),
        ("DeepSpeed 中控制通信粒度", "更完整的计算图"),
    ),
    Fact(
        "compile",
        "the frontend compiles in spite of graph breaks",
        ("frontend that goes on compiling in spite of graph breaks",),
        ("编译前端", "graph break 时仍可继续编译"),
    ),
    Fact(
        "compile",
        "pattern matching and dynamic shapes",
        ("pattern matching and dynamic shapes are better",),
        ("增强了模式匹配与动态 shape 支持",),
    ),
    Fact("compile", "about 20% for 8B", ("end-to-end gain is about 20%", "8B"), ("8B", "端到端收益通常约为 20%")),
    Fact(
        "recompute",
        "a model predicts memory overhead and recommends layers",
        ("number", "predicts the overhead of GPU memory recommends", "recompute their activations"),
        ("预测显存开销的模型给出建议层数", "激活重计算"),
    ),
    Fact(
        "recompute",
        "what it is built on",
        ("measurements over models, clusters, training settings and system metrics",),
        ("模型、集群、训练配置与系统指标的实测数据",),
    ),
    Fact(
        "recompute",
        "integrated into PyTorch, little effort",
        ("integrated into PyTorch", "little effort"),
        ("已集成到 PyTorch", "只需很少的改动"),
    ),
    Fact("recompute", "now in DeepSpeed", ("DeepSpeed is now supported",), ("现在也支持 DeepSpeed",)),
    Fact(
        "accl",
        "Alibaba's communication library for Lingjun",
        ("Alibaba's communication library for Lingjun",),
        ("阿里云面向灵骏的通信库",),
    ),
    Fact(
        "accl",
        "ACCL-N is the GPU edition, made from NCCL, compatible",
        ("edition for GPUs, ACCL-N, is made from NCCL and fully compatible",),
        ("GPU 版本 ACCL-N 基于 NCCL 制作，与 NCCL 完全兼容",),
    ),
    Fact("accl", "fixes, performance, stability", ("fixes", "performance and stability"), ("问题修复", "性能与稳定性")),
    Fact("assessment", "the tool", ("CNP", "cloud-native", "analysis"), ("CNP", "云原生", "分析工具")),
    Fact(
        "assessment",
        "models, settings, base image and ablation",
        ("popular open models", "framework settings against a standard base image", "ablation", "each part"),
        ("主流开源模型", "框架配置", "标准基础镜像", "消融实验", "各部分的贡献"),
    ),
    Fact("assessment", "the cluster", ("GPU cluster of several nodes", "five steps"), ("多机 GPU 集群", "五步")),
    Fact("assessment", "step 1", ("1. **Base**: the PyTorch image of NGC",), ("1. **Base**：NGC PyTorch 镜像",)),
    same("assessment", "step 2", "2. **Base + ACCL**"),
    same("assessment", "step 3", "3. **AC2 + ACCL**", "AC2 BaseOS"),
    same("assessment", "step 4", "4. **AC2 + ACCL + CompilerOpt**", "`torch.compile`"),
    Fact(
        "assessment",
        "step 5",
        ("5. **AC2 + ACCL + CompilerOpt + CkptOpt**", "selective checkpointing"),
        ("5. **AC2 + ACCL + CompilerOpt + CkptOpt**", "选择性检查点"),
    ),
    same("pull", "docker pull", f"docker pull {PUBLIC}"),
    same("enable", "the Trainer's arguments", TRAINER),
    same("enable", "the variable", "export CHECKPOINT_OPTIMIZATION=true"),
    same("start", "docker run", f"docker run --rm -it --ipc=host --net=host --privileged {PUBLIC}"),
    same("launch", "ljperf", "ljperf benchmark --model deepspeed/llama3-8b"),
    Fact(
        "usage",
        "do not reinstall PyTorch or DeepSpeed",
        ("Do not reinstall PyTorch or DeepSpeed", "both carry changes"),
        ("请勿重新安装 PyTorch 或 DeepSpeed", "都带有修改"),
    ),
    Fact("usage", "the prefetch bucket", (BUCKET, "blank", "`auto`"), (BUCKET, "留空", "`auto`")),
)

OPEN_FACTS = (
    Fact(
        "features", "BaseOS for NGC", ("our own base `lj-image/base-os:",), ("我们自己的基础镜像 `lj-image/base-os:",)
    ),
    Fact(
        "features",
        "NCCL for ACCL-N",
        ("`nvidia-nccl-cu12` 2.23.4 stands in for ACCL-N",),
        ("`nvidia-nccl-cu12` 2.23.4 代替：ACCL-N",),
    ),
    Fact(
        "features",
        "public Transformers for +ali",
        ("`transformers` 4.48.3 stands in for the vendor's build",),
        ("`transformers` 4.48.3 代替：厂商的同版本构建",),
    ),
    Fact("features", "no cuDNN but the promised one", ("cuDNN 9.7.0.66",), ("cuDNN 9.7.0.66",)),
    Fact(
        "contents",
        "what is promised and what is there",
        ("| Transformers | 4.48.3 |", "promised: 4.48.3+ali", "| ACCL-N | 2.23.4 |", "promised: 2.23.4.11"),
        ("| Transformers | 4.48.3 |", "承诺版本为 4.48.3+ali", "| ACCL-N | 2.23.4 |", "承诺版本为 2.23.4.11"),
    ),
    Fact(
        "compile",
        "the gain is the vendor's figure",
        ("20%", "the vendor's image; it was not measured on this one"),
        ("20%", "是厂商镜像的数据，未在本镜像上测量"),
    ),
    Fact(
        "recompute",
        "what recommends, and what it is not",
        ("predicting model is not public", "first layers that fits", "until `ljperf calibrate` has measured yours"),
        ("预测模型未公开", "能放下的最少层数", "直到 `ljperf calibrate` 在您的设备上测量"),
    ),
    Fact("accl", "NCCL for ACCL-N", ("NCCL 2.23.4 stands in for it",), ("以 NCCL 2.23.4 代替",)),
    Fact(
        "assessment",
        "nothing was measured; our BaseOS for AC2",
        ("none of these steps was measured", "for AC2 BaseOS"),
        ("以上各步均未测量", "代替 AC2 BaseOS"),
    ),
    Fact(
        "compile",
        "what ljperf does, and where that was measured",
        ("`ljperf` does from outside", "On two processors, with a Llama of three layers", "one graph without a break"),
        ("由 `ljperf` 在外部实现", "在两个 CPU 进程上以三层 Llama", "1 个计算图、0 个 graph break"),
    ),
    Fact(
        "enable",
        "the hook of ljperf reads both",
        ("a hook of `ljperf`", "stays as it was, recomputation of every layer", "`LJPERF_HOOKS=` turns off"),
        ("由 `ljperf` 的钩子读取", "每一层都重计算", "`LJPERF_HOOKS=` 会关闭"),
    ),
    Fact(
        "launch",
        "ljperf is ours, and no speed is claimed",
        ("is our own program, not the vendor's", "no speed on a GPU is claimed"),
        ("是我们自己的程序，并非厂商的同名工具", "不对 GPU 上的速度作任何声明"),
    ),
    Fact("usage", "both are public builds", ("both are the public builds",), ("二者均为公开构建",)),
)


def section_of(note: str, heading: str) -> str:
    """Return a section, up to the next heading of its own or a higher level, on one line; fails without it."""
    level = heading.partition(" ")[0]
    found = re.search(rf"^{re.escape(heading)}$.*?(?=^#{{1,{len(level)}}} |\Z)", note, re.MULTILINE | re.DOTALL)
    assert found, f"the note has no section {heading!r}"
    return " ".join(found.group().replace("\n> ", "\n").split())


def missing(section: str, strings: tuple[str, ...]) -> list[str]:
    """Return what a section does not hold."""
    return [item for item in strings if item not in section]


def strings_of(fact: Fact, language: str) -> tuple[str, ...]:
    return fact.zh if language == "zh" else fact.en


def heading_of(fact: Fact, language: str) -> str:
    return HEADINGS[fact.section][language == "zh"]


def name_of(fact: Fact) -> str:
    return f"{fact.section}: {fact.name}"


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("fact", FACTS, ids=name_of)
def test_the_note_of_25_02_holds_the_fact(real_note: Callable[..., str], fact: Fact, language: str) -> None:
    section = section_of(real_note("25.02", "serverless", language), heading_of(fact, language))
    assert missing(section, strings_of(fact, language)) == []


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("fact", OPEN_FACTS, ids=name_of)
def test_the_note_of_the_open_variant_says_what_stands_in(
    real_note: Callable[..., str], fact: Fact, language: str
) -> None:
    section = section_of(real_note("25.02", "open", language), heading_of(fact, language))
    assert missing(section, strings_of(fact, language)) == []


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("fact", FACTS, ids=name_of)
def test_a_note_without_the_fact_is_noticed(real_note: Callable[..., str], fact: Fact, language: str) -> None:
    section = section_of(real_note("25.02", "serverless", language), heading_of(fact, language))
    for string in strings_of(fact, language):
        assert missing(section.replace(string, ""), (string,)) == [string]


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize(
    "claim", ["A typical end-to-end gain", "端到端收益通常", "with ACCL-Barex", "支持 ACCL-Barex |"]
)
def test_the_open_variant_claims_nothing_of_the_vendors(
    real_note: Callable[..., str], claim: str, language: str
) -> None:
    assert claim not in " ".join(real_note("25.02", "open", language).split())
