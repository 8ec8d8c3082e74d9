#include "pages/assets.h"

#include <stdlib.h>

#include "pages/html.h"

/* The bytes of the files. A text in a script is UTF-8, so some bytes are above 127. */
static const unsigned char app_css[] = {
#include "app_css.inc"
};
static const unsigned char flame_js[] = {
#include "flame_js.inc"
};
static const unsigned char graph_js[] = {
#include "graph_js.inc"
};
static const unsigned char profiles_js[] = {
#include "profiles_js.inc"
};
static const unsigned char theme_js[] = {
#include "theme_js.inc"
};
static const unsigned char timeline_js[] = {
#include "timeline_js.inc"
};
static const unsigned char units_js[] = {
#include "units_js.inc"
};

#define CSS "text/css; charset=utf-8"
#define SCRIPT "text/javascript; charset=utf-8"
#define ASSET(path, bytes, type)                                                                   \
    {                                                                                              \
        (path), (bytes), sizeof(bytes), (type)                                                     \
    }

void page_asset(struct exchange *x)
{
    static const struct {
        const char *path;
        const unsigned char *bytes;
        size_t n;
        const char *type;
    } assets[] = {
        ASSET("/assets/app.css", app_css, CSS),
        ASSET("/assets/flame.js", flame_js, SCRIPT),
        ASSET("/assets/graph.js", graph_js, SCRIPT),
        ASSET("/assets/profiles.js", profiles_js, SCRIPT),
        ASSET("/assets/theme.js", theme_js, SCRIPT),
        ASSET("/assets/timeline.js", timeline_js, SCRIPT),
        ASSET("/assets/units.js", units_js, SCRIPT),
    };
    for (size_t i = 0; i < sizeof(assets) / sizeof(assets[0]); i++) {
        if (sv_eq_str(x->request->path, assets[i].path)) {
            exchange_text(x, STATUS_OK, assets[i].type,
                          (struct sv){(const char *)assets[i].bytes, assets[i].n});
            /* The next version of the program serves other files at the same address. */
            buf_puts(&x->headers, "Cache-Control: no-cache\r\n");
            html_security(x);
            exchange_deflate(x);
            return;
        }
    }
    exchange_text(x, STATUS_NOT_FOUND, "text/plain; charset=utf-8", SV("not found\n"));
}
