"""The result as a document: one Markdown table a level."""

from . import catalogue, results


def number(value, digits=4):
    """A number in about `digits` digits: 0.0512, 3.142, 60123."""
    if value is None:
        return "-"
    for limit, places in ((1, digits), (10, digits - 1), (100, digits - 2), (1000, digits - 3)):
        if value < limit:
            return f"{value:.{max(places, 0)}f}"
    return f"{value:.0f}"


def times(value):
    return "-" if value is None else f"{number(value, 3)}x"


def bound(result, row):
    """Part of the copy bound that we reach, for the large sizes that have one; None elsewhere."""
    ours, _ = results.ours_and_peer(row)
    if not ours or row["bytes"] < catalogue.COPY_FROM or row["level"] != "native":
        return None
    rates = results.copy_rates(result, row["bytes"])
    least = catalogue.bound_us(row["operation"], row["bytes"], result["ranks"], rates)
    return least / ours if least else None


def head(result):
    machine = result["machine"]
    yield f"# Benchmark of {result['date']}"
    yield ""
    yield f"- StepCCL at commit {result['commit']}, {result['ranks']} ranks, {result['dtype']}, results apart from inputs"
    memory = machine["memory_bytes"] / (1 << 30)
    yield f"- {machine['processor']}, {machine['cores']} cores, {memory:.0f} GiB, Linux {machine['kernel']}"
    for contender in catalogue.CONTENDERS:
        known = result["contenders"].get(contender.name)
        if known:
            yield f"- {known['label']} ({contender.level}): {known['library']}"
    for rate in result["copy_rates"]:
        yield (
            f"- copy rate, {catalogue.show_size(rate['bytes'])}, {rate['processes']} process(es) at once: "
            f"{rate['gb_per_s']:.1f} GB/s each"
        )
    yield (
        "- times are microseconds of a call, the median of samples taken in turn; a ping-pong's is that of one "
        "message. Documentation/benchmarks.md says how to read this."
    )


def level_lines(result, level):
    rows = [row for row in result["rows"] if row["level"] == level]
    if not rows:
        return
    columns = [contender for contender in catalogue.contenders(level) if contender.name in result["contenders"]]
    yield ""
    yield f"## Measured {catalogue.LEVELS[level]}"
    yield ""
    heads = ["operation", "size", *(f"{contender.label} us" for contender in columns), "better peer / ours", "of the copy bound"]
    heads = heads if level == "native" else heads[:-1]
    yield "| " + " | ".join(heads) + " |"
    yield "|---|" + "---:|" * (len(heads) - 1)
    for row in rows:
        cells = [row["operation"], catalogue.show_size(row["bytes"]) if row["bytes"] else "-"]
        cells += [number(row["times"].get(contender.name, {}).get("median_us")) for contender in columns]
        cells.append(times(results.ratio(row)))
        if level == "native":
            part = bound(result, row)
            cells.append("" if part is None else f"{100 * part:.0f} %")
        yield "| " + " | ".join(cells) + " |"


def lines(result):
    """The lines of the document."""
    yield from head(result)
    for level in catalogue.LEVELS:
        yield from level_lines(result, level)
    if result["failures"]:
        yield ""
        yield "## Not measured"
        yield ""
        for failure in result["failures"]:
            where = f"{failure['operation']} {catalogue.show_size(failure['bytes'])}"
            yield f"- {failure['contender']}, {where}: {failure['message']}"
