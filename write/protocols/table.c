#include "write/protocols/table.h"

#define PROTOCOL_ROW(name) &protocol_##name.config,

const struct config_protocol *const *write_protocols(void)
{
    static const struct config_protocol *const rows[] = {PROTOCOLS(PROTOCOL_ROW) NULL};
    return rows;
}
