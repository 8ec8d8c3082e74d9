# shellcheck shell=sh
# Debian systems in directories, made from its packages: for what must not depend on the machine that
# it runs on. Sourced by the scripts that build releases and try them. They run as root, on Debian or
# Ubuntu, with `scripts/deps.sh release`, and download from Debian's archive.

debian_mirror=${DEBIAN_MIRROR:-http://deb.debian.org}

# debian_needs ARCHITECTURE...: ends the script with a line for what is missing.
debian_needs() {
  debian_missing=
  for debian_tool in mmdebstrap unshare chroot ip tar gzip sha256sum; do
    command -v "$debian_tool" >/dev/null 2>&1 || debian_missing="$debian_missing $debian_tool"
  done
  if [ -n "$debian_missing" ]; then
    echo "$0: not found:$debian_missing; run scripts/deps.sh release" >&2
    exit 1
  fi
  if [ "$(id -u)" -ne 0 ]; then
    echo "$0: needs root: it makes Debian systems in directories and runs programs in them" >&2
    exit 1
  fi
  for debian_arch; do
    [ "$debian_arch" = "$(dpkg --print-architecture)" ] || debian_emulate "$debian_arch"
  done
}

# The machine's name for an architecture, as in the names of compilers and of qemu.
debian_machine() {
  case $1 in
    amd64) echo x86_64 ;;
    arm64) echo aarch64 ;;
    *)
      echo "$0: unknown architecture $1: amd64 or arm64" >&2
      exit 1
      ;;
  esac
}

# Lets the kernel run programs of another architecture with qemu, in every directory.
debian_emulate() {
  debian_name=qemu-$(debian_machine "$1")
  [ -e /proc/sys/fs/binfmt_misc/register ] || mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc
  [ ! -e "/proc/sys/fs/binfmt_misc/$debian_name" ] || return 0
  if [ ! -e "/usr/lib/binfmt.d/$debian_name.conf" ]; then
    echo "$0: programs for $1 do not run here: run scripts/deps.sh release (qemu-user-static)" >&2
    exit 1
  fi
  cat "/usr/lib/binfmt.d/$debian_name.conf" >/proc/sys/fs/binfmt_misc/register
}

# debian_make DIRECTORY RELEASE ARCHITECTURES PACKAGE...: a system of its own, with these packages, unless
# it is there. Several architectures are separated by commas; the first is that of its programs.
debian_make() {
  debian_dir=$1
  debian_release=$2
  debian_arches=$3
  shift 3
  debian_want="$debian_release $debian_arches $*"
  if [ "$(cat "$debian_dir.made" 2>/dev/null)" = "$debian_want" ]; then
    return 0
  fi
  rm -rf --one-file-system "$debian_dir" "$debian_dir.made"
  mkdir -p "$(dirname "$debian_dir")"
  echo "making a system of Debian $debian_release for $debian_arches" >&2
  mmdebstrap --quiet --mode=root --variant=minbase --architectures="$debian_arches" \
    --include="$(echo "$*" | tr -s ' \n' ',,')" \
    "$debian_release" "$debian_dir" \
    "deb $debian_mirror/debian $debian_release main" \
    "deb $debian_mirror/debian-security $debian_release-security main" \
    "deb-src $debian_mirror/debian $debian_release main" \
    "deb-src $debian_mirror/debian-security $debian_release-security main"
  echo "$debian_want" >"$debian_dir.made"
}

# debian_inside DIRECTORY COMMAND...: runs it as root of that system, with the network of this machine.
# It has processes and mounts of its own: none of them outlives it. DEBIAN_OFFLINE=1: with a loopback
# interface of its own and no other.
debian_inside() {
  # shellcheck disable=SC2016  # the inner shell expands it
  unshare --mount --pid --fork --kill-child ${DEBIAN_OFFLINE:+--net} sh -euc '
    dir=$1
    shift
    [ -z "${DEBIAN_OFFLINE:-}" ] || ip link set lo up
    mount -t proc proc "$dir/proc"
    mount --rbind /dev "$dir/dev"
    mount -t tmpfs -o mode=1777 tmpfs "$dir/tmp"
    cp /etc/resolv.conf "$dir/etc/resolv.conf"
    exec chroot "$dir" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 HOME=/root \
      DEBIAN_FRONTEND=noninteractive "$@"
  ' sh "$@"
}
