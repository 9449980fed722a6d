"""What happens on remember, recall and forget; knows no LangChain adapter and no driver."""
