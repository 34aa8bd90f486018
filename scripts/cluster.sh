#!/usr/bin/env bash
# The environments of `make test-cluster`. A Postgres server comes from the system's packages; over .venv lie .venv/cluster, with the
# driver, an S3 server, Ray's job server and the Delta writer (cluster.lock), and .venv/ducklake, with the DuckDB that DuckLake fits
# (ducklake.lock). scripts/cluster_lock.py writes the locks. `--servers` leaves the second one out.
set -euo pipefail
cd "$(dirname "$0")/.."
below="$(pwd)/.venv"

if ! command -v initdb >/dev/null && ! compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null; then
  if ! command -v apt-get >/dev/null; then
    echo "initdb of PostgreSQL is missing, and apt-get is not here to install it" >&2
    exit 1
  fi
  if [ "$(id -u)" -eq 0 ]; then as_root=(); else as_root=(sudo); fi
  echo "installing PostgreSQL"
  "${as_root[@]}" apt-get -o DPkg::Lock::Timeout=300 update -qq
  "${as_root[@]}" mkdir -p /etc/postgresql-common # the programs only: no database that starts by itself
  [ -e /etc/postgresql-common/createcluster.conf ] ||
    echo 'create_main_cluster = false' | "${as_root[@]}" tee /etc/postgresql-common/createcluster.conf >/dev/null
  DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends postgresql >/dev/null
fi

environment() { # NAME LOCK: an environment over .venv
  local venv="$below/$1"
  [ "$venv/.ready" -nt "$2" ] && [ "$venv/.ready" -nt "$below/.ready" ] && return
  "$below/bin/python" -m uv venv --quiet --clear --python "$below/bin/python" "$venv"
  "$below/bin/python" -m uv pip install --quiet --python "$venv/bin/python" --no-deps --require-hashes --compile-bytecode -r "$2"
  "$venv/bin/python" - "$below" <<'PY'
import sys
import sysconfig
from pathlib import Path

below = sysconfig.get_path("purelib", vars={"base": sys.argv[1], "platbase": sys.argv[1]})
here = Path(sysconfig.get_paths()["purelib"])
Path(here, "below.pth").write_text(f"import site; site.addsitedir({below!r})\n")  # behind this environment's own packages
PY
  local program
  for program in ray workprint; do # these are started by name, and must be started by this environment's Python
    sed "1s|.*|#!$venv/bin/python|" "$below/bin/$program" >"$venv/bin/$program"
    chmod +x "$venv/bin/$program"
  done
  touch "$venv/.ready"
}

environment cluster cluster.lock
[ "${1:-}" = --servers ] || environment ducklake ducklake.lock
