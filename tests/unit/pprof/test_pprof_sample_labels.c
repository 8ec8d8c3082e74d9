/* Labels within samples: what goes, under which name, and that nothing else changes. */
#include "tests/unit/lib/pprof_writer.h"

#include <stdlib.h>

#include "pprof/gzip.h"
#include "pprof/sample_labels.h"
#include "pprof/wire.h"

#define MAX ((size_t)1 << 20)

/* Drops "drop", renames "old" to "new", and repairs "a-b" to "a_b" and "" to nothing. */
static enum sample_label_change on_name(void *arg, struct sv name, struct buf *out)
{
    (void)arg;
    if (sv_eq_str(name, "drop")) {
        return SAMPLE_LABEL_DROPPED;
    }
    if (sv_eq_str(name, "old")) {
        buf_puts(out, "new");
        return SAMPLE_LABEL_RENAMED;
    }
    if (sv_eq_str(name, "a-b")) {
        buf_puts(out, "a_b");
        return SAMPLE_LABEL_REPAIRED;
    }
    buf_append(out, name.p, name.n);
    return SAMPLE_LABEL_CHANGES;
}

static const struct sample_label_rules all_rules = {
    .name = on_name, .repair = true, .names_max = 3, .value_max = 8};

struct result {
    struct scratch *scratch;
    struct sample_labels_result got;
    struct err err;
    bool ok;
};

static void apply(struct result *r, struct buf body, const struct sample_label_rules *rules)
{
    *r = (struct result){.scratch = scratch_new(), .err = ERR_INIT};
    r->ok = sample_labels_rewrite(r->scratch, (struct sv){body.data, body.len}, MAX, rules, &r->got,
                                  &r->err);
    buf_done(&body);
}

static void done(struct result *r)
{
    free(r->got.data);
    scratch_free(r->scratch);
}
SCOPED_VALUE(result, done)

static struct sv string_at(struct sv plain, uint64_t i)
{
    struct wire_reader r = wire_reader_of(plain);
    struct wire_field f = {.number = 0};
    while (wire_next(&r, &f)) {
        if (f.number == PROFILE_STRING && i-- == 0) {
            return f.bytes;
        }
    }
    fail_msg("no such string");
    return SV("");
}

static void put_label(struct sv plain, struct sv message, struct buf *out)
{
    uint64_t v[LABEL_NUM_UNIT + 1] = {0};
    wire_read_numbers(message, v, LABEL_NUM_UNIT + 1);
    struct sv key = string_at(plain, v[LABEL_KEY]);
    struct sv text = string_at(plain, v[LABEL_STR]);
    struct sv unit = string_at(plain, v[LABEL_NUM_UNIT]);
    buf_printf(out, " %.*s=%.*s", SV_ARG(key), SV_ARG(text));
    if (v[LABEL_STR] == 0) {
        buf_printf(out, "%d%.*s", (int)v[LABEL_NUM], SV_ARG(unit));
    }
}

/* Checks the labels of the samples, ";" after each. */
static void check_labels(struct result *r, const char *want)
{
    struct sv plain;
    SCOPED(scratch) *s = scratch_new();
    assert_non_null(r->got.data);
    assert_true(gzip_plain(s, (struct sv){r->got.data, r->got.size}, MAX, 0, &plain, NULL));
    SCOPED(buf) out = testing_buf(MAX);
    struct wire_reader reader = wire_reader_of(plain);
    struct wire_field f = {.number = 0};
    while (wire_next(&reader, &f)) {
        struct wire_reader sample = wire_reader_of(f.bytes);
        struct wire_field part = {.number = 0};
        while (f.number == PROFILE_SAMPLE && wire_next(&sample, &part)) {
            if (part.number == SAMPLE_LABEL) {
                put_label(plain, part.bytes, &out);
            }
        }
        if (f.number == PROFILE_SAMPLE) {
            buf_putc(&out, ';');
        }
    }
    CHECK_STR(out.data, want, "labels");
}

static struct buf profile_of(const struct pprof_row *rows, size_t n)
{
    static const struct pprof_spec spec = {.types = "samples/count"};
    return pprof_make(&spec, rows, n);
}

TEST(test_nothing_to_do)
{
    static const struct pprof_row rows[] = {
        {"main f", NULL, {1}}, {"main", "k=v,n=7,m=8bytes,x=y", {2}}, {"g", "a-b=3", {4}}};
    struct result r;
    /* A number is not repaired: no server looks at its name. */
    apply(&r, profile_of(rows, 3), &all_rules);
    assert_true(r.ok);
    assert_null(r.got.data);
    done(&r);
    apply(&r, profile_of(rows, 1), &all_rules);
    assert_true(r.ok);
    assert_null(r.got.data);
    done(&r);
    /* The bytes that were inflated for this check remain for others. */
    SCOPED(buf) plain = profile_of(rows, 3);
    struct scratch *s = scratch_new();
    char *gzip;
    size_t size;
    assert_true(gzip_pack(s, (struct sv){plain.data, plain.len}, &gzip, &size));
    r = (struct result){.scratch = s, .err = ERR_INIT};
    assert_true(sample_labels_rewrite(s, (struct sv){gzip, size}, MAX, &all_rules, &r.got, &r.err));
    assert_null(r.got.data);
    CHECK_INT(r.got.plain.n, plain.len, "");
    assert_memory_equal(r.got.plain.p, plain.data, plain.len);
    free(gzip);
    done(&r);
}

TEST(test_changes)
{
    static const struct pprof_row rows[] = {
        {"main f", "k=v", {1}},
        {"main", "drop=x,k=v,old=w,drop=7", {2}},
        {"g", "a-b=long-long-long,n=7", {4}},
        {"g", "a-b=p,a_b=q", {8}},
        {"g", NULL, {16}},
    };
    SCOPED(result) r;
    apply(&r, profile_of(rows, 5), &all_rules);
    assert_true(r.ok);
    check_labels(&r, " k=v; k=v new=w; a_b=long-lon n=7; a_b=p;;");
    CHECK_INT(r.got.changes[SAMPLE_LABEL_DROPPED], 2, "dropped");
    CHECK_INT(r.got.changes[SAMPLE_LABEL_RENAMED], 1, "renamed");
    CHECK_INT(r.got.changes[SAMPLE_LABEL_REPAIRED], 3, "repaired: two names, one value");
    CHECK_INT(r.got.changes[SAMPLE_LABEL_COLLISION], 1, "collisions");
    CHECK_INT(r.got.changes[SAMPLE_LABEL_SURPLUS], 0, "surplus");
}

/* Where only texts matter, a profile whose labels are numbers is not rewritten. */
TEST(test_numbers)
{
    static const struct pprof_row rows[] = {{"f", "drop=5,old=4,bytes=64", {1}}};
    struct sample_label_rules rules = all_rules;
    struct result r;
    apply(&r, profile_of(rows, 1), &rules);
    assert_true(r.ok);
    assert_null(r.got.data);
    done(&r);
    rules.numbers = true;
    apply(&r, profile_of(rows, 1), &rules);
    assert_true(r.ok);
    assert_non_null(r.got.data);
    CHECK_INT(r.got.changes[SAMPLE_LABEL_DROPPED], 1, "dropped");
    CHECK_INT(r.got.changes[SAMPLE_LABEL_RENAMED], 1, "renamed");
    done(&r);
}

/* If there are too many names, those stay that most samples have. */
TEST(test_surplus)
{
    static const struct pprof_row rows[] = {
        {"f", "e=5,d=4,c=3,b=2,a=1,n=6", {1}},
        {"g", "e=5,d=4", {2}},
        {"h", "e=5", {4}},
    };
    struct result r;
    apply(&r, profile_of(rows, 3), &all_rules);
    assert_true(r.ok);
    assert_null(r.got.data); /* these are numbers */
    assert_false(r.got.labelled);
    done(&r);
    static const struct pprof_row texts[] = {
        {"f", "e=v,d=v,c=v,b=v,a=v,n=6", {1}},
        {"g", "e=v,d=v", {2}},
        {"h", "e=v", {4}},
    };
    apply(&r, profile_of(texts, 3), &all_rules);
    assert_true(r.ok);
    check_labels(&r, " e=v d=v a=v n=6; e=v d=v; e=v;");
    CHECK_INT(r.got.changes[SAMPLE_LABEL_SURPLUS], 2, "surplus");
    done(&r);
}

/* Without repair, only what the rules of names say. */
TEST(test_no_repair)
{
    static const struct pprof_row rows[] = {{"f", "a.b=long-long-long,a_b=v", {1}}};
    struct sample_label_rules rules = all_rules;
    struct result r;
    rules.repair = false;
    rules.names_max = SIZE_MAX;
    apply(&r, profile_of(rows, 1), &rules);
    assert_true(r.ok);
    assert_null(r.got.data);
    done(&r);
    /* "." and "_" are the same to a server that is repaired for. */
    rules.repair = true;
    rules.value_max = 64;
    apply(&r, profile_of(rows, 1), &rules);
    check_labels(&r, " a.b=long-long-long;");
    done(&r);
}

TEST(test_damaged)
{
    static const struct pprof_row rows[] = {{"f", "drop=x", {1}}};
    struct buf body = profile_of(rows, 1);
    SCOPED(result) r;
    body.len--;
    apply(&r, body, &all_rules);
    assert_false(r.ok);
    assert_null(r.got.data);
    CHECK_INT(r.err.kind, ERR_INPUT, r.err.msg);
}
