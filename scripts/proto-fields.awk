# Prints the numbers of the fields of a .proto file as constants of C: OTLP_SAMPLE_STACK_INDEX for the
# field `stack_index` of the message Sample. Messages must not be nested.

function upper(name) { # ExportRequest -> EXPORT_REQUEST
  out = ""
  for (i = 1; i <= length(name); i++) {
    c = substr(name, i, 1)
    out = out (c ~ /[A-Z]/ && i > 1 ? "_" : "") toupper(c)
  }
  return out
}

BEGIN { print "/* Made of pprof/proto/otlp.proto by scripts/proto-fields.awk. */\n#ifndef PROFPULL_OTLP_FIELDS_H\n#define PROFPULL_OTLP_FIELDS_H" }
/^message / { message = upper($2); printf "enum {" }
/^}/ { print " };" }
/ = [0-9]+( \[.*\])?;/ {
  line = $0
  sub(/ \[.*\]/, "", line)
  sub(/;.*/, "", line)
  n = split(line, word, " ")
  printf " OTLP_%s_%s = %d,", message, toupper(word[n - 2]), word[n]
}
END { print "#endif" }
