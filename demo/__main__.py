"""``python -m vramscope.demo``: the whole path on this machine, for a minute, then nothing."""

import sys

from vramscope.demo.run import main

sys.exit(main())
