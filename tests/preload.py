"""Libraries that are loaded into processes before all others (LD_PRELOAD); a test builds its own from C when it begins."""

import os
import shutil
import subprocess
import sys

SKIPPED = 77


def need_compiler(test):
    """Ends the test politely where nothing can be built."""
    if shutil.which("cc") is None:
        print(f"{test}: skipped, there is no C compiler", flush=True)
        sys.exit(SKIPPED)


def build(name, source, directory):
    """Builds a library in the directory; gives its path."""
    written, made = os.path.join(directory, f"{name}.c"), os.path.join(directory, f"{name}.so")
    with open(written, "w", encoding="ascii") as file:
        file.write(source)
    subprocess.run(["cc", "-O1", "-Wall", "-shared", "-fPIC", "-o", made, written, "-ldl"], check=True)
    return made
