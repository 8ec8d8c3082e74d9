#include "discovery/kubernetes/api_status.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "base/utf8.h"
#include "discovery/kubernetes/proto_stream.h"

static const struct schema_row cause_rows[] = {
    SCHEMA_MEMBER("reason", 1, TEXT, struct kube_cause, reason),
    SCHEMA_END,
};

static const struct schema_row details_rows[] = {
    SCHEMA_LIST_OF("causes", 4, struct kube_cause, cause_rows, struct kube_status, causes),
    SCHEMA_MEMBER("retryAfterSeconds", 5, NUMBER, struct kube_status, retry_after),
    SCHEMA_END,
};

const struct schema_row api_status_rows[] = {
    SCHEMA_MEMBER("message", 3, TEXT, struct kube_status, message),
    SCHEMA_MEMBER("reason", 4, TEXT, struct kube_status, reason),
    SCHEMA_PART_OF("details", 5, details_rows),
    SCHEMA_MEMBER("code", 6, NUMBER, struct kube_status, code),
    SCHEMA_END,
};

void api_status_clear(struct api_status *s)
{
    *s = (struct api_status){.retry_after_ms = -1};
}

static void set_message(struct api_status *s, struct sv text)
{
    /* A long message is not cut in the middle of a character. */
    size_t n = utf8_prefix(text, sizeof(s->message) - 1);
    memcpy(s->message, text.p, n);
    s->message[n] = '\0';
}

static bool has_cause(const struct kube_status *status, const char *reason)
{
    for (const struct kube_cause *c = status->causes.first; c != NULL; c = c->next) {
        if (sv_eq_str(c->reason, reason)) {
            return true;
        }
    }
    return false;
}

void api_status_set(const struct kube_status *status, struct api_status *ret)
{
    api_status_clear(ret);
    ret->present = true;
    ret->code = status->code.value > 0 && status->code.value < 1000 ? (long)status->code.value : 0;
    set_message(ret, status->message);
    ret->expired = ret->code == 410 || sv_eq_str(status->reason, "Expired") ||
                   sv_eq_str(status->reason, "Gone");
    /* Servers before 1.19 send no such cause; client-go checks the text as well. */
    ret->too_large_version = has_cause(status, "ResourceVersionTooLarge") ||
                             sv_starts_with(status->message, SV("Too large resource version"));
    int64_t seconds = status->retry_after.value;
    if (seconds > 0 && seconds < INT_MAX) {
        ret->retry_after_ms = seconds * MS_PER_S;
    }
}

/* Reads the Status object in a body; false if there is none. */
static bool read_status(struct sv body, bool is_protobuf, struct arena *arena, json_t *json,
                        struct kube_status *ret)
{
    struct proto_object object;
    if (is_protobuf) {
        return proto_object_open(body, &object) &&
               schema_read_wire(api_status_rows, object.message, arena, ret) == SKIP_NONE;
    }
    return json_is_object(json) && schema_read_json(api_status_rows, json, arena, ret) == SKIP_NONE;
}

void api_status_parse(struct sv body, bool is_protobuf, struct api_status *ret)
{
    struct arena *arena = schema_arena_new();
    json_t *json = is_protobuf ? NULL : json_loadb(body.p, body.n, 0, NULL);
    struct kube_status status = {.message = SV("")};
    api_status_clear(ret);
    if (arena != NULL && read_status(body, is_protobuf, arena, json, &status)) {
        api_status_set(&status, ret);
    } else if (!is_protobuf) {
        set_message(ret, sv_trim(body));
    }
    json_decref(json);
    arena_free(arena);
}
