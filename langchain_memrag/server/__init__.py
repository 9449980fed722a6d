"""Servers over one `MemRAG`: what LangGraph Studio loads, LangServe routes, and MCP.

They read the settings of the environment and start things; they hold no logic.
"""
