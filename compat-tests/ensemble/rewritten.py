"""zoo.cfg is written anew with `server.N` lines at each start, as many orchestrators do, although reconfigEnabled=true.

Most of the members of the last configuration are down. The two that are up must not lead by an older configuration or by older lines: the
others have acknowledged what these two lack.
"""

import re
import shutil
from pathlib import Path

import recovery
from change import SETTINGS, line, reconfig
from client import Client
from recovery import configuration_of, launch, serve, silent


def write_anew(members, lines):
    """Writes zoo.cfg as the operator has it, whatever the server has written into it."""
    for member in members:
        (member.folder / "zoo.cfg").write_text("\n".join([
            f"dataDir={member.folder / 'data'}", "tickTime=500", "initLimit=20", "syncLimit=20", "4lw.commands.whitelist=*",
            "admin.enableServer=false", *SETTINGS, *lines,
        ]) + "\n")


def start_anew(members, voters):
    write_anew(members, [line(member) for member in voters])
    launch(*members)


def make(at, path):
    c = Client([at.address])
    assert c.make(path)[0] == 0
    c.close()


def keep(members, *paths):
    """Checks that each member has what was acknowledged."""
    for member in members:
        c = Client([member.address])
        c.sync()
        for path in paths:
            assert c.exists(path), f"{member} has lost {path}, which was acknowledged"
        c.close()


def join(at, *joiners):
    c = Client([at.address])
    error, _ = reconfig(c, joining=",".join(map(line, joiners)))
    assert error == 0, f"reconfig: {error}"
    c.close()


def change_roles(at, lines):
    c = Client([at.address])
    error, _ = reconfig(c, members=",".join(lines))
    assert error == 0, f"reconfig: {error}"
    c.close()


def stop_at_commit(member, change):
    """Makes a change of the configuration that the member acknowledges, and at whose commit it ends: it can't write the copy."""
    obstacle = member.folder / "data" / "version-2" / "lastConfiguration.tmp"
    (obstacle / "in-the-way").mkdir(parents=True)
    change()
    code = recovery.ends(member)
    assert code == 1, f"{member} ended with {code}"
    shutil.rmtree(obstacle)


def return_to_first(ensemble, path):
    """All stop and get the lines of the first three. The two that lack what was acknowledged wait for the third."""
    one, two, three = first = ensemble.members[:3]
    ensemble.stop()
    start_anew([one, two], first)
    silent(one, two)
    start_anew([three], first)
    serve(*first)
    keep(first, path)


def retired_member_returns_with_its_old_files(ensemble):
    """A member that was taken out comes back with its old configuration, which the two may adopt."""
    one, two, three, four, retired, six = ensemble.members
    start_anew([one, two, retired], [one, two, retired])
    serve(one, two, retired)
    make(one, "/by-the-first-configuration")
    ensemble.stop()
    last = [one, two, three, four, six]
    start_anew(last, last)
    serve(*last)
    make(three, "/by-the-last-configuration")
    ensemble.stop(one, two)
    serve(three, four, six)
    make(three, "/while-two-were-down")
    ensemble.stop()
    start_anew([one, two], last)
    launch(retired)
    silent(one, two, retired)
    start_anew([three, four, six], last)
    serve(*last)
    keep(last, "/by-the-first-configuration", "/by-the-last-configuration", "/while-two-were-down")
    for member in last:
        lines, _ = configuration_of(member)
        assert line(six) in lines, f"{member} has an older configuration: {lines}"
    ensemble.stop(retired)


def lines_of_an_earlier_time_are_written_again(ensemble):
    """As from a template that was never changed, although two servers have joined by reconfigurations."""
    one, two, three, four, five = ensemble.members[:5]
    first = [one, two, three]
    start_anew(first, first)
    serve(*first)
    for joiner in (four, five):
        start_anew([joiner], [*first, joiner])
        serve(joiner)
        join(one, joiner)
    ensemble.stop(one, two)
    serve(three, four, five)
    make(three, "/while-two-were-down")
    return_to_first(ensemble, "/while-two-were-down")


def member_stops_before_it_knows_that_a_reconfiguration_was_committed(ensemble):
    """It has acknowledged it. Another member has not heard of it, and both get the lines of an earlier time."""
    one, two, three, four, five = ensemble.members[:5]
    first = [one, two, three]
    start_anew(first, first)
    serve(*first)
    start_anew([four, five], [*first, four, five])
    serve(four, five)
    ensemble.stop(two)
    stop_at_commit(one, lambda: join(three, four, five))
    serve(three, four, five)
    make(three, "/after-the-member-stopped")
    return_to_first(ensemble, "/after-the-member-stopped")


def joiner_stops_before_it_knows_that_it_is_a_member(ensemble):
    """Only the proposed configuration that it has acknowledged has its line. It starts with the files that it has written."""
    one, two, three, four, five = ensemble.members[:5]
    first = [one, two, three]
    start_anew(first, first)
    serve(*first)
    start_anew([five], [*first, five])
    serve(five)
    join(one, five)
    start_anew([four], [*first, four])
    serve(four)
    stop_at_commit(four, lambda: join(one, four))
    lines, _ = configuration_of(one)
    assert line(four) in lines, f"the configuration in force has no {four}: {lines}"
    launch(four)
    serve(four)
    ensemble.stop(one, two)
    serve(three, four, five)


def joiner_of_an_ensemble_of_one_stops(ensemble):
    """Its dynamic file has the other server alone. It must not go on as a standalone server with the data that it got."""
    one, two, three = ensemble.members[:3]
    recovery.configure(one, [line(one)], settings=["standaloneEnabled=false"])
    launch(one)
    serve(one)
    start_anew([two, three], [one, two, three])
    serve(two, three)
    ensemble.stop(three)
    launch(three)
    code = recovery.ends(three)
    assert code == 2, f"{three} has no line anywhere, and ended with {code}"
    start_anew([three], [one, two, three])
    serve(three)
    stop_at_commit(two, lambda: join(one, two, three))
    make(one, "/while-one-member-was-down")
    launch(two)
    serve(two)
    assert two.mode() == "follower", f"{two} is {two.mode()}"
    keep([two], "/while-one-member-was-down")


def dynamic_file(member):
    named = re.search(r"(?m)^dynamicConfigFile=(.*)$", (member.folder / "zoo.cfg").read_text())
    return Path(named.group(1))


def lines_in_a_dynamic_file_are_changed(ensemble):
    """Those of an earlier time, in the file of the last configuration, at one member. Two members lag, and do not know that configuration."""
    one, two, three, four, five = all_five = ensemble.members[:5]
    start_anew(all_five, all_five)
    serve(*all_five)
    ensemble.stop(three, five)
    change_roles(one, [line(one), line(two), line(three, "observer"), line(four), line(five, "observer")])
    ensemble.stop(four)
    make(one, "/while-three-were-down")
    ensemble.stop(one, two)
    dynamic_file(four).write_text("".join(line(member) + "\n" for member in all_five))
    launch(three, four, five)
    silent(three, four, five)
    launch(one, two)
    serve(*all_five)
    keep(all_five, "/while-three-were-down")
    assert len({configuration_of(member)[1] for member in all_five}) == 1


def removed_member_returns_by_its_dynamic_file(ensemble):
    """As docs/operations.md says: its own line is added to the file, and a reconfiguration names it again."""
    all_four = ensemble.members[:4]
    start_anew(all_four, all_four)
    serve(*all_four)
    removed, *others = sorted(all_four, key=lambda member: member.mode() == "leader")
    change_roles(others[0], [line(member) for member in others])
    ensemble.stop(removed)
    make(others[0], "/while-it-was-no-member")
    with dynamic_file(removed).open("a") as lines:
        lines.write(f"\n{line(removed)}\n")
    launch(removed)
    serve(removed)
    assert removed.mode() == "follower", f"{removed} is {removed.mode()}"
    join(others[0], removed)
    keep(all_four, "/while-it-was-no-member")
    ensemble.stop(removed)
    launch(removed)
    serve(removed)


CASES = [
    lines_in_a_dynamic_file_are_changed, removed_member_returns_by_its_dynamic_file,
    retired_member_returns_with_its_old_files,
    lines_of_an_earlier_time_are_written_again,
    member_stops_before_it_knows_that_a_reconfiguration_was_committed,
    joiner_stops_before_it_knows_that_it_is_a_member, joiner_of_an_ensemble_of_one_stops,
]


# rows: D-09
def check(ensemble, arguments):
    if set(ensemble.kinds) != {"o"}:
        return "skipped: Java's members lead by the older configuration or lines (docs/deviations.md)"
    return recovery.run_cases(CASES, ensemble, arguments)
