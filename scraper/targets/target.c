/* The accessors of a target; see make.c for its creation. */
#include "scraper/targets/target_private.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "model/masking.h"

struct target *target_ref(struct target *t)
{
    atomic_fetch_add_explicit(&t->refs, 1, memory_order_relaxed);
    return t;
}

struct target *target_unref(struct target *t)
{
    if (t != NULL && atomic_fetch_sub_explicit(&t->refs, 1, memory_order_acq_rel) == 1) {
        labels_unref(t->labels);
        if (t->config != NULL) {
            config_unref(t->config);
        }
        free(t->problems);
        free(t->problem_texts);
        free(t);
    }
    return NULL;
}

void targets_unref(struct target *const *targets, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        target_unref(targets[i]);
    }
}

const struct labels *target_labels(const struct target *t)
{
    return t->labels;
}

const char *target_canonical(const struct target *t)
{
    return (const char *)&t->entries[t->n] + t->process;
}

const struct config_job *target_job(const struct target *t)
{
    return t->job_config;
}

size_t target_scrape_count(const struct target *t)
{
    return t->n;
}

const struct config_type *target_scrape_type(const struct target *t, size_t i)
{
    return &t->job_config->types[t->entries[i].type];
}

static const char *string_at(const struct target *t, uint32_t offset)
{
    return (const char *)&t->entries[t->n] + offset;
}

const char *target_path(const struct target *t, size_t i)
{
    return string_at(t, t->entries[i].path);
}

const char *target_address(const struct target *t, size_t i)
{
    return string_at(t, t->entries[i].address);
}

const char *target_process(const struct target *t, size_t i)
{
    return string_at(t, t->entries[i].process);
}

size_t target_problem_count(const struct target *t)
{
    return t->n_problems;
}

const char *target_problem(const struct target *t, size_t i, const char **ret_type)
{
    const struct target_problem *p = &t->problems[i];
    *ret_type = p->type < t->job_config->n_types ? t->job_config->types[p->type].key : "unknown";
    return t->problem_texts + p->text;
}

bool target_scrape_url(const struct target *t, size_t i, struct buf *out)
{
    return buf_printf(out, "%s://%s%s", t->entries[i].https ? "https" : "http",
                      target_address(t, i), target_path(t, i));
}

bool target_masks_all(const struct target *t)
{
    return t->config != NULL && t->config->global.mask_all_params;
}

bool target_shown_url(const struct target *t, size_t i, struct buf *out)
{
    return buf_printf(out, "%s://%s", t->entries[i].https ? "https" : "http",
                      target_address(t, i)) &&
           mask_url(sv_from(target_path(t, i)), target_masks_all(t), out);
}

int64_t target_timeout_ms(const struct target *t, size_t i)
{
    return (int64_t)t->entries[i].timeout_ms + (int64_t)t->entries[i].seconds * MS_PER_S;
}

int64_t target_interval_ms(const struct target *t, size_t i)
{
    return t->entries[i].interval_ms;
}

/* ---- identity and series --------------------------------------------------------------------- */

static struct sv series_name(const struct target *t, size_t i)
{
    struct sv carried = labels_get(t->labels, SV(LABEL_NAME));
    return carried.n > 0 ? carried : sv_from(target_scrape_type(t, i)->name);
}

bool target_same_scrape(const struct target *a, size_t i, const struct target *b, size_t j)
{
    return a->entries[i].https == b->entries[j].https &&
           strcmp(target_address(a, i), target_address(b, j)) == 0 &&
           strcmp(target_path(a, i), target_path(b, j)) == 0 &&
           sv_eq(series_name(a, i), series_name(b, j));
}

bool target_checks_address(const struct target *t)
{
    const struct config_job *job = t->job_config;
    return t->is_object && !job->allow_special_address && job->http.proxy_url == NULL &&
           !job->http.proxy_from_environment;
}

static bool same_type(const struct config_type *a, const struct config_type *b)
{
    return a->sampling == b->sampling && a->cumulative == b->cumulative &&
           a->is_delta == b->is_delta && a->delta == b->delta && a->format == b->format &&
           a->continuous == b->continuous;
}

bool target_can_share(const struct target *a, size_t i, const struct target *b, size_t j)
{
    return a->entries[i].interval_ms == b->entries[j].interval_ms &&
           a->entries[i].timeout_ms == b->entries[j].timeout_ms &&
           a->entries[i].seconds == b->entries[j].seconds &&
           same_type(target_scrape_type(a, i), target_scrape_type(b, j)) &&
           a->job_config->body_size_limit == b->job_config->body_size_limit &&
           a->job_config->delta_compression == b->job_config->delta_compression &&
           target_checks_address(a) == target_checks_address(b) && !target_is_another_pod(a, b) &&
           http_settings_equal(&a->job_config->http, &b->job_config->http);
}

bool target_is_another_pod(const struct target *a, const struct target *b)
{
    return a->generation != 0 && b->generation != 0 && a->generation != b->generation;
}

uint64_t target_scrape_hash(const struct target *t, size_t i)
{
    struct sv name = series_name(t, i);
    const char *path = target_path(t, i);
    const char *address = target_address(t, i);
    uint64_t h = hash_bytes(address, strlen(address), t->entries[i].https ? 443 : 80);
    h = hash_bytes(path, strlen(path), h);
    return hash_bytes(name.p, name.n, h);
}

bool target_scrape_key(const struct target *t, size_t i, struct buf *out)
{
    struct sv name = series_name(t, i);
    return target_scrape_url(t, i, out) && buf_putc(out, '\0') && buf_append(out, name.p, name.n);
}

void target_set_default(struct labels_builder *b, const char *name, struct sv value)
{
    if (labels_builder_get(b, sv_from(name)).n == 0) {
        labels_builder_set(b, sv_from(name), value);
    }
}

struct labels *target_series(const struct target *t, size_t i, struct labels_builder *b)
{
    const struct config_type *type = target_scrape_type(t, i);
    labels_builder_reset(b, t->labels);
    target_set_default(b, LABEL_NAME, sv_from(type->name));
    if (t->entries[i].own_path != 0) {
        labels_builder_set_str(b, LABEL_PROFILE_PATH, string_at(t, t->entries[i].own_path));
    }
    target_set_default(b, LABEL_PROFILE_PATH, sv_from(type->path));
    if (t->entries[i].address != t->address) {
        labels_builder_set_str(b, LABEL_ADDRESS, target_address(t, i));
        if (t->instance_is_address) {
            labels_builder_set_str(b, LABEL_INSTANCE, target_address(t, i));
        }
    }
    if (type->is_delta || type->delta == DELTA_AUTO) {
        labels_builder_set_str(b, LABEL_DELTA, "false");
    }
    return labels_builder_build(b);
}
