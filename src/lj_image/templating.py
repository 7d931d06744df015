"""The Jinja templates: where they lie, and what they may call."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from lj_image.errors import Location, ManifestError

if TYPE_CHECKING:
    from jinja2 import BytecodeCache, Environment, Template, TemplateError


@dataclass(frozen=True)
class Templates:
    """Folders of templates; the first one that has a template wins."""

    folders: tuple[Path, ...]
    compiled: Path | None = None
    """A folder that keeps compiled templates: half of the time that rendering takes. Jinja compares their sources."""

    def get(self, name: str) -> Template:
        """Return a template; raises jinja2.TemplateError for one that is absent or faulty."""
        return self._environment.get_template(name)

    def render(self, name: str, **values: object) -> str:
        """Render a template; raises ManifestError with file and line for one that is absent or faulty."""
        from jinja2 import TemplateError

        try:
            return self.get(name).render(**values)
        except TemplateError as error:
            raise _fault(name, error) from None

    @cached_property
    def _environment(self) -> Environment:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined

        environment = Environment(
            loader=FileSystemLoader(list(self.folders)),
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
            autoescape=False,  # a Dockerfile is not HTML
            bytecode_cache=_cache(self.compiled) if self.compiled else None,
        )
        environment.filters["shell"] = _shell_quoted
        environment.filters["quoted"] = _quoted
        environment.filters["literal"] = _literal
        environment.filters["json_list"] = _json_list
        return environment


def project_templates(images_root: Path, cache_dir: Path | None = None) -> Templates:
    """Return the project's own templates, beside `images/`, with ours behind them."""
    own = Path(__file__).parent / "templates"
    source_tree = Path(__file__).parents[2] / "templates"  # an editable install has them in the repository
    folders = tuple(folder for folder in (images_root.parent / "templates", own, source_tree) if folder.is_dir())
    return Templates(folders, cache_dir / "templates" if cache_dir else None)


def _fault(name: str, error: TemplateError) -> ManifestError:
    """Say where a template is faulty: its syntax knows the place, what it asks for is found by the traceback."""
    from jinja2 import TemplateNotFound, TemplateSyntaxError

    if isinstance(error, TemplateNotFound):
        return ManifestError(f"there is no template {error.name}", hint=f"write it; {name} asks for it")
    if isinstance(error, TemplateSyntaxError):
        return ManifestError(f"{name}: {error.message}", location=Location(error.filename or name, error.lineno))
    from traceback import extract_tb  # late: only a fault needs it

    frames = [frame for frame in extract_tb(error.__traceback__) if frame.filename.endswith(".j2")]
    place = Location(frames[-1].filename, frames[-1].lineno) if frames else None
    return ManifestError(f"{name}: {error.message}", location=place)


def _cache(folder: Path) -> BytecodeCache:
    from jinja2 import FileSystemBytecodeCache
    from jinja2.bccache import Bucket

    class Cache(FileSystemBytecodeCache):
        """One that does without where nothing can be written."""

        def dump_bytecode(self, bucket: Bucket) -> None:
            with suppress(OSError):
                folder.mkdir(parents=True, exist_ok=True)
                super().dump_bytecode(bucket)

    return Cache(str(folder))


def _shell_quoted(text: str) -> str:
    import shlex

    return shlex.quote(text)


def _quoted(text: str) -> str:
    """Quote a value of ENV; `$` stays, since a value may build on the base's."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _literal(text: str) -> str:
    """Quote a value of LABEL, which people write as text: its `$` means no variable."""
    return _quoted(text).replace("$", "\\$")


def _json_list(items: Iterable[str]) -> str:
    import json

    return json.dumps(list(items), ensure_ascii=False)
