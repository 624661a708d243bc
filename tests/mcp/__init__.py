"""The MCP server: tools, limits, and the protocol with the official client."""
