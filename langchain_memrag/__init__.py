"""Long-term memory for LangChain and LangGraph agents."""
