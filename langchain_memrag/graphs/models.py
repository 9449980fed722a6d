"""Chat models for the graph: by name or ready, at the temperature of their task."""

from __future__ import annotations

from langchain_core.language_models import BaseChatModel

from langchain_memrag.errors import ConfigurationError, MissingDependencyError

__all__ = ["ANSWER_TEMPERATURE", "FAST_TEMPERATURE", "ChatModel", "chat_model"]

ChatModel = BaseChatModel

FAST_TEMPERATURE = 0.1
ANSWER_TEMPERATURE = 0.5


def chat_model(model: ChatModel | str, temperature: float) -> ChatModel:
    """A model ready for its task.

    A name goes through LangChain's `init_chat_model`. A ready model that takes a temperature and has none
    set gets this one, in a copy; one that was set by its owner stays, and a model that takes none, such as
    OpenAI's reasoning models, is left alone.

    Args:
        model: A chat model, or a name such as `openai:gpt-5-mini`.
        temperature: Of the task.

    Raises:
        ConfigurationError: The name is not known, or its provider's package is missing.
        MissingDependencyError: A name was given without the `langchain` extra.
    """
    if isinstance(model, str):
        return _named(model, temperature)
    profile = getattr(model, "profile", None) or {}
    takes_one = "temperature" in type(model).model_fields and profile.get("temperature") is not False
    if not takes_one or getattr(model, "temperature", None) is not None:
        return model
    return model.model_copy(update={"temperature": temperature})


def _named(name: str, temperature: float) -> ChatModel:
    try:
        from langchain.chat_models import init_chat_model
    except ImportError as error:
        raise MissingDependencyError(f"The model {name!r}", "langchain") from error
    try:
        made = init_chat_model(name, temperature=temperature)
    except (ValueError, ImportError) as error:
        raise ConfigurationError(
            f"cannot make the model {name!r}: write it as provider:model, install the provider's package "
            f"and set its key ({type(error).__name__})"
        ) from error
    if not isinstance(made, BaseChatModel):
        raise ConfigurationError(f"{name!r} does not name one chat model")
    return made
