/* The server for assistants, `POST /mcp`: the Model Context Protocol over HTTP
 * (docs/assistants.md).
 */
#ifndef PROFPULL_API_MCP_MCP_H
#define PROFPULL_API_MCP_MCP_H

#include "server/routes.h"

extern const struct route mcp_routes[];

#endif
