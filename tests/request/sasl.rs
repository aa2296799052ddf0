//! The SASL exchange of a client: its order among the requests, what success and failure change, steps that block.

use super::auth::{auth, frame, open_within};
use jute::Reader;
use jute::proto::{ReplyHeader, SetSaslResponse};
use oxkeeper::auth::digest_md5::{Accounts, Client, NONCE_BYTES, Offer, Service};
use oxkeeper::auth::sasl::{Mechanism, Mechanisms, Refusal, Step};
use oxkeeper::auth::{SaslRules, Schemes};
use oxkeeper::model::{Identity, Secret, op, xid};
use oxkeeper::request::{ClientCommand, Connection, Limits, Need, SaslStep};
use std::sync::Arc;
use std::task::Waker;

fn secret(text: &str) -> Arc<Secret> {
    Arc::new(Secret::new(text.as_bytes().to_vec()))
}

/// A server with users `bob`, `root` and `a@b@c`, whose passwords are their names backwards.
fn digest_md5() -> Arc<dyn Mechanisms> {
    let users = ["bob", "root", "a@b@c"];
    let users =
        users.map(|user| (user.to_owned(), secret(&user.chars().rev().collect::<String>())));
    Arc::new(Offer::new(Accounts::of_clients(&users, None), || [1; NONCE_BYTES]))
}

fn open(schemes: Schemes) -> Connection {
    open_within(Limits { schemes, sasl: Some(digest_md5()), ..Limits::default() })
}

fn sasl(token: &[u8]) -> Vec<u8> {
    let mut input = Vec::new();
    frame(&mut input, op::SASL, |to| jute::put_buffer(to, token));
    input
}

fn ping() -> Vec<u8> {
    let mut input = Vec::new();
    frame(&mut input, op::PING, |_| {});
    input
}

/// Takes the replies so far: xid, code, and the token of a sasl answer.
fn replies(machine: &mut Connection) -> Vec<(i32, i32, Option<Vec<u8>>)> {
    let mut from = Reader::new(&machine.unsent.bytes);
    let mut seen = Vec::new();
    while let Ok(Some(frame)) = from.read::<Option<&[u8]>>() {
        let mut inside = Reader::new(frame);
        let header: ReplyHeader = inside.read().unwrap();
        let is_sasl = header.xid == op::SASL;
        let token = is_sasl.then(|| inside.read::<SetSaslResponse<'_>>().unwrap().token).flatten();
        assert!(inside.rest().is_empty(), "a sasl answer has a body, and nothing after it");
        seen.push((header.xid, header.err, token.map(<[u8]>::to_vec)));
    }
    machine.unsent.clear();
    seen
}

/// Plays a client of DIGEST-MD5 up to its response; returns what the server needs after it.
fn play(machine: &mut Connection, user: &str, password: &str) -> Need {
    let service = Service::CLIENTS;
    let mut client = Client::new(service, user.to_owned(), secret(password), [2; NONCE_BYTES]);
    let first = sasl(b"");
    assert_eq!(machine.advance(&first, 0), (first.len(), Need::Bytes(4)));
    let [(op::SASL, 0, Some(challenge))] = &replies(machine)[..] else { panic!("a challenge") };
    let response = sasl(&client.step(challenge).unwrap().unwrap());
    machine.advance(&response, 0).1
}

fn sasl_id(id: &str) -> Identity {
    Identity::new("sasl", id)
}

// rows: P-60a U-18
#[test]
fn exchange_adds_the_clients_id_for_the_requests_after_it() {
    let mut machine = open(Schemes::default());
    let mut client =
        Client::new(Service::CLIENTS, "bob".to_owned(), secret("bob"), [2; NONCE_BYTES]);
    let mut input = Vec::new();
    let sync = |to: &mut Vec<u8>| frame(to, op::SYNC, |to| jute::put_string(to, "/"));
    sync(&mut input);
    input.extend(sasl(b""));
    machine.advance(&input, 0);
    let [(op::SASL, 0, Some(challenge))] = &replies(&mut machine)[..] else { panic!() };
    let mut input = sasl(&client.step(challenge).unwrap().unwrap());
    sync(&mut input);
    assert_eq!(machine.advance(&input, 0), (input.len(), Need::Bytes(4)));
    let [(op::SASL, 0, Some(last))] = &replies(&mut machine)[..] else { panic!() };
    assert_eq!(client.step(last), Ok(None), "the server knows the password");
    let identities = |command: &ClientCommand| match command {
        ClientCommand::Writes(batch) => batch.identities.to_vec(),
        _ => panic!("writes only"),
    };
    let identities: Vec<_> = machine.commands.iter().map(identities).collect();
    let ip = Identity::new("ip", "127.0.0.1");
    assert_eq!(identities, [vec![ip.clone()], vec![ip, sasl_id("bob")]]);
}

// rows: U-04 U-18 C-74
#[test]
fn super_users_are_super_too() {
    let super_users = vec!["root".to_owned(), "eve".to_owned()];
    let rules = SaslRules { super_users, ..SaslRules::default() };
    for (user, added) in
        [("bob", vec![sasl_id("bob")]), ("root", vec![sasl_id("root"), Identity::new("super", "")])]
    {
        let mut machine = open(Schemes { sasl_rules: rules.clone(), ..Schemes::default() });
        let password: String = user.chars().rev().collect();
        assert_eq!(play(&mut machine, user, &password), Need::Bytes(4));
        assert_eq!(machine.conn().identities()[1..], added);
    }
}

// rows: U-18 C-76
#[test]
fn failed_exchange_is_answered_with_a_body_and_closes_the_connection() {
    for (required, code) in
        [(&[][..], -115), (&["sasl"], -124), (&["digest", "sasl"], -124), (&["digest"], -115)]
    {
        let schemes = |allows_failed_clients| Schemes {
            required: required.iter().map(|scheme| (*scheme).to_owned()).collect(),
            sasl_rules: SaslRules { allows_failed_clients, ..SaslRules::default() },
            ..Schemes::default()
        };
        // A client that may fail may do so only where SASL is not required.
        for allows in [false, code == -124] {
            let mut machine = open(schemes(allows));
            let need = play(&mut machine, "bob", "wrong");
            let reason = "SASL authentication failed: wrong password of user \"bob\"; correct the client's name and password, \
                          or its Kerberos ticket";
            assert_eq!(need, Need::Close(reason.to_owned()));
            assert_eq!(replies(&mut machine), [(op::SASL, code, None)]);
            assert_eq!(machine.conn().identities().len(), 1);
        }
    }
}

// rows: C-75 U-18
#[test]
fn client_that_may_fail_is_served_without_an_id() {
    let rules = SaslRules { allows_failed_clients: true, ..SaslRules::default() };
    let mut machine = open(Schemes { sasl_rules: rules, ..Schemes::default() });
    assert_eq!(play(&mut machine, "bob", "wrong"), Need::Bytes(4));
    assert_eq!(replies(&mut machine), [(op::SASL, 0, None)]);
    let again = [sasl(b"x"), ping()].concat();
    assert_eq!(machine.advance(&again, 0), (again.len(), Need::Bytes(4)));
    assert_eq!(replies(&mut machine), [(op::SASL, 0, None), (xid::PING, 0, None)]);
    assert_eq!(machine.conn().identities().len(), 1);
}

// rows: U-18
#[test]
fn second_exchange_on_a_connection_is_refused() {
    let mut machine = open(Schemes::default());
    assert_eq!(play(&mut machine, "bob", "bob"), Need::Bytes(4));
    replies(&mut machine);
    assert!(matches!(machine.advance(&sasl(b""), 0).1, Need::Close(_)));
    assert_eq!(replies(&mut machine), [(op::SASL, -115, None)]);
}

// rows: U-18 U-19
#[test]
fn name_that_is_no_principals_is_refused() {
    let mut machine = open(Schemes::default());
    assert!(matches!(play(&mut machine, "a@b@c", "c@b@a"), Need::Close(_)));
    assert_eq!(replies(&mut machine), [(op::SASL, -115, None)]);
}

// rows: P-78 C-76
#[test]
fn client_may_do_nothing_but_authenticate_where_sasl_is_required() {
    let schemes = || Schemes { required: vec!["sasl".to_owned()], ..Schemes::default() };
    for kind in [op::PING, op::EXISTS, op::CREATE, op::CLOSE_SESSION] {
        let (mut machine, mut input) = (open(schemes()), sasl(b""));
        auth(&mut input, "digest", b"bob:x");
        let allowed = input.len();
        frame(&mut input, kind, |to| jute::put_string(to, "/"));
        let (taken, need) = machine.advance(&input, 0);
        assert_eq!((taken, matches!(need, Need::Close(_))), (allowed, true));
        assert_eq!(replies(&mut machine).last(), Some(&(kind, -124, None)));
        assert!(machine.commands.is_empty());
    }
    let mut machine = open(schemes());
    assert_eq!(play(&mut machine, "bob", "bob"), Need::Bytes(4));
    replies(&mut machine);
    assert_eq!(machine.advance(&ping(), 0).1, Need::Bytes(4));
    assert_eq!(replies(&mut machine), [(xid::PING, 0, None)]);
}

/// A mechanism whose steps may block: `go` is challenged, `bob` proves that name, all else is refused.
#[derive(Debug)]
struct Slow;

impl Mechanism for Slow {
    fn step(&mut self, token: &[u8]) -> Result<Step, Refusal> {
        match token {
            b"go" => Ok(Step::Challenge(b"on".to_vec())),
            b"bob" => Ok(Step::Done { token: None, authorization: "bob".to_owned() }),
            _ => Err(Refusal::new("nonsense")),
        }
    }

    fn blocks(&self) -> bool {
        true
    }
}

impl Mechanisms for Slow {
    fn begin(&self) -> Box<dyn Mechanism> {
        Box::new(Self)
    }
}

fn slow() -> Connection {
    open_within(Limits { sasl: Some(Arc::new(Slow)), ..Limits::default() })
}

// rows: P-60a U-18
#[test]
fn requests_wait_for_a_step_that_blocks() {
    let mut machine = slow();
    let input = [sasl(b"go"), ping()].concat();
    let first = sasl(b"go").len();
    assert_eq!(machine.advance(&input, 0), (first, Need::Answer));
    assert!(machine.wait(Waker::noop()) && replies(&mut machine).is_empty());
    assert!(machine.conn().is_kept_waiting(), "its session must not expire meanwhile");
    let step = machine.take_step(READ_US).unwrap();
    assert!(machine.take_step(READ_US).is_none(), "one thread runs it");
    assert_eq!(machine.advance(&input[first..], 0), (0, Need::Answer));
    step.run();
    assert!(!machine.wait(Waker::noop()), "there is news");
    let (taken, need) = machine.advance(&input[first..], 0);
    assert_eq!((taken, need), (input.len() - first, Need::Bytes(4)));
    let challenge = (op::SASL, 0, Some(b"on".to_vec()));
    assert_eq!(replies(&mut machine), [challenge, (xid::PING, 0, None)]);
    // The next step has the same mechanism.
    machine.advance(&sasl(b"bob"), 0);
    machine.take_step(READ_US).unwrap().run();
    assert_eq!(machine.advance(&[], 0), (0, Need::Bytes(4)));
    assert_eq!(replies(&mut machine), [(op::SASL, 0, None)]);
    assert_eq!(machine.conn().identities()[1..], [sasl_id("bob")]);
    assert!(!machine.conn().is_kept_waiting());
}

// rows: U-18
#[test]
fn refused_step_closes_the_connection() {
    let mut machine = slow();
    machine.advance(&sasl(b"no"), 0);
    machine.take_step(READ_US).unwrap().run();
    let reason =
        "SASL authentication failed: nonsense; correct the client's name and password, or its Kerberos ticket"
            .to_owned();
    assert_eq!(machine.advance(&[], 0), (0, Need::Close(reason)));
    assert_eq!(replies(&mut machine), [(op::SASL, -115, None)]);
}

const READ_US: u64 = 5_000_000;
const UNTIL_US: u64 = READ_US + 10_000_000;

/// A client of `machine` whose step is under way until `UNTIL_US`.
fn begin_step(machine: &mut Connection) -> SaslStep {
    machine.advance(&sasl(b"go"), 0);
    assert_eq!(machine.deadline_us(), None, "no thread has the step");
    let step = machine.take_step(READ_US).unwrap();
    assert_eq!((machine.deadline_us(), step.until_us), (Some(UNTIL_US), UNTIL_US));
    assert_eq!(machine.advance(&[], UNTIL_US - 1), (0, Need::Answer));
    step
}

// rows: U-18
#[test]
fn step_that_takes_ten_seconds_is_given_up() {
    let mut machine = slow();
    let step = begin_step(&mut machine);
    let reason = "SASL authentication failed: the step took more than 10 s; see whether the KDC and \
                  DNS answer";
    assert_eq!(machine.advance(&[], UNTIL_US), (0, Need::Close(reason.to_owned())));
    assert_eq!(machine.deadline_us(), None);
    step.run();
    assert_eq!(replies(&mut machine), [(op::SASL, -115, None)]);
}

#[test]
fn step_that_ends_before_its_connection_looks_at_the_time_counts() {
    let mut machine = slow();
    begin_step(&mut machine).run();
    assert_eq!(machine.advance(&[], UNTIL_US), (0, Need::Bytes(4)));
    assert_eq!(machine.deadline_us(), None);
    assert_eq!(replies(&mut machine), [(op::SASL, 0, Some(b"on".to_vec()))]);
}

#[test]
fn answer_to_a_step_waits_for_a_client_that_does_not_take_what_it_was_sent() {
    for is_run in [false, true] {
        let mut machine = slow();
        let step = begin_step(&mut machine);
        machine.unsent.bytes.resize(2 << 20, 0);
        if is_run {
            step.run();
        }
        assert_eq!(machine.advance(&[], UNTIL_US), (0, Need::Room));
        assert!(
            machine.wait(Waker::noop()) && machine.deadline_us().is_none(),
            "or it is woken at once"
        );
        machine.unsent.clear();
        let (_, need) = machine.advance(&[], UNTIL_US);
        assert_eq!(matches!(need, Need::Close(_)), !is_run);
    }
}

// rows: C-75 U-18
#[test]
fn client_that_may_fail_is_served_after_its_step_was_given_up_and_gets_no_id_from_it() {
    let rules = SaslRules { allows_failed_clients: true, ..SaslRules::default() };
    let schemes = Schemes { sasl_rules: rules, ..Schemes::default() };
    let sasl_of = Some(Arc::new(Slow) as Arc<dyn Mechanisms>);
    let mut machine = open_within(Limits { schemes, sasl: sasl_of, ..Limits::default() });
    let step = begin_step(&mut machine);
    assert_eq!(machine.advance(&[], UNTIL_US), (0, Need::Bytes(4)));
    step.run();
    assert!(machine.wait(Waker::noop()), "nobody waits for the step");
    let more = [sasl(b"bob"), ping()].concat();
    assert_eq!(machine.advance(&more, UNTIL_US), (more.len(), Need::Bytes(4)));
    let none = (op::SASL, 0, None);
    assert_eq!(replies(&mut machine), [none.clone(), none, (xid::PING, 0, None)]);
    assert_eq!(machine.conn().identities().len(), 1);
}

// rows: P-24 U-08
#[test]
fn certificates_identities_are_there_from_the_start() {
    use oxkeeper::request::ClientHandle;
    use oxkeeper::tree::{Options, Tree};
    let schemes = Schemes { x509: true, ..Schemes::default() };
    let limits = Limits { schemes: schemes.clone(), ..Limits::default() };
    let shared = support::builders::shared(Tree::new(Options::default()), limits);
    let proved = schemes.of_certificate("CN=a");
    let peer = "127.0.0.1:1".parse().unwrap();
    let conn = shared.conns.add(|id| ClientHandle::new(id, peer, 0).identified(proved));
    let identities = [Identity::new("ip", "127.0.0.1"), Identity::new("x509", "CN=a")];
    assert_eq!(*Connection::new(conn, shared).conn().identities(), identities);
}

// rows: U-08
#[test]
fn asking_for_x509_succeeds_only_with_a_certificate() {
    let schemes = Schemes { x509: true, ..Schemes::default() };
    let mut machine = open_within(Limits { schemes, ..Limits::default() });
    let mut input = Vec::new();
    auth(&mut input, "x509", b"CN=a");
    assert!(matches!(machine.advance(&input, 0).1, Need::Close(_)));
    assert_eq!(replies(&mut machine), [(op::AUTH, -115, None)]);
}
