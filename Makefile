# profpull: `make help` lists the targets.
#
#   make                 build/profpull
#   make V=1             show the commands
#   make CC=clang        another compiler
#   make BUILD=dir       another directory for everything that is built
#   make ERR=            without -Werror

BUILD    ?= build
PREFIX   ?= /usr/local
DESTDIR  ?=
ERR      ?= -Werror
PKG_CONFIG ?= pkg-config
CLANG    ?= clang
GO       ?= go
FUZZ_SECONDS ?= 60

VERSION := $(shell cat VERSION)

# What only compiles runs one job for each processor, unless -j says otherwise.
ifeq ($(filter -j% --jobs% --jobserver%,$(MAKEFLAGS))$(filter-out all run tests-build,$(MAKECMDGOALS)),)
MAKEFLAGS += -j$(shell nproc 2>/dev/null || echo 1)
endif

# The libraries, as pkg-config names them.
PACKAGES := libcurl jansson yaml-0.1 zlib libdeflate libisal libpcre2-8 libevent libevent_openssl openssl libmd \
            sqlite3 libprotobuf-c libcrypt libseccomp libdw libelf libnghttp2
PKG_CFLAGS := $(shell $(PKG_CONFIG) --cflags $(PACKAGES) 2>/dev/null)
PKG_LIBS   := $(shell $(PKG_CONFIG) --libs $(PACKAGES) 2>/dev/null)

# The compiler and libraries that are not installed: building stops with their names. libiberty has no file for
# pkg-config, and is a static library only.
COMPILES := $(shell $(CC) -E -x c /dev/null >/dev/null 2>&1 && echo yes)
MISSING := $(if $(PKG_LIBS),,$(shell for p in $(PACKAGES); do $(PKG_CONFIG) --exists $$p 2>/dev/null || echo $$p; done)) \
           $(if $(COMPILES),$(shell $(CC) -E -include libiberty/demangle.h -x c /dev/null >/dev/null 2>&1 || echo libiberty), \
                            the compiler "$(CC)")

WARNINGS := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion \
            -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition -Wredundant-decls \
            -Wpointer-arith -Wcast-qual -Wwrite-strings -Wformat=2 -Wundef -Wvla \
            -Wimplicit-fallthrough -Wdouble-promotion -Wdate-time $(ERR)
# The options among these that the compiler knows: some exist on some architectures only.
supported = $(foreach o,$(1),$(shell $(CC) -Werror $(o) -x c -c -o /dev/null /dev/null 2>/dev/null && echo '$(o)'))
CONTROL_FLOW := $(call supported,-fcf-protection=full -mbranch-protection=standard)
# Off in the sanitizer builds: fortify and the sanitizers do not go together.
HARDEN   := -O2 -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -fstack-protector-strong \
            -fstack-clash-protection $(CONTROL_FLOW)
HARDEN_LD := -pie -Wl,-z,relro,-z,now,-z,noexecstack
OPT      ?= $(HARDEN)

# CFLAGS and LDFLAGS are the user's; ours are separate, so that both apply.
ALL_CFLAGS  = -std=gnu11 -D_GNU_SOURCE -DPROFPULL_VERSION='"$(VERSION)"' -I. -I$(BUILD)/gen \
              -g -fPIE -pthread $(WARNINGS) $(OPT) $(SANITIZE) $(if $(SANITIZE),-DINSTRUMENTED) $(PKG_CFLAGS) $(CFLAGS)
ALL_LDFLAGS = -pthread $(HARDEN_LD) $(SANITIZE) $(LDFLAGS)
LIBS        = $(PKG_LIBS) -liberty -lm

# The rooms, in link order: each may use those after it.
ROOMS := cli pages api server agent record store write scraper relabel discovery alloy config model jfr symbols bucket pprof http regex base
# The rooms that the tests of a room are linked with; UNDER is what all stages use.
UNDER := config model jfr symbols bucket pprof http regex base
DEPS_base      := base
DEPS_regex     := regex base
DEPS_http      := http base
DEPS_pprof     := pprof base
DEPS_jfr       := jfr pprof base
DEPS_symbols   := symbols pprof http base
DEPS_bucket    := bucket http base
DEPS_model     := model pprof http regex base
DEPS_config    := $(UNDER)
DEPS_alloy     := alloy $(UNDER)
DEPS_relabel   := relabel $(UNDER)
DEPS_discovery := discovery $(UNDER)
DEPS_scraper   := scraper $(UNDER)
DEPS_write     := write $(UNDER)
DEPS_store     := store $(UNDER)
DEPS_record    := record $(UNDER)
# Its tests load an Alloy file, too, which the agent itself does not know.
DEPS_agent     := agent record store write scraper relabel discovery alloy $(UNDER)
# Its tests ask for pages and APIs, which the server itself does not know.
DEPS_server    := pages api server $(DEPS_agent)
DEPS_api       := $(DEPS_server)
DEPS_pages     := $(DEPS_server)
DEPS_cli       := cli $(DEPS_server)
DEPS_all       := $(DEPS_cli)

Q := $(if $(V),,@)

.DEFAULT_GOAL := all
.PHONY: all
all: $(BUILD)/profpull ## build/profpull (the default)

# ---- objects, one library a room --------------------------------------------------------------
# "q": files of two sub-rooms may have the same name.

define room_rules
SRC_$(1) := $$(sort $$(wildcard $(1)/*.c $(1)/*/*.c $(1)/*/*/*.c))
OBJ_$(1) := $$(SRC_$(1):%.c=$$(BUILD)/obj/%.o)
$$(BUILD)/lib/$(1).a: $$(OBJ_$(1))
	@mkdir -p $$(@D)
	$$(Q)rm -f $$@ && $$(AR) qcs $$@ $$^
endef
$(foreach r,$(ROOMS),$(eval $(call room_rules,$(r))))

$(BUILD)/obj/%.o: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	@$(if $(V),:,echo "  CC    $<")
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

# The built-in configuration as the bytes of an array.
$(BUILD)/gen/builtin_yaml.inc: examples/builtin.yaml
	@mkdir -p $(@D)
	$(Q)od -An -v -tu1 $< | sed 's/[0-9][0-9]*/&,/g' > $@
$(BUILD)/obj/config/builtin.o: $(BUILD)/gen/builtin_yaml.inc

# The stylesheet and the scripts of the pages, in the same way.
ASSETS := $(wildcard pages/assets/*)
ASSETS_INC := $(patsubst pages/assets/%,$(BUILD)/gen/%.inc,$(subst .css,_css,$(subst .js,_js,$(ASSETS))))
$(BUILD)/gen/%_js.inc: pages/assets/%.js
	@mkdir -p $(@D)
	$(Q)od -An -v -tu1 $< | sed 's/[0-9][0-9]*/&,/g' > $@
$(BUILD)/gen/%_css.inc: pages/assets/%.css
	@mkdir -p $(@D)
	$(Q)od -An -v -tu1 $< | sed 's/[0-9][0-9]*/&,/g' > $@
$(BUILD)/obj/pages/assets.o: $(ASSETS_INC)

# Messages of protobuf: protoc-c makes C of them. What it makes is not ours to lint.
PROTO   := $(wildcard api/proto/*.proto pprof/proto/*.proto)
PROTO_C := $(PROTO:%.proto=$(BUILD)/gen/%.pb-c.c)
PROTO_H := $(PROTO_C:.c=.h)
PROTO_O := $(PROTO_C:$(BUILD)/gen/%.c=$(BUILD)/obj/%.o)
$(BUILD)/gen/%.pb-c.c $(BUILD)/gen/%.pb-c.h: %.proto
	@mkdir -p $(BUILD)/gen
	$(Q)protoc-c --c_out=$(BUILD)/gen $<
$(PROTO_O): $(BUILD)/obj/%.o: $(BUILD)/gen/%.c $(BUILD)/flags
	@mkdir -p $(@D)
	@$(if $(V),:,echo "  CC    $<")
	$(Q)$(CC) $(ALL_CFLAGS) -w -MMD -MP -c -o $@ $<
$(BUILD)/lib/api.a: $(filter $(BUILD)/obj/api/%,$(PROTO_O))
$(BUILD)/lib/pprof.a: $(filter $(BUILD)/obj/pprof/%,$(PROTO_O))
# The numbers of OTLP's fields as constants: OTLP_SAMPLE_VALUES for `values` of the message Sample.
OTLP_FIELDS := $(BUILD)/gen/pprof/proto/otlp_fields.h
$(OTLP_FIELDS): pprof/proto/otlp.proto scripts/proto-fields.awk
	@mkdir -p $(@D)
	$(Q)awk -f scripts/proto-fields.awk $< > $@
PROTO_H += $(OTLP_FIELDS)
# Whatever may include them.
$(OBJ_pprof) $(OBJ_write) $(OBJ_api) $(OBJ_pages) $(OBJ_server) $(OBJ_cli) \
$(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard tests/*/*.c tests/unit/*/*.c)): | $(PROTO_H)

# Everything is rebuilt when the compiler or its options change.
$(BUILD)/flags: FORCE
	@$(if $(strip $(MISSING)),echo "make: not installed: $(strip $(MISSING)). ./scripts/deps.sh build installs all libraries with apt" >&2; exit 1)
	@mkdir -p $(@D)
	@echo '$(CC) $(subst ','\'',$(ALL_CFLAGS) $(ALL_LDFLAGS))' | cmp -s - $@ || \
	    echo '$(CC) $(subst ','\'',$(ALL_CFLAGS) $(ALL_LDFLAGS))' > $@
.PHONY: FORCE
FORCE:

libs = $(foreach r,$(DEPS_$(1)),$(BUILD)/lib/$(r).a)

$(BUILD)/profpull: $(BUILD)/obj/profpull.o $(call libs,all)
	@$(if $(V),:,echo "  LD    $@")
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

# ---- unit tests: tests/unit/<room>/test_<room>_<what>.c ------------------------------------------

TEST_SRC := $(sort $(wildcard tests/unit/*/test_*.c))
TEST_BIN := $(patsubst %.c,$(BUILD)/tests/%,$(notdir $(TEST_SRC)))
# The room is the first word after "test_".
room_of = $(word 2,$(subst _, ,$(1)))
CMOCKA  := -lcmocka
# Tests that make allocations fail: tests/unit/lib/failing_malloc.h lists the wrapped functions too.
FAILING_MALLOC := malloc calloc realloc reallocarray strdup strndup asprintf vasprintf \
                  __asprintf_chk __vasprintf_chk json_loadb
FAILING_TESTS  := $(shell grep -l 'unit/lib/failing_malloc\.h"' $(TEST_SRC))
failing_objects = $(if $(filter %/$(1).c,$(FAILING_TESTS)),$(BUILD)/obj/tests/unit/lib/failing_malloc.o)
# It replaces the malloc() of the sanitizer, and runs before the sanitizer has started.
$(BUILD)/obj/tests/unit/lib/failing_malloc.o: private override SANITIZE := \
    $(if $(findstring -fsanitize=,$(SANITIZE)),-DSANITIZED)
failing_flags   = $(if $(call failing_objects,$(1)),$(FAILING_MALLOC:%=-Wl,--wrap=%))
# The disk of the spool, as tests/unit/write/spool_rig.h and a fuzz target replace it.
wrapped     = $(shell sed -n 's/^[a-z_]* __wrap_\(spool_io_[a-z_]*\).*/-Wl,--wrap=\1/p' $(1))
SPOOL_TESTS := $(shell grep -l 'unit/write/spool_rig\.h"' $(TEST_SRC))
SPOOL_FLAGS := $(call wrapped,tests/unit/write/spool_rig.h)
spool_flags = $(if $(filter %/$(1).c,$(SPOOL_TESTS)),$(SPOOL_FLAGS))
# The pauses of a loop, as its test replaces them.
PAUSE_FLAGS := -Wl,--wrap=clock_sleep_until_ns
pause_flags = $(if $(filter test_base_loop,$(1)),$(PAUSE_FLAGS))

define test_rules
$$(BUILD)/tests/$(1): $$(BUILD)/obj/tests/unit/$(call room_of,$(1))/$(1).o $$(BUILD)/obj/tests/unit/lib/testing.o \
                      $$(call failing_objects,$(1)) \
                      $$(call libs,$(call room_of,$(1)))
	@mkdir -p $$(@D)
	@$$(if $$(V),:,echo "  LD    $$@")
	$$(Q)$$(CC) $$(ALL_LDFLAGS) $$(call failing_flags,$(1)) $$(call spool_flags,$(1)) $$(call pause_flags,$(1)) -o $$@ $$^ $$(LIBS) $$(CMOCKA)
endef
$(foreach t,$(basename $(notdir $(TEST_SRC))),$(eval $(call test_rules,$(t))))

# The delta of two profiles, a merge of several, and the conversion of an old one, by hand.
TOOLS := $(BUILD)/tests/delta-tool $(BUILD)/tests/merge-tool $(BUILD)/tests/legacy-tool
$(TOOLS): $(BUILD)/tests/%-tool: $(BUILD)/obj/tests/tools/%_tool.o $(call libs,model)
	@mkdir -p $(@D)
	@$(if $(V),:,echo "  LD    $@")
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

# The profiles in a recording of Java, and what reading it takes.
$(BUILD)/tests/jfr-tool: $(BUILD)/obj/tests/tools/jfr_tool.o $(call libs,jfr)
	@mkdir -p $(@D)
	@$(if $(V),:,echo "  LD    $@")
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

# The names of addresses of a native file, and what finding them takes.
$(BUILD)/tests/symbols-tool: $(BUILD)/obj/tests/tools/symbols_tool.o $(call libs,symbols)
	@mkdir -p $(@D)
	@$(if $(V),:,echo "  LD    $@")
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

# What names cost a profile when they are known.
$(BUILD)/tests/naming-bench: $(BUILD)/obj/tests/tools/naming_bench.o $(call libs,symbols)
	@mkdir -p $(@D)
	@$(if $(V),:,echo "  LD    $@")
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

# The writer against a server, as fast as it goes.
$(BUILD)/tests/write-bench: $(BUILD)/obj/tests/tools/write_bench.o $(call libs,write)
	@mkdir -p $(@D)
	@$(if $(V),:,echo "  LD    $@")
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

# What fetching and posting costs without profpull.
$(BUILD)/tests/bare-loop: $(BUILD)/obj/tests/tools/bare_loop.o $(call libs,base)
	@mkdir -p $(@D)
	@$(if $(V),:,echo "  LD    $@")
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

# Shares of many replicas that come and go.
$(BUILD)/tests/sharding-sim: $(BUILD)/obj/tests/tools/sharding_sim.o $(call libs,agent)
	@mkdir -p $(@D)
	@$(if $(V),:,echo "  LD    $@")
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

# Profiles as an OTLP request, by hand.
$(BUILD)/tests/otlp-tool: $(BUILD)/obj/tests/tools/otlp_tool.o $(call libs,write)
	@mkdir -p $(@D)
	@$(if $(V),:,echo "  LD    $@")
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

# Profiles into the store, and what merging makes of them.
$(BUILD)/tests/store-bench: $(BUILD)/obj/tests/tools/store_bench.o $(call libs,store)
	@mkdir -p $(@D)
	@$(if $(V),:,echo "  LD    $@")
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

# Queries over an hour of profiles.
$(BUILD)/tests/archive-bench: $(BUILD)/obj/tests/tools/archive_bench.o $(call libs,store)
	@mkdir -p $(@D)
	@$(if $(V),:,echo "  LD    $@")
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

$(BUILD)/tests/query-bench: $(BUILD)/obj/tests/tools/query_bench.o $(call libs,store)
	@mkdir -p $(@D)
	@$(if $(V),:,echo "  LD    $@")
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

# How often the comparison of two versions is right.
$(BUILD)/tests/changes-bench: $(BUILD)/obj/tests/tools/changes_bench.o $(call libs,store)
	@mkdir -p $(@D)
	@$(if $(V),:,echo "  LD    $@")
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

# What the APIs that receive profiles cost.
$(BUILD)/tests/receive-bench: $(BUILD)/obj/tests/tools/receive_bench.o $(call libs,server)
	@mkdir -p $(@D)
	@$(if $(V),:,echo "  LD    $@")
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

# The bucket client against a real server.
$(BUILD)/tests/bucket-tool: $(BUILD)/obj/tests/tools/bucket_tool.o $(call libs,bucket)
	@mkdir -p $(@D)
	@$(if $(V),:,echo "  LD    $@")
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

# What reading a profile costs beside protobuf-c.
$(BUILD)/obj/tests/tools/protobuf_tool.o: | $(PROTO_H)
$(BUILD)/tests/protobuf-tool: $(BUILD)/obj/tests/tools/protobuf_tool.o $(call libs,server)
	@mkdir -p $(@D)
	@$(if $(V),:,echo "  LD    $@")
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

# The query APIs over a few profiles, for clients of other makers.
$(BUILD)/obj/tests/tools/query_server.o: | $(PROTO_H)
$(BUILD)/tests/query-server: $(BUILD)/obj/tests/tools/query_server.o $(call libs,server)
	@mkdir -p $(@D)
	@$(if $(V),:,echo "  LD    $@")
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

# ---- fuzz targets: tests/fuzz/fuzz_<room>_<what>.c --------------------------------------------
# Built twice: with a plain driver that replays the corpus (part of `make check`, any compiler), and
# with libFuzzer by `make fuzz`.

FUZZ_SRC    := $(sort $(wildcard tests/fuzz/fuzz_*.c))
FUZZ_REPLAY := $(FUZZ_SRC:tests/fuzz/%.c=$(BUILD)/replay/%)
FUZZ_BIN    := $(FUZZ_SRC:tests/fuzz/%.c=$(BUILD)/fuzz/%)

define fuzz_rules
$$(BUILD)/replay/$(1): $$(BUILD)/obj/tests/fuzz/$(1).o $$(BUILD)/obj/tests/fuzz/replay.o \
                       $$(call libs,$(call room_of,$(1)))
	@mkdir -p $$(@D)
	@$$(if $$(V),:,echo "  LD    $$@")
	$$(Q)$$(CC) $$(ALL_LDFLAGS) $$(call wrapped,tests/fuzz/$(1).c) -o $$@ $$^ $$(LIBS)
$$(BUILD)/fuzz/$(1): $$(BUILD)/obj/tests/fuzz/$(1).o $$(call libs,$(call room_of,$(1)))
	@mkdir -p $$(@D)
	@$$(if $$(V),:,echo "  LD    $$@")
	$$(Q)$$(CC) $$(ALL_LDFLAGS) $$(call wrapped,tests/fuzz/$(1).c) -fsanitize=fuzzer -o $$@ $$^ $$(LIBS)
endef
$(foreach f,$(FUZZ_SRC:tests/fuzz/%.c=%),$(eval $(call fuzz_rules,$(f))))

# ---- the targets ------------------------------------------------------------------------------

.PHONY: deps run test unit replay e2e charts delta-diff bench-all bench-delta bench-scale bench-discovery bench-write bench-otlp bench-query bench-rpc bench-crowd bench-store check asan tsan valgrind fuzz fuzz-build lint bench bench-faults coverage \
        install uninstall deb dist clean help tests-build

tests-build: $(TEST_BIN) $(FUZZ_REPLAY) $(TOOLS) $(BUILD)/tests/jfr-tool $(BUILD)/tests/symbols-tool $(BUILD)/tests/naming-bench $(BUILD)/tests/otlp-tool $(BUILD)/tests/write-bench $(BUILD)/tests/bare-loop $(BUILD)/tests/sharding-sim $(BUILD)/tests/query-bench $(BUILD)/tests/archive-bench $(BUILD)/tests/changes-bench $(BUILD)/tests/query-server $(BUILD)/tests/store-bench $(BUILD)/tests/protobuf-tool $(BUILD)/tests/receive-bench $(BUILD)/tests/bucket-tool

deps: ## install what building needs, with apt (DEPS="build test lint" for more)
	./scripts/deps.sh $(or $(DEPS),build)

run: $(BUILD)/profpull ## scrape programs on loopback and show their flame graphs, until Ctrl-C
	BUILD=$(BUILD) ./scripts/run.sh

unit: $(TEST_BIN) ## unit tests alone
	./scripts/run-tests.sh $(TEST_BIN)

replay: $(FUZZ_REPLAY) ## the replay of the fuzz corpora alone
	./scripts/replay.sh $(FUZZ_REPLAY)

test: unit replay ## unit tests and the replay of the fuzz corpora

e2e: $(BUILD)/profpull ## end-to-end tests: real programs scraped, fakes for faults (needs go)
	BUILD=$(abspath $(BUILD)) GO="$(GO)" ./scripts/e2e.sh

delta-diff: $(TOOLS) ## deltas, merges and conversions of old profiles against google/pprof
	BUILD=$(abspath $(BUILD)) GO="$(GO)" ./scripts/delta-diff.sh

charts: $(BUILD)/profpull ## the Helm chart and the kustomizations, rendered in many variants (needs Go 1.22 and modules)
	BUILD=$(abspath $(BUILD)) GO="$(GO)" ./scripts/charts.sh

.PHONY: otlp-diff
otlp-diff: $(BUILD)/tests/otlp-tool ## OTLP requests read back in Go with the published messages (needs a Go proxy)
	BUILD=$(abspath $(BUILD)) GO="$(GO)" ./scripts/otlp-diff.sh
.PHONY: check-jfr bench-jfr
check-jfr: $(BUILD)/tests/jfr-tool ## a recording of a real JDK against the JDK's own reader (scripts/deps.sh jfr)
	BUILD=$(abspath $(BUILD)) GO="$(GO)" ./scripts/check-jfr.sh $(RECORDINGS)
bench-jfr: $(BUILD)/profpull $(BUILD)/tests/jfr-tool ## what reading a recording of 12 MB costs, next to Pyroscope's parser
	BUILD=$(abspath $(BUILD)) GO="$(GO)" ./scripts/bench-jfr.sh $(RECORDINGS)
.PHONY: pyroscope-check
pyroscope-check: $(BUILD)/profpull ## `query` against a real Pyroscope: PYROSCOPE=its program (docs/testing.md)
	@test -x "$(PYROSCOPE)" || { echo "make: PYROSCOPE names no program of Grafana Pyroscope" >&2; exit 1; }
	PROFPULL_PYROSCOPE=$(abspath $(PYROSCOPE)) BUILD=$(abspath $(BUILD)) ./scripts/e2e.sh -run TestRealPyroscope
.PHONY: bench-flame flame-pictures flame-profiles
bench-flame: $(BUILD)/profpull ## how long a flame graph of a profile of 1 MB takes in the terminal
	BUILD=$(abspath $(BUILD)) GO="$(GO)" ./scripts/bench-flame.sh
flame-pictures: $(BUILD)/profpull ## the pictures of terminals in docs, drawn again
	BUILD=$(BUILD) GO="$(GO)" ./scripts/flame-pictures.sh
flame-profiles: $(BUILD)/profpull ## the profiles of the pictures in docs/recipes.md, of programs in C++, Rust, Java and with brpc, made again
	BUILD=$(BUILD) GO="$(GO)" ./scripts/flame-profiles.sh
.PHONY: bench-symbols
bench-symbols: $(BUILD)/profpull $(BUILD)/tests/symbols-tool $(BUILD)/tests/naming-bench ## what names of native code cost: a cold debug file of 200 MB, and known names
	BUILD=$(abspath $(BUILD)) ./scripts/bench-symbols.sh
.PHONY: bench-names
bench-names: $(BUILD)/profpull $(BUILD)/tests/naming-bench ## CPU of the whole process for 300 native profiles a second, with names and without
	BUILD=$(abspath $(BUILD)) GO="$(GO)" ./scripts/bench-names.sh
.PHONY: check-otlp
check-otlp: $(BUILD)/profpull ## OpenTelemetry's client and Collector send and receive, and the store has what they sent (needs a Go proxy)
	BUILD=$(abspath $(BUILD)) GO="$(GO)" ./scripts/check-otlp.sh

.PHONY: check-sdks
check-sdks: $(BUILD)/profpull ## SDKs of others push, and the store has what they sent (needs a Go proxy; node and npm for some)
	BUILD=$(abspath $(BUILD)) GO="$(GO)" ./scripts/check-sdks.sh
.PHONY: check-pages-axe
check-pages-axe: $(BUILD)/profpull ## axe-core checks the pages in Chromium (needs npm and Chromium)
	BUILD=$(abspath $(BUILD)) GO="$(GO)" ./scripts/check-pages-axe.sh
.PHONY: check-bucket
check-bucket: $(BUILD)/tests/bucket-tool ## the bucket client against Versity's S3 gateway (needs a Go proxy)
	BUILD=$(abspath $(BUILD)) GO="$(GO)" ./scripts/check-bucket.sh
.PHONY: check-archive
check-archive: $(BUILD)/profpull ## a store and its archive against Versity's S3 gateway (after check-bucket)
	BUILD=$(abspath $(BUILD)) ./scripts/check-archive.sh
.PHONY: check-archive-hour
check-archive-hour: $(BUILD)/profpull ## three sharded replicas, their archive in Versity's S3 gateway, and readers against one store (ten minutes; after check-bucket)
	BUILD=$(abspath $(BUILD)) GO="$(GO)" ./scripts/check-archive-hour.sh
.PHONY: check-archive-kills
check-archive-kills: $(BUILD)/profpull ## 200 kills of a writer with an archive, while the bucket fails in all ways (half an hour)
	BUILD=$(abspath $(BUILD)) GO="$(GO)" ./scripts/check-archive-kills.sh
.PHONY: connect-diff
connect-diff: $(BUILD)/tests/query-server ## a connect-go client of Pyroscope's API against ours (needs a Go proxy)
	BUILD=$(abspath $(BUILD)) GO="$(GO)" ./scripts/connect-diff.sh

check: ## all tests: unit, corpora, deltas, end to end
	BUILD=$(BUILD) MAKE="$(MAKE)" ./scripts/check.sh

ASAN_FLAGS := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
asan: ## unit and end-to-end tests under AddressSanitizer and UBSan
	$(MAKE) BUILD=$(BUILD)/asan SANITIZE="$(ASAN_FLAGS)" OPT="-O1 -DARENA_DEBUG" HARDEN_LD=-pie check

tsan: ## unit and end-to-end tests under ThreadSanitizer
	$(MAKE) BUILD=$(BUILD)/tsan SANITIZE="-fsanitize=thread" OPT="-O1" HARDEN_LD=-pie check

valgrind: $(BUILD)/profpull $(TEST_BIN) ## unit tests and one whole run under valgrind: no leak
	BUILD=$(abspath $(BUILD)) GO="$(GO)" ./scripts/valgrind.sh $(TEST_BIN)

FUZZ_FLAGS := -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
fuzz-build: $(FUZZ_BIN)
fuzz: ## each fuzz target for FUZZ_SECONDS (60) with clang's libFuzzer
	$(MAKE) BUILD=$(BUILD)/fuzzing CC=$(CLANG) SANITIZE="$(FUZZ_FLAGS)" \
	    OPT="-O1 -DARENA_DEBUG" HARDEN_LD=-pie fuzz-build
	FUZZ_SECONDS=$(FUZZ_SECONDS) ./scripts/fuzz.sh $(FUZZ_SRC:tests/fuzz/%.c=$(BUILD)/fuzzing/fuzz/%)

lint: ## clang-format, clang-tidy, cppcheck, header and size checks, both compilers
	BUILD=$(BUILD) MAKE="$(MAKE)" ./scripts/lint.sh

bench: $(BUILD)/profpull $(BUILD)/tests/bare-loop ## figures for speed and memory; never fails on a time
	BUILD=$(abspath $(BUILD)) GO="$(GO)" ./scripts/bench.sh

bench-all: all tests-build ## all figures of docs/benchmarks.md, or those of PARTS, beside OLD=TREE if given, into BENCH_OUT=FILE as well; up to an hour
	BUILD=$(abspath $(BUILD)) GO="$(GO)" OLD="$(OLD)" BENCH_OUT="$(BENCH_OUT)" ./scripts/bench-all.sh $(PARTS)

bench-docs: ## docs/benchmarks.md gets the output of bench-all in BENCH_OUT=FILE
	./scripts/bench-docs.sh "$(BENCH_OUT)"
.PHONY: bench-docs

bench-table: all tests-build ## the first part of bench-all alone; OLD=TREE is an earlier tree, built with "make all tests-build"
	BUILD=$(abspath $(BUILD)) GO="$(GO)" OLD="$(OLD)" ./scripts/bench-table.sh

bench-pyroscope: $(BUILD)/profpull $(BUILD)/tests/write-bench ## the store beside a Pyroscope server (PYROSCOPE=path of its binary)
	BUILD=$(abspath $(BUILD)) PYROSCOPE="$(PYROSCOPE)" ./scripts/bench-pyroscope.sh
.PHONY: bench-table bench-pyroscope

bench-scale: $(BUILD)/profpull $(BUILD)/tests/sharding-sim ## CPU, memory and lateness over 100 to 20,000 targets; 100,000 pods; shares of 200 replicas
	BUILD=$(abspath $(BUILD)) GO="$(GO)" ./scripts/bench-scale.sh

bench-discovery: $(BUILD)/profpull ## what Kubernetes discovery costs, with 10,000 pods
	BUILD=$(abspath $(BUILD)) GO="$(GO)" ./scripts/bench-discovery.sh

bench-delta: $(BUILD)/tests/delta-tool ## what a delta costs, next to google/pprof
	BUILD=$(abspath $(BUILD)) GO="$(GO)" ./scripts/bench-delta.sh

bench-write: $(BUILD)/tests/write-bench ## profiles a second through the writer on one core
	BUILD=$(abspath $(BUILD)) GO="$(GO)" ./scripts/bench-write.sh

bench-otlp: $(BUILD)/tests/write-bench ## profiles a second as OTLP on one core
	BUILD=$(abspath $(BUILD)) GO="$(GO)" ./scripts/bench-otlp.sh

.PHONY: bench-receive
bench-receive: $(BUILD)/tests/receive-bench ## profiles a second through the APIs that receive them, on one core
	BUILD=$(abspath $(BUILD)) ./scripts/bench-receive.sh

bench-store: $(BUILD)/tests/store-bench ## profiles a second into the store on one core, and merging
	BUILD=$(abspath $(BUILD)) ./scripts/bench-store.sh

bench-query: $(BUILD)/tests/query-bench ## how long queries take over an hour of 100 services
	BUILD=$(abspath $(BUILD)) ./scripts/bench-query.sh

.PHONY: bench-archive
bench-archive: $(BUILD)/tests/archive-bench ## requests and time of a query of 30 days from a bucket that takes 30 ms for each request
	BUILD=$(abspath $(BUILD)) ./scripts/bench-archive.sh

.PHONY: bench-changes
bench-changes: $(BUILD)/tests/changes-bench ## how often the comparison of two versions is right, on programs whose truth is known
	$(BUILD)/tests/changes-bench

.PHONY: bench-record
bench-record: $(BUILD)/profpull ## what recorded metrics cost: without rules, with rules that nothing matches, and with rules that match
	BUILD=$(abspath $(BUILD)) GO="$(GO)" ./scripts/bench-record.sh

bench-rpc: $(BUILD)/tests/query-server ## what a query costs over Connect, gRPC and gRPC-web
	BUILD=$(abspath $(BUILD)) ./scripts/bench-rpc.sh

.PHONY: check-canary
check-canary: $(BUILD)/profpull ## Pyroscope's prober against profpull (CANARY_EXPORTER=path of profilecli)
	BUILD=$(abspath $(BUILD)) ./scripts/canary.sh

bench-crowd: $(BUILD)/profpull ## how late scrapes begin while 1,000 connections ask for queries
	BUILD=$(abspath $(BUILD)) GO="$(GO)" ./scripts/bench-crowd.sh

bench-faults: $(BUILD)/profpull ## what faults of the outside cost: silent targets, an outage, little memory, many reloads
	BUILD=$(abspath $(BUILD)) GO="$(GO)" ./scripts/bench-faults.sh

coverage: ## line coverage of the unit and end-to-end tests (gcovr)
	$(MAKE) BUILD=$(BUILD)/coverage SANITIZE="--coverage" OPT="-O0" HARDEN_LD=-pie check
	gcovr --root . --object-directory $(BUILD)/coverage --exclude tests/ --print-summary \
	    --html-details $(BUILD)/coverage/index.html | tee $(BUILD)/coverage/summary.txt

# Where the program that writes its manual page and completions runs; another one than what is
# installed, if that is for another architecture.
PROFPULL_HELP ?= $(BUILD)/profpull
STRIP ?= strip
DOC = $(DESTDIR)$(PREFIX)/share/doc/profpull
MAN = $(DESTDIR)$(PREFIX)/share/man/man1
BASH_COMPLETIONS = $(DESTDIR)$(PREFIX)/share/bash-completion/completions
ZSH_COMPLETIONS  = $(DESTDIR)$(PREFIX)/share/zsh/vendor-completions
FISH_COMPLETIONS = $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d

install: $(BUILD)/profpull ## into DESTDIR and PREFIX (/usr/local), stripped unless STRIP=:
	install -d $(DESTDIR)$(PREFIX)/bin $(DOC)/examples $(DOC)/monitoring $(MAN) $(BASH_COMPLETIONS) \
	    $(ZSH_COMPLETIONS) $(FISH_COMPLETIONS)
	install -m 755 $(BUILD)/profpull $(DESTDIR)$(PREFIX)/bin/profpull
	$(STRIP) $(DESTDIR)$(PREFIX)/bin/profpull
	ln -sf profpull $(DESTDIR)$(PREFIX)/bin/kubectl-profpull
	install -m 644 README.md LICENSE docs/*.md $(DOC)
	install -m 644 examples/* $(DOC)/examples
	install -m 644 packaging/monitoring/* $(DOC)/monitoring
	$(PROFPULL_HELP) help --man > $(MAN)/profpull.1
	ln -sf profpull.1 $(MAN)/kubectl-profpull.1
	$(PROFPULL_HELP) help --completion bash > $(BASH_COMPLETIONS)/profpull
	$(PROFPULL_HELP) help --completion zsh > $(ZSH_COMPLETIONS)/_profpull
	$(PROFPULL_HELP) help --completion fish > $(FISH_COMPLETIONS)/profpull.fish
	chmod 644 $(MAN)/profpull.1 $(BASH_COMPLETIONS)/profpull $(ZSH_COMPLETIONS)/_profpull \
	    $(FISH_COMPLETIONS)/profpull.fish

uninstall: ## remove what install has installed
	rm -f $(DESTDIR)$(PREFIX)/bin/profpull $(DESTDIR)$(PREFIX)/bin/kubectl-profpull $(MAN)/profpull.1 $(MAN)/kubectl-profpull.1 \
	    $(BASH_COMPLETIONS)/profpull $(ZSH_COMPLETIONS)/_profpull $(FISH_COMPLETIONS)/profpull.fish
	rm -rf $(DOC)

deb: ## the Debian package, for this architecture or DEB_ARCH=arm64
	BUILD=$(BUILD) ./scripts/deb.sh $(DEB_ARCH)

.PHONY: release image image-check dockerfile-check deb-check
release: ## debs, tarballs, SBOMs, image and checksums of both architectures (root)
	BUILD=$(abspath $(BUILD)) ./scripts/release.sh packages image

image: ## the image of both architectures as an OCI layout, without a container engine (root)
	BUILD=$(abspath $(BUILD)) ./scripts/release.sh image

.PHONY: mcp-check
mcp-check: $(BUILD)/profpull ## try the server for assistants with the official Go SDK (modules from the proxy)
	BUILD=$(abspath $(BUILD)) GO="$(GO)" ./scripts/mcp-check.sh

.PHONY: mcp-conformance
mcp-conformance: $(BUILD)/profpull ## try it with the official conformance suite and the inspector (npm)
	BUILD=$(abspath $(BUILD)) GO="$(GO)" ./scripts/mcp-check.sh conformance

image-check: ## try that image: content, chroot, a scrape (root)
	BUILD=$(abspath $(BUILD)) GO="$(GO)" ./scripts/image-check.sh

dockerfile-check: ## build the Dockerfile with buildah, without a registry, and try its image (root)
	BUILD=$(abspath $(BUILD)) ./scripts/dockerfile-check.sh

deb-check: ## try the released debs in new systems of Debian 12 and 13, amd64 and arm64 (root)
	BUILD=$(abspath $(BUILD)) ./scripts/deb-check.sh

dist: ## the sources as build/profpull-VERSION.tar.gz
	@mkdir -p $(BUILD)
	git -c safe.directory='*' archive --format=tar.gz --prefix=profpull-$(VERSION)/ -o $(BUILD)/profpull-$(VERSION).tar.gz HEAD
	@echo $(BUILD)/profpull-$(VERSION).tar.gz

clean: ## remove everything that was built
	rm -rf $(BUILD)

help: ## this list
	@grep -hE '^[a-z][a-z0-9-]*:.*## ' $(MAKEFILE_LIST) | \
	    awk -F ':.*## ' '{ printf "  make %-15s %s\n", $$1, $$2 }'

-include $(shell test -d $(BUILD)/obj && find $(BUILD)/obj -name '*.d')
