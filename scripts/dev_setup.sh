# What ./dev needs on the machine: Debian packages, Python environments, model files. Sourced by ./dev, silent when all is there.

# Package and least version; those of Debian 12 satisfy every one. docs/dependencies.md says what each is for.
PACKAGES=(
  g++:12.2 cmake:3.25 ninja-build:1.11 ccache:4.7 mold:1.10
  llvm-19-dev:19.1 liblld-19-dev:19.1
  libfmt-dev:9.1 nlohmann-json3-dev:3.11 libcli11-dev:2.1 libexpected-dev:1.0 libprotozero-dev:1.7 libdlpack-dev:0.6
  libgtest-dev:1.12 libbenchmark-dev:1.7
  python3-venv:3.11 clang-format-19:19.1
)

# Only for `./dev test avx512`: the emulator, its screen and firmware, and what makes a boot CD.
EMULATOR_PACKAGES=(
  bochs:2.7 bochs-term:2.7 bochsbios:2.7 vgabios:0.8 isolinux:6.03 syslinux-common:6.03 xorriso:1.5 busybox-static:1.35
)

# Prints "NAME VERSION" of an installed package, without its epoch; nothing when it is not installed.
installed_version() {
  dpkg-query -W -f '${db:Status-Abbrev}${Version}\n' "$1" 2>/dev/null | sed -n 's/^ii *\([0-9]*:\)\{0,1\}//p' | head -1
}

require_packages() { # [NAME:VERSION...]: those of every build
  [ $# -gt 0 ] || set -- "${PACKAGES[@]}"
  local missing=() entry name version
  for entry in "$@"; do
    name=${entry%%:*}
    [ -n "$(installed_version "$name")" ] || missing+=("$name")
  done
  if [ ${#missing[@]} -gt 0 ]; then
    local sudo=()
    [ "$(id -u)" = 0 ] || sudo=(sudo)
    echo "installing: ${missing[*]}"
    "${sudo[@]}" apt-get update -q
    DEBIAN_FRONTEND=noninteractive "${sudo[@]}" apt-get install -qy --no-install-recommends "${missing[@]}"
  fi
  for entry in "$@"; do
    name=${entry%%:*}
    version=$(installed_version "$name")
    dpkg --compare-versions "$version" ge "${entry#*:}" ||
      { echo "$name ${version:-(none)} is too old: ${entry#*:} or later is needed (Debian 12 has it)" >&2; exit 1; }
  done
}

show_packages() {
  local entry
  for entry in "${PACKAGES[@]}"; do
    printf '%-20s %s\n' "${entry%%:*}" "$(installed_version "${entry%%:*}")"
  done
}

# require_venv test|export|peers: .venv, .venv-export, .venv-peers from scripts/requirements-NAME.txt. The lists are complete
# and pinned, so pip resolves nothing (and PyTorch comes without its CUDA libraries).
require_venv() {
  local name=$1 folder=.venv
  [ "$name" = test ] || folder=.venv-$name
  local list=scripts/requirements-$name.txt
  cmp -s "$list" "$folder/requirements.txt" && return
  require_packages
  echo "python environment $folder"
  [ -x "$folder/bin/python" ] || /usr/bin/python3 -m venv "$folder"
  "$folder/bin/python" -m pip install -q --no-deps --disable-pip-version-check -r "$list"
  cp "$list" "$folder/requirements.txt"
}

# The emulator, and a kernel for it in .cache/emulator: taken out of its package, for a kernel is not to be installed.
require_emulator() {
  require_packages "${EMULATOR_PACKAGES[@]}"
  local folder=.cache/emulator package
  [ ! -e "$folder/vmlinuz" ] || return 0
  package=$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/.*Depends: \(linux-image-[0-9].*\)/\1/p' | head -1)
  [ -n "$package" ] || { echo "no package linux-image-cloud-amd64: run apt-get update" >&2; exit 1; }
  echo "fetching $package"
  mkdir -p "$folder"
  (
    cd "$folder"
    rm -rf image ./*.deb
    apt-get download -q "$package"
    dpkg-deb -x ./*.deb image
    mv image/boot/vmlinuz-* vmlinuz
    rm -rf image ./*.deb
  )
}

fetch_models() { # [--only NAME]
  require_venv test
  # Only what is exported from PyTorch needs it: 1 GB that most machines never download.
  if .venv/bin/python scripts/models.py --needs-export "$@"; then require_venv export; fi
  .venv/bin/python scripts/models.py "$@"
}
