"""`python -m frazil.cli`: the program where its script is not on PATH."""

import sys

from frazil.cli.main import main

sys.exit(main())
