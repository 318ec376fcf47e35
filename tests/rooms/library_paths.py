# SPDX-License-Identifier: GPL-3.0-or-later
"""library_paths.py FILE...: no program or library searches the working directory for libraries: each folder of its
DT_RPATH begins with / or $ORIGIN. An empty one, as CMake pads paths with, is the working directory."""

import re
import subprocess
import sys

failed = False
for file in sys.argv[1:]:
    entries = subprocess.run(["readelf", "-d", file], capture_output=True, text=True, check=True).stdout
    for paths in re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]", entries):
        for path in paths.split(":"):
            if not path.startswith(("/", "$ORIGIN")):
                print(f"{file}: expected folders that begin with / or $ORIGIN; found \"{path}\" in {paths}")
                failed = True
sys.exit(1 if failed else 0)
