/* The jobs of a configuration that has none: the text of examples/builtin.yaml, as bytes. */
#include "config/config.h"

static const char text[] = {
#include "builtin_yaml.inc"
};

struct sv config_builtin(void)
{
    return (struct sv){.p = text, .n = sizeof(text)};
}
