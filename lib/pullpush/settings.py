"""Settings at the door: fields of profiles, recipes, worlds and losses in the types that their classes declare.

Values come as YAML, as JSON or as Python's, and are validated by pydantic as JSON is: a list may be a tuple, a whole
number a float, but no text a number and no truth value either.
"""

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from inspect import signature
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import yaml
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from pullpush.errors import DataNotFoundError, SettingError, check_known

SHOWN = 60  # letters of a value that a message shows
# Types that fields are declared with, whose ranges are checked with them.
Count = Annotated[int, Field(ge=1)]
Whole = Annotated[int, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]
Amount = Annotated[float, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]


def check_setting(name: str, value: Any, wanted: Any, *, of: str = "") -> None:
    """Require a value of a type, numbers finite.

    Args:
        name: of the setting.
        value: what came; what is no plain data is not looked at.
        wanted: its type as annotated.
        of: what has the setting, such as "recipe 'infonce'".

    Raises:
        SettingError: naming the setting, what came and what is wanted.

    >>> check_setting("epochs", 1.5, int)
    Traceback (most recent call last):
    pullpush.errors.SettingError: epochs must be a whole number, got 1.5
    """
    try:
        text = json.dumps(value, default=_plain)
    except (TypeError, ValueError):
        text = ""
    if not text:
        return
    try:
        _adapter(wanted).validate_json(text, strict=True)
    except ValidationError as error:
        (first, *_) = error.errors()
        inside = "".join(f"[{part!r}]" for part in first["loc"] if value_at(value, part))
        said = f"{name}{inside} must be {_wanted(wanted, first)}, got {_short(first.get('input', value))}"
        raise SettingError(f"{of}: {said}" if of else said) from None


def check_fields(told: Any, *, of: str = "", kind: type | None = None, but: Collection[str] = ()) -> None:
    """Require the fields of a dataclass, or of a mapping that makes one of `kind`, in their types; but those in `but`.

    Raises:
        SettingError: as `check_setting`; what is no mapping.
        UnknownNameError: a field that `kind` has not.
    """
    kind = kind or type(told)
    if not isinstance(told, Mapping) and not is_dataclass(told):
        raise SettingError(f"{of or kind.__name__} must be a mapping of settings, got {_short(told)}")
    names = {item.name for item in fields(kind)}
    hints = _hints(kind)
    values = told if isinstance(told, Mapping) else {name: getattr(told, name) for name in names}
    for name, value in values.items():
        check_known(f"field of {of or kind.__name__}", str(name), names)
        if name not in but:
            check_setting(name, value, hints.get(name, Any), of=of)


def check_options(function: Callable[..., Any], told: Mapping[str, Any], *, of: str = "") -> None:
    """Require keyword arguments of a function or class in the types that it declares; others are not looked at."""
    hints = _hints(function.__init__ if isinstance(function, type) else function)
    for name, value in told.items():
        if name in hints and name in signature(function).parameters:
            check_setting(name, value, hints[name], of=of)


class _Loader(yaml.SafeLoader):
    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        names = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        if twice := [name for name in names if names.count(name) > 1]:
            raise yaml.YAMLError(f"{twice[0]!r} stands twice in one mapping")
        return super().construct_mapping(node, deep)


def read_yaml(path: Path) -> dict[str, Any]:
    """The mapping that a YAML file holds.

    Raises:
        DataNotFoundError: no such file.
        SettingError: it is no YAML, or no mapping, or holds what is neither number, text, list, mapping nor null.
    """
    if not path.is_file():
        raise DataNotFoundError(f"no file {path.absolute()}")
    try:
        told = yaml.load(path.read_text(encoding="utf-8"), _Loader)
        json.dumps(told)
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise SettingError(f"{path} is not YAML: {error}") from error
    except (TypeError, ValueError) as error:  # a date, bytes, a mapping that holds itself
        raise SettingError(f"{path} holds more than numbers, texts, lists and mappings: {error}") from error
    if not isinstance(told, dict):
        raise SettingError(f"{path} must be a mapping of settings, got {_short(told)}")
    return told


def check_folder(path: Path, name: str) -> None:
    """Require a place for a folder: one that is there, or none yet, below no file."""
    for place in (path, *path.parents):
        if place.exists() and not place.is_dir():
            raise SettingError(f"{name} must be a folder, but {place} is a file")


def value_at(value: Any, part: int | str) -> bool:
    """Whether a place that a message names is one of the value's, and none of its type's."""
    return part in value if isinstance(value, Mapping) else isinstance(value, list | tuple) and isinstance(part, int)


@cache
def _hints(kind: Any) -> dict[str, Any]:
    try:
        return {name: hint for name, hint in get_type_hints(kind, include_extras=True).items() if name != "return"}
    except (NameError, TypeError):  # names that are imported for the type checker alone
        return {}


def _adapter(wanted: Any) -> TypeAdapter[Any]:
    try:
        return _known(wanted)
    except TypeError:  # not every hint has a hash
        return _made(wanted)


def _made(wanted: Any) -> TypeAdapter[Any]:
    try:
        return TypeAdapter(wanted, config=ConfigDict(allow_inf_nan=False))
    except Exception:  # a class that is no plain data
        return TypeAdapter(Any)


_known = cache(_made)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "item") and getattr(value, "ndim", 0) == 0:
        return value.item()
    raise TypeError(type(value).__name__)


WORDS = {  # what pydantic says, by its types of errors
    "bool_type": "true or false",
    "dict_type": "a mapping",
    "finite_number": "a finite number",
    "float_type": "a number",
    "int_from_float": "a whole number",
    "int_type": "a whole number",
    "list_type": "a list",
    "mapping_type": "a mapping",
    "none_required": "null",
    "string_type": "a text",
    "tuple_type": "a list",
}
RANGES = {"greater than or equal to": "at least", "less than or equal to": "at most", "greater than": "more than"}


def _wanted(wanted: Any, error: Mapping[str, Any]) -> str:
    plain = error["msg"].removeprefix("Input should be ").removeprefix("a valid ")
    for words, shorter in RANGES.items():
        plain = plain.replace(words, shorter)
    return WORDS.get(error["type"], plain) + (" or null" if type(None) in get_args(wanted) else "")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"
