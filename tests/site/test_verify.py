"""Kept runs are trained again from nothing and held against their band; what is outside or damaged is told."""

import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import miniature
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from filelock import FileLock

from pullpush.cache import HOME, home
from pullpush.errors import CacheError
from pullpush.lab import compute, kept
from pullpush.lab.experiments import without_seeds
from pullpush.lab.provenance import processor, sealed, unsealed
from pullpush.site import ledger_page as verified, sweep as long, verify as verifying
from pullpush.site.cli import main
from pullpush.site.verify import FIRST, LAST, OF_RUNS, OutsideError, afresh, verify

CHAPTER = (
    miniature.CHAPTER_HEAD
    + """```

```{code-cell} ipython3
:tags: [setup]

from pullpush.lab import compute, material, session
from pullpush.lab.experiments import Experiment

book = session.start("10-tiny", profile=profile, seed=seed)
ground = material.of(book, "scenes")
```

```{code-cell} ipython3
:tags: [experiments]

systems = {"InfoNCE": ("infonce", {}), "SVR": ("infonce+bi-static-svr", {})}
options = {"data": "whole", "long": True}
radius = Experiment.of("radius", systems, seeds=range(3), **options)
rates = {"lr": {rate: {"lr": rate} for rate in (0.001, 0.002)}}
search = Experiment.of("search", systems, seeds=(0,), varies=rates, **options)
```
"""
)
ALL = 10  # kept runs, of both experiments


@pytest.fixture(scope="module")
def once(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny book whose two experiments were trained and kept."""
    root = tmp_path_factory.mktemp("once")
    (root / "book").mkdir()
    (root / "book" / "_toc.yml").write_text("format: jb-book\nroot: intro\nchapters:\n  - file: 10-tiny\n")
    (root / "book" / "intro.md").write_text("# A tiny book\n")
    (root / "book" / "10-tiny.md").write_text(CHAPTER)
    (root / "sizes.yaml").write_text(miniature.PROFILE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PULLPUSH_BOOK", str(root))
        plan = long.declared("10-tiny", profile=str(root / "sizes.yaml"))
        assert not plan.sweep(jobs=1).failed
        plan.keep()
    return root


@pytest.fixture
def book(once: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, of which a test may spoil what was kept."""
    root = tmp_path / "book"
    subprocess.run(["cp", "-r", str(once), str(root)], check=True)
    monkeypatch.setenv("PULLPUSH_BOOK", str(root))
    return root


def verified_again(book: Path, *names: str, **options) -> tuple[verifying.Verified, list[str]]:
    said: list[str] = []
    options = {"runs": 4, "seed": 1, **options}
    return verify(names, profile=str(book / "sizes.yaml"), report=said.append, **options), said


def spoil(book: Path, more: float, experiment: str = "radius", trial: str = "SVR") -> None:
    """Let what was kept of a system's training losses be something else, in all its seeds."""
    plan = long.declared("10-tiny", profile=str(book / "sizes.yaml"))
    one = plan.experiments[experiment]
    content, but_seeds = (compute.content_of(plan.ground, it) for it in (one, without_seeds(one)))
    scores = kept.read(one, "10-tiny", content, root=book)
    history = scores.history.copy()
    history.loc[history["system"] == trial, "loss"] += more
    kept.keep(replace(scores, history=history), "10-tiny", content, but_seeds, root=book)


def test_runs_are_trained_again_and_end_within_their_bands(book):
    runs = home() / "runs"
    before = {path: path.stat().st_mtime_ns for path in runs.rglob("*")}
    done, said = verified_again(book)
    done.check()
    assert done.runs == 4
    assert said[0] == f"4 of {ALL} kept runs are drawn by seed 1"
    assert sum(bool(re.search(r"numbers are inside, \d+\.\d minutes$", line)) for line in said) == 4
    assert {FIRST, LAST, "T2A R@1"} <= set(done.table["metric"])
    np.testing.assert_allclose(done.table["here"], done.table["kept"], rtol=1e-5, err_msg="of this processor")
    assert (done.table["minutes"] > 0).all(), "trained, not read"
    assert before == {path: path.stat().st_mtime_ns for path in runs.rglob("*")}, "the usual cache is as it was"
    assert not [path for path in (home() / "verified").iterdir() if path.is_dir()], "and the other is gone"


def test_the_table_is_written_beside_the_executions_and_keeps_those_of_other_processors(book):
    path = book / "executed" / "quick" / "verified.csv"
    row = dict.fromkeys(verified.VERIFIED, "x") | {"kept": 1.0, "here": 1.0, "difference": 0.0, "band": 1.0}
    verified.save_verified([row | {"processor": "another", "within": True, "minutes": 1}], path, processor="another")
    for _ in range(2):
        done, _ = verified_again(book, "10-tiny/radius", runs=1)
        table = verified.verified(path)
        assert tuple(table.columns) == verified.VERIFIED
        assert table["processor"].value_counts().to_dict() == {"another": 1, processor(): len(done.table)}
    path.write_text("nothing of ours\n")
    done, _ = verified_again(book, "10-tiny/radius", runs=1)
    assert len(verified.verified(path)) == len(done.table)


def test_what_ends_outside_is_told_by_how_much_and_what_to_do(book, monkeypatch):
    spoil(book, 100.0)
    done, _ = verified_again(book, "10-tiny/radius", every=True)
    wrong = done.table[~done.table["within"].astype(bool)]
    assert set(wrong["system"]) == {"SVR"}
    assert set(wrong["metric"]) <= {FIRST, LAST}
    with pytest.raises(OutsideError) as caught:
        done.check()
    told = str(caught.value)
    assert re.search(rf"10-tiny/radius: SVR, seed \d: {FIRST} \S+ → \S+, \S+ apart, its band is \S+\n", told)
    assert "`pullpush golden` says which components" in told
    assert done.path.is_file()
    assert len(verified.verified(done.path)) == len(done.table)
    monkeypatch.setattr(verifying, "verify", lambda *args, **options: done)
    shown = CliRunner().invoke(main, ["verify"])
    assert shown.exit_code == 1
    assert "apart, its band is" in shown.output


def test_damaged_and_foreign_files_are_told_and_the_rest_is_verified(book):
    record = book / "book" / "measured" / "10-tiny" / "search.json"
    arrays = book / "book" / "measured" / "10-tiny" / "radius.nc"
    whole, held = record.read_text(), arrays.read_bytes()
    record.write_text(whole[:200])
    done, _ = verified_again(book)
    assert set(done.table["experiment"]) == {"radius"}
    with pytest.raises(OutsideError, match=r"search.json is damaged .* take it from the repository again"):
        done.check()
    done.path.unlink()
    record.write_text(sealed(unsealed(whole) | {"content": "something else"}))
    arrays.write_bytes(held[:-9])
    done, _ = verified_again(book)
    assert not len(done.table)
    assert not done.path.is_file(), "nothing was compared"
    with pytest.raises(OutsideError) as caught:
        done.check()
    assert re.search(r"10-tiny/search was kept of another declaration .* `pullpush sweep 10-tiny", str(caught.value))
    assert re.search(r"10-tiny/radius: .*radius.nc is damaged", str(caught.value))


def test_when_the_minutes_are_over_the_rest_is_left_and_named(book):
    done, _ = verified_again(book, minutes=1e-9)
    assert done.runs == 0
    assert done.left == () or done.left[0].startswith("10-tiny/")
    ended = iter([0.0, 1e9])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verifying.time, "monotonic", lambda: next(ended, 1e9))
        done, _ = verified_again(book)
    assert len(done.left) == 4


@pytest.mark.deep
def test_killed_it_goes_on_with_the_same_seed(book):
    script = (
        "from pullpush.site.verify import verify; verify(('10-tiny',), every=True, seed=7, profile={!r}, report=print)"
    )
    command = [sys.executable, "-u", "-c", script.format(str(book / "sizes.yaml"))]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    trained = home() / "verified" / "7" / "runs"
    while not [*trained.glob("*/seconds.json")]:
        assert process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.communicate()
    first = {path.parent.name: path.stat().st_mtime_ns for path in trained.glob("*/seconds.json")}
    assert 0 < len(first) < ALL
    done, _ = verified_again(book, every=True, seed=7)
    done.check()
    assert done.runs == ALL
    assert not trained.exists()


# The cache of a verification


def test_in_a_cache_of_its_own_data_are_shared_and_runs_are_not(tmp_path, monkeypatch):
    monkeypatch.setenv(HOME, str(tmp_path))
    for kind in ("runs", "worlds", "weights"):
        (tmp_path / kind).mkdir()
        (tmp_path / kind / "a").write_text(kind)
    (tmp_path / "verified" / "5").mkdir(parents=True)
    with afresh("6") as folder:
        assert home() == folder == tmp_path / "verified" / "6"
        assert (home() / "weights" / "a").read_text() == "weights"
        (home() / "worlds" / "b").write_text("made here")
        assert not any((home() / kind).exists() for kind in OF_RUNS)
    assert home() == tmp_path
    assert (tmp_path / "worlds" / "b").read_text() == "made here"
    assert [path.name for path in (tmp_path / "verified").iterdir() if path.is_dir()] == ["6"]
    with FileLock(tmp_path / "verified" / ".lock"), pytest.raises(CacheError, match="another process trains"):  # noqa: SIM117
        with afresh("6"):
            pass


# The page


def test_the_page_says_on_which_processor_and_when_and_links_the_table(tmp_path):
    page, path = tmp_path / "claims.md", tmp_path / "executed" / "verified.csv"
    page.write_text(f"before\n\n{verified.VERIFIED_MARK}\n\nafter\n")
    verified.tell_verified(page, path)
    assert "No kept run has been trained again yet" in page.read_text()
    row = dict(zip(verified.RUN, ("02-svr", "frozen", "A & B", "", 3), strict=True)) | {"metric": "R@1"}
    row |= {"date": "2026-11-24", "processor": "AMD EPYC", "kept": 0.4, "here": 0.41, "difference": 0.01, "band": 0.05}
    rows = [row | {"within": True, "minutes": 0.2}, row | {"metric": FIRST, "difference": 0.1, "within": False}]
    verified.save_verified(rows, path, processor="AMD EPYC")
    page.write_text(f"before\n\n{verified.VERIFIED_MARK}\n\nafter\n")
    verified.tell_verified(page, path)
    said = page.read_text()
    assert "Trained again on AMD EPYC, 2026-11-24: 1 runs, 1 of 2 numbers within their band." in said
    assert "02-svr/frozen, A &amp; B, seed 3" in said
    assert f"{FIRST}: 0.4 → 0.41, band ± 0.05" in said, "what is nearest to its edge"
    assert "<details open>" in said
    assert (tmp_path / "verified.csv").is_file()
    assert pd.read_csv(tmp_path / "verified.csv")["band"].tolist() == [0.05, 0.05]
    assert np.isnan(pd.read_csv(tmp_path / "verified.csv")["minutes"][1])


def test_the_command_says_what_was_left_and_where_the_table_is(monkeypatch, tmp_path):
    table = pd.DataFrame([dict.fromkeys(verified.VERIFIED, 1) | {"within": True}])
    done = verifying.Verified(table, ("02-svr/frozen: SVR, seed 3",), (), tmp_path / "verified.csv")
    given = {}
    monkeypatch.setattr(verifying, "verify", lambda names, **options: given.update(options) or done)
    said = CliRunner().invoke(main, ["verify", "02-svr", "--runs", "3", "--minutes", "2", "--seed", "4"])
    assert said.exit_code == 0
    with pytest.raises(OutsideError, match="no run was trained again: give more --minutes"):
        replace(done, table=table[:0], left=()).check()
    assert said.output.splitlines() == [
        "left, since the minutes were over: 02-svr/frozen: SVR, seed 3",
        f"1 numbers of 1 runs are inside their bands: {tmp_path / 'verified.csv'}",
    ]
    assert given.items() >= {"runs": 3, "minutes": 2.0, "every": False, "seed": 4}.items()
