#!/bin/sh
# Format, static analysis, house rules. Prints one line a check; fails if any failed.
set -u

make=${MAKE:-make}
build=${BUILD:-build}
failed=0
rooms="base regex http pprof jfr symbols bucket model config alloy relabel discovery scraper record write store agent server api pages cli"
for room in $rooms; do
  [ -d "$room" ] || { echo "lint: there is no $room/" && exit 1; }
done
# shellcheck disable=SC2086  # a list of directories
sources="profpull.c $(find $rooms -name '*.c' | sort)"
# shellcheck disable=SC2086
headers=$(find $rooms -name '*.h' | sort)
tests=$(find tests -name '*.[ch]' | sort)

# run NAME COMMAND...: prints the output of a check only when it fails.
run() {
  name=$1
  shift
  if output=$("$@" 2>&1); then
    echo "ok   $name"
  else
    echo "FAIL $name"
    # Without what make has built, and what clang-tidy does not show. All errors come first: the notes of one can be long.
    printf '%s\n' "$output" | grep -E ': (fatal )?error: ' | sort -u
    printf '%s\n' "$output" | grep -vE '^  [A-Z0-9]+ +[^ ]+$|^[0-9]+ warnings? generated' | head -n 60
    failed=$((failed + 1))
  fi
}

# none COMMAND...: a search that has to find nothing. grep says so with 1; with 2 it has failed.
none() {
  "$@"
  [ $? -eq 1 ]
}

# shellcheck disable=SC2086
check_format() { clang-format --dry-run -Werror $sources $headers $tests; }

# clang-tidy takes its flags from compile_flags.txt; what is generated was made by the build before.
# shellcheck disable=SC2086
check_tidy() {
  printf '%s\n' $sources | xargs -P "$(nproc)" -n 4 clang-tidy --quiet --extra-arg="-I$build/gen"
}

# shellcheck disable=SC2086
check_cppcheck() {
  cppcheck --quiet --std=c11 --enable=warning,performance,portability --inline-suppr \
    --error-exitcode=1 --suppress=missingIncludeSystem -D_GNU_SOURCE -DPROFPULL_VERSION='"0"' \
    -I. $sources
}

# A pointer is compared with NULL where it is tested. What macros of the system do is theirs.
# shellcheck disable=SC2046,SC2086
check_null() {
  clang-query -f scripts/dialect.query $sources $(find tests -name '*.c') -- \
    $(cat compile_flags.txt) "-I$build/gen" 2>&1 |
    awk '
      function flush() { if (place != "" && !macro) { print place; bad = 1 }; place = "" }
      /^Match #/ { flush(); macro = 0 }
      /: note: "root" binds here/ { place = $0 }
      /: error: / { print; bad = 1 }
      /expanded from macro/ { macro = 1 }
      /^[0-9]+ match(es)?\.$/ { ran = 1 }
      END { flush(); exit bad || !ran }'
}

# Every header compiles alone.
check_headers() {
  for h in $headers; do
    printf '#include "%s"\n' "$h" | gcc -std=gnu11 -D_GNU_SOURCE -I. -I"$build/gen" -Wall -Wextra -Werror -xc -fsyntax-only - || return 1
  done
}

# The compiler is asked for the hardening flags that it knows: those of x86 are not those of arm64.
check_flags() {
  dir=$(mktemp -d)
  cat >"$dir/cc" <<'EOT'
#!/bin/sh
case "$*" in *-fcf-protection*) exit 1 ;; esac
exec gcc "$@"
EOT
  chmod +x "$dir/cc"
  "$make" -s CC="$dir/cc" BUILD="$dir" "$dir/flags" && grep -q -- -fstack-clash-protection "$dir/flags" &&
    none grep -- -fcf-protection "$dir/flags"
  code=$?
  rm -rf "$dir"
  return $code
}

# What must not be called (and what to use instead).
check_banned() {
  # shellcheck disable=SC2086
  none grep -nEw '(strcpy|strcat|sprintf|vsprintf|strtok|atoi|atol|atoll|sscanf|gets|alloca|gmtime|localtime|strerror)\(' \
    $sources $headers
}

# Dependencies point one way: each room may include itself and those that are listed for it.
check_layers() {
  bad=0
  under="base regex http pprof jfr symbols bucket model config"
  stages="discovery relabel scraper record write store"
  allow() { # allow ROOM ALLOWED...
    room=$1
    allowed=$(printf '%s' "$*" | tr ' ' '|')
    if find "$room" -name '*.[ch]' -exec grep -nE '#include "' {} + |
      grep -vE "#include \"($allowed)/|#include \"[a-z_]+\.inc\""; then
      bad=1
    fi
  }
  allow base
  allow regex base
  allow http base
  allow pprof base
  allow jfr base pprof
  allow symbols base http pprof
  allow bucket base http
  allow model base http pprof regex
  allow config base http pprof symbols bucket model
  allow alloy base http pprof symbols bucket model config
  for room in $stages; do
    # shellcheck disable=SC2086  # a list of rooms
    allow "$room" $under
  done
  # shellcheck disable=SC2086
  allow agent $under $stages
  # shellcheck disable=SC2086
  allow server $under
  # shellcheck disable=SC2086
  allow api $under $stages agent server
  # shellcheck disable=SC2086
  allow pages $under $stages agent server api
  # shellcheck disable=SC2086
  allow cli $under $stages agent server api pages alloy
  return $bad
}

# Headers include each other in no circle, in whatever room; tsort names one. (Circles of rooms are
# what check_layers excludes.)
check_circles() {
  # shellcheck disable=SC2086
  grep -oE '#include "[a-z_0-9/]+\.h"' $headers | sed -E 's/:#include "(.*)"$/ \1/' | tsort >/dev/null
}

# Tests link the product as it is built: see tests/unit/lib/failing_malloc.h.
# shellcheck disable=SC2086
check_tests_include() {
  none grep -nE '#include "[a-z_0-9/]+\.c"' $tests
}

# Phrases and words of an English that this code has left. A line is allowed that matches one of the
# patterns in scripts/phrases.allow.
check_phrases() {
  found=$(git grep -nIiE -f scripts/phrases.deny -- '*.c' '*.h' '*.go' '*.sh' '*.md' Makefile Dockerfile)
  [ $? -le 1 ] && printf '%s\n' "$found" | none grep -vE -f scripts/phrases.allow -e '^$'
}

# A comment begins with its subject: with the thing that a function returns or a member holds, or with
# a verb. There is no exception today; one would be a pattern here, with its reason.
# shellcheck disable=SC2016 # the variables are those of awk
check_comments() {
  none git grep -nE '/\* (What|Whether|Of|Those|Whoever|It|That|As)\b' -- '*.c' '*.h' &&
    git ls-files '*.go' | xargs awk '
      FNR == 1 { comment = 0 }
      !comment && /^[ \t]*\/\/ (What|Whether|Of|Those|Whoever|It|That|As)[ ,:]/ {
        print FILENAME ":" FNR ":" $0
        found = 1
      }
      { comment = /^[ \t]*\/\// }
      END { exit found }'
}

# Functions of at most 60 lines; clang-tidy bounds their complexity.
check_sizes() {
  # shellcheck disable=SC2086
  awk '
    FNR == 1 { start = 0 }
    /^\{/ { start = FNR }
    /^\}/ { if (start && FNR - start > 61) { print FILENAME ":" start ": function of " FNR - start - 1 " lines"; bad = 1 }; start = 0 }
    END { exit bad }' $sources
}

run "gcc" "$make" -j"$(nproc)" BUILD="$build" CC=gcc all tests-build
run "clang" "$make" -j"$(nproc)" BUILD="$build/clang" CC=clang all tests-build
run "clang-format" check_format
run "clang-tidy" check_tidy
run "pointers compared" check_null
run "cppcheck" check_cppcheck
run "headers alone" check_headers
run "flags by architecture" check_flags
run "banned functions" check_banned
run "layers" check_layers
run "include circles" check_circles
run "tests include no product file" check_tests_include
run "phrases" check_phrases
run "heads of comments" check_comments
run "function sizes" check_sizes
run "versions" sh scripts/version.sh
run "shellcheck" sh -c 'shellcheck scripts/*.sh scripts/*/*.sh .ci/run'
echo "lint: $failed failed"
[ "$failed" -eq 0 ]
