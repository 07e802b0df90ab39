"""Every error of the product, as one tree.

The first line of a class's docstring is its public message when it is raised without one. `shared.runtime.http`
maps the tree to HTTP, once. The two ingest branches are what the state machine matches by name: a transient
error is tried again, a permanent one quarantines the object.
"""

from __future__ import annotations


class KnowledgeIndexError(Exception):
    """The request failed."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or (type(self).__doc__ or "").partition("\n")[0])

    @property
    def message(self) -> str:
        """The text for people: what is wrong and what to do."""
        return str(self.args[0])


class InvalidRequestError(KnowledgeIndexError):
    """The request is malformed or out of range."""

    def __init__(self, message: str, *, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


class UnauthenticatedError(KnowledgeIndexError):
    """A valid bearer token is required."""


class NotVisibleError(KnowledgeIndexError):
    """There is no such thing, or it is not yours to see."""


class ConflictError(KnowledgeIndexError):
    """The thing has changed in the meantime."""


class TooLargeError(KnowledgeIndexError):
    """The content is larger than allowed."""


class TransientError(KnowledgeIndexError):
    """Something is away for now; the same call may succeed later."""


class ThrottledError(TransientError):
    """Too many requests; try again shortly."""


class EngineUnavailableError(TransientError):
    """An engine is away; try again shortly."""


class PartialAnswerError(EngineUnavailableError):
    """The index answered only in part, and a part is never shown as the whole."""


class ProviderUnavailableError(TransientError):
    """A model provider is away or throttles."""


class UnfinishedError(TransientError):
    """The work needs more time than one try has; what is done is kept, and the next try goes on."""


class ObjectBusyError(TransientError):
    """Another worker has the object; try again shortly."""


class SupersededError(KnowledgeIndexError):
    """The object has changed or gone since this execution began; a newer one has it."""


class PermanentError(KnowledgeIndexError):
    """The same call cannot succeed; the object is quarantined with the reason."""


class ProviderRefusedError(PermanentError):
    """A model provider refused the request."""


class ModelRefusedError(ProviderRefusedError):
    """The language model declined to answer."""


class AnswerTruncatedError(ProviderRefusedError):
    """The language model's answer was cut off at its length limit."""


class AnswerInvalidError(ProviderRefusedError):
    """The language model's answers do not fit what was asked, even after it was told why."""


class EmbeddingWidthError(PermanentError):
    """Vectors have another width than the index."""


class IndexMappingError(PermanentError):
    """The live index does not fit the configured mapping."""


class IndexComparisonError(PermanentError):
    """The new index does not hold what the database says."""


class IndexRequestError(PermanentError):
    """The index refused a request; this is a fault of the product."""

    def __init__(self, message: str, *, reason: str | None = None) -> None:
        super().__init__(message)
        # The engine's own words. They can quote a query: for a developer's eyes, never for an answer or a log.
        self.reason = reason


class MisconfiguredError(PermanentError):
    """A setting is missing or contradicts another."""


class StoredObjectMissingError(PermanentError):
    """The object store no longer holds what the database refers to."""


class UnreadableFileError(PermanentError):
    """The file is broken."""


class UnsupportedFileError(PermanentError):
    """No converter reads this kind of file."""


class EncryptedFileError(PermanentError):
    """The file needs a password."""


class LimitExceededError(PermanentError):
    """The file goes past a limit on size, members, ratio or depth."""


class EmptyFileError(PermanentError):
    """The file holds no bytes."""


class WorkerLostError(PermanentError):
    """Workers died while they were at the file."""
