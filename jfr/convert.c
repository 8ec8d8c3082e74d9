#include "jfr/jfr.h"

#include <stdlib.h>
#include <string.h>

#include "pprof/gzip.h"

static bool pack(struct jfr_reader *r, size_t i, struct scratch *s, struct jfr_made *ret,
                 struct err *err)
{
    struct jfr_profile p;
    struct buf plain;
    buf_init(&plain, JFR_PROFILE_MAX);
    jfr_reader_profile(r, i, &p);
    ret->name = p.name;
    ret->first_type = p.columns[0].type;
    bool ok = jfr_reader_write(r, i, &plain, err);
    if (ok && !gzip_pack(s, (struct sv){plain.data, plain.len}, &ret->data, &ret->size)) {
        ok = err_memory(err);
    }
    buf_done(&plain);
    return ok;
}

static bool take_results(struct jfr_reader *r, struct scratch *s, struct jfr_result *ret,
                         struct err *err)
{
    jfr_reader_facts(r, &ret->facts);
    if (ret->facts.event.n > 0) {
        ret->event = strndup(ret->facts.event.p, ret->facts.event.n);
        if (ret->event == NULL) {
            return err_memory(err);
        }
    }
    ret->facts.event = (struct sv){"", 0};
    for (; ret->n < ret->facts.profiles; ret->n++) {
        if (!pack(r, ret->n, s, &ret->made[ret->n], err)) {
            return false;
        }
    }
    return true;
}

bool jfr_convert(const struct jfr_input *in, struct jfr_result *ret, struct err *err)
{
    struct sv plain;
    struct err damage = ERR_INIT;
    size_t max = in->plain_max != 0 ? in->plain_max : JFR_PLAIN_MAX;
    *ret = (struct jfr_result){.n = 0};
    if (in->scratch == NULL) {
        return err_memory(err);
    }
    if (!gzip_plain(in->scratch, in->body, max, gzip_claim(in->body), &plain, err)) {
        return false;
    }
    struct jfr_reader *r = jfr_reader_new(&in->options, err);
    if (r == NULL) {
        return false;
    }
    ret->damaged = !jfr_reader_all(r, plain, &damage);
    bool ok = take_results(r, in->scratch, ret, err);
    jfr_reader_free(r);
    if (ret->damaged && ok) {
        err_set(err, damage.kind, "%s", damage.msg);
        ok = damage.kind == ERR_INPUT && ret->n > 0;
    }
    if (!ok) {
        jfr_result_done(ret);
    }
    return ok;
}

void jfr_result_done(struct jfr_result *r)
{
    for (size_t i = 0; i < r->n; i++) {
        free(r->made[i].data);
    }
    free(r->event);
    r->event = NULL;
    r->n = 0;
}
