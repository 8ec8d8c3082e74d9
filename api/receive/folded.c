#include "api/receive/folded.h"

#include "base/utf8.h"

#define SHOWN_MAX 100

/* Takes the count off the end of a line. */
static bool take_count(struct sv *line, uint64_t *ret_count, struct err *err)
{
    size_t at = line->n;
    while (at > 0 && line->p[at - 1] != ' ') {
        at--;
    }
    struct sv text = sv_skip(*line, at);
    if (at == 0 || !parse_u64(text, INT64_MAX, ret_count)) {
        return err_set(err, ERR_INPUT, "expected a stack, a space and a count, got \"%.*s\"",
                       (int)utf8_prefix(*line, SHOWN_MAX), line->p);
    }
    *line = sv_trim((struct sv){line->p, at - 1});
    return true;
}

static bool read_line(struct frames *s, struct sv line, bool counted, struct err *err)
{
    uint64_t count = 1;
    return (!counted || take_count(&line, &count, err)) && frames_split(s, line, err) &&
           frames_put(s, count, err);
}

static bool read_lines(struct frames *s, const struct folded_input *in, struct err *err)
{
    struct sv text = in->text;
    size_t n = 0;
    while (text.n > 0) {
        struct sv line = text;
        if (!sv_cut(text, '\n', &line, &text)) {
            text.n = 0;
        }
        line = sv_trim(line);
        n++;
        if (n > FOLDED_LINES_MAX) {
            return err_set(err, ERR_LIMIT, "more than %d lines", FOLDED_LINES_MAX);
        }
        if (line.n > 0 && !read_line(s, line, in->counted, err)) {
            return err_wrap(err, "line %zu", n);
        }
    }
    return true;
}

bool folded_convert(const struct folded_input *in, struct buf *out, size_t *ret_samples,
                    struct err *err)
{
    struct frames_options o = in->o;
    o.names_live = true;
    struct frames *s = frames_new(&o, out, err);
    bool ok = s != NULL && read_lines(s, in, err) && frames_finish(s, ret_samples, err);
    frames_free(s);
    return ok;
}
