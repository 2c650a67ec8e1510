"""What was counted or measured, once and elsewhere: the tables of `book/measured`, each beside where it comes from.

    measured.read("throughput", how=measured.COUNTED, what="dasheng")   # the rows with these values
    measured.origin("paper-sizes")    # command, date, versions, what has changed since; or what would make the table
    measured.ratios("02-svr")         # a row a system, a column a cost, over the chapter's first system
    measured.on_gpu("02-svr")         # the same of a GPU's time and memory

`benchmarks/paper_sizes.py`, `throughput.py`, `scale.py` and `gpu.py` write them: `<name>.csv`, and `<name>.json` for
its origin.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from IPython.display import Markdown

from pullpush.cache import atomic_path
from pullpush.errors import DataNotFoundError, check_known
from pullpush.golden import versions
from pullpush.lab.kept import KeptError
from pullpush.lab.provenance import sealed, stamp, unsealed
from pullpush.lab.root import find_root
from pullpush.metrics.inference import Difference, Variance

COUNTED, MEASURED = "counted", "measured, CPU, one thread"
FORWARD, BOTH, KEPT, WEIGHTS = "FLOPs, forward", "FLOPs, forward and backward", "bytes kept", "weights"  # quantities
NAMED = 4  # changed components that a page names
DAMAGED = "{} is damaged ({}): take both files from the repository again, or `{}` makes them anew"
STEP = ("training/objective", "audio/ced", "text/sonar")
LOSSES = ("losses/infonce", "losses/siglip", "losses/svr")
SMALL = ("losses/infonce", "losses/kcl", "training/loop")
ENCODERS = ("audio/beats", "audio/ced", "audio/dasheng", "audio/wavlm", "audio/whisper", "studies/counting")
SIZES = (*(f"losses/{name}" for name in ("infonce", "svr", "ml-clap", "cacl", "kcl")), "audio/ast", "audio/projection")


class Source(NamedTuple):
    """How a table is made: about: what it tells; parts: the components that decide its numbers; since: when the same
    numbers last began to come in other seconds or memory, as tables note it.
    """

    about: str
    parts: Sequence[str]
    command: str = "make gpu"
    since: str = ""


COST = "python benchmarks/scale.py --cost book/measured"
SOURCES: Mapping[str, Source] = {
    "paper-sizes": Source(
        "costs of a step at the papers' sizes",
        (*SIZES, "text/sonar", "training/objective"),
        "python benchmarks/paper_sizes.py --out book/measured/paper-sizes.csv",
    ),
    "throughput": Source(
        "costs of GLAP's parts", ENCODERS, "python benchmarks/throughput.py --count --out book/measured/throughput.csv"
    ),
    "scale": Source("a training of GLAP's size", ENCODERS, "python benchmarks/scale.py --out book/measured/scale.csv"),
    "cost": Source("measured points", (*ENCODERS, *STEP), COST),
    "cost-scale": Source("what follows at scale", (*ENCODERS, *STEP), COST),
    "cost-small": Source("small runs", SMALL, COST),
    "recordings": Source(
        "the bridge by class names on fold 4 of ESC-50",
        ("audio/yamnet", "text/use", "data/labels"),
        "python -m pullpush.studies.recordings",
    ),
    "gpu-throughput": Source(
        "the library's loop against a plain loop of Hugging Face and open_clip",
        (*STEP, "training/loop"),
        since="2026-11-26 16:57",
    ),
    "gpu-full": Source("training at 1,024 pairs a step by chunks", (*STEP, *LOSSES, "losses/kcl", "training/loop")),
    "gpu-tables": Source(
        "time and memory of a training step at the papers' sizes", (*STEP, *LOSSES), since="2026-11-26 13:46"
    ),
    "gpu-processes": Source("two GPUs over NCCL against one", ("losses/infonce", "training/objective")),
    "gpu-stacked": Source("small runs on features together against one after the other", SMALL),
    "gpu-tiles": Source("losses in tiles against the N × N matrix", LOSSES),
    "gpu-adam8bit": Source("Adam in eight bits", STEP),
    "gpu-correct": Source("every loss on the device against float64", (*LOSSES, "losses/kcl", "losses/cacl")),
}


def path_of(name: str, folder: Path | None = None) -> Path:
    """Where a table is; UnknownNameError if there is none such."""
    check_known("measured table", name, SOURCES)
    return (folder or find_root() / "book" / "measured") / f"{name}.csv"


def there(name: str, *, folder: Path | None = None) -> bool:
    """Whether a table was made."""
    path = path_of(name, folder)
    return path.is_file() and path.with_suffix(".json").is_file()


def read(name: str, *, folder: Path | None = None, **wanted: Any) -> pd.DataFrame:
    """The rows of a table in which some columns have these values, without these columns.

    Raises:
        DataNotFoundError: nobody made it; the message says what does.
        UnknownNameError: no such table, or no row with one of these values.
        KeptError: the table, or what is noted of it, is not what was written.
    """
    path = path_of(name, folder)
    if not there(name, folder=folder):
        raise DataNotFoundError(f"no {path} with its .json: `{SOURCES[name].command}` makes both")
    if _noted(path).get("sha256") != _digest(path):
        raise KeptError(DAMAGED.format(path, "its .json tells of another table", SOURCES[name].command))
    rows = pd.read_csv(path, keep_default_na=False, na_values=["", "nan"])
    for column, value in wanted.items():
        check_known(f"{column} in {path.name}", value, set(rows[column]))
        rows = rows[rows[column] == value]
    return rows.drop(columns=list(wanted)).reset_index(drop=True)


def made(name: str, how: str = COUNTED, *, folder: Path | None = None) -> dict[str, Any]:
    """What is noted of the rows that were found in one way; of a GPU's there is one.

    Raises:
        DataNotFoundError: nothing; the message says what makes it.
    """
    path = path_of(name, folder)
    noted = _noted(path)
    if "made" not in noted and how not in noted:
        raise DataNotFoundError(f"no stamp of what was {how} beside {path}: `{SOURCES[name].command}` makes it")
    return noted if "made" in noted else noted[how]


def stale(name: str, how: str = COUNTED, *, folder: Path | None = None) -> tuple[str, ...]:
    """Which components do something else since, or were not noted, such as "losses/svr", and "speed" where they only
    take other seconds or memory; empty if none does.
    """
    then = made(name, how, folder=folder)
    changed = [part for part, now in versions(*SOURCES[name].parts).items() if then["versions"].get(part) != now]
    return (*changed, *(["speed"] if then["made"] < SOURCES[name].since else []))


def awaited(name: str, *, folder: Path | None = None) -> str:
    """Why a GPU's table is to be measured (again); "" where it is not."""
    if not there(name, folder=folder):
        return "not measured"
    broken = "" if made(name, folder=folder).get("complete", True) else "broken off"
    older = ", ".join(stale(name, folder=folder))
    return "; ".join(filter(None, (broken, older and f"older than today's {older}")))


def origin(name: str, how: str = COUNTED, *, folder: Path | None = None) -> Markdown:
    """When, by what and on what a table was made, and what has changed since; where nobody made it, what would."""
    if not there(name, folder=folder):
        where = "; it takes an NVIDIA GPU and at most 8 minutes for all its tables" if name.startswith("gpu-") else ""
        return Markdown(f"> Not measured. `{SOURCES[name].command}` measures {SOURCES[name].about}{where}.")
    about = made(name, how, folder=folder)
    packages, device = about["packages"], about.get("device")
    memory = f", {about['memory_gib']:.0f} GiB" if about.get("memory_gib") else ""
    what = f"Measured on **{device}**{memory}," if device else f"{how[0].upper()}{how[1:]} on"
    tools = {"pullpush": about.get("version"), "torch": packages.get("torch"), "CUDA": about.get("cuda")}
    tools |= {"transformers": packages.get("transformers"), "float32 products:": about.get("float32_products")}
    used = ", ".join(f"{tool} {which}" for tool, which in tools.items() if which)
    text = f"> {what} {about['made']} UTC in {about['seconds']:.0f} s ({used}) by `{about['command']}`."
    text += " Tiny sizes, to try the command out." if about.get("quick") else ""
    text += "" if about.get("complete", True) else " Broken off: the table is not complete."
    names = stale(name, how, folder=folder)
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return Markdown(text + (f" **Older than today's** {', '.join(names[:NAMED])}{more}." if names else ""))


def note(name: str, how: str, seconds: float, command: str, *, path: Path) -> None:
    """Say beside the table at `path` when and how rows were found, and by which versions of their parts; other ways'
    notes stay.
    """
    current = stamp(versions(*SOURCES[name].parts), seeds=(), seconds=seconds, command=command).to_dict()
    seal(path, {**_noted(path), how: current})


def seal(path: Path, about: Mapping[str, Any]) -> None:
    """Write a record beside the table at `path`, with the checksums of both."""
    with atomic_path(path.with_suffix(".json")) as partial:
        partial.write_text(sealed({**about, "sha256": _digest(path)}), encoding="utf-8")


def _noted(path: Path) -> dict[str, Any]:
    """The record beside a table; nothing where there is none."""
    target = path.with_suffix(".json")
    try:
        return unsealed(target.read_text(encoding="utf-8")) if target.exists() else {}
    except (OSError, ValueError) as error:
        raise KeptError(DAMAGED.format(target, error, SOURCES[path.stem].command)) from error


def _digest(path: Path) -> str:
    text = path.read_text(encoding="utf-8")  # the same where git ends lines by \r\n
    return hashlib.sha256(text.encode()).hexdigest()


# ---------------------------------------------------------------- costs at the papers' sizes


def ratios(chapter: str) -> pd.DataFrame:
    """What was counted as a row a system in its order, a column a cost such as "FLOPs, text trained", over the first
    system; UnknownNameError for a chapter that was not counted.
    """
    rows = read("paper-sizes", chapter=chapter, how=COUNTED)
    wide = rows.assign(cost=rows["quantity"] + ", text " + rows["text_encoder"])
    wide = wide.pivot(index="system", columns="cost", values="ratio").rename_axis(columns=None)
    return wide.loc[rows["system"].unique()]


def extra(chapter: str, system: str, quantity: str, text_encoder: str = "trained") -> Difference:
    """What a system costs more than the chapter's first one, as a fraction.

    Raises:
        UnknownNameError: no such chapter, system, quantity or text encoder.
    """
    wanted = {"text_encoder": text_encoder, "quantity": quantity, "system": system}
    rows = read("paper-sizes", chapter=chapter, how=COUNTED, **wanted)
    return exact(float(rows["ratio"].item()) - 1)


def extra_seconds(chapter: str, system: str) -> Difference:
    """What a step of a system took longer on a GPU than one of the chapter's first, as a fraction, with the quartiles
    over rounds as its interval; UnknownNameError as for `extra`.
    """
    wanted = {"quantity": "seconds", "system": system, "precision": "bf16"}
    row = read("gpu-tables", chapter=chapter, **wanted).iloc[0]
    low, high = float(row["low"]) - 1, float(row["high"]) - 1
    return replace(exact(float(row["ratio"]) - 1), low=low, high=high, half_width=(high - low) / 2)


def exact(value: float) -> Difference:
    """A number that was counted, not sampled: neither seeds nor clips could have given another; its width is 0.

    >>> exact(0.02).half_width
    0.0
    """
    none = Variance(0.0, 0.0, 0.0, {"seed": 0.0, "clip": 0.0, "interaction": 0.0})
    return Difference(value, value, value, 0.0, float(value == 0), float("inf"), 0.95, 1, 1, none)


def on_gpu(chapter: str, *, folder: Path | None = None) -> pd.DataFrame:
    """What a GPU measured of a chapter's systems, as a page prints it: system, then for each precision milliseconds,
    their ratio to the first system's with its quartiles over rounds, MiB of forward and backward pass, and its ratio.

    No rows where no GPU has measured; UnknownNameError if none of this chapter.
    """
    if not there("gpu-tables", folder=folder):
        return pd.DataFrame(columns=["system"])
    rows = read("gpu-tables", folder=folder, chapter=chapter)
    wide = pd.DataFrame({"system": rows["system"].unique()})
    for precision, of_precision in rows.groupby("precision", sort=False):
        by_quantity = of_precision.set_index(["quantity", "system"])
        seconds, memory = (by_quantity.loc[name] for name in ("seconds", "MiB, forward and backward"))
        columns = {
            "ms": seconds["value"].map(lambda value: f"{1e3 * value:.1f}"),
            "time": seconds.apply(lambda row: f"×{row['ratio']:.3f} [{row['low']:.3f}, {row['high']:.3f}]", axis=1),
            "MiB": memory["value"].map("{:,.0f}".format),
            "memory": memory["ratio"].map("×{:.4f}".format),
        }
        for name, values in columns.items():
            wide[f"{precision}: {name}"] = wide["system"].map(values)
    return wide
