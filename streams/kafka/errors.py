"""aiokafka's errors in the words of the port."""

from aiokafka import errors

from streams.log import Fenced, LogUnavailable, RecordRefused

_FENCED = (errors.ProducerFenced, errors.InvalidProducerEpoch)
_REFUSED = (
    errors.MessageSizeTooLargeError,
    errors.RecordListTooLargeError,
    errors.RecordTooLargeError,
    errors.InvalidTimestampError,
    errors.InvalidTopicError,
    errors.TopicAuthorizationFailedError,
    errors.PolicyViolationError,
)


def in_our_words(error: errors.KafkaError, what: str) -> Fenced | LogUnavailable | RecordRefused:
    """The port's error for *error*, which came of *what* (an action and its topic and partition)."""
    reason = f"{what}: {str(error) or type(error).__name__}"
    if isinstance(error, _FENCED):
        return Fenced(reason)
    if isinstance(error, _REFUSED):
        return RecordRefused(reason)
    return LogUnavailable(reason)
