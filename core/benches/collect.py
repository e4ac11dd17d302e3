"""Gathers what criterion measured into `target/bench/core.json`, in the rows that every bench writes. The core has no
peer to stand beside: those fields are null.

    python core/benches/collect.py [TARGET]
"""

import json
import pathlib
import sys

target = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "target")
rows = []
for estimates in sorted(target.glob("criterion/**/new/estimates.json")):
    name = estimates.parent.parent.relative_to(target / "criterion").as_posix()
    median = json.loads(estimates.read_text())["median"]["point_estimate"]
    rows.append({"name": f"core: {name}", "ours_ns": round(median, 1), "peer": None, "peer_ns": None, "ratio": None})
if not rows:
    sys.exit(f"no measurements in {target}/criterion: run cargo bench first")
out = target / "bench" / "core.json"
out.parent.mkdir(parents=True, exist_ok=True)
out.write_text(json.dumps(rows, indent=1) + "\n")
width = max(len(row["name"]) for row in rows)
for row in rows:
    print(f"  {row['name']:<{width}} {row['ours_ns']:>12,.1f} ns")
print(f"written to {out}")
