#!/usr/bin/env bash
# Environments of the trainers and readers that exports are proved with (tests/consumers), one each, because their pins clash.
#
#   bash scripts/consumers.sh build            all of them
#   bash scripts/consumers.sh build trl openenv
#   bash scripts/consumers.sh list             their names, and whether each is built
#
# They lie below build/consumers, or $WORKPRINT_CONSUMERS. What each holds stands in tests/consumers/env/NAME.txt; an environment is made
# anew when that file changed. harbor, skyrl and nemo-gym need Python 3.12; they are left out, with a message, where there is none.
# torch is the CPU build where pip is told of one ($PIP_FIND_LINKS); elsewhere PyPI's, which brings CUDA (several GB more).
set -euo pipefail
cd "$(dirname "$0")/.."

here=$PWD
python=$here/.venv/bin/python
uv=("$python" -m uv)
env=tests/consumers/env
root=${WORKPRINT_CONSUMERS:-build/consumers}
all=(trl openenv verl llamafactory swift axolotl harbor croissant skyrl nemo-gym)
export UV_PYTHON_DOWNLOADS=never
[ -n "${PIP_FIND_LINKS:-}" ] && export UV_FIND_LINKS=${UV_FIND_LINKS:-$PIP_FIND_LINKS}

# An interpreter of Python 3.12, by its path; nothing where there is none.
python312() {
  local candidate
  for candidate in "$(command -v python3.12 || true)" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.12*/bin/python; do
    if [ -x "$candidate" ] && "$candidate" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 12))' 2>/dev/null; then
      echo "$candidate"
      return
    fi
  done
}

# Those that run adapters of this project, and hold it with its lock; what clashes with the lock is installed after it.
with_project() {
  [[ $1 == trl || $1 == openenv || $1 == verl ]]
}

# What an environment was made from.
fingerprint() {
  local files=("$env/$1.txt")
  [ ! -f "$env/$1.nodeps.txt" ] || files+=("$env/$1.nodeps.txt")
  ! with_project "$1" || files+=(requirements.lock)
  cat "${files[@]}" | sha256sum
}

build() {
  local name=$1 folder=$root/$1 base=$python started=$SECONDS
  [ -f "$env/$name.txt" ] || { echo "no such environment: $name (there are: ${all[*]})" >&2; return 2; }
  if [ "$(cat "$folder/.ready" 2>/dev/null)" = "$(fingerprint "$name")" ]; then
    return 0
  fi
  case $name in
    harbor | skyrl | nemo-gym)
      base=$(python312)
      [ -n "$base" ] || { echo "$name: left out, there is no Python 3.12"; return 0; }
      ;;
  esac
  rm -rf "$folder"
  "${uv[@]}" venv --quiet --python "$base" "$folder"
  local install=("${uv[@]}" pip install --quiet --python "$folder/bin/python")
  if with_project "$name"; then
    "${install[@]}" -r requirements.lock
    "${install[@]}" --no-deps --no-build-isolation -e .
  fi
  "${install[@]}" -r "$env/$name.txt"
  if [ -f "$env/$name.nodeps.txt" ]; then
    local place=() # Axolotl asks for Python 3.12, and runs on 3.11: its files are unpacked beside the rest
    [ "$name" != axolotl ] || place=(--python-version 3.12 --target "$("$folder/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')")
    "${install[@]}" --no-deps "${place[@]}" -r "$env/$name.nodeps.txt"
  fi
  fingerprint "$name" >"$folder/.ready"
  echo "$name: built in $((SECONDS - started)) s, $(du -sh "$folder" | cut -f1)"
}

case ${1:-} in
  build)
    shift
    [ $# -gt 0 ] || set -- "${all[@]}"
    mkdir -p "$root"
    for name in "$@"; do build "$name"; done
    ;;
  list)
    for name in "${all[@]}"; do
      [ "$(cat "$root/$name/.ready" 2>/dev/null)" = "$(fingerprint "$name")" ] && state=built || state="not built"
      echo "$name: $state"
    done
    ;;
  *)
    sed -n '2,10p' "$0" >&2
    exit 2
    ;;
esac
