"""Long experiments: trained run by run, by processes or a cluster that may die, kept and read with their provenance."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import miniature
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from joblib.externals.loky import ProcessPoolExecutor

import pullpush
from pullpush import parallel
from pullpush.errors import UnknownNameError
from pullpush.lab import compute, kept
from pullpush.lab.kept import KeptError
from pullpush.lab.provenance import sealed, unsealed
from pullpush.site import sweep as long, workers
from pullpush.site.cli import main
from pullpush.site.workers import SweepError

CHAPTER = (
    miniature.CHAPTER_HEAD
    + """tau = 0.07
more = 2
compute_long = False
```

```{code-cell} ipython3
:tags: [setup]

from pullpush.lab import compute, material, session
from pullpush.lab.experiments import Experiment

book = session.start("10-tiny", profile=profile, seed=seed)
ground = material.of(book, "scenes", compute_long=compute_long)
```

```{code-cell} ipython3
:tags: [experiments]

systems = {"InfoNCE": ("infonce", {"tau": tau}), "SVR": ("infonce+bi-static-svr", {"tau": tau})}
options = {"data": "whole", "seeds": range(seed, seed + more)}
radius = Experiment.of("radius", systems, long=True, **options)
short = Experiment.of("short", {"InfoNCE": systems["InfoNCE"]}, **options)
```

```{code-cell} ipython3
raise AssertionError("a sweep executes nothing else")
```
"""
)
RUNS = 4  # of the long experiment


@pytest.fixture
def sizes(tiny: Path, home: Path) -> str:
    """The profile of a tiny book whose chapter declares experiments; all tests share rendered scenes."""
    (tiny / "book" / "10-tiny.md").write_text(CHAPTER)
    path = tiny / "sizes.yaml"
    path.write_text(f"{miniature.PROFILE}points: null\n")
    return str(path)


def swept(sizes: str, tau: float, **options):
    """What a sweep did, and its lines; a tau of its own makes the runs of a test its own."""
    said: list[str] = []
    report = options.pop("report", lambda line: None)

    def both(line: str) -> None:
        said.append(line)
        report(line)

    return long.declared("10-tiny", profile=sizes, parameters={"tau": tau}).sweep(**options, report=both), said


def once(act):
    """`act`, at the first run that is reported."""
    called: list[str] = []

    def report(line: str) -> None:
        if re.match(r"\d+/\d+  ", line) and not called:
            called.append(line)
            act()

    return report


def test_a_sweep_trains_what_is_missing_and_a_second_one_nothing(sizes):
    (first, said), (second, again) = (swept(sizes, 0.07, jobs=1) for _ in range(2))
    assert len(first.ran) == RUNS
    assert first.ran[0] == "radius: InfoNCE, seed 0"
    assert said[0] == f"0 of {RUNS} runs are there"
    assert re.fullmatch(rf"{RUNS}/{RUNS}  radius: .*  \d+ s", said[-1])
    assert (second.ran, len(second.skipped), second.failed) == ((), RUNS, ())
    assert again == [f"{RUNS} of {RUNS} runs are there"]


@pytest.mark.deep
def test_runs_on_features_are_trained_together_where_that_is_wanted(sizes, tiny):
    (tiny / "book" / "10-tiny.md").write_text(CHAPTER.replace('"data": "whole"', '"data": "frozen"'))
    done, said = swept(sizes, 0.31, jobs=1, together=4)
    assert len(done.ran) == RUNS
    assert "2 runs together, the first radius: SVR, seed 0" in said
    assert swept(sizes, 0.31, jobs=1)[0].ran == ()


def test_experiments_are_chosen_by_name_and_unknown_ones_answered(sizes):
    done, _ = swept(sizes, 0.07, only=("short",), jobs=1)
    assert len(done.ran) + len(done.skipped) == 2
    with pytest.raises(UnknownNameError, match="did you mean 'radius'"):
        swept(sizes, 0.07, only=("radios",))
    with pytest.raises(SweepError, match="jobs must be at least 1"):
        swept(sizes, 0.07, jobs=0)


def test_a_chapter_that_declares_nothing_or_fails_says_so(sizes, tiny):
    path = tiny / "book" / "10-tiny.md"
    path.write_text(CHAPTER.replace("systems = {", "systems = 1 / 0 * {"))
    with pytest.raises(SweepError, match="the cell 'experiments' of 10-tiny failed: ZeroDivisionError"):
        swept(sizes, 0.07)
    path.write_text(CHAPTER.replace("[experiments]", "[other]"))
    with pytest.raises(SweepError, match="declares no experiment in cells tagged 'setup' or 'experiments'"):
        swept(sizes, 0.07)


@pytest.fixture
def pools(monkeypatch):
    """The pools that sweeps start."""
    started: list[ProcessPoolExecutor] = []

    def start(**options):
        started.append(ProcessPoolExecutor(**options))
        return started[-1]

    monkeypatch.setattr(workers, "ProcessPoolExecutor", start)
    return started


@pytest.mark.deep
def test_after_a_process_was_killed_the_rest_goes_on(sizes, pools):
    def kill():
        os.kill(next(iter(pools[-1]._processes)), signal.SIGKILL)

    done, _ = swept(sizes, 0.11, jobs=2, report=once(kill))
    assert (len(done.ran), done.failed) == (RUNS, ())
    plan = long.declared("10-tiny", profile=sizes, parameters={"tau": 0.11})
    assert all(state.finished == state.runs for state in plan.states())


def test_a_sweep_leaves_other_pools_of_this_process_as_they_were(sizes):
    swept(sizes, 0.19, jobs=2)
    assert parallel.side_by_side([partial(int, k) for k in "012"], jobs=2) == [0, 1, 2]


@pytest.mark.deep
def test_an_interrupted_sweep_ends_its_processes_and_keeps_what_was_trained(sizes, pools):
    processes: list[int] = []

    def stop():
        processes.extend(pools[-1]._processes)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        swept(sizes, 0.12, jobs=2, report=once(stop))
    assert processes
    assert not [process for process in processes if Path(f"/proc/{process}").exists()]
    done, _ = swept(sizes, 0.12, jobs=2)
    assert len(done.skipped) >= 1
    assert len(done.skipped) + len(done.ran) == RUNS


# A cluster


@pytest.fixture
def cluster():
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None, "silence_logs": 50}
    with distributed.LocalCluster(**options) as made:
        yield made


def test_after_a_worker_of_a_cluster_was_killed_all_runs_are_there(sizes, cluster):
    def kill():
        os.kill(cluster.workers[0].process.pid, signal.SIGKILL)

    done, _ = swept(sizes, 0.13, dask=cluster.scheduler_address, report=once(kill))
    assert (len(done.ran), done.failed) == (RUNS, ())
    assert len(swept(sizes, 0.13)[0].skipped) == RUNS


def test_a_cluster_that_goes_away_is_told_of_and_the_same_command_goes_on(sizes, cluster):
    with pytest.raises(SweepError, match=r"went away with \d runs to go: give the same command again"):
        swept(sizes, 0.14, dask=cluster.scheduler_address, report=once(cluster.close))
    done, _ = swept(sizes, 0.14, jobs=1)
    assert len(done.skipped) >= 1
    assert len(done.skipped) + len(done.ran) == RUNS


def test_a_scheduler_that_does_not_answer_is_named_with_advice(sizes, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(workers, "PATIENCE", 1)
    with pytest.raises(
        SweepError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:9 .*: start one, or leave --dask out"
    ):
        swept(sizes, 0.15, dask="tcp://127.0.0.1:9")


# What is kept


def scores_of(sizes: str, tau: float):
    plan = long.declared("10-tiny", profile=sizes, parameters={"tau": tau})
    return compute.run(plan.ground, plan.experiments["radius"])


def test_what_was_swept_is_kept_and_read_and_says_what_has_changed(sizes, tiny, monkeypatch):
    told = {"profile": sizes, "parameters": {"tau": 0.07}}
    assert not scores_of(sizes, 0.07), "nobody has kept it"
    assert scores_of(sizes, 0.07).stamp.command.startswith("pullpush sweep 10-tiny --only radius")
    swept(sizes, 0.07, jobs=1)
    with monkeypatch.context() as patch:
        patch.setattr(compute.Embedded, "audio", property(lambda one: pytest.fail("a sweep scores what it trains")))
        (path,) = long.declared("10-tiny", **told).keep()
    found = scores_of(sizes, 0.07)
    assert found.stored
    assert found.stale == ()
    assert len(found.table) == RUNS
    assert found.stamp.command.endswith(f"&& pullpush keep 10-tiny radius --profile {sizes} -p tau 0.07")
    assert not scores_of(sizes, 0.2), "other parameters"
    (state,) = long.declared("10-tiny", **told).states(("radius",))
    assert state == ("radius", True, RUNS, RUNS, f"kept {found.stamp.made}")

    changed_component(path)
    assert scores_of(sizes, 0.07).stale == ("losses/svr",)
    (state,) = long.declared("10-tiny", **told).states(("radius",))
    assert state.kept.endswith("stale: losses/svr")
    path.with_suffix(".json").write_text("{")
    with pytest.raises(KeptError, match="is damaged"):
        scores_of(sizes, 0.07)


OTHER = """
class Elsewhere:
    def __init__(self, ground):
        self.ground, self.book, self.name, self.compute_long = ground, ground.book, "elsewhere", False
        self.parts = (*ground.parts, "data/altered")

    def view(self, name):
        return self.ground.view(name.removesuffix("@elsewhere"))


moved = Experiment("moved", radius.trials, radius.seeds, data="whole@elsewhere", long=True)
other_grounds = {"moved": Elsewhere(ground)}
"""


def test_an_experiment_may_stand_on_another_ground_than_the_chapters(sizes, tiny):
    page = tiny / "book" / "10-tiny.md"
    page.write_text(CHAPTER.replace("short = Experiment", f"{OTHER.strip()}\nshort = Experiment"))
    told = {"profile": sizes, "parameters": {"tau": 0.07}}
    swept(sizes, 0.07, only=("moved",), jobs=1)
    (path,) = long.declared("10-tiny", **told).keep(("moved",))
    assert "data/altered" in json.loads(path.with_suffix(".json").read_text())["golden"], (
        "what that ground goes through"
    )
    (state,) = long.declared("10-tiny", **told).states(("moved",))
    assert (state.finished, state.runs) == (RUNS, RUNS)
    assert "stale" not in state.kept
    plan = long.declared("10-tiny", **told)
    assert compute.run(plan.other_grounds["moved"], plan.experiments["moved"]).stale == ()
    assert plan.ground_of(plan.experiments["radius"]) is plan.ground


SEARCHED = """
from pullpush.lab import tuning

search = tuning.grid("search", {"InfoNCE": systems["InfoNCE"]}, {"tau": (0.1, 0.2)}, seeds=(1000,), long=True)
best = tuning.best_points(compute.run(ground, search))
tuned = Experiment.of("tuned", tuning.with_points(systems, best), long=True, **options)
"""


def test_what_a_search_decides_waits_until_the_search_is_kept(sizes, tiny):
    page = tiny / "book" / "10-tiny.md"
    page.write_text(CHAPTER.replace("short = Experiment", f"{SEARCHED.strip()}\nshort = Experiment"))
    with pytest.raises(SweepError, match=r"search .* is not kept.* --only search .*&& pullpush keep 10-tiny search"):
        swept(sizes, 0.07, only=("tuned",), jobs=1)
    done, said = swept(sizes, 0.07, jobs=1)
    assert {label.partition(":")[0] for label in (*done.ran, *done.skipped)} == {"radius", "search"}
    assert any("then sweep tuned" in line for line in said)
    told = {"profile": sizes, "parameters": {"tau": 0.07}}
    long.declared("10-tiny", **told).keep(("search",))
    plan = long.declared("10-tiny", **told)
    assert plan.experiments["tuned"].trials[0].overrides["tau"] in (0.1, 0.2)
    assert [one.name for one in plan._decided((), print)] == ["radius", "search", "tuned"]


def test_an_experiment_whose_runs_are_missing_is_not_kept(sizes):
    with pytest.raises(
        SweepError, match=rf"{RUNS} of {RUNS} runs of radius are missing: pullpush sweep 10-tiny --only"
    ):
        long.declared("10-tiny", profile=sizes, parameters={"tau": 0.16}).keep()
    assert kept.about("10-tiny", "radius") is None


def changed_component(path: Path) -> None:
    """Let what was kept have gone through a loss that did something else."""
    record = path.with_suffix(".json")
    about = unsealed(record.read_text())
    about["golden"]["losses/svr"] = "another"
    record.write_text(sealed(about))


# More seeds of what was kept


def test_an_experiment_that_gains_seeds_trains_these_alone(sizes):
    told = {"profile": sizes, "parameters": {"tau": 0.26}}
    more = {"profile": sizes, "parameters": {"tau": 0.26, "more": 3}}
    swept(sizes, 0.26, jobs=1)
    (path,) = long.declared("10-tiny", **told).keep()
    first = scores_of(sizes, 0.26)
    plan = long.declared("10-tiny", **told)
    for run in compute.plans_of(plan.ground, plan.experiments["radius"]).values():
        shutil.rmtree(run.path)  # as on another machine: what was kept is all there is
    (state,) = long.declared("10-tiny", **more).states(("radius",))
    assert state == ("radius", True, 0, 2, f"kept {first.stamp.made} with other seeds")
    with pytest.raises(SweepError, match="2 of 2 runs of radius are missing"):
        long.declared("10-tiny", **more).keep()
    said: list[str] = []
    done = long.declared("10-tiny", **more).sweep(jobs=1, report=said.append)
    assert done.ran == ("radius: InfoNCE, seed 2", "radius: SVR, seed 2")
    assert said[0] == "radius: 4 runs were kept, 2 of further seeds are added"

    assert long.declared("10-tiny", **more).keep() == [path]
    plan = long.declared("10-tiny", **more)
    found = compute.run(plan.ground, plan.experiments["radius"])
    assert found.stale == ()
    assert list(found.table["seed"]) == [0, 1, 2, 0, 1, 2]
    earlier = found.table[found.table["seed"] < 2].reset_index(drop=True)
    pd.testing.assert_frame_equal(earlier, first.table, check_exact=True)
    assert found.stamp.seeds == (0, 1, 2)
    assert found.stamp.made.startswith(f"{first.stamp.made} and 2")
    assert found.stamp.seconds > first.stamp.seconds > 0
    assert {"history": len(found.history), "steps": len(found.steps)} == {
        name: len(getattr(first, name)) // 2 * 3 for name in ("history", "steps")
    }
    alone = [found.clips["InfoNCE", seed]["T2A R@1"] for seed in (0, 1)]
    assert np.array_equal(alone, [first.clips["InfoNCE", seed]["T2A R@1"] for seed in (0, 1)])


@pytest.mark.parametrize("reason", ["component", "damaged", "other options", "stages"])
def test_what_is_not_of_today_does_not_grow(sizes, reason, monkeypatch):
    swept(sizes, 0.27, jobs=1)
    (path,) = long.declared("10-tiny", profile=sizes, parameters={"tau": 0.27}).keep()
    if reason == "component":
        changed_component(path)
    elif reason == "damaged":
        path.write_bytes(b"CDF")
    tau = 0.28 if reason == "other options" else 0.27
    plan = long.declared("10-tiny", profile=sizes, parameters={"tau": tau, "more": 3})
    if reason == "stages":
        view = plan.ground.view("whole")._replace(before=lambda seed: ())
        monkeypatch.setattr(plan.ground, "view", lambda name: view)
    cells, before = plan.remaining(plan.experiments["radius"])
    assert before is None
    assert len(cells) == 6


# The command


def test_the_command_sweeps_lists_and_keeps(sizes):
    def pullpush(*words):
        done = CliRunner().invoke(main, [*words, "--profile", sizes])
        assert done.exit_code == 0, done.output
        return done.output

    assert "4 run" in pullpush("sweep", "10-tiny", "--jobs", "1", "-p", "tau", "0.17").replace("4 finished", "4 run")
    listed = pullpush("sweep", "10-tiny", "--list", "-p", "tau", "0.17").splitlines()
    assert re.fullmatch(r"radius +long +4 of +4 runs +never kept", listed[0])
    assert re.fullmatch(r"short +with the chapter +2 of +2 runs", listed[1])
    assert pullpush("keep", "10-tiny", "radius", "-p", "tau", "0.17").strip().endswith("measured/10-tiny/radius.nc")
    assert "kept 2" in pullpush("sweep", "10-tiny", "--list", "--only", "radius", "-p", "tau", "0.17")


def test_what_a_file_says_itself_is_no_option_of_its_sweep(tiny):
    done = CliRunner().invoke(main, ["sweep", "grid.yaml", "--only", "x"])
    assert done.exit_code == 1
    assert "go with a chapter" in done.output
    unknown = CliRunner().invoke(main, ["sweep", "10-tni"])
    assert unknown.exit_code == 1
    assert "did you mean '10-tiny'" in unknown.output


@pytest.mark.deep
def test_a_loss_that_does_something_else_retrains_what_used_it_and_other_words_nothing(sizes, tmp_path):
    library = tmp_path / "copy" / "pullpush"
    shutil.copytree(Path(pullpush.__file__).parent, library, ignore=shutil.ignore_patterns("__pycache__"))

    def sweep() -> str:
        command = [sys.executable, "-c", "from pullpush.site.cli import main; main()"]
        command += ["sweep", "10-tiny", "--profile", sizes, "-p", "tau", "0.18", "--jobs", "1"]
        places = {"PYTHONPATH": str(library.parent), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(command, env={**os.environ, **places}, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def change(old: str, new: str) -> None:
        path = library / "losses" / "_radius.py"
        text = path.read_text()
        assert text.count(old) == 1
        path.write_text(text.replace(old, new))

    assert "0 of 4 runs are there" in sweep()
    change('"""L_cons, 0-d: how far', '"""The loss L_cons, 0-d: how far')
    assert "4 of 4 runs are there" in sweep()
    told = "(F.relu(radius - distance) + F.relu(-radius)).mean()"
    change(told, f"1.0 * {told}")
    assert "4 of 4 runs are there" in sweep(), "other words, the same numbers"
    change("1.0 * (F.relu(radius - distance)", "2.0 * (F.relu(radius - distance)")
    said = sweep()
    assert "2 of 4 runs are there" in said
    assert "InfoNCE" not in said
    assert "2 run, 2 finished before" in said
