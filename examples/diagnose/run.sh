#!/bin/sh
# A golden set, every diagnosis that needs no key, and one page of it all. From the repository's root:
#   sh examples/diagnose/run.sh
set -e
here=$(dirname "$0")
raggs run --config "$here/raggs.yaml"
raggs diagnose all --config "$here/raggs.yaml"
raggs report "$here/runs/diagnose" --out "$here/runs/report.html"
