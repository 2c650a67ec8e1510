"""What a probe gives, as plain data: written, read, compared, rounded."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

Values = Mapping[str, Any]  # by name: numbers or texts, alone, in lists or in arrays
DIGITS = 9  # of a golden file
ROUNDED = 6  # of a version that no golden file gives
NOTHING = 1e-12  # what rounding leaves of zero
SMALL = 0.01  # see `differences`


def plain(values: Values) -> dict[str, Any]:
    """Values as JSON holds them: lists of numbers, of truth values or of texts.

    >>> plain({"loss": torch.tensor(0.5), "rows": np.arange(2)})
    {'loss': 0.5, 'rows': [0, 1]}
    """
    return {name: _plain(value) for name, value in sorted(values.items())}


def text_of(values: Values) -> str:
    """A golden file: a value a line."""
    lines = (f" {json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}" for name, value in plain(values).items())
    return "{\n" + ",\n".join(lines) + "\n}\n"


def differences(found: Values, expected: Values, tolerance: float, small: float = SMALL) -> dict[str, str]:
    """The values that differ by more than the relative tolerance, and how; numbers that are whole must be equal.

    small: a share of the largest number: below it differences count as if a number were so large.

    >>> differences({"loss": 1.1, "rows": [0, 1]}, {"loss": 1.0, "rows": [0, 1]}, 1e-6)
    {'loss': 'differs by up to 0.1, of numbers up to 1'}
    """
    ours, theirs = plain(found), plain(expected)
    wrong = {name: "is gone" for name in theirs.keys() - ours.keys()}
    wrong |= {name: "is new" for name in ours.keys() - theirs.keys()}
    for name in ours.keys() & theirs.keys():
        if how := _difference(ours[name], theirs[name], tolerance, small):
            wrong[name] = how
    return dict(sorted(wrong.items()))


def rounded(values: Values) -> dict[str, Any]:
    """Values with six significant digits, so that the last bits of a sum do not count."""
    return {name: _rounded(value, ROUNDED) for name, value in plain(values).items()}


def _plain(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu().double().numpy() if value.is_floating_point() else value.detach().cpu().numpy()
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, Mapping):
        return [[str(key), _plain(held)] for key, held in value.items()]
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return _rounded(value, DIGITS)


def _rounded(value: Any, digits: int) -> Any:
    if isinstance(value, list):
        return [_rounded(item, digits) for item in value]
    return float(f"{value:.{digits}g}") if isinstance(value, float) else value


def _difference(ours: Any, theirs: Any, tolerance: float, small: float) -> str:
    if isinstance(ours, list) and isinstance(theirs, list) and not (_is_array(ours) and _is_array(theirs)):
        if len(ours) != len(theirs):
            return f"has {len(ours)} items in place of {len(theirs)}"
        found = (_difference(one, other, tolerance, small) for one, other in zip(ours, theirs, strict=True))
        return next(filter(None, found), "")
    found, wanted = np.asarray(ours), np.asarray(theirs)
    if found.shape != wanted.shape:
        return f"has the shape {found.shape} in place of {wanted.shape}"
    kinds = found.dtype.kind + wanted.dtype.kind
    if "f" not in kinds or {*kinds} - {*"fiub"}:
        return "" if ours == theirs else "is another"
    if np.array_equal(np.nan_to_num(found), np.nan_to_num(wanted)):
        return "" if np.array_equal(np.isnan(found), np.isnan(wanted)) else "is not a number elsewhere"
    largest = float(np.nanmax(np.abs(wanted), initial=0.0))
    apart = np.abs(found - wanted)
    near = apart <= np.maximum(tolerance * np.maximum(np.abs(wanted), small * largest), NOTHING)
    if np.all(near | (np.isnan(found) & np.isnan(wanted)) | (found == wanted)):
        return ""
    return f"differs by up to {np.nanmax(apart):.3g}, of numbers up to {largest:.3g}"


def _is_array(values: list[Any]) -> bool:
    """Whether a list holds numbers or truth values alone, in rows of equal lengths."""
    try:
        return np.asarray(values).dtype.kind in "fiub"
    except ValueError:
        return False
