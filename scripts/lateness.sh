# shellcheck shell=sh
# How late scrapes begin, from the metrics of a running profpull, for the scripts that load one. Sourced by those, which set dir
# (of their own files), port (of the admin server) and server (the process).

dir=${dir:-} port=${port:-} server=${server:-}

buckets() {
  curl -sf "http://127.0.0.1:$port/metrics" |
    sed -n 's/^profpull_scrape_lateness_seconds_bucket{.*le="\([^"]*\)".*} \([0-9]*\)$/\1 \2/p'
}

# lateness BEFORE AFTER: quantiles of what was added between two readings, within a bucket by its share.
lateness() {
  awk '
    FNR == NR { before[$1] += $2; next }
    { if (!($1 in after)) { order[++n] = $1 } after[$1] += $2 }
    function quantile(q, i, under, below, count) {
      for (i = 1; i <= n; i++) {
        count = after[order[i]] - before[order[i]]
        if (count >= q * total) {
          if (order[i] == "+Inf") { return ">" below * 1000 }
          return sprintf("%.1f", 1000 * (below + (order[i] - below) * (q * total - under) / (count - under)))
        }
        under = count
        below = order[i]
      }
    }
    END {
      total = after["+Inf"] - before["+Inf"]
      if (total == 0) { print "no scrapes"; exit }
      printf "%d scrapes, late by p50 %s ms, p99 %s ms", total, quantile(0.5), quantile(0.99)
    }' "$1" "$2"
}

# waited: for how many ms the thread that scrapes has waited for a core since its start.
waited() {
  awk '{ printf "%d", $2 / 1000000 }' "$(dirname "$(grep -lx network "/proc/$server"/task/*/comm)")/schedstat"
}

begin() {
  buckets >"$dir/before"
  waited_before=$(waited)
}

# window NAME: prints what happened since begin.
window() {
  buckets >"$dir/after"
  printf '%-30s %s; %s ms without a core; resident %s MB, at most %s MB\n' "$1" \
    "$(lateness "$dir/before" "$dir/after")" "$(($(waited) - waited_before))" \
    "$(awk '/^VmRSS/ { printf "%.0f", $2 / 1024 }' "/proc/$server/status")" \
    "$(awk '/^VmHWM/ { printf "%.0f", $2 / 1024 }' "/proc/$server/status")"
}
