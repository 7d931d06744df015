"""A family with notes in two languages and releases that tell of changes, for the rules that read them.

It stands in for the published notes whose faults the rules were made of.
"""

from __future__ import annotations

from collections.abc import Callable

from lj_image.catalog.catalog import Catalog
from lj_image.catalog.lint import lint

IMAGE = """\
image: tiny
title: Tiny
namespace: team
notes: {product: {en: Product, zh: 产品}, scenario: {en: Training, zh: 训练}, languages: [en, zh]}
endpoints:
  public: {host: team-registry.cn-inland.example.com}
  vpc: {host: "lake-registry-vpc.{region}.example.com", regions: [cn-inland, cn-coast, ap-south-1]}
variants:
  vendor:
    title: the vendor's
    tag: "{release}-vendor"
    base: {reference: "registry.example/base:{os}", facts: base}
  open:
    title: public
    tag: "{release}-open"
    base: {reference: "registry.example/base:{os}", facts: base}
components:
  cuda: {title: CUDA, sources: {vendor: {kind: base}, open: {kind: base}}}
  torch: {title: PyTorch, aliases: [Torch], sources: {vendor: {kind: base}, open: {kind: base}}}
  transformer-engine:
    title: Transformer Engine
    aliases: [TransformerEngine]
    sources: {vendor: {kind: base}, open: {kind: base}}
  ray: {title: Ray, sources: {vendor: {kind: base}, open: {kind: base}}}
  vllm: {title: vLLM, sources: {vendor: {kind: base}, open: {kind: base}}}
  accl-n: {title: ACCL-N, sources: {vendor: {kind: base}, open: {kind: base}}}
"""

FIRST = """\
release: "25.03"
base: {os: "12"}
components:
  cuda: 12.8.0
  torch: 2.6.0.7
  transformer-engine: "2.1"
  ray: 2.44.0
  vllm: 0.8.2.dev0+g61c7a1b8
"""

NEXT = """\
release: "25.04"
previous: "25.03"
components: {vllm: 0.8.5+cu128}
"""


def written(
    write: Callable[..., Catalog], *, image: str = IMAGE, first: str = FIRST, second: str = NEXT, **more: str
) -> Catalog:
    """Write the family with 25.03, 25.04 and more; 25.02 is there, too, since every small catalog has one."""
    return write(image=image, r25_02=FIRST.replace("25.03", "25.02"), r25_03=first, r25_04=second, **more)


def told(catalog: Catalog, release: str | None = None) -> list[tuple[str, str]]:
    """Return code and place of each finding, the place as `25.04.yaml:3:1`."""
    return [(str(item.code), str(item.location).rpartition("/")[2]) for item in lint(catalog, release)]
