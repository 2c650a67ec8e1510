"""Where downloads, rendered worlds, features and runs are kept: written once, all of it or nothing.

Everything lies under `home()`, in `<kind>/<key>`, where the key is a hash of all that shaped the content. A folder or
file that is there is complete: it is built beside its place and moved there by one rename, under a lock, so that
neither a killed process nor two processes at once leave half of one. What it held when it was written is known by size
and checksum (see `sums`), and an entry that was damaged since is made again. A cache on a read-only disk can be read.
"""

from pullpush.cache.entries import atomic_path, cached_dir, cached_file, locked
from pullpush.cache.locks import tidy
from pullpush.cache.places import HOME, LATER, PARTIAL, content_key, home
from pullpush.cache.sums import bytes_key, damage, digest

__all__ = [
    "HOME",
    "LATER",
    "PARTIAL",
    "atomic_path",
    "bytes_key",
    "cached_dir",
    "cached_file",
    "content_key",
    "damage",
    "digest",
    "home",
    "locked",
    "tidy",
]
