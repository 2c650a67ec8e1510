"""Probes run nearly every line that a key stands for: what they do not run could change and keep its version."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import pullpush

pytestmark = pytest.mark.deep

LEAST = 0.95  # of the lines of a row
LIBRARY = Path(pullpush.__file__).parent
# What can only refuse is no number: statements that raise, and the guards `check_…`, as functions and as calls.
SETTINGS = r"""
[run]
source = pullpush
data_file = {data}
[report]
exclude_lines =
    pragma: no cover
    ^\s*raise\b
    ^\s*(def |for .* in )?_?check_
    ^\s*if TYPE_CHECKING
    ^\s*def \w+\(.*\).*: \.\.\.$
"""
PROBE = """
import importlib, sys
versions = importlib.import_module("pullpush.golden.versions")
for name in versions.names():
    versions.probe(name)
"""
# Rows of files, and of functions where a file also has what stands in no key: where things lie in a cache
# (`frozen.encoded`), plain versions for pages and tests.
ROWS = {
    "losses": ["losses/_*.py", *(f"losses/{name}.py" for name in ("contract", "offer", "temperature"))],
    "metrics": [
        *(f"metrics/{name}.py" for name in ("_*", "annotations", "cards", "inference", "prompt_templates")),
        "metrics/consistency.py: consistency_by_clip rank_agreement_by_clip rank_variance _ranks _spread_of_ranks",
        "metrics/geometry.py: space space_by_clip closeness_by_clip _over_others _kernel _of_pairs _of_log _of_ratio",
    ],
    "training": [
        *(f"training/{name}.py" for name in ("chunked", "diagnostics", "evaluate", "loop", "objective")),
        *(f"training/{name}.py" for name in ("checkpoints", "optimiser", "terms")),
        "training/frozen.py: blocks write_features write_activations read Encoded.audio Encoded.select",
    ],
    "data: scenes and their sound": [
        *(f"data/scenes/{name}.py" for name in ("composer", "held_out", "renderer", "scene")),
        "data/scenes/augmented.py: unite unites partners mix",
        *(f"data/{name}.py" for name in ("banks/synthetic", "draws", "mixture", "music/phrases", "music/soundfont")),
    ],
    "data: grammar": [
        *(f"data/language/{name}.py" for name in ("grammar", "vocabulary")),
        "data/language/wording.py: aligned_captions _tell _phrase",
    ],
    "data: pairs and batches": [f"data/{name}.py" for name in ("batches", "pairing")],
}


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """By file, what coverage says of one run of all probes."""
    if importlib.util.find_spec("coverage") is None:
        pytest.skip("coverage is not installed")
    place = tmp_path_factory.mktemp("coverage")
    settings = place / "coveragerc"
    settings.write_text(SETTINGS.format(data=place / "data"))
    report = [sys.executable, "-m", "coverage"]
    environment = os.environ | {"PULLPUSH_HOME": str(place / "home"), "OMP_NUM_THREADS": "1"}
    (place / "probe.py").write_text(PROBE)
    for order in (["run", place / "probe.py"], ["json", "-q", "-o", place / "report.json"]):
        subprocess.run([*report, order[0], f"--rcfile={settings}", *order[1:]], check=True, env=environment)
    files = json.loads((place / "report.json").read_text())["files"]
    return {Path(name).resolve().relative_to(LIBRARY.resolve()).as_posix(): told for name, told in files.items()}


@pytest.mark.parametrize("row", ROWS)
def test_nearly_every_line_is_run(row, ran):
    missing, lines = [], 0
    for entry in ROWS[row]:
        pattern, _, functions = entry.partition(": ")
        for path in LIBRARY.glob(pattern):
            told = ran[path.relative_to(LIBRARY).as_posix()]
            parts = [told["functions"][name] for name in functions.split()] if functions else [told]
            lines += sum(part["summary"]["num_statements"] for part in parts)
            missing += [f"{path.name}:{line}" for part in parts for line in part["missing_lines"]]
    assert lines
    assert 1 - len(missing) / lines >= LEAST, missing
    print(f"{row}: {1 - len(missing) / lines:.1%} of {lines} lines, without {' '.join(missing)}")
