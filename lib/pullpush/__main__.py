"""The command `pullpush`: where its extra is missing, it says what to install."""

import sys

from pullpush.extras import MissingExtraError


def main() -> None:
    """Run the command, see `pullpush --help`."""
    try:
        from pullpush.site.cli import main as command  # here, for it needs the extra
    except MissingExtraError as error:
        sys.exit(f"pullpush: {error}")
    command(prog_name="pullpush")


if __name__ == "__main__":
    main()
