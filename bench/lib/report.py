"""Results as a text table and as CSV. A new column is one entry in COLUMNS."""
import csv

# key, heading, format
COLUMNS = [
    ("per_second", "req/s", "{:.0f}"),
    ("p50_ms", "p50 ms", "{:.3f}"),
    ("p99_ms", "p99 ms", "{:.3f}"),
    ("cpu_us", "CPU us", "{:.2f}"),
    ("cpu_cv", "CV %", "{:.0f}"),
    ("per_second_ratio", "req/nginx", "{:.2f}"),
    ("cpu_ratio", "CPU/nginx", "{:.2f}"),
    ("p50_ratio", "p50/nginx", "{:.2f}"),
    ("p99_ratio", "p99/nginx", "{:.2f}"),
    ("calls", "calls", "{:.2f}"),
    ("waits", "waits", "{:.2f}"),
    ("instructions", "instr", "{:.0f}"),
    ("app_cpu_us", "app us", "{:.1f}"),
    ("app_ratio", "app/nginx", "{:.2f}"),
    ("peak_rss", "peak MiB", "MiB"),
    ("pss", "PSS MiB", "MiB"),
    ("pss_anon", "own MiB", "MiB"),
    ("pss_others", "others MiB", "MiB"),
    ("not_2xx", "non-2xx", "{:d}"),
    ("errors", "errors", "{:d}"),
    ("idle_bytes", "bytes/idle", "{:.0f}"),
    ("idle_bytes_grown", "grown", "{:.0f}"),
    ("requests", "requests", "{:d}"),
    ("failed", "failed", "{:d}"),
    ("refused", "refused", "{:d}"),
    ("closed", "closed", "{:d}"),
    ("broken", "broken", "{:d}"),
    ("late", "late", "{:d}"),
    ("longest_ms", "longest ms", "{:.0f}"),
    ("busiest", "busiest", "{:g}"),
    ("busiest_max", "max", "{:d}"),
    ("busiest_share", "of fair", "{:.2f}"),
]
WORDS = """
calls     system calls per request without the waits (epoll_wait), of a load
          that sends on all connections in step
waits     epoll_wait per request; its share depends on how much is ready at once
instr     user-space instructions per request (callgrind)
CPU us    run time of the server's processes per request, applications apart;
          app us: that of the applications; CV: coefficient of variation
.../nginx median of the ratios formed round by round
peak      resident memory of the server's processes, at their largest
PSS       proportional memory of the processes that answer requests (scalwsd's
          proxy, nginx's master and workers) under load; own: the part that is
          no file's; others: scalwsd's supervisor and keepers
bytes/idle  per idle connection: PSS with them, less that of a server with room
          for 512 and none; grown: less that of the same server without any
closed    failed requests whose connection ended before the first byte of an
          answer (a client may send them again); broken: inside an answer
busiest   connections on the busiest loop, median of ten tries
"""


def cell(row, key, form):
    value = row.get(key)
    if value is None:
        return ""
    if form == "MiB":
        return f"{value / 1048576:.2f}"
    return form.format(value)


def table(rows):
    """Blocks of rows with the same columns, a line each."""
    blocks, out = [], []
    for row in rows:
        keys = [key for key, _, _ in COLUMNS if row.get(key) is not None]
        if blocks and blocks[-1][0] == row["scenario"]:
            blocks[-1][1].append(row)
            blocks[-1][2].update(keys)
        else:
            blocks.append((row["scenario"], [row], set(keys)))
    for scenario, members, keys in blocks:
        columns = [c for c in COLUMNS if c[0] in keys]
        lines = [[""] + [heading for _, heading, _ in columns]]
        for row in members:
            lines.append([row["server"]] + [cell(row, key, form)
                                            for key, _, form in columns])
        widths = [max(len(line[i]) for line in lines)
                  for i in range(len(lines[0]))]
        out.append(f"{scenario}: {members[0]['what']}")
        for line in lines:
            out.append("  " + line[0].ljust(widths[0]) + "".join(
                "  " + text.rjust(width)
                for text, width in zip(line[1:], widths[1:])))
        out.append("")
    return "\n".join(out)


def write_csv(path, rows):
    keys = ["scenario", "server"] + [key for key, _, _ in COLUMNS]
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, keys, extrasaction="ignore")
        writer.writeheader()
        for row in rows:
            writer.writerow({key: f"{value:.4f}" if isinstance(value, float)
                             else value for key, value in row.items()})


def write_rounds(path, rounds):
    """Every single round: what the medians were made from."""
    with open(path, "w", newline="") as file:
        writer = None
        for scenario, server, number, values in rounds:
            row = dict(scenario=scenario, server=server, round=number,
                       **{key: round(value, 4) for key, value
                          in values.items()})
            if writer is None:
                writer = csv.DictWriter(file, list(row))
                writer.writeheader()
            writer.writerow(row)
