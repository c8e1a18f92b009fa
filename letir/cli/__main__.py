"""``python -m letir.cli``: the command ``letir``."""

import sys

from letir.cli import main

sys.exit(main())
