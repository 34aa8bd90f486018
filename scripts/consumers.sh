#!/usr/bin/env bash
# Environments of the trainers and readers that exports are proved with (tests/consumers), one each, because their pins clash.
#
#   bash scripts/consumers.sh build            all of them
#   bash scripts/consumers.sh build trl openenv
#   bash scripts/consumers.sh list             their names, and whether each is built
#   bash scripts/consumers.sh lock trl         resolve one again, and write down the versions
#
# They lie below build/consumers, or $WORKPRINT_CONSUMERS. What each is for stands in tests/consumers/env/NAME.txt, the version of every package
# in it in NAME.lock; an environment is made anew when that file changed. harbor, skyrl and nemo-gym need Python 3.12; they are left out, with
# a message, where there is none. torch is the CPU build where pip is told of one ($PIP_FIND_LINKS); elsewhere PyPI's, which brings CUDA
# (several GB more).
set -euo pipefail
cd "$(dirname "$0")/.."

here=$PWD
python=$here/.venv/bin/python
uv=("$python" -m uv)
env=tests/consumers/env
root=${WORKPRINT_CONSUMERS:-build/consumers}
all=(trl openenv verl llamafactory swift axolotl harbor croissant skyrl nemo-gym inspect verifiers openai mcp)
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

# Those that run adapters of this project, and hold it with what it depends on.
with_project() {
  [[ " trl openenv verl skyrl nemo-gym inspect verifiers " == *" $1 "* ]]
}

# What an environment was made from.
fingerprint() {
  local files=("$env/$1.lock")
  [ ! -f "$env/$1.nodeps.txt" ] || files+=("$env/$1.nodeps.txt")
  cat "${files[@]}" | sha256sum
}

# An empty environment; false where there is no interpreter for it.
empty() {
  local base=$python
  [ -f "$env/$1.txt" ] || { echo "no such environment: $1 (there are: ${all[*]})" >&2; exit 2; }
  case $1 in
    harbor | skyrl | nemo-gym)
      base=$(python312)
      [ -n "$base" ] || { echo "$1: left out, there is no Python 3.12"; return 1; }
      ;;
  esac
  rm -rf "$2"
  "${uv[@]}" venv --quiet --python "$base" "$2"
}

# What is taken without its own requirements, and this project.
finish() {
  local name=$1 folder=$2 place=() # Axolotl asks for Python 3.12, and runs on 3.11: its files are unpacked beside the rest
  local install=("${uv[@]}" pip install --quiet --no-deps --python "$folder/bin/python")
  if [ -f "$env/$name.nodeps.txt" ]; then
    [ "$name" != axolotl ] || place=(--python-version 3.12 --target "$("$folder/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')")
    "${install[@]}" "${place[@]}" -r "$env/$name.nodeps.txt"
  fi
  ! with_project "$name" || "${install[@]}" --no-build-isolation -e .
}

build() {
  local name=$1 folder=$root/$1 started=$SECONDS
  if [ -f "$env/$name.lock" ] && [ "$(cat "$folder/.ready" 2>/dev/null)" = "$(fingerprint "$name")" ]; then
    return 0
  fi
  empty "$name" "$folder" || return 0
  local install=("${uv[@]}" pip install --quiet --python "$folder/bin/python")
  "${install[@]}" --no-deps -r "$env/$name.lock"
  ! grep -q '^torch==' "$env/$name.lock" || "${install[@]}" -c "$env/$name.lock" "$(grep '^torch==' "$env/$name.lock")" # with CUDA, if it needs it
  finish "$name" "$folder"
  fingerprint "$name" >"$folder/.ready"
  echo "$name: built in $((SECONDS - started)) s, $(du -sh "$folder" | cut -f1)"
}

# The newest versions that what is asked for allows, written down. With this project: its own lock first, and over it what clashes.
lock() {
  local name=$1 folder=$root/.lock-$1 skip='^(workprint|-e )'
  empty "$name" "$folder" || return 0
  local install=("${uv[@]}" pip install --quiet --python "$folder/bin/python")
  ! with_project "$name" || "${install[@]}" --no-deps -r requirements.lock
  "${install[@]}" -r "$env/$name.txt"
  [ ! -f "$env/$name.nodeps.txt" ] || skip+="|^($(sed 's/==.*//' "$env/$name.nodeps.txt" | paste -sd '|'))=="
  "${uv[@]}" pip freeze --quiet --exclude-editable --python "$folder/bin/python" | grep -vE "$skip" | sed 's/+cpu$//' >"$env/$name.lock"
  rm -rf "$folder"
}

case ${1:-} in
  build)
    shift
    [ $# -gt 0 ] || set -- "${all[@]}"
    mkdir -p "$root"
    for name in "$@"; do build "$name"; done
    ;;
  lock)
    shift
    mkdir -p "$root"
    for name in "$@"; do lock "$name"; done
    ;;
  list)
    for name in "${all[@]}"; do
      [ "$(cat "$root/$name/.ready" 2>/dev/null)" = "$(fingerprint "$name")" ] && state=built || state="not built"
      echo "$name: $state"
    done
    ;;
  *)
    sed -n '2,7p' "$0" >&2
    exit 2
    ;;
esac
