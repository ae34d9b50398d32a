"""``python -m vramscope.exporters.cli`` runs the same table as the ``vramscope`` script."""

import sys

from vramscope.exporters.cli import main

sys.exit(main())
