"""aiokafka's errors in the words of the port."""

from aiokafka import errors

from streams.log import Fenced, LogUnavailable, NotAllowed, RecordRefused

_FENCED = (errors.ProducerFenced, errors.InvalidProducerEpoch)
_REFUSED = (
    errors.MessageSizeTooLargeError,
    errors.RecordListTooLargeError,
    errors.RecordTooLargeError,
    errors.InvalidTimestampError,
    errors.InvalidTopicError,
    errors.PolicyViolationError,
)
# No fault of the record's: it waits until we may again, and is not buried meanwhile.
_NOT_ALLOWED = (
    errors.TopicAuthorizationFailedError,
    errors.GroupAuthorizationFailedError,
    errors.ClusterAuthorizationFailedError,
    errors.TransactionalIdAuthorizationFailed,
)
_NOT_LET_IN = (errors.SaslAuthenticationFailed, errors.AuthenticationFailedError)


def in_our_words(error: errors.KafkaError, what: str) -> Fenced | LogUnavailable | RecordRefused:
    """The port's error for *error*, which came of *what* (an action and its topic and partition)."""
    reason = f"{what}: {str(error) or type(error).__name__}"
    if isinstance(error, _FENCED):
        return Fenced(reason)
    if isinstance(error, _REFUSED):
        return RecordRefused(reason)
    if isinstance(error, _NOT_ALLOWED):
        return NotAllowed(f"{reason}; `anabranch acls` says what each part of a system needs")
    return NotAllowed(reason) if isinstance(error, _NOT_LET_IN) else LogUnavailable(reason)
