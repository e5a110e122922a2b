import subprocess
import sys


def test_the_statistics_load_no_scipy():
    modules = "raggs.stats.effects, raggs.stats.annotation_value, raggs.stats.order_agreement, raggs.ranking.bayes"
    code = f"import sys, {modules}; sys.exit('scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
