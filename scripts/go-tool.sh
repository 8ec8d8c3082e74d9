# shellcheck shell=sh
# Builds the Go programs of tests/, fetches modules of npm, waits for servers and ends them, for the scripts that run them. Sourced by
# those; sets root, build and go. BUILD (build) and GO (go) say where the programs are and what builds them.

root=$(cd "$(dirname "$0")" && while [ ! -e VERSION ]; do cd ..; done && pwd)
build=${BUILD:-$root/build}
case $build in /*) ;; *) build=$PWD/$build ;; esac
go=${GO:-go}
export GOTOOLCHAIN=local CGO_ENABLED=0

# e2e_tool DIRECTORY [NAME]: $build/NAME of tests/e2e/cmd/DIRECTORY, without the network.
e2e_tool() {
  if ! command -v "$go" >/dev/null 2>&1; then
    echo "$0: needs go (1.19 or later): scripts/deps.sh test" >&2
    exit 1
  fi
  (cd "$root/tests/e2e" && GOPROXY=off GOFLAGS="-mod=mod -buildvcs=false" "$go" build -o "$build/${2:-$1}" "./cmd/$1") || exit 1
}

# own_files: makes the directory $dir for files of the script. At the end of the script, the programs $fakes and $server are killed, if
# they are set, and the directory is removed.
own_files() {
  fakes=
  server=
  dir=$(mktemp -d)
  trap end_own_files EXIT
}

end_own_files() {
  [ -z "$server" ] || kill "$server" 2>/dev/null || true
  [ -z "$fakes" ] || kill "$fakes" 2>/dev/null || true
  wait
  rm -rf "$dir"
}

# cpu_ms PID: processor time of a program until now.
cpu_ms() {
  awk -v hz="$(getconf CLK_TCK)" '{ sub(/.*\) /, ""); print int(($12 + $13) * 1000 / hz) }' "/proc/$1/stat"
}

# cannot_be_had LOG: go's messages say that it is too old for a module, or that its proxy cannot be reached.
cannot_be_had() {
  grep -qE 'dial tcp|no such host|proxyconnect|i/o timeout|TLS handshake timeout|requires go >=|go.mod requires|invalid go version|disabled by GOPROXY' "$1"
}

# module_tool NAME WHAT: $build/NAME of tests/NAME, which needs modules of others. Ends the script, as
# passed, if WHAT cannot be had here: without a new Go or its module proxy.
module_tool() {
  if ! (cd "$root/tests/$1" && GOFLAGS="-mod=readonly -buildvcs=false" "$go" build -o "$build/$1" .) >"$build/$1.log" 2>&1; then
    if cannot_be_had "$build/$1.log"; then
      echo "$(basename "$0" .sh): skipped: $2 cannot be had here ($(tail -n 1 "$build/$1.log"))"
      exit 0
    fi
    cat "$build/$1.log"
    exit 1
  fi
}

# npm_modules DIRECTORY MODULE...: installs modules of npm there. Fails, with the reason on standard output,
# if they cannot be had.
npm_modules() {
  modules_dir=$1
  shift
  if ! command -v node >/dev/null 2>&1 || ! command -v npm >/dev/null 2>&1; then
    echo "node or npm is missing"
    return 1
  fi
  mkdir -p "$modules_dir"
  if ! (cd "$modules_dir" && npm install --no-audit --no-fund --no-save "$@") >"$modules_dir.log" 2>&1; then
    echo "npm cannot install $* ($(tail -n 1 "$modules_dir.log"))"
    return 1
  fi
}

# await_response LOG ARGUMENT...: waits some ten seconds until curl succeeds with these arguments. Otherwise prints
# the log of the server, and ends the script.
await_response() {
  server_log=$1
  shift
  for _ in $(seq 100); do
    if curl -s "$@" >/dev/null; then
      return
    fi
    sleep 0.1
  done
  cat "$server_log"
  exit 1
}
