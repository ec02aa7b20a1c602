# What ./dev needs on the machine: Debian packages, Python environments, model files. Sourced by ./dev, silent when all is there.

# Package and least version; those of Debian 12 satisfy every one. docs/dependencies.md says what each is for.
PACKAGES=(
  g++:12.2 cmake:3.25 ninja-build:1.11 ccache:4.7 mold:1.10
  llvm-19-dev:19.1 liblld-19-dev:19.1
  libfmt-dev:9.1 nlohmann-json3-dev:3.11 libcli11-dev:2.1 libexpected-dev:1.0 libprotozero-dev:1.7 libdlpack-dev:0.6
  libgtest-dev:1.12 libbenchmark-dev:1.7
  python3-venv:3.11 clang-format-19:19.1
)

# Prints "NAME VERSION" of an installed package, without its epoch; nothing when it is not installed.
installed_version() {
  dpkg-query -W -f '${db:Status-Abbrev}${Version}\n' "$1" 2>/dev/null | sed -n 's/^ii *\([0-9]*:\)\{0,1\}//p' | head -1
}

require_packages() {
  local missing=() entry name version
  for entry in "${PACKAGES[@]}"; do
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
  for entry in "${PACKAGES[@]}"; do
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

fetch_models() { # [--only NAME]
  require_venv test
  # Only what is exported from PyTorch needs it: 1 GB that most machines never download.
  if .venv/bin/python scripts/models.py --needs-export "$@"; then require_venv export; fi
  .venv/bin/python scripts/models.py "$@"
}
