import subprocess
import sys


def test_the_pure_libraries_load_scipy_only_when_asked_for_something():
    code = "import sys, raggs.stats, raggs.stats; sys.exit('scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
