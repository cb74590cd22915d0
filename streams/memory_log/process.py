"""A simulated process: all tasks begun in it, so that it can be killed or stopped whole."""

import asyncio
from collections.abc import Callable, Coroutine, Generator, Iterator
from contextvars import Context, ContextVar, copy_context
from functools import partial
from itertools import count
from typing import Any, TypeVar

T = TypeVar("T")
_process: ContextVar["Process | None"] = ContextVar("process", default=None)


class Process:
    """Runs coroutines as one process would.

    A task begun by a task of the process belongs to it too. While the process is stopped none of
    them takes a step, as after SIGSTOP; time goes on, and what happened meanwhile is seen when it
    goes on. Callbacks that are no tasks (``call_later``) are not stopped.

    Attributes:
        steps: Steps that its tasks have taken: each from one await that waits to the next.
    """

    def __init__(self) -> None:
        self._tasks: dict[asyncio.Task[Any], None] = {}
        self._stopped = False
        self._steps: list[asyncio.Future[None]] = []
        self._fuse: tuple[int, Callable[[], None]] | None = None
        self.dead = False
        self.steps = 0
        install()

    @property
    def stopped(self) -> bool:
        """Takes no step at the moment."""
        return self._stopped

    def start(self, coroutine: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        """Run *coroutine* as a task of this process."""
        context = copy_context()
        context.run(_process.set, self)
        return asyncio.get_running_loop().create_task(coroutine, context=context)

    def adopt(self, task: "asyncio.Task[Any]") -> None:
        """Make *task* end with this process."""
        self._tasks[task] = None
        task.add_done_callback(lambda done: self._tasks.pop(done, None))

    def kill(self) -> None:
        """Cancel everything that runs here, abruptly."""
        self.dead = True
        self.go_on()
        current = asyncio.current_task()
        for task in list(self._tasks):
            if task is not current:
                task.cancel()

    def after_steps(self, steps: int, then: Callable[[], None]) -> None:
        """Call *then* in place of the next step but *steps*, unless another call comes before.

        A step in whose place the process is killed is never taken.
        """
        at = self.steps + steps
        if self._fuse is None or at < self._fuse[0]:
            self._fuse = at, then

    def burnt(self) -> bool:
        """A step is about to be taken; whether the process dies before it."""
        self.steps += 1
        if self._fuse is None or self.steps < self._fuse[0] or self.dead:
            return False
        (_, then), self._fuse = self._fuse, None
        then()
        return self.dead

    def stop(self) -> None:
        """No task takes a step until :meth:`go_on`."""
        self._stopped = not self.dead

    def go_on(self) -> None:
        """Let the tasks run again."""
        self._stopped = False
        steps, self._steps = self._steps, []
        for step in steps:
            if not step.done():
                step.set_result(None)

    def next_step(self) -> "asyncio.Future[None]":
        """Done when the process goes on."""
        step = asyncio.get_running_loop().create_future()
        self._steps.append(step)
        return step


class _Steps(Coroutine[Any, Any, T]):
    """A coroutine whose steps wait while its process is stopped."""

    def __init__(self, coroutine: Coroutine[Any, Any, T], process: Process) -> None:
        self._coroutine = coroutine
        self._process = process
        self._thrown: BaseException | None = None
        self.__name__ = getattr(coroutine, "__name__", "steps")
        self.__qualname__ = getattr(coroutine, "__qualname__", "steps")

    def send(self, value: Any) -> Any:
        if self._process.stopped:
            return self._wait()
        if self._process.burnt():
            return self._coroutine.throw(asyncio.CancelledError())
        if self._thrown is not None:
            thrown, self._thrown = self._thrown, None
            return self._coroutine.throw(thrown)
        return self._coroutine.send(value)

    def throw(self, kind: Any, value: Any = None, traceback: Any = None, /) -> Any:
        if self._process.stopped:
            self._thrown = kind if value is None else value
            return self._wait()
        if self._process.burnt():
            return self._coroutine.throw(asyncio.CancelledError())
        if self._thrown is not None and value is None:
            kind, self._thrown = self._thrown, None  # the older one came first
        return self._coroutine.throw(kind) if value is None else self._coroutine.throw(kind, value, traceback)

    def close(self) -> None:
        self._coroutine.close()

    def __await__(self) -> Generator[Any, Any, T]:
        return self._coroutine.__await__()

    def _wait(self) -> "asyncio.Future[None]":
        step = self._process.next_step()
        step._asyncio_future_blocking = True  # noqa: SLF001 - as Future.__await__ tells a task that it waits
        return step


class _Task(asyncio.Task[T]):
    """A task whose place in a set follows from when it was made, so that sets of tasks are repeatable."""

    def __init__(
        self, coroutine: Any, *, number: int, loop: asyncio.AbstractEventLoop, context: Context | None
    ) -> None:
        self._number = number
        super().__init__(coroutine, loop=loop, context=context)

    def __hash__(self) -> int:
        return self._number


def install() -> None:
    """Make the running loop's new tasks belong to the process that begins them."""
    loop = asyncio.get_running_loop()
    if loop.get_task_factory() is None:
        loop.set_task_factory(partial(_make_task, count()))


def _make_task(
    numbers: Iterator[int],
    loop: asyncio.AbstractEventLoop,
    coroutine: Any,
    *,
    context: Context | None = None,
) -> "asyncio.Task[Any]":
    process = context.get(_process) if context is not None else _process.get()
    if process is None:
        return _Task(coroutine, number=next(numbers), loop=loop, context=context)
    task: asyncio.Task[Any] = _Task(
        _Steps(coroutine, process), number=next(numbers), loop=loop, context=context
    )
    process.adopt(task)
    if process.dead:
        task.cancel()
    return task
