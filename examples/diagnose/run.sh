#!/bin/sh
# Build a golden set, run every diagnosis that needs no key, and write a report. In the root of the repository:
#   sh examples/diagnose/run.sh
set -e
here=$(dirname "$0")
raggs run --config "$here/raggs.yaml"
raggs diagnose all --config "$here/raggs.yaml"
raggs report "$here/runs/diagnose" --out "$here/runs/report.html"
