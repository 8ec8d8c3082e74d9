#!/bin/sh
# One part of scripts/deb-check.sh, as root of the system in which the package is tried. Prints what is so,
# and ends with an error at the first thing that is not.
set -eu

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

# All files but what installing any package changes.
files() {
  find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /tmp -o -path /root -o -path /var/lib/dpkg \
    -o -path /var/lib/apt -o -path /var/cache -o -path /var/log -o -path /var/lib/systemd \) -prune -o -print |
    grep -vxE '/etc/(passwd|group|shadow|gshadow|subuid|subgid|\.pwd\.lock)-?|/etc/ld\.so\.cache|/run/.*' | sort
}

as_profpull="setpriv --reuid=profpull --regid=profpull --clear-groups --no-new-privs --inh-caps=-all --bounding-set=-all"

# Until a command succeeds; the count is a limit for a program that hangs.
wait_for() {
  what=$1
  shift
  tries=0
  until "$@" >/dev/null 2>&1; do
    tries=$((tries + 1))
    [ "$tries" -lt 600 ] || fail "$what"
    sleep 0.5
  done
}

stored() {
  curl -sf http://127.0.0.1:4041/metrics | grep -E '^profpull_store_profiles(\{.*\})? [1-9]'
}

install_it() {
  apt-get update -qq
  files >/root/before
  apt-get install -y -qq --no-install-recommends /root/profpull.deb >/root/log 2>&1 || {
    tail -n 20 /root/log
    fail "apt-get install"
  }
  grep -q . /etc/debian_version && echo "Debian $(cat /etc/debian_version), $(dpkg --print-architecture)"
  dpkg-query -W -f '${Package} ${Version} ${Architecture}: ${db:Status-Status}\n' profpull
  dpkg --verify profpull || fail "dpkg --verify"
  profpull version
  [ "$(kubectl-profpull version)" = "$(profpull version)" ] || fail "no plugin of kubectl"
  find /usr/share/doc/profpull -name 'changes.md*' | grep -q . || fail "a page of the documentation is missing"
  man_page=/usr/share/man/man1/profpull.1.gz
  [ -e "$man_page" ] || fail "no $man_page"
}

# The command that the unit runs, as the user that it runs as.
# shellcheck disable=SC2086  # a command with its options
run_it() {
  systemd-analyze security --offline=true --threshold=15 profpull.service >/root/score 2>&1 || {
    tail -n 5 /root/score
    fail "the sandbox's score is above 1.5"
  }
  tail -n 1 /root/score | sed 's/[^[:print:]]//g'
  $as_profpull profpull check --config /etc/profpull/profpull.yaml
  install -d -o profpull -g profpull -m 750 /var/lib/profpull
  setpriv --reuid=nobody --clear-groups --inh-caps=-all prometheus-node-exporter --collector.disable-defaults \
    --web.listen-address=127.0.0.1:9100 >/root/exporter.log 2>&1 &
  wait_for "prometheus-node-exporter does not answer" curl -sf http://127.0.0.1:9100/debug/pprof/cmdline
  echo '[{"targets": ["127.0.0.1:9100"], "labels": {"service_name": "node-exporter"}}]' \
    >/etc/profpull/targets.d/exporter.json
  chmod 644 /etc/profpull/targets.d/exporter.json
  $as_profpull profpull run --config /etc/profpull/profpull.yaml >/root/run.log 2>&1 &
  pid=$!
  wait_for "no profile in the store: $(tail -n 3 /root/run.log)" stored
  stored | head -n 1
  curl -sf -X POST -H 'Content-Type: application/json' -d '{"name": "service_name", "start": 1, "end": 4000000000000}' \
    http://127.0.0.1:4041/querier.v1.QuerierService/LabelValues
  echo
  kill -TERM "$pid"
  wait "$pid" || fail "profpull ended with $?"
  find /var/lib/profpull -name '*.db' | grep -q . || fail "no database in /var/lib/profpull"
}

remove_it() {
  rm -f /etc/profpull/targets.d/exporter.json
  # In Debian 13, systemd suggests libdw, which apt would keep for it.
  apt-get -o APT::AutoRemove::SuggestsImportant=false purge -y -qq --autoremove profpull >/root/log 2>&1 || {
    tail -n 20 /root/log
    fail "apt-get purge"
  }
  files >/root/after
  diff /root/before /root/after || fail "purging left or removed files"
  echo "purged: nothing left but the user"
}

case "${1:-}" in
  install) install_it ;;
  run) run_it ;;
  remove) remove_it ;;
  *)
    echo "usage: $0 install|run|remove" >&2
    exit 2
    ;;
esac
