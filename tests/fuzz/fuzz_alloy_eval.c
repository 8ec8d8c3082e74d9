/* Any text as Alloy's language: a tree or errors with places in order, and values of what is in it;
 * no crash, no unbounded work. */
#include "alloy/convert.h"
#include "alloy/eval.h"
#include "tests/fuzz/fuzz.h"

#define ARENA_MAX ((size_t)256 * 1024 * 1024)

static const char *env(void *arg, const char *name)
{
    (void)arg;
    return name[0] == 'A' ? "value" : NULL;
}

/* `targets` is a list of discovered targets; nothing else is known. */
static const struct alloy_value *resolve(void *arg, const struct alloy_chain *chain,
                                         size_t *ret_used)
{
    *ret_used = 1;
    return sv_eq_str(chain->names[0], "targets") ? arg : NULL;
}

static void eval_body(struct alloy_eval *ev, const struct alloy_body *body)
{
    for (const struct alloy_stmt *s = body->first; s != NULL; s = s->next) {
        if (s->value == NULL) {
            eval_body(ev, &s->body);
            continue;
        }
        const struct alloy_value *v = alloy_eval(ev, s->value);
        const struct alloy_value *r;
        int64_t i;
        bool b;
        (void)alloy_as_string(ev, s->place, v, &r);
        (void)alloy_as_secret(ev, s->place, v, &r);
        (void)alloy_as_int(ev, s->place, v, &i);
        (void)alloy_as_bool(ev, s->place, v, &b);
        (void)alloy_as_duration(ev, s->place, v, &i);
        (void)alloy_as_array(ev, s->place, v, &r);
        (void)alloy_as_object(ev, s->place, v, &r);
    }
}

FUZZ(in)
{
    struct alloy_member splice = {.value = &(struct alloy_value){.kind = VALUE_SPLICE}};
    struct alloy_value targets = {
        .kind = VALUE_ARRAY, .members = &splice, .n_members = 1, .open = true};
    struct arena *arena = arena_new(ARENA_MAX);
    struct config_errors *errors = config_errors_new();
    struct alloy_body body;
    struct alloy_eval ev = {.arena = arena,
                            .errors = errors,
                            .env = env,
                            .module_path = "/",
                            .resolve = resolve,
                            .arg = &targets};
    REQUIRE(arena != NULL && errors != NULL);
    REQUIRE(alloy_parse(NULL, in, arena, errors, &body) == (config_errors_count(errors) == 0));
    eval_body(&ev, &body);
    for (size_t i = 1; i < config_errors_count(errors); i++) {
        const struct config_pos *a = &config_errors_at(errors, i - 1)->pos;
        const struct config_pos *z = &config_errors_at(errors, i)->pos;
        REQUIRE(a->line >= 1 && a->line <= z->line &&
                (a->line != z->line || a->column <= z->column));
    }
    arena_free(arena);
    config_errors_free(errors);
}
