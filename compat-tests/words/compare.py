"""Compares the answers to each four-letter word, Java's and another server's: a function for each word, which yields differences.

A function gets both answers after the same requests. Lines are compared literally, after `masked` has replaced what differs from
run to run: ports, session ids, times. Every key of `mntr` must be there, in Java's order, and its value must be equal, except for
the keys in EXCEPT, which has the reasons; for these it is checked that a server's own figures are consistent.
"""

import re

# Keys of mntr whose values are not compared: a pattern for the whole key, and why. `adds_up` checks them within each server.
EXCEPT = [
    (r"(min|max|sum|avg|p50|p95|p99|p999)_.*(time|time_ms|latency)|uptime", "a time"),
    (r"..._startup_.*_time|(min|max|sum)_(dbinit|snapshot|fsync)time", "a time"),
    (r"approximate_data_size", "Java does not count the statistics of quotas, once there are quotas"),
    (r"open_file_descriptor_count", "another program has other files open"),
    # Reads and pings take no queue here, and writes of one batch share one figure (docs/deviations.md).
    (r"..._(prep|sync)_processor_queue_size", "a queue is sampled once per batch"),
    (r"cnt_(prep_process_time|proposal_process_time|sync_process_time)", "writes alone"),
    (r"cnt_(prep_processor_queue_time_ms|sync_processor_queue_.*|fsynctime)", "writes alone, per batch"),
    (r"..._sync_processor_batch_size", "which records are flushed together depends on timing"),
    (r"cnt_request_throttle_queue_time_ms", "there is no such queue"),
    (r"response_packet_(get_children_)?cache_(hits|misses)", "there is no cache of replies"),
]
# Keys of a member that differ, in addition to those of a standalone server, and why (docs/deviations.md has the intended differences).
EXCEPT_MEMBERS = [
    (r"\w+_learner_handler_qp_(size|time_ms)", "Java alone: a queue for each learner, and a thread that empties it"),
    (r"..._((write|read|commit)_commit_proc_\w+|\w*session_queue\w*|\w*commit_processor\w*|commit_process_time"
     r"|\w*commitproc_time_ms|\w+_write_committed_time_ms|\w+_final_proc_time_ms|learner_request_processor_queue_size)",
     "no such threads and queues"),
    (r"p\d+_(\w*commitproc_time_ms|\w+_write_committed_time_ms|\w+_final_proc_time_ms)", "no such threads"),
    (r"(snap|diff)_count|..._inflight_(snap|diff)_count", "how much a learner has missed when it connects depends on timing"),
    (r"..._(dbinit|snapshot|follower_sync|observer_sync|election|unavailable|leader_unavailable)_?time", "a time"),
    (r"..._snapshottime", "Java takes no snapshot while it is synchronised by a new epoch's first DIFF"),
    (r"\w+_sync_processor_queue_and_flush_time_ms", "Java does not time an observer's"),
    (r"leader_uptime", "a time"),
    (r"last_client_response_size", "either of two connections may have been answered last"),
]
# Keys that Java's members alone have: of a queue for each learner, and of its writes of the configuration.
ONLY_JAVA = r"_learner_handler_|_zookeeper_write_per_namespace"
PER_FLUSH = "sync_processor_batch_size|sync_processor_queue_flush_time_ms|fsynctime"
# These depend on how often this script asked a server whether it serves yet.
PROBED = ("zk_bytes_received_count", "zk_packets_received", "zk_packets_sent")
CLOCKS_MS = 50  # Tolerance between a server's clock and this script's.


class Said:
    """One server's answer, and how old the server was before it was asked and after it had answered."""

    def __init__(self, name, text, server, ages_ms):
        self.name, self.text, self.server, self.ages_ms = name, text, server, ages_ms

    def masked(self, *more):
        """Lines with placeholders for what differs between two runs; `more`: further patterns and their placeholders."""
        text = self.text.replace(str(self.server.folder), "FOLDER")
        text = re.sub(r"(Zookeeper version: |zookeeper.version=)3\.9\.5-\S+, built on \d{4}-\d\d-\d\d \d\d:\d\d UTC",
                      r"\1VERSION", text)
        text = re.sub(r"127\.0\.0\.1:\d+", "PEER", text)
        text = re.sub(r"0x[1-4][0-9a-f]{14}\b", "SESSION", text)
        for pattern, shape in more:
            text = re.sub(pattern, shape, text)
        return text.split("\n")

    def figures(self):
        return dict(line.split("\t") for line in self.text.splitlines())


def same(java, ours, *more, in_order=True):
    """Compares two answers; `in_order` is false for Java's tables of connections, sessions and watches, which have no order."""
    a, b = java.masked(*more), ours.masked(*more)
    if not in_order:
        a, b = sorted(a), sorted(b)
    if a != b:
        yield f"{java.name}: Java {a!r}, ours {b!r}"


# rows: W-10
def conf(java, ours):
    """Everything is compared, sizes too, except each server's folder and port."""
    for said in (java, ours):
        if f"clientPort={said.server.port}\n" not in said.text:
            yield f"conf: no port {said.server.port} in {said.text!r}"
    yield from same(java, ours, (r"clientPort=\d+", "clientPort=PORT"))


# rows: W-11
def cons(java, ours):
    # A connection without an answer yet: Java shows null and zeros, this server the values after `crst`.
    fresh = (r"lop=null(,est=TIME,to=\d+),lcxid=0x0,lzxid=0x0,", r"lop=NA\1,lzxid=0xffffffffffffffff,")
    yield from same(java, ours, (r"(,est|,lresp|,llat|,minlat|,avglat|,maxlat)=\d+", r"\1=TIME"), fresh, in_order=False)
    for said in (java, ours):
        for line in said.text.splitlines():
            least, mean, most = (int(re.search(f",{name}=(\\d+)", line + f",{name}=0")[1])
                                 for name in ("minlat", "avglat", "maxlat"))
            if not least <= mean <= most <= said.ages_ms[1]:
                yield f"cons: latencies {least}, {mean}, {most} in {line!r}"


# rows: W-13
def dirs(java, ours):
    yield from same(java, ours)


# rows: W-14
def dump(java, ours):
    # Java also lists empty sets until their expiry, and sessions that had ephemerals once. The
    # times are from two clocks.
    yield from same(
        java, ours,
        (r"SESSION:\n(?!\t)", ""),
        (r"Sessions with Ephemerals \(\d+\)", "Sessions with Ephemerals (N)"),
        (r"0 expire at .*\n", ""),
        (r"\d+ expire at \w{3} \w{3} \d\d \d\d:\d\d:\d\d \S+ \d{4}:\n", ""),
        (r"Sets \(\d+\)/", "Sets (N)/"),
        in_order=False,
    )


# rows: W-15
def envi(java, ours):
    yield from same(java, ours, (r"(java\.[a-z.]+|host\.name|os\.memory\.(?:free|max|total))=.+", r"\1=X"))


# rows: W-27
def digests(java, ours):
    yield from same(java, ours, (r": -?\d+", ": DIGEST"))  # A digest depends on times.


LATENCY = r"Latency min/avg/max: (\d+)/(\d+\.\d+(?:E-?\d+)?)/(\d+)"


# rows: W-20
def srvr(java, ours):
    yield from same(java, ours, (LATENCY, "Latency TIMES"))


# rows: W-21
def stat(java, ours):
    yield from same(java, ours, (LATENCY, "Latency TIMES"), in_order=False)


def groups(said):
    """The headings with the lines below them, sorted; a heading without lines is left out."""
    found = []
    for line in said.masked():
        if line.startswith("\t"):
            found[-1][1].append(line)
        elif line:
            found.append((line, []))
    return sorted((head, sorted(members)) for head, members in found if members)


# rows: W-22
def wchs(java, ours):
    """Java also counts connections whose watches have all fired, and lists them in `wchc`. So the first number is not compared
    here; `alike` compares it with the number of connections in `wchc`."""
    yield from same(java, ours, (r"^\d+ connections", "N connections"))


# rows: W-23
def wchc(java, ours):
    if groups(java) != groups(ours):
        yield f"wchc: Java {java.text!r}, ours {ours.text!r}"


# rows: W-24
def wchp(java, ours):
    if groups(java) != groups(ours) or java.text.count("\n") != ours.text.count("\n"):
        yield f"wchp: Java {java.text!r}, ours {ours.text!r}"


# rows: W-16 W-26
def short(java, ours):
    yield from same(java, ours)


# rows: M-01 M-06 M-14 M-20 M-31 M-32 M-34 W-25
def mntr(java, ours, but=lambda key: False, role="standalone"):
    """Compares every figure except those of `but`. Java lists keys per namespace in hash order, so their order is not compared."""
    per_name = lambda key: key.endswith("_per_namespace")  # noqa: E731
    a, b = java.figures(), ours.figures()
    if [key for key in a if not per_name(key)] != [key for key in b if not per_name(key)]:
        yield f"keys differ: {sorted(set(a) ^ set(b))}"
    for key in sorted(set(a) | set(b)):
        mine, theirs = b.get(key), a.get(key)
        if key == "zk_version" or mine == theirs or but(key):
            continue
        if key == "zk_approximate_data_size" and not any("quota" in key for key in a):
            yield f"{key}: Java {theirs}, ours {mine}"
        if mine is None or theirs is None or not any(re.fullmatch(f"zk_({keys})", key) for keys, _ in EXCEPT):
            yield f"{key}: Java {theirs}, ours {mine}"
        elif key.startswith("zk_cnt_") and not re.search(PER_FLUSH, key) and int(theirs) < int(mine):
            yield f"{key}: Java {theirs}, ours {mine}, more than there were events"
    for said, whose in ((java, "Java"), (ours, "ours")):
        yield from (f"{whose} {complaint}" for complaint in adds_up(said))
    yield from queues_add_up(b, role)


def adds_up(said):
    """Checks that a server's figures are consistent with each other, and with its age."""
    of = said.figures()
    number = lambda key: float(of[f"zk_{key}"])  # noqa: E731
    for key in of:
        if not key.startswith("zk_cnt_"):
            continue
        name = key.removeprefix("zk_cnt_")
        count, total, mean, least, most = (number(f"{kind}_{name}") for kind in ("cnt", "sum", "avg", "min", "max"))
        quantiles = [number(f"{kind}_{name}") for kind in ("p50", "p95", "p99", "p999") if f"zk_{kind}_{name}" in of]
        shown = f"{name}: count {count}, sum {total}, avg {mean}, min {least}, max {most}, quantiles {quantiles}"
        if count == 0:
            if any([total, mean, least, most, *quantiles]):
                yield f"{shown}: values although the count is 0"
        elif not (least * count <= total <= most * count and abs(mean - total / count) <= 0.0001
                  and quantiles == sorted(quantiles) and all(least <= one <= most for one in quantiles)):
            yield f"{shown}: inconsistent"
        elif re.search("time|latency", name) and not 0 <= least <= most <= said.ages_ms[1]:
            yield f"{shown}: impossible times for a server that is {said.ages_ms} ms old"
    if not said.ages_ms[0] - CLOCKS_MS <= number("uptime") <= said.ages_ms[1] + CLOCKS_MS:
        yield f"uptime {number('uptime')} of a server that is {said.ages_ms} ms old"
    if not number("num_alive_connections") < number("open_file_descriptor_count") <= number("max_file_descriptor_count"):
        yield f"open_file_descriptor_count is {number('open_file_descriptor_count')}"


# rows: M-04
def queues_add_up(of, role):
    """Every record of the log was proposed, queued, written and flushed, once each. A learner does no prep processing."""
    number = lambda key: int(of[f"zk_{key}"])  # noqa: E731
    records = [number(key) for key in (
        "sum_sync_processor_batch_size", "cnt_proposal_process_time", "cnt_sync_process_time",
        "cnt_sync_processor_queue_time_ms", "cnt_sync_processor_queue_and_flush_time_ms")]
    judges = role in ("standalone", "leader")
    if not judges and records.pop(1):
        yield "a learner counted proposals"
    if len(set(records)) != 1:
        yield f"different counts of log records: {records}"
    flushes = [number(f"cnt_{name}") for name in PER_FLUSH.split("|")]
    if len(set(flushes)) != 1 or records[0] < flushes[0]:
        yield f"different counts of flushes: {flushes}, for {records[0]} log records"
    judged = [number("cnt_prep_process_time"), number("cnt_prep_processor_queue_time_ms")]
    if not judges and any([*judged, number("prep_processor_request_queued")]):
        yield f"a learner counted prep processing: {judged}"
    elif judges and not records[0] <= judged[0] == judged[1] <= number("prep_processor_request_queued"):
        yield f"prep processing of {judged} requests, {records[0]} log records"


def alike(said, is_java):
    """Checks that one server's words agree with each other about latencies and about connections with watches."""
    of = said["mntr"].figures()
    of_mntr = tuple(of[f"zk_{kind}_latency"] for kind in ("min", "avg", "max"))
    for name in ("srvr", "stat"):
        if (found := re.search(LATENCY, said[name].text)) is None or found.groups() != of_mntr:
            yield f"{name}: other latencies than mntr's {of_mntr}: {said[name].text!r}"
    watchers = said["wchc"].text.count("0x") if is_java else len(groups(said["wchc"]))
    if not said["wchs"].text.startswith(f"{watchers} connections "):
        yield f"wchs: other than the {watchers} connections of wchc: {said['wchs'].text!r}"


WORDS = {"conf": conf, "cons": cons, "dirs": dirs, "dump": dump, "envi": envi, "gtmk": short, "hash": digests,
         "isro": short, "mntr": mntr, "ruok": short, "srvr": srvr, "stat": stat, "wchc": wchc, "wchp": wchp, "wchs": wchs}
