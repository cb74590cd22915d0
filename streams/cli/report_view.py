"""The run report for people and for programs."""

from rich.table import Table

from streams.cli.output import console, print_json
from streams.report import Jobs, Latency, Report, SubTasks, to_dict


def print_report(report: Report, *, as_json: bool) -> None:
    """The report: a table on stderr, or a JSON object with ``"type": "Report"`` on stdout."""
    if as_json:
        print_json({"type": "Report", **to_dict(report)})
    else:
        console(stderr=True).print(report_table(report))


def report_table(report: Report) -> Table:
    """The report as a table of two columns."""
    table = Table(title="Run report", box=None, show_header=False, title_justify="left", pad_edge=False)
    table.add_column(style="dim")
    table.add_column()
    jobs, tasks, usage = report.jobs, report.subtasks, report.usage
    money = f"${usage.usd:.4f} in total, ${report.usd_per_subtask:.6f} per sub-task"
    ends = ("succeeded", "partial", "failed", "rejected", "cancelled", "skipped", "unfinished")
    table.add_row("jobs", f"{jobs.total}: {_counts(jobs, ends)}")
    table.add_row("sub-tasks", f"{tasks.total}: {_counts(tasks, ends)} ({tasks.rate:.0%})")
    table.add_row("wall time", f"{report.wall_ms:,} ms")
    table.add_row("queued", _latency(report.queue))
    table.add_row("ran", _latency(report.run))
    table.add_row("calls", f"{usage.calls:,} of models, {usage.tool_calls:,} of tools")
    table.add_row(
        "tokens",
        f"{usage.tokens_in:,} in ({usage.tokens_cached:,} cached), {usage.tokens_out:,} out; "
        f"planner {report.planner_share:.0%}, synthesis {report.synthesis_share:.0%}",
    )
    table.add_row("cost", "simulated" if report.simulated else money)
    table.add_row("throughput", f"{report.throughput:.1f} sub-tasks/s")
    if report.critical_path is not None:
        steps = " > ".join(f"{step.task} {step.ms:,}" for step in report.critical_path.steps)
        table.add_row("critical path", f"{report.critical_path.ms:,} ms: {steps}")
    return table


def _counts(of: Jobs | SubTasks, names: tuple[str, ...]) -> str:
    told = [f"{count} {name}" for name in names if (count := getattr(of, name, 0))]
    return ", ".join(told) or "none"


def _latency(latency: Latency) -> str:
    return f"mean {latency.mean:,.0f} ms, p50 {latency.p50:,} ms, p99 {latency.p99:,} ms"
