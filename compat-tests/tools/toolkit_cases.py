"""Calls of the toolkits: name, tool, standard input, arguments. Paths are those that `run` prepares."""

SERVER = "org.apache.zookeeper.server"
# The class of Java, and our subcommand.
CLASSES = {
    "log": (f"{SERVER}.persistence.TxnLogToolkit", ["txn-log"]),
    "chopper": (f"{SERVER}.util.LogChopper", ["log-chopper"]),
    "format": (f"{SERVER}.SnapshotFormatter", ["snapshot-format"]),
    "compare": (f"{SERVER}.SnapshotComparer", ["snapshot-compare"]),
    "summary": (f"{SERVER}.SnapshotRecursiveSummary", ["snapshot-summary"]),
    "purge": (f"{SERVER}.PurgeTxnLog", ["purge"]),
    "trace": (f"{SERVER}.TraceFormatter", None),  # By the name `java` alone.
}
LOGS = ["torn", "torn-head", "no-mark", "zero-mark", "crc", "length", "negative", "null", "padded", "gap", "type", "short-entry", "old", "acl", "magic",
        "empty", "header", "missing"]
SNAPSHOTS = ["torn", "no-seal", "flipped", "magic", "empty", "orphan", "missing", "c.gz", "c.snappy"]

DUMPS = [("dump", "log", "", "log.1"), ("dump-d", "log", "", "-d", "log.1"), ("dump-long", "log", "", "--dump", "--verbose", "log.1")]
DUMPS += [(f"dump-{name}", "log", "", f"log.{name}") for name in LOGS]
RECOVERIES = [
    ("recover", "log", "", "-r", "log.1"),
    ("recover-again", "log", "", "-r", "taken"),
    ("recover-verbose", "log", "", "-rv", "log.gap"),
    ("recover-yes", "log", "", "-r", "-y", "log.crc"),
    ("recover-yes-verbose", "log", "", "--rec", "--yes", "--verb", "crc2"),
    ("recover-ask", "log", "what\\nno\\n yes\\n", "-r", "crc3"),
    ("recover-abort", "log", "A\\n", "-r", "crc4"),
    ("recover-silent", "log", "", "-r", "crc5"),
    ("recover-torn", "log", "", "-r", "log.torn"),
    ("recover-no-mark", "log", "", "-r", "log.no-mark"),
]
USAGES = [
    ("log-nothing", "log", ""),
    ("log-help", "log", "", "-h"),
    ("log-unknown", "log", "", "-x", "log.1"),
    ("log-unknown-long", "log", "", "--what", "log.1"),
    ("log-no-zxid", "log", "", "-c", "log.1", "-z"),
    ("log-after", "log", "", "log.header", "-d"),
    ("log-end", "log", "", "-d", "--", "log.header", "-x"),
    ("log-two", "log", "", "log.header", "log.1"),
    ("log-dash", "log", "", "-"),
    ("log-chop-alone", "log", "", "-c", "log.header"),
]
CHOPS = [
    ("chop", "log", "", "-c", "log.1", "-z", "0x10"),
    ("chop-decimal", "log", "", "--chop", "--zxid=5", "log.1"),
    ("chop-joined", "log", "", "-cz7", "./log.1"),
    ("chop-late", "log", "", "-c", "-z", "99", "log.1"),
    ("chop-absent", "log", "", "-c", "-z", "0x3", "log.gap"),
    ("chop-early", "log", "", "-c", "-z", "0", "log.1"),
    ("chop-gap", "log", "", "-c", "-z", "2", "log.gap"),
    ("chop-crc", "log", "", "-c", "-z", "9", "log.crc"),
    ("chop-magic", "log", "", "-c", "-z", "9", "log.magic"),
    ("chop-empty", "log", "", "-c", "-z", "9", "log.empty"),
    ("chop-no-mark", "log", "", "-c", "-z", "9", "log.zero-mark"),
    ("chop-number", "log", "", "-c", "-z", "nine", "log.1"),
    ("chop-negative", "log", "", "-c", "-z", "-1", "log.1"),
    ("chop-missing", "log", "", "-c", "-z", "9", "log.missing"),
    ("chopper", "chopper", "", "0x12", "log.1", "chopped"),
    ("chopper-late", "chopper", "", "0x99", "log.1", "chopped-late"),
    ("chopper-usage", "chopper", "", "log.1"),
    ("chopper-missing", "chopper", "", "1", "log.missing", "chopped-missing"),
    ("chopper-number", "chopper", "", "x", "log.1", "chopped-number"),
]
FORMATS = [
    ("format", "format", "", "snapshot.c"),
    ("format-data", "format", "", "-d", "snapshot.c"),
    ("format-json", "format", "", "-json", "snapshot.c"),
    ("format-fuzzy", "format", "", "fuzzy/snapshot.c"),
    ("format-nothing", "format", ""),
    ("format-options", "format", "", "-d", "-json"),
    ("format-both", "format", "", "-d", "-json", "snapshot.c"),
    ("format-two", "format", "", "snapshot.c", "snapshot.c"),
    ("format-after", "format", "", "snapshot.c", "-d"),
    ("format-folder", "format", "", "fuzzy"),
    ("format-unknown", "format", "", "-x"),
] + [(f"format-{name}", "format", "", f"snapshot.{name}") for name in SNAPSHOTS]
PAIR = ["-l", "snapshot.c", "-r", "fuzzy/snapshot.c"]
COMPARISONS = [
    ("compare", "compare", "", *PAIR, "-b", "2", "-n", "1"),
    ("compare-all", "compare", "", *PAIR, "-b", "-1", "-n", "-1"),
    ("compare-debug", "compare", "", *PAIR, "-b", "0", "-n", "0", "-d"),
    ("compare-same", "compare", "", "--left", "snapshot.c", "--right=snapshot.c", "--bytes", "0", "--nodes=0", "--debug"),
    ("compare-interactive", "compare", "\\n2\\n9\\n/plain\\n/none\\nx\\n/\\n\\n\\n\\n\\n\\n", *PAIR, "-b", "0", "-n", "0", "-i"),
    ("compare-interactive-ends", "compare", "\\n", *PAIR, "-b", "0", "-n", "0", "-i"),
    ("compare-nothing", "compare", ""),
    ("compare-no-nodes", "compare", "", *PAIR, "-b", "0"),
    ("compare-number", "compare", "", *PAIR, "-b", "x", "-n", "0"),
    ("compare-unknown", "compare", "", *PAIR, "-b", "1", "-n", "0", "-q"),
    ("compare-no-value", "compare", "", "-l"),
    ("compare-missing", "compare", "", "-l", "none", "-r", "snapshot.c", "-b", "1", "-n", "0"),
    ("compare-torn", "compare", "", "-l", "snapshot.c", "-r", "snapshot.torn", "-b", "1", "-n", "0"),
]
SUMMARIES = [
    ("summary", "summary", "", "snapshot.c", "/", "0"),
    ("summary-1", "summary", "", "snapshot.c", "/", "1"),
    ("summary-empty", "summary", "", "fuzzy/snapshot.c", "", "0"),
    ("summary-inner", "summary", "", "fuzzy/snapshot.c", "/plain", "2"),
    ("summary-leaf", "summary", "", "snapshot.c", "/zookeeper/quota", "0"),
    ("summary-missing", "summary", "", "snapshot.c", "/none", "0"),
    ("summary-nothing", "summary", ""),
    ("summary-number", "summary", "", "snapshot.c", "/", "x"),
    ("summary-torn", "summary", "", "snapshot.torn", "/", "0"),
    ("summary-no-file", "summary", "", "none", "/", "0"),
]
PURGES = [
    ("purge-nothing", "purge", ""),
    ("purge-few", "purge", "", "purge", "-n", "2"),
    ("purge-number", "purge", "", "purge", "-n", "three"),
    ("purge-option", "purge", "", "purge", "-m", "3"),
    ("purge-missing", "purge", "", "none", "-n", "3"),
    ("purge-missing-snap", "purge", "", "purge", "none", "-n", "3"),
    ("purge-ten", "purge", "", "purge", "-n", "10"),
    ("purge", "purge", "", "purge", "-n", "3"),
    ("purge-again", "purge", "", "purge", "-n", "3"),
    ("purge-two", "purge", "", "purge2", "purge2", "-n", "4"),
]
TRACES = [("trace", "trace", "", "trace"), ("trace-missing", "trace", "", "trace.missing"), ("trace-nothing", "trace", ""),
          ("trace-two", "trace", "", "trace", "trace")]
TRACES += [(f"trace-{name}", "trace", "", f"trace.{name}") for name in ("torn", "negative", "long", "empty")]
CASES = DUMPS + RECOVERIES + USAGES + CHOPS + FORMATS + COMPARISONS + SUMMARIES + PURGES + TRACES
# Files that a case writes: they are compared too.
WRITTEN = {
    "recover": ["log.1.fixed"],
    "recover-verbose": ["log.gap.fixed"],
    "recover-yes": ["log.crc.fixed"],
    "recover-yes-verbose": ["crc2.fixed"],
    "recover-ask": ["crc3.fixed"],
    "recover-torn": ["log.torn.fixed"],
    "recover-no-mark": ["log.no-mark.fixed"],
    "recover-abort": ["crc4.fixed"],
    "recover-silent": ["crc5.fixed"],
    "chop": ["log.1.chopped16"],
    "chop-decimal": ["log.1.chopped5"],
    "chop-joined": ["log.1.chopped7"],
    "chop-late": ["log.1.chopped99"],
    "chop-absent": ["log.gap.chopped3"],
    "chop-gap": ["log.gap.chopped2"],
    "chop-crc": ["log.crc.chopped9"],
    "chop-magic": ["log.magic.chopped9"],
    "chop-empty": ["log.empty.chopped9"],
    "chop-no-mark": ["log.zero-mark.chopped9"],
    "chop-missing": ["log.missing.chopped9"],
    "chopper": ["chopped"],
    "chopper-late": ["chopped-late"],
    "chopper-missing": ["chopped-missing"],
    "chopper-number": ["chopped-number"],
}
