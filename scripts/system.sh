#!/usr/bin/env bash
# System packages that no Python or Node package can bring. Does nothing where they are installed.
#   ffmpeg                    decoding, filters, encoding (with ffprobe and the flite voice)
#   bubblewrap                the sandbox that every engine runs in
#   libseccomp2               system-call filter of the sandbox
#   chromium-headless-shell   draws the templates
#   fonts-dejavu-core         a font for Chromium to start with; templates bring their own
#   python3-venv              venv for Debian's own Python
#   strace                    for tests only: lets system calls fail
set -euo pipefail

need=()
command -v ffmpeg >/dev/null && command -v ffprobe >/dev/null || need+=(ffmpeg)
command -v bwrap >/dev/null || need+=(bubblewrap)
[ -x /usr/lib/chromium/chromium-headless-shell ] || need+=(chromium-headless-shell)
ldconfig -p 2>/dev/null | grep -q libseccomp.so.2 || need+=(libseccomp2)
[ -d /usr/share/fonts/truetype/dejavu ] || need+=(fonts-dejavu-core)
"${PYTHON:-python3}" -c 'import ensurepip' 2>/dev/null || need+=(python3-venv)
command -v strace >/dev/null || need+=(strace)
[ ${#need[@]} -eq 0 ] && exit 0

if [ "$(id -u)" -eq 0 ]; then as_root=(); else as_root=(sudo); fi
if ! command -v apt-get >/dev/null; then
  echo "These system packages are missing and apt-get is not here to install them: ${need[*]}" >&2
  exit 1
fi
echo "installing system packages: ${need[*]}"
"${as_root[@]}" apt-get -o DPkg::Lock::Timeout=300 update -qq
DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends "${need[@]}" >/dev/null
