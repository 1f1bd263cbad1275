"""The comparison with other packages: ours gets to where each of them ends."""

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[1] / "benches" / "peers.py"


def test_ours_gets_to_where_peers_end(tmp_path):
    # Whatever is installed besides scikit-learn; times are not looked at.
    done = subprocess.run([sys.executable, str(SCRIPT), "--quick"], cwd=tmp_path, capture_output=True, text=True, env=os.environ)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line for line in done.stdout.splitlines() if "scikit-learn" in line]
    assert len(lines) == 2 and "NOT REACHED" not in done.stdout
    for peer in ("torchnmf.nmf", "torchnmf.plca", "enstop.plsa"):
        assert f"Not measured: {peer} is not installed" in done.stdout or peer.split(".")[0] in done.stdout
