"""The chapters: which there are, what they can be told; their executions: where they stand, whether they are stale.

A chapter is a Markdown notebook `book/NAME.md` with a line in `book/_toc.yml`; its first code cell tagged
`parameters` assigns literals, and the type of each is the type that the parameter takes.
"""

import ast
import base64
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jupytext
import nbformat
import yaml
from nbformat import NotebookNode
from pydantic import ConfigDict, TypeAdapter

import pullpush
from pullpush.cache import atomic_path
from pullpush.errors import DataNotFoundError, PullPushError, UnknownNameError, looked_up, unknown
from pullpush.lab.gaps import MARK
from pullpush.lab.profiles import Profile
from pullpush.lab.root import workplace
from pullpush.show.markup import compress_png

PARAMETERS_TAG = "parameters"
LAX = ConfigDict(coerce_numbers_to_str=True, allow_inf_nan=False)
WIDGET = "application/vnd.jupyter.widget-view+json"
LIBRARY = Path(pullpush.__file__).parent
READ = ("claims", "measured", "paper-tables", "remember.yaml", "trunks")  # what pages read of the book's folder
TYPE_NAMES = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}


class ParameterError(PullPushError, ValueError):
    """A parameter's value does not fit its type, or a parameters cell cannot be read."""


@dataclass(frozen=True)
class Chapter:
    """A notebook of the book: its name and its Markdown source."""

    name: str
    path: Path


def chapters(root: Path) -> tuple[Chapter, ...]:
    """The book's chapters in reading order, from `book/_toc.yml`; plain pages without code are left out."""
    toc = root / "book" / "_toc.yml"
    found = []
    for name in _pages(yaml.safe_load(toc.read_text(encoding="utf-8"))):
        path = root / "book" / f"{name}.md"
        if not path.is_file():
            raise DataNotFoundError(f"{toc} names {name!r}, but there is no {path}: write it or take the line out")
        if "\nkernelspec:" in path.read_text(encoding="utf-8").partition("\n---\n")[0]:  # a notebook's head ends there
            found.append(Chapter(name, path))
    return tuple(found)


def find(root: Path, name: str) -> Chapter:
    """The chapter called `name`."""
    return looked_up("chapter", name, {chapter.name: chapter for chapter in chapters(root)})


def read(chapter: Chapter) -> NotebookNode:
    """The chapter as a notebook without outputs."""
    return jupytext.read(chapter.path)


def parameters(chapter: Chapter) -> dict[str, Any]:
    """The chapter's parameters and their defaults, in the order in which its `parameters` cell assigns them."""
    return dict(_assignments(chapter, _parameters_cell(chapter)))


def meanings(chapter: Chapter) -> dict[str, str]:
    """What each parameter means: the comment beside it."""
    lines = (line.partition(" = ") for line in _parameters_cell(chapter).splitlines())
    return {name: rest.partition("  # ")[2] for name, _, rest in lines}


def _parameters_cell(chapter: Chapter) -> str:
    cells = (cell for cell in read(chapter).cells if PARAMETERS_TAG in cell.metadata.get("tags", []))
    return next((cell.source for cell in cells if cell.cell_type == "code"), "")


def check_parameters(chapter: Chapter, values: Mapping[str, Any]) -> dict[str, Any]:
    """`values` in the types of the chapter's defaults; texts, as the command line gives them, are converted."""
    defaults = parameters(chapter)
    for name in values:
        if name not in defaults:
            error = unknown("parameter", name, defaults)
            raise UnknownNameError(f"chapter {chapter.name}: {error}")
    return {name: _coerce(name, value, defaults[name]) for name, value in values.items()}


def source_hash(chapter: Chapter) -> str:
    """SHA-256 of the chapter's cells: kind, tags and source. The jupytext header does not count."""
    cells = [[c.cell_type, sorted(c.metadata.get("tags", [])), c.source.strip()] for c in read(chapter).cells]
    return hashlib.sha256(json.dumps(cells, ensure_ascii=False).encode()).hexdigest()


def _pages(entry: Mapping[str, Any]) -> Iterator[str]:
    for key in ("root", "file"):
        if key in entry:
            yield str(entry[key]).removesuffix(".md")
    for key in ("parts", "chapters", "sections"):
        for child in entry.get(key) or []:
            yield from _pages(child)


def _assignments(chapter: Chapter, source: str) -> Iterator[tuple[str, Any]]:
    for line in ast.parse(source).body:
        try:
            assignment: Any = line  # anything else lacks what is asked of it
            (target,) = [assignment.target] if isinstance(line, ast.AnnAssign) else assignment.targets
            yield target.id, ast.literal_eval(assignment.value)
        except (AttributeError, ValueError, TypeError) as error:
            raise ParameterError(
                f"{chapter.path}: the parameters cell may only assign literals (name = value), "
                f"got {ast.unparse(line)!r}"
            ) from error


def _coerce(name: str, value: Any, default: Any) -> Any:
    """A value in the type of the default; what is no text, number or truth value is YAML on the command line."""
    kind = type(default)
    try:
        if kind in TYPE_NAMES:
            if isinstance(value, bool) and kind in (int, float):
                raise ValueError(value)
            return TypeAdapter(kind, config=LAX).validate_python(value)
        given = yaml.safe_load(value) if isinstance(value, str) else value
        if kind is type(None) or isinstance(given, kind):
            return given
        if kind is tuple and isinstance(given, list):
            return tuple(given)
    except (ValueError, yaml.YAMLError):
        pass
    raise ParameterError(f"parameter {name!r} must be {TYPE_NAMES.get(kind, f'a {kind.__name__}')}, got {value!r}")


# ---------------------------------------------------------------- for JupyterLab

SETTINGS = ".settings"  # a folder of JupyterLab's defaults: no question about news before the first page
# An equation with the book's number, which JupyterLab would give one of its own beside.
EQUATION = re.compile(r"^\$\$\n(.*?)\s*\\tag\{([^}]+)\}\s*\n\$\$$", re.DOTALL | re.MULTILINE)
QUIET = {"@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False}}


def write_for_lab(root: Path, folder: Path) -> None:
    """The book's pages as JupyterLab can show them, which has no bibliography and folds no code of a solution.

    A notebook that a reader changed is only written anew when its page is: the reader's is then NAME.before.ipynb.
    """
    (folder / SETTINGS).mkdir(parents=True, exist_ok=True)
    (folder / SETTINGS / "overrides.json").write_text(json.dumps(QUIET), encoding="utf-8")
    (folder / ".jupytext.toml").write_text('formats = "ipynb"\n', encoding="utf-8")  # no second copy beside a notebook
    references = _references((root / "book" / "references.bib").read_text(encoding="utf-8"))
    notebooks = {chapter.name: chapter for chapter in chapters(root)}
    links = re.compile(rf"(\]\((?:{'|'.join(notebooks)}))\.md(?=[)#])")
    for page in sorted((root / "book").glob("*.md")):
        target = folder / (f"{page.stem}.ipynb" if page.stem in notebooks else page.name)
        if target.is_file():
            if target.stat().st_mtime >= page.stat().st_mtime:
                continue
            target.replace(target.with_suffix(f".before{target.suffix}"))
        book = jupytext.read(page) if page.stem in notebooks else nbformat.v4.new_notebook()
        book.cells = book.cells or [nbformat.v4.new_markdown_cell(page.read_text(encoding="utf-8"))]
        answering = False
        for cell in book.cells:
            if cell.cell_type == "markdown":
                text = EQUATION.sub(r":::{math}\n:enumerator: \2\n\1\n:::", cell.source)
                text, answering = _answers_folded(text, answering)
                cell.source = links.sub(r"\1.ipynb", CITED.sub(partial(_cited, references), text))
            elif answering or {"hide-input", "remove-input"} & set(cell.metadata.get("tags", [])):
                cell.metadata["jupyter"] = {"source_hidden": True}
        if page.stem in notebooks:
            book.metadata.pop("jupytext", None)
            nbformat.write(book, target)
        else:
            target.write_text(book.cells[0].source, encoding="utf-8")


def _answers_folded(text: str, answering: bool) -> tuple[str, bool]:
    """A text whose part before the end of a solution folds, and whether it ends within a solution."""
    answer, end, rest = text.partition("```{solution-end}\n```")
    if end and answering:
        folded = f"::::{{admonition}} The answer in words\n:class: dropdown\n\n{answer.strip()}\n::::\n"
        text = (folded if answer.strip() else "") + rest
    if text.rstrip().endswith(":class: dropdown\n```"):  # nothing to read in it before the code
        text = f"{text.rstrip()}\n\nUnfold the code below: a click on its line.\n"
    return text, "{solution-start}" in text or (answering and not end)


CITED = re.compile(r"\{(cite:p|cite:t|term)\}`([^`]+)`")


def _cited(references: Mapping[str, str], match: re.Match[str]) -> str:
    said = "; ".join(references.get(key.strip(), key.strip()) for key in match[2].split(","))
    return f"({said})" if match[1] == "cite:p" else said


def _references(bibliography: str) -> dict[str, str]:
    """Key → "Luo et al., 2025", as the site cites."""
    found = {}
    for key, entry in re.findall(r"^@\w+\{([^,]+),(.*?)^\}", bibliography, flags=re.MULTILINE | re.DOTALL):
        fields = dict(re.findall(r"^\s*(\w+) = \{(.*)\},?$", entry, flags=re.MULTILINE))
        names = [name.strip("{}").split(",")[0] for name in fields.get("author", key).split(" and ")]
        who = f"{names[0]} et al." if len(names) > 2 else " and ".join(names)
        found[key] = f"{who}, {fields.get('year', 'n.d.')}"
    return found


# ---------------------------------------------------------------- executions


def place(root: Path, profile: str, *, published: bool = False) -> Path:
    """The folder of a profile's executions: of this clone's own, or of those that the maintainers publish."""
    executed = workplace(root) / "executed"
    return executed / profile if published else executed / "local" / profile


def last_time(root: Path, name: str, profile: str) -> float | None:
    """The seconds that a chapter took when it was last executed here, else when it was published; None if neither."""
    notebooks = (place(root, profile, published=published) / f"{name}.ipynb" for published in (False, True))
    mine, published = (describe(notebook).get("seconds") for notebook in notebooks)
    return published if mine is None else mine


def describe(notebook: Path) -> dict[str, Any]:
    """What an executed notebook says of itself: chapter, profile, parameters, source_hash, seconds, version; empty if
    it is not there, was cut off or is none of ours.
    """
    try:
        return dict(nbformat.read(notebook, as_version=4).metadata.get("pullpush", {}))
    except (OSError, ValueError, TypeError, AttributeError, nbformat.ValidationError):
        return {}


def shown_html(notebook: Path) -> Iterator[str]:
    """All HTML that the cells of a notebook have shown."""
    for cell in nbformat.read(notebook, as_version=4).cells:
        for output in cell.get("outputs", []):
            yield "".join(output.get("data", {}).get("text/html", ""))


def raw(html: str) -> str:
    """HTML as a page of the book holds it."""
    return f"```{{raw}} html\n{html}\n```"


def gaps_of(notebook: Path) -> list[tuple[str, bool]]:
    """What an executed notebook says that these data could not give, and whether the library gave the reason; not what
    takes long and was not kept, which other data or time would give.
    """
    cells = nbformat.read(notebook, as_version=4).cells
    outputs = [output for cell in cells for output in cell.get("outputs", ()) if MARK in output.get("metadata", {})]
    marks = [(output.data["text/markdown"], output.metadata[MARK]) for output in outputs]
    return [(text, mark["foreseen"]) for text, mark in marks if not mark["not kept"]]


def why_stale(notebook: Path, chapter: Chapter) -> str | None:
    """Why an executed notebook is not one of the chapter as it is written, with its defaults; None if it is."""
    if not notebook.is_file():
        return f"{chapter.name} has not been run: there is no {notebook}"
    made = describe(notebook)
    if not made:
        return f"{notebook} cannot be read as an execution of {chapter.name}"
    if made.get("source_hash") != source_hash(chapter):
        return f"{chapter.name} has changed since {notebook} was made"
    defaults = parameters(chapter) | {"profile": made["profile"]}
    changed = [f"{k}={v!r}" for k, v in made["parameters"].items() if v != defaults.get(k)]
    if changed:
        return f"{notebook} was made with {', '.join(changed)}, which are not the defaults of {chapter.name}"
    return None


def is_current(notebook: Path, chapter: Chapter, settings: Profile) -> bool:
    """Whether a chapter need not be run again: nothing that it may read was written since, neither by us nor by git."""
    if settings.file or why_stale(notebook, chapter):
        return False
    places = [LIBRARY, *(chapter.path.parent / name for name in READ)]
    files = (file for place in places for file in (place, *place.rglob("*.*")) if file.suffix != ".pyc")
    made = notebook.stat().st_mtime
    return not any(file.is_file() and file.stat().st_mtime > made for file in files)


def publishable(path: Path, about: dict[str, Any]) -> None:
    """Rewrite the executed notebook at `path` in place for publishing, without what went to stderr."""
    notebook = nbformat.read(path, as_version=4)
    for position, cell in enumerate(notebook.cells):
        cell.id = f"cell-{position:03d}"  # random ids would change the file at every run
        cell.metadata.pop("papermill", None)
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            shown = (o for o in cell.outputs if o.get("name") != "stderr" and WIDGET not in o.get("data", {}))
            cell.outputs = [_smaller(output) for output in shown]
    for noise in ("papermill", "widgets"):
        notebook.metadata.pop(noise, None)
    notebook.metadata.pullpush = about
    with atomic_path(path) as partial:
        nbformat.write(notebook, partial)


def _smaller(output: NotebookNode) -> NotebookNode:
    figure = output.get("data", {}).get("image/png")
    if figure:
        output.data["image/png"] = base64.b64encode(compress_png(base64.b64decode(figure))).decode("ascii")
    return output
