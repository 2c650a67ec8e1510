"""How labelled arrays are stored so that they are small: every float32 comes back as it was.

Hits and their means over a few captions are whole parts of something: bytes with a scale, which xarray undoes itself.
Other scores with few values, such as mAP@10, go together: what ranks one way has few combinations, which stand once in
"levels of …", and in its stead a variable holds places among them. A mean of two variables is named rather than stored.
Tables keep the bits that six digits take.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

LEVELS = "levels of "
HITS = "R@1"  # stored for itself, as most asked for
SIDES = ("T2A", "A2T")
MEAN = HITS, tuple(f"{side} {HITS}" for side in SIDES)  # of both directions
PARTS = range(1, 51)  # a score may be a whole multiple of one over…
BYTE = 254  # largest whole number in a byte, 255 being NaN
MANY = 65_535  # levels that two bytes tell apart
SPARE = 2  # bits of float32 beyond six digits, and beyond what rounding twice takes
DIGITS = 6
SMALL = 512  # bytes; what is shorter is not compressed
Encoding = dict[str, dict[str, Any]]


def stored(dataset: xr.Dataset) -> tuple[xr.Dataset, Encoding]:
    """A dataset as it goes into a file, and each variable's encoding."""
    name, sides = MEAN
    if {name, *sides} <= set(dataset) and _equal(_mean(dataset), dataset[name].values):
        dataset = dataset.drop_vars(name).assign_attrs({"not stored": f"{name}, the mean of {' and '.join(sides)}"})
    for group, members in _groups(dataset).items():
        dataset = _together(dataset, group, members)
    encoding: Encoding = {}
    for label in dataset.variables:
        variable, name = dataset[label], str(label)
        if variable.dtype.kind in "OUT":
            encoding[name] = {"dtype": "S1"} | ({"zlib": True, "complevel": 9} if variable.size > SMALL // 8 else {})
        elif variable.dtype != np.float32 or name.startswith(LEVELS):
            encoding[name] = _compressed(variable.values)
        elif "clip" not in variable.dims:
            dataset[name] = variable.copy(data=_rounded(variable.values))
            encoding[name] = _compressed(variable.values)
        else:
            encoding[name] = _score(variable.values)
        if variable.dtype.kind == "f":
            encoding[name].setdefault("_FillValue", None)
    return dataset, encoding


def plain(dataset: xr.Dataset) -> xr.Dataset:
    """What `stored` was given, of a dataset that was read from a file."""
    for label in [str(name) for name in dataset if str(name).startswith(LEVELS)]:
        group, levels = label.removeprefix(LEVELS), dataset[label]
        places = dataset[group]
        members = {str(name): (places.dims, levels.values[number][places.values])
                   for number, name in enumerate(levels[f"{group} metric"].values)}  # fmt: skip
        dataset = dataset.drop_vars([label, group, f"{group} metric"]).assign(members)
    for name in dataset:
        if "clip" in dataset[name].dims:
            dataset[name] = dataset[name].astype(np.float32)
    if dataset.attrs.pop("not stored", ""):
        name, sides = MEAN
        dataset[name] = dataset[sides[0]].copy(data=_mean(dataset))
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


def _groups(dataset: xr.Dataset) -> dict[str, list[str]]:
    """Scores that are stored together, those of a direction, or each by itself, where no byte with a scale does."""
    found: dict[str, list[str]] = {}
    for label in dataset:
        name = str(label)
        if "clip" in dataset[name].dims and not name.endswith(HITS):
            side = name.split()[0]
            found.setdefault(side if side in SIDES else f"{name} by place", []).append(name)
    return {
        group: names
        for group, names in found.items()
        if any(_parts(dataset[name].values) is None for name in names)
        and len({dataset[name].dims for name in names}) == 1
    }


def _together(dataset: xr.Dataset, group: str, members: list[str]) -> xr.Dataset:
    """Several scores as places among their combinations, the most frequent first; as they are if these are many."""
    first = dataset[members[0]]
    code = np.zeros(first.size, np.int64)
    for name in members:
        _, places = np.unique(_bits(dataset[name].values), return_inverse=True)
        _, code = np.unique(code * (places.max(initial=0) + 1) + places.ravel(), return_inverse=True)
    _, at, places, counts = np.unique(code, return_index=True, return_inverse=True, return_counts=True)
    if len(at) > min(MANY, first.size // 4):
        return dataset
    order = np.argsort(-counts, kind="stable")
    levels = np.stack([dataset[name].values.ravel()[at[order]] for name in members])
    kind = np.uint8 if len(at) <= BYTE else np.uint16
    values = np.argsort(order)[places].reshape(first.shape).astype(kind)
    return dataset.drop_vars(members).assign({
        group: (first.dims, values, {"comment": f"places in {LEVELS + group!r}, from 0"}),
        LEVELS + group: ((f"{group} metric", f"level of {group}"), levels),
        f"{group} metric": (f"{group} metric", members),
    })  # fmt: skip


def _score(values: np.ndarray) -> dict[str, Any]:
    """A byte with a scale where that gives the score back."""
    if (parts := _parts(values)) is None:
        return _compressed(values)
    form = {"dtype": "u1", "_FillValue": np.uint8(BYTE + 1)} | ({"scale_factor": 1 / parts} if parts > 1 else {})
    return form | _compressed(np.empty(values.shape, np.uint8))


def _parts(values: np.ndarray) -> int | None:
    """What values are whole multiples of one over, in bytes, as xarray gives them back; None if of nothing."""
    levels = np.unique(_bits(values)).view(np.float32)  # which tell −0 from 0
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


def _bits(values: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(values).view(np.uint32)


def _mean(dataset: xr.Dataset) -> np.ndarray:
    ours, theirs = (dataset[name].values for name in MEAN[1])
    return (ours + theirs) / np.float32(2)


def _equal(one: np.ndarray, other: np.ndarray) -> bool:
    return one.shape == other.shape and np.array_equal(one, other, equal_nan=True)


def _rounded(values: np.ndarray) -> np.ndarray:
    """float32 without the bits that six digits do not take; NaN and what would overflow stay."""
    half, mask = np.uint32(1 << (SPARE - 1)), np.uint32(0xFFFFFFFF ^ ((1 << SPARE) - 1))
    found = ((values.view(np.uint32) + half) & mask).view(np.float32)
    return np.where(np.isfinite(values) & np.isfinite(found), found, values)


def _compressed(values: np.ndarray) -> dict[str, Any]:
    if values.nbytes < SMALL:
        return {}
    shuffled = values.dtype.itemsize > 1
    return {"zlib": True, "complevel": 9, "shuffle": shuffled, "chunksizes": values.shape}
