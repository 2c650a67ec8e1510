"""What each component does, as a few numbers: the versions that keys are made of.

    version("losses/infonce")  # "9d41…", as long as InfoNCE computes what its golden file says

A *probe* runs a component on small fixed inputs and gives what came out, by name. What came out when a maintainer last
accepted it lies beside the library, in `files/<kind>/<name>.json`. Where today's code agrees with that, its version is
the file's; where it does not, or there is no file (a loss of the reader's own), its version is what it gave, rounded.
So whoever renames, splits or reformats a component changes no key, and whoever changes what it computes changes every
key that names it.

`probes.Probes` declares the probes of a kind: of its cards by what they say of themselves, of all else by a function
each; with the relative difference that is none (processors add in different orders). They touch neither cache nor
network; that a component agrees is remembered in the cache, from process to process (`agreed`).
"""

from pullpush.golden.compare import differences, rounded
from pullpush.golden.probes import GoldenError
from pullpush.golden.versions import (
    FILES,
    accept,
    check,
    expected,
    names,
    probe,
    version,
    version_of_diagnostics,
    versions,
)

__all__ = [
    "FILES",
    "GoldenError",
    "accept",
    "check",
    "differences",
    "expected",
    "names",
    "probe",
    "rounded",
    "version",
    "version_of_diagnostics",
    "versions",
]
