"""What an experiment found as labelled arrays in one netCDF file, which xarray and any tool for HDF5 read.

    dataset = xarray.open_dataset("book/measured/02-svr-lab/frozen.nc")
    dataset["T2A R@1"].mean("clip"), dataset["steps"].sel({"steps column": "loss"})
    arrays.plain(dataset)["R@1"]  # what is not stored as it is, too

Along `run` (a trial with a seed) lie the scores by `clip`, and by `language` where there are several; "history" by
`epoch`, "steps" by `stretch` of training.

Every float32 comes back as it was. Hits and their means over a few captions are whole parts of something: bytes with a
scale, which xarray undoes itself. Tables keep the bits that six digits take.
"""

import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import h5netcdf
import numpy as np
import pandas as pd
import xarray as xr
from xarray.backends import H5NetCDFStore

from pullpush.lab.experiments import Experiment, Trial
from pullpush.lab.provenance import Stamp
from pullpush.lab.scores import Scores
from pullpush.metrics.cards import METRICS, Score, Values

COUNTS = "number of clips"
TABLES = {"history": "epoch", "steps": "stretch"}  # of Scores, and what their rows are
COMMENT = """\
Scores by clip, a variable a metric: fractions where `unit` is 1, `better` says which way. `number of clips` is how many
a metric scored in a run; what is NaN beyond has no clip. `history`: validation and loss, a value an epoch. `steps`:
measured while training, averaged over at most twenty stretches of equal length. `trial`: its number, from 0. The .json
beside this file says what was declared, when and by what it was trained."""
VERSION = ("v110", "v110")  # of HDF5: its chunk indices are a third as long as the first ones
LEVELS = "levels of "
MEAN = "R@1", ("T2A R@1", "A2T R@1")  # of both directions
PARTS = range(1, 51)  # a score may be a whole multiple of one over…
BYTE = 254  # largest whole number in a byte, 255 being NaN
SPARE = 2  # bits of float32 beyond six digits, and beyond what rounding twice takes
DIGITS = 6
SMALL = 512  # bytes; what is shorter is not compressed
Encoding = dict[str, dict[str, Any]]


def numbered(experiment: Experiment) -> Iterator[tuple[int, Trial, int]]:
    """Every trial with its number, and every seed."""
    return ((n, trial, seed) for n, trial in enumerate(experiment.trials) for seed in trial.seeds or experiment.seeds)


def to_bytes(dataset: xr.Dataset) -> bytes:
    """A netCDF file of what `dataset_of` gave; the same bytes for the same values."""
    encoded, encoding = stored(dataset)
    buffer = io.BytesIO()
    with h5netcdf.File(buffer, "w", libver=VERSION, track_order=False) as file:
        encoded.dump_to_store(H5NetCDFStore(file), encoding=encoding)
    return buffer.getvalue()


def from_bytes(content: bytes) -> xr.Dataset:
    """The dataset in a netCDF file, in plain numbers."""
    with xr.open_dataset(io.BytesIO(content), engine="h5netcdf") as dataset:
        return plain(dataset.load())


def dataset_of(scores: Scores, chapter: str) -> xr.Dataset:
    """Labelled arrays of the runs that are there, in the order of the declaration."""
    experiment = scores.experiment
    cells = [cell for cell in numbered(experiment) if (str(cell[1]), cell[2]) in scores.clips]
    data = _by_clip([scores.clips[str(trial), seed] for _, trial, seed in cells])
    labels = _labels(experiment, cells)
    told = {"system", "seed", *(name for trial in experiment.trials for name in trial.where)}
    for table, row in TABLES.items():
        whole = getattr(scores, table)
        of_runs = [scores.rows(whole, trial, seed) for _, trial, seed in cells]
        columns = [name for name in whole if name not in told]
        values = np.full((len(columns), len(cells), max(map(len, of_runs), default=0)), np.nan, np.float32)
        for number, of_run in enumerate(of_runs):
            values[:, number, : len(of_run)] = of_run[columns].to_numpy(np.float32).T
        data[table] = ((f"{table} column", "run", row), values)
        labels[f"{table} column"] = columns
    labels |= _metrics(experiment, [name for name in data if name not in (COUNTS, *TABLES)])
    labels = {(f"varied {name}" if name in data else name): value for name, value in labels.items()}
    attrs = {"title": f"{experiment.name}, of chapter {chapter} of Pull & Push", "comment": COMMENT}
    return xr.Dataset(data, labels, attrs)


def scores_of(dataset: xr.Dataset, experiment: Experiment, made: Stamp) -> Scores:
    """The runs of a declaration that a dataset holds, as they were found."""
    held = zip(dataset["trial"].values.tolist(), dataset["seed"].values.tolist(), strict=True)
    runs = {cell: run for run, cell in enumerate(held)}
    cells = [(trial, seed, runs[n, seed]) for n, trial, seed in numbered(experiment) if (n, seed) in runs]
    values, counts = {name: dataset[name].values for name in dataset["metric"].values.tolist()}, dataset[COUNTS].values
    clips = {(str(trial), seed): _clips_of(values, counts[:, run], run) for trial, seed, run in cells}
    history, steps = (_table(dataset, table, cells) for table in TABLES)
    return Scores(experiment, clips, history, steps, made, stored=True)


def _clips_of(values: Mapping[str, np.ndarray], counts: np.ndarray, run: int) -> dict[str, np.ndarray]:
    """Values by clip of one run as float64, `(N,)` or `(N, K)`, without what fills the place of clips it has not."""
    of_metrics = zip(values.items(), counts.tolist(), strict=True)
    return {name: of_all[:count, ..., run].astype(float) for (name, of_all), count in of_metrics if count}


def _table(dataset: xr.Dataset, table: str, cells: Sequence[tuple[Trial, int, int]]) -> pd.DataFrame:
    """The rows of some runs, with what tells these apart as it was declared: 24, 0.001 and "cosine" in one column."""
    columns = dataset[f"{table} column"].values.tolist()
    values = dataset[table].values[:, [run for *_, run in cells]]
    there = ~np.isnan(values[columns.index("step")])
    of_rows = [cells[place] for place in np.nonzero(there)[0].tolist()]
    head: dict[str, Any] = {"system": [trial.system for trial, *_ in of_rows]}
    for name in dict.fromkeys(name for trial, *_ in cells for name in trial.where):
        head[name] = [trial.where.get(name) for trial, *_ in of_rows]
    head["seed"] = [seed for _, seed, _ in of_rows]
    found = {name: digits(value[there]) for name, value in zip(columns, values, strict=True)}
    return pd.DataFrame(head | found)


def _by_clip(found: Sequence[Values]) -> dict[str, Any]:
    metrics = list(dict.fromkeys(name for of_run in found for name in of_run))
    counts = np.array([[len(of_run.get(name, ())) for of_run in found] for name in metrics], np.int32)
    counts = counts.reshape(len(metrics), len(found))
    data: dict[str, Any] = {COUNTS: (("metric", "run"), counts)}
    longest = counts.max(initial=0)
    for name in metrics:
        languages = next(of_run[name].shape[1:] for of_run in found if name in of_run)
        values = np.full((longest, *languages, len(found)), np.nan, np.float32)
        for number, of_run in enumerate(found):
            if name in of_run:
                values[: len(of_run[name]), ..., number] = of_run[name]
        data[name] = (("clip", *["language"] * len(languages), "run"), values)
    return data


def _metrics(experiment: Experiment, names: Sequence[str]) -> dict[str, Any]:
    """Metrics with the unit of each and which way is better, "" where neither is."""
    told = {score.name: score for name in experiment.evaluations for score in METRICS[name].scores}
    scores = [told.get(name, Score(name)) for name in names]
    units, better = [score.unit or "1" for score in scores], [score.better or "" for score in scores]
    return {"metric": list(names), "unit": ("metric", units), "better": ("metric", better)}


def _labels(experiment: Experiment, cells: Sequence[tuple[int, Trial, int]]) -> dict[str, Any]:
    """What tells runs apart: a trial's number and system, the seed, and what varies, as numbers where all are."""
    labels: dict[str, Any] = {
        "language": list(experiment.languages),
        "trial": ("run", np.array([n for n, _, _ in cells], np.int32)),
        "system": ("run", [str(trial.system) for _, trial, _ in cells]),
        "seed": ("run", np.array([seed for *_, seed in cells], np.int64)),
    }
    taken = {"run", "clip", "metric", "unit", "better", COUNTS, *labels, *TABLES, *TABLES.values()}
    for name in dict.fromkeys(name for _, trial, _ in cells for name in trial.where):
        held = [trial.where.get(name) for _, trial, _ in cells]
        numbers = all(isinstance(value, int | float) for value in held)
        values = np.array(held, float) if numbers else ["" if value is None else str(value) for value in held]
        labels[f"varied {name}" if name in taken else name] = ("run", values)
    return labels


# ---------------------------------------------------------------- how it is stored


def stored(dataset: xr.Dataset) -> tuple[xr.Dataset, Encoding]:
    """A dataset as it goes into a file, and each variable's encoding."""
    encoding: Encoding = {}
    for label in dataset.variables:
        variable, name = dataset[label], str(label)
        if variable.dtype.kind in "OUT":
            encoding[name] = {"dtype": "S1"} | ({"zlib": True, "complevel": 9} if variable.size > SMALL // 8 else {})
            continue
        shuffled = variable.dtype.itemsize > 1
        zipped = {"zlib": True, "complevel": 9, "shuffle": shuffled, "chunksizes": variable.shape}
        encoding[name] = zipped if variable.nbytes >= SMALL else {}
        if variable.dtype == np.float32 and "clip" not in variable.dims:
            dataset[name] = variable.copy(data=_rounded(variable.values))
        elif "clip" in variable.dims and (parts := _parts(variable.values)):
            scale = {"scale_factor": 1 / parts} if parts > 1 else {}
            encoding[name] |= {"dtype": "u1", "_FillValue": np.uint8(BYTE + 1)} | scale
        if variable.dtype.kind == "f":
            encoding[name].setdefault("_FillValue", None)
    return dataset, encoding


def plain(dataset: xr.Dataset) -> xr.Dataset:
    """What `stored` was given, of a dataset that was read from a file.

    Earlier files hold scores as places among "levels of …" their combinations, and name the mean of two directions.
    """
    for label in [str(name) for name in dataset if str(name).startswith(LEVELS)]:
        group, levels = label.removeprefix(LEVELS), dataset[label]
        places = dataset[group]
        members = {
            str(name): (places.dims, levels.values[number][places.values])
            for number, name in enumerate(levels[f"{group} metric"].values)
        }
        dataset = dataset.drop_vars([label, group, f"{group} metric"]).assign(members)
    for name in dataset:
        if "clip" in dataset[name].dims:
            dataset[name] = dataset[name].astype(np.float32)
    if dataset.attrs.pop("not stored", ""):
        name, (first, second) = MEAN
        mean = (dataset[first].values + dataset[second].values) / np.float32(2)
        dataset[name] = dataset[first].copy(data=mean)
    return dataset


def digits(values: np.ndarray) -> np.ndarray:
    """Numbers to six digits, as tables are written: whole ones as integers.

    >>> digits(np.float32([0.1, 0.25])).tolist(), digits(np.float32([1, 2])).tolist()
    ([0.1, 0.25], [1, 2])
    """
    known, places = np.unique(values, return_inverse=True)
    found = np.array([float(f"{value:.{DIGITS}g}") for value in known.astype(float)])[places]
    whole = np.isfinite(found).all() and (found == np.round(found)).all() and (np.abs(found) < 2**53).all()
    return found.astype(np.int64) if whole else found


def _parts(values: np.ndarray) -> int | None:
    """What values are whole multiples of one over, in bytes, as xarray gives them back; None if of nothing."""
    levels = np.unique(np.ascontiguousarray(values).view(np.uint32)).view(np.float32)  # which tell −0 from 0
    there = np.sort(levels[~np.isnan(levels)])
    if not len(there) or not np.isfinite(there).all() or np.signbit(there).any():
        return None
    for parts in PARTS:
        whole = np.round(there.astype(float) * parts)
        if whole[-1] > BYTE:
            return None
        if np.array_equal((whole * (1 / parts)).astype(np.float32), there):
            return parts
    return None


def _rounded(values: np.ndarray) -> np.ndarray:
    """float32 without the bits that six digits do not take; NaN and what would overflow stay."""
    half, mask = np.uint32(1 << (SPARE - 1)), np.uint32(0xFFFFFFFF ^ ((1 << SPARE) - 1))
    found = ((values.view(np.uint32) + half) & mask).view(np.float32)
    return np.where(np.isfinite(values) & np.isfinite(found), found, values)
