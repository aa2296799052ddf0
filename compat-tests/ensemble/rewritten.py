"""zoo.cfg is written anew with `server.N` lines at each start, as many orchestrators do, although reconfigEnabled=true.

A member that was taken out returns with its old files and its older configuration, while most of the members of the last one are down.
The two that are up must not lead by the older one: the others have acknowledged what these two lack.
"""

import recovery
from change import SETTINGS, config, line
from client import Client
from recovery import launch, serve, silent


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


def retired_member_returns_with_its_old_files(ensemble):
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
    for member in last:
        c = Client([member.address])
        c.sync()
        for path in ["/by-the-first-configuration", "/by-the-last-configuration", "/while-two-were-down"]:
            assert c.exists(path), f"{member} has lost {path}, which was acknowledged"
        assert f"server.{six.number}=" in config(c), f"{member} has an older configuration: {config(c)}"
        c.close()
    ensemble.stop(retired)


# rows: D-09
def check(ensemble, arguments):
    if set(ensemble.kinds) != {"o"}:
        return "skipped: Java's members lead by the older configuration (docs/deviations.md)"
    return recovery.run_cases([retired_member_returns_with_its_old_files], ensemble, arguments)
