"""Stand-in."""


def fetch():
    raise NotImplementedError


def recording(root, stamp):
    raise NotImplementedError
