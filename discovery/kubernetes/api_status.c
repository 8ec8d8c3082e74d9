#include "discovery/kubernetes/api_status.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"

void api_status_clear(struct api_status *s)
{
    *s = (struct api_status){.retry_after_ms = -1};
}

static const char *get_text(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text == NULL ? "" : text;
}

static void set_message(struct api_status *s, const char *text, size_t len)
{
    /* Not in the middle of a character. */
    size_t n = len < sizeof(s->message) - 1 ? len : sizeof(s->message) - 1;
    while (n > 0 && n < len && ((unsigned char)text[n] & 0xc0) == 0x80) {
        n--;
    }
    memcpy(s->message, text, n);
    s->message[n] = '\0';
}

static bool has_cause(const json_t *details, const char *reason)
{
    const json_t *causes = json_object_get(details, "causes");
    for (size_t i = 0; i < json_array_size(causes); i++) {
        if (strcmp(get_text(json_array_get(causes, i), "reason"), reason) == 0) {
            return true;
        }
    }
    return false;
}

void api_status_read(const json_t *object, struct api_status *ret)
{
    api_status_clear(ret);
    ret->present = true;
    json_int_t code = json_integer_value(json_object_get(object, "code"));
    ret->code = code > 0 && code < 1000 ? (long)code : 0;
    const char *message = get_text(object, "message");
    set_message(ret, message, strlen(message));
    const char *reason = get_text(object, "reason");
    ret->expired =
        ret->code == 410 || strcmp(reason, "Expired") == 0 || strcmp(reason, "Gone") == 0;
    const json_t *details = json_object_get(object, "details");
    /* Servers before 1.19 send no such cause; client-go checks the text as well. */
    ret->too_large_version = has_cause(details, "ResourceVersionTooLarge") ||
                             strncmp(message, "Too large resource version", 26) == 0;
    json_int_t seconds = json_integer_value(json_object_get(details, "retryAfterSeconds"));
    if (seconds > 0 && seconds < INT_MAX) {
        ret->retry_after_ms = (int64_t)seconds * MS_PER_S;
    }
}

void api_status_parse(const char *body, size_t len, struct api_status *ret)
{
    json_t *json = json_loadb(body, len, 0, NULL);
    if (json_is_object(json)) {
        api_status_read(json, ret);
    } else {
        api_status_clear(ret);
        struct sv text = sv_trim((struct sv){.p = body, .n = len});
        set_message(ret, text.p, text.n);
    }
    json_decref(json);
}
