"""The files of a small image family, written as a user would write them."""

IMAGE = """\
image: tiny
title: Tiny
namespace: team
endpoints:
  public: {host: public.example}
  vpc: {host: "vpc.{region}.example", regions: [north, south]}
variants:
  vendor:
    title: the vendor's
    tag: "{release}-vendor"
    base: {reference: "registry.example/base:{os}", facts: base}
    protected: [torch]
  open:
    title: public
    tag: "{release}-tool{tool:major.minor}"
    base: {reference: "registry.example/base:{os}", facts: base}
    protected: [torch]
components:
  runtime:
    title: Runtime
    sources:
      vendor: {kind: base, probe: python}
      open: {kind: base, probe: python}
  kit:
    title: Kit
    sources:
      vendor: {kind: base}
      open:
        kind: pip
        overrides: true
        wheels:
          "12.8": {kit-core: 12.8.57, kit_extra: 12.8.61}
  tool:
    title: Tool
    aliases: [Tool, the_tool]
    sources:
      vendor: {kind: pip, index: vendor}
      open: {kind: pip, version: "{version:public}", imports: tool}
  library:
    title: Library
    architectures: [amd64]
    sources:
      vendor:
        kind: archive
        location: library
        archive: library-{version}-{arch}.tar.gz
        path: /opt/library
        library_path: lib
      open: {kind: pip, distribution: lib-open, version: "{version:major.minor.patch}", stands_in_for: the library}
"""

RELEASE = """\
release: "25.02"
base: {os: "12"}
components:
  runtime: 3.11.2
  kit: "12.8"
  tool: 1.4.2+ali
  library: {version: 2.23.4.11, features: [fast]}
"""

BASE = """\
base: registry.example/base:12
python: 3.11.2
glibc: "2.36"
architecture: amd64
site_packages: /usr/local/lib/python3.11/dist-packages
packages: {pip: 23.0.1, torch: 2.6.0a0+ecf3bae40a.nv25.1}
complaints: {old-thing: [six]}
"""
