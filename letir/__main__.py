"""``python -m letir``: the ``letir`` command."""

import sys

from letir.cli import main

if __name__ == "__main__":
    sys.exit(main())
