"""Both methods of ZooKeeper's StandaloneDisabledTest against server processes. Its servers 0 to 4 are members 1 to 5 here."""

from change import BAD_ARGUMENTS, NO_QUORUM, config, line, reconfig
from client import Client
from members import until
from recovery import configure, launch, run_cases, serve, silent, wait_for_configuration, write
from wire import Lost

ALONE = ["standaloneEnabled=false"]
ANSWER_SECONDS = 30


def ask(member, **what):
    """The error of a reconfiguration through a member; retried when the connection ends, as ZooKeeper's test does."""

    def answers():
        c = Client([member.address])
        try:
            return reconfig(c, **what)
        except Lost:
            return None
        finally:
            c.socket.close()

    return until(f"an answer of {member} to {what}", answers, ANSWER_SECONDS)[0]


def done(member, **what):
    error = ask(member, **what)
    assert error == 0, f"{what} through {member}: {error}"


def one_server_becomes_three_and_one_again(ensemble):
    """startSingleServerTest: two members join an ensemble of one, and go on when it is stopped; two are removed; two observers join."""
    one, two, three, four, five = ensemble.members
    configure(one, [line(one)], settings=ALONE)
    launch(one)
    serve(one)
    assert one.mode() == "leader", f"it is {one.mode()}"
    wait_for_configuration([one], [line(one)])
    for member, other in [(two, three), (three, two)]:
        configure(member, [line(one), line(member), line(other)], settings=ALONE)
        launch(member)
        serve(member)
    done(one, joining=f"{line(two)},{line(three)}")
    write(one, two)
    write(one, three)
    wait_for_configuration([one, two, three], [line(member) for member in (one, two, three)])

    one.end()
    serve(two, three)
    write(two, three)
    error = ask(two, leaving="3")
    assert error == NO_QUORUM, f"one of the two next voters is down: {error}"
    done(three, leaving="1,2")
    wait_for_configuration([three], [line(three)])
    two.end()
    until("the third member leads alone", lambda: three.mode() == "leader")
    error = ask(three, leaving="3")
    assert error == BAD_ARGUMENTS, f"no member would be left: {error}"

    for member in (four, five):
        configure(member, [line(three), line(member)], settings=ALONE)
        launch(member)
        serve(member)
    done(three, joining=f"{line(four)},{line(five)}")
    write(three, four)
    write(three, five)
    wait_for_configuration([three, four, five], [line(member) for member in (three, four, five)])
    observing = [line(member, "observer") for member in (four, five)]
    done(three, joining=",".join(observing))
    write(three, four)
    write(three, five)
    wait_for_configuration([three, four, five], [line(three), *observing])
    until("two observers", lambda: [member.mode() for member in (three, four, five)] == ["leader", "observer", "observer"])
    c = Client([five.address])
    assert "version=" in config(c)
    c.close()


def observer_alone(ensemble):
    """startObserver: an observer without voters does not serve."""
    four = ensemble.members[3]
    configure(four, [line(four, "observer")], settings=ALONE)
    launch(four)
    silent(four, may_end=True)
    if four.process.poll() is not None:
        assert four.process.returncode != 0, "it exits with status 0"
        four.process = None


CASES = [one_server_becomes_three_and_one_again, observer_alone]


# rows: C-34 Q-101
def check(ensemble, arguments):
    return run_cases(CASES, ensemble, arguments)
