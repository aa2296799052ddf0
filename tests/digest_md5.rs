//! DIGEST-MD5: exchanges that the JDK made with itself, and each check of the server and of the client.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use oxkeeper::auth::digest_md5::{Accounts, Client, NONCE_BYTES, Server, Service};
use oxkeeper::auth::sasl::{Mechanism, Step};
use oxkeeper::model::Secret;
use std::sync::Arc;

const NONCE: [u8; NONCE_BYTES] = [7; NONCE_BYTES];

fn secret(text: &str) -> Arc<Secret> {
    Arc::new(Secret::new(text.as_bytes().to_vec()))
}

fn users(users: &[(&str, &str)]) -> Vec<(String, Arc<Secret>)> {
    users.iter().map(|(user, password)| ((*user).to_owned(), secret(password))).collect()
}

fn server(accounts: Accounts) -> Server {
    Server::new(Arc::new(accounts), NONCE)
}

fn of_clients(user: &str, password: &str) -> Server {
    server(Accounts::of_clients(&users(&[(user, password)]), None))
}

fn client(service: Service, user: &str, password: &str) -> Client {
    Client::new(service, user.to_owned(), secret(password), [9; NONCE_BYTES])
}

fn challenge(server: &mut Server) -> Vec<u8> {
    match server.step(b"").unwrap() {
        Step::Challenge(challenge) => challenge,
        Step::Done { .. } => panic!("a challenge"),
    }
}

/// The value of a quoted or plain directive.
fn value(token: &[u8], key: &str) -> String {
    let text = String::from_utf8(token.to_vec()).unwrap();
    let after = text.split(&format!("{key}=")).nth(1).unwrap();
    let end = after.trim_start_matches('"').find([',', '"']);
    let after = after.trim_start_matches('"');
    after[..end.unwrap_or(after.len())].to_owned()
}

struct Golden {
    service: Service,
    user: String,
    password: String,
    challenge: Vec<u8>,
    response: Vec<u8>,
    last: Vec<u8>,
}

fn golden() -> Vec<Golden> {
    let unhex = |text: &str| -> Vec<u8> {
        let digits = |at| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
        (0..text.len()).step_by(2).map(digits).collect()
    };
    let text = |hex: &str| String::from_utf8(unhex(hex)).unwrap();
    let line = |line: &str| {
        let [protocol, user, password, challenge, response, last] =
            line.split('\t').collect::<Vec<_>>().try_into().unwrap();
        Golden {
            service: if protocol == "zookeeper" { Service::CLIENTS } else { Service::QUORUM },
            user: text(user),
            password: text(password),
            challenge: unhex(challenge),
            response: unhex(response),
            last: unhex(last),
        }
    };
    include_str!("../compat-tests/golden/sasl/exchanges.tsv").lines().map(line).collect()
}

fn nonce(text: &str) -> [u8; NONCE_BYTES] {
    STANDARD.decode(text).unwrap().try_into().unwrap()
}

// rows: U-18 Q-113
#[test]
fn server_says_what_the_jdks_server_said() {
    let golden = golden();
    assert_eq!(golden.len(), 40);
    for one in golden {
        let users = users(&[("other", "x"), (&one.user, &one.password)]);
        let accounts = if one.service == Service::CLIENTS {
            Accounts::of_clients(&users, None)
        } else {
            Accounts::of_servers(&users)
        };
        let mut server = Server::new(Arc::new(accounts), nonce(&value(&one.challenge, "nonce")));
        assert_eq!(server.step(b""), Ok(Step::Challenge(one.challenge)), "{}", one.user);
        let done = Step::Done { token: Some(one.last), authorization: one.user };
        assert_eq!(server.step(&one.response), Ok(done));
    }
}

// rows: Q-113
#[test]
fn client_says_what_the_jdks_client_said() {
    for one in golden() {
        if !one.response.windows(8).any(|bytes| bytes == b"authzid=") {
            continue; // As ZooKeeper's clients and servers, ours asks for its own name.
        }
        let cnonce = nonce(&value(&one.response, "cnonce"));
        let mut client = Client::new(one.service, one.user.clone(), secret(&one.password), cnonce);
        assert_eq!(client.step(&one.challenge), Ok(Some(one.response)), "{}", one.user);
        assert_eq!(client.step(&one.last), Ok(None), "{}", one.user);
    }
}

/// What a server answers to the honest response after `change`.
fn judged(change: impl FnOnce(String) -> String) -> Result<Step, String> {
    let mut server = of_clients("bob", "secret");
    let challenge = challenge(&mut server);
    let response = client(Service::CLIENTS, "bob", "secret").step(&challenge).unwrap().unwrap();
    let changed = change(String::from_utf8(response).unwrap());
    server.step(changed.as_bytes()).map_err(|refusal| refusal.to_string())
}

fn is_accepted(change: impl FnOnce(String) -> String) -> bool {
    judged(change).is_ok()
}

fn is_refused_for(reason: &str, change: impl FnOnce(String) -> String) -> bool {
    judged(change).is_err_and(|refusal| refusal.contains(reason))
}

// rows: U-18
#[test]
fn server_refuses_a_response_to_another_nonce() {
    let mut earlier = Server::new(
        Arc::new(Accounts::of_clients(&users(&[("bob", "secret")]), None)),
        [8; NONCE_BYTES],
    );
    let mut honest = client(Service::CLIENTS, "bob", "secret");
    let response = honest.step(&challenge(&mut earlier)).unwrap().unwrap();
    assert!(is_refused_for("another nonce", |_| String::from_utf8(response).unwrap()));
    assert!(is_refused_for("no nonce", |token| token.replace(",nonce=", ",other=")));
}

// rows: U-18
#[test]
fn server_refuses_a_response_with_another_nonce_count() {
    for count in ["00000002", "00000000", "1", "0000000x", ""] {
        let change = |token: String| token.replace("nc=00000001", &format!("nc={count}"));
        assert!(is_refused_for("(nc)", change), "{count}");
    }
    assert!(is_accepted(|token| token.replace(",nc=00000001", "")), "the JDK reads none");
}

// rows: U-18
#[test]
fn server_refuses_a_response_for_another_realm_service_or_protection() {
    assert!(is_refused_for("realm", |token| token.replace("realm=\"zk", "realm=\"x")));
    assert!(is_refused_for("realm", |token| token.replace("realm=\"zk-sasl-md5\",", "")));
    assert!(is_refused_for("digest-uri", |token| token.replace("uri=\"zoo", "uri=\"boo")));
    assert!(is_refused_for("digest-uri", |token| token.replace("digest-uri=", "other=")));
    for qop in ["auth-int", "auth-conf", "AUTH", ""] {
        let change = |token: String| token.replace("qop=auth", &format!("qop={qop}"));
        assert!(is_refused_for("(qop)", change), "{qop}");
    }
    assert!(is_accepted(|token| token.replace(",qop=auth", "")), "it is the default");
}

// rows: U-18
#[test]
fn server_refuses_a_response_that_lacks_or_repeats_a_part() {
    for key in ["username", "cnonce", "response"] {
        let change = |token: String| token.replace(&format!("{key}="), "other=");
        assert!(is_refused_for(key, change), "{key}");
    }
    for again in ["username=\"bob\"", "nc=00000001", "qop=auth", "maxbuf=65536", "authzid=\"bob\""]
    {
        assert!(is_refused_for("more than one", |token| format!("{token},{again}")), "{again}");
    }
    let charset = |token: String| token.replace("charset=utf-8", "charset=latin1");
    assert!(is_refused_for("charset", charset));
    assert!(is_refused_for("maxbuf", |token| token.replace("maxbuf=65536", "maxbuf=1e9")));
    assert!(is_accepted(|token| token.replace("maxbuf=65536,", "").replace("charset=utf-8,", "")));
    assert!(is_accepted(|token| format!("{token}, auth-param=x ,, other=\"y\"")));
}

// rows: U-18
#[test]
fn server_refuses_wrong_passwords_and_unknown_users() {
    let mut server = of_clients("bob", "secret");
    let challenge = challenge(&mut server);
    let response = client(Service::CLIENTS, "bob", "wrong").step(&challenge).unwrap().unwrap();
    let refusal = server.step(&response).unwrap_err().to_string();
    assert_eq!(refusal, "wrong password of user \"bob\"");
    let rename = |token: String| token.replace("username=\"bob\"", "username=\"Bob\\\n\"");
    assert!(is_refused_for("user \"Bob\\n\" is not known", rename));
    assert!(is_refused_for("wrong password", |token| token.replace("cnonce=\"", "cnonce=\"x")));
    assert!(is_refused_for("wrong password", |token| token
        .replace("d=\"bob\"", "d=\"eve\"")
        .replace("username=\"eve", "username=\"bob")));
}

// rows: U-18
#[test]
fn service_is_compared_in_any_case_and_hashed_as_it_came() {
    // The response was computed over the URI in its own case, so that with another case it proves nothing.
    let upper = |token: String| token.replace("uri=\"zookeeper/", "uri=\"ZooKeeper/");
    assert!(is_refused_for("wrong password", upper));
    let shouting = Service { protocol: "ZOOKEEPER", ..Service::CLIENTS };
    let mut server = of_clients("bob", "secret");
    let challenge = challenge(&mut server);
    let response = client(shouting, "bob", "secret").step(&challenge).unwrap().unwrap();
    assert!(server.step(&response).is_ok());
}

// rows: U-18
#[test]
fn exchange_ends_with_the_first_response() {
    for password in ["secret", "wrong"] {
        let mut server = of_clients("bob", "secret");
        let challenge = challenge(&mut server);
        let right = client(Service::CLIENTS, "bob", "secret").step(&challenge).unwrap().unwrap();
        let first = client(Service::CLIENTS, "bob", password).step(&challenge).unwrap().unwrap();
        assert_eq!(server.step(&first).is_ok(), password == "secret");
        assert!(server.step(&right).unwrap_err().to_string().contains("ended"));
        assert!(server.step(b"").is_err());
    }
}

// rows: U-18
#[test]
fn tokens_longer_than_the_jdks_limits_are_refused() {
    let mut server = of_clients("bob", "secret");
    challenge(&mut server);
    assert!(server.step(&[b','; 4097]).unwrap_err().to_string().contains("4097 bytes"));
    let mut client = client(Service::CLIENTS, "bob", "secret");
    assert!(client.step(&[b','; 2049]).unwrap_err().to_string().contains("2049 bytes"));
}

// rows: U-18
#[test]
fn authzid_of_another_user_is_ignored_for_clients_and_refused_between_servers() {
    let asks_for = |service: Service, accounts: Accounts| {
        let mut server = server(accounts);
        let challenge = challenge(&mut server);
        let token = client(service, "bob", "secret").step(&challenge).unwrap().unwrap();
        // A response that is right for the name that it asks for.
        let token = with_authzid(service, &token, "root");
        server.step(&token)
    };
    let accounts = users(&[("bob", "secret"), ("root", "x")]);
    match asks_for(Service::CLIENTS, Accounts::of_clients(&accounts, None)) {
        Ok(Step::Done { authorization, .. }) => assert_eq!(authorization, "bob"),
        other => panic!("{other:?}"),
    }
    let refusal = asks_for(Service::QUORUM, Accounts::of_servers(&accounts)).unwrap_err();
    assert_eq!(refusal.to_string(), "user \"bob\" asks for another name");
}

/// Bob's token, computed anew for another authzid, as a client with bob's password can.
fn with_authzid(service: Service, token: &[u8], authzid: &str) -> Vec<u8> {
    use md5::{Digest, Md5};
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let (nonce, cnonce) = (value(token, ",nonce"), value(token, "cnonce"));
    let user = Md5::digest(format!("bob:{}:secret", service.server));
    let session = [&user[..], format!(":{nonce}:{cnonce}:{authzid}").as_bytes()].concat();
    let session = hex(&Md5::digest(session));
    let uri = format!("{}/{}", service.protocol, service.server);
    let action = hex(&Md5::digest(format!("AUTHENTICATE:{uri}")));
    let response = hex(&Md5::digest(format!("{session}:{nonce}:00000001:{cnonce}:auth:{action}")));
    let text = String::from_utf8(token.to_vec()).unwrap();
    let text = text.replace(&value(token, "response"), &response);
    text.replace("authzid=\"bob\"", &format!("authzid=\"{authzid}\"")).into_bytes()
}

// rows: U-21 C-215
#[test]
fn super_password_replaces_only_the_password_of_user_super() {
    let (own, set) = ("own", secret("set"));
    let accepts = |user: &str, password: &str, listed: &[(&str, &str)]| {
        let mut server = server(Accounts::of_clients(&users(listed), Some(&set)));
        let challenge = challenge(&mut server);
        let token = client(Service::CLIENTS, user, password).step(&challenge).unwrap().unwrap();
        server.step(&token).is_ok()
    };
    let listed = [("super", own), ("bob", own)];
    assert!(accepts("super", "set", &listed) && !accepts("super", own, &listed));
    assert!(accepts("bob", own, &listed) && !accepts("bob", "set", &listed));
    assert!(!accepts("super", "set", &[("bob", own)]), "without an entry there is no such user");
}

// rows: Q-113
#[test]
fn client_refuses_a_server_that_does_not_know_the_password() {
    let mut server = of_clients("bob", "other");
    let mut client = client(Service::CLIENTS, "bob", "secret");
    let _response = client.step(&challenge(&mut server)).unwrap();
    let refusal = client.step(b"rspauth=00000000000000000000000000000000").unwrap_err();
    assert!(refusal.to_string().contains("has not shown"));
    assert!(client.step(b"").unwrap_err().to_string().contains("ended"));
    for token in ["", "rspauth", "response=1"] {
        let mut again = self::client(Service::CLIENTS, "bob", "secret");
        again.step(&challenge(&mut of_clients("bob", "secret"))).unwrap();
        assert!(again.step(token.as_bytes()).is_err(), "{token}");
    }
}

// rows: Q-113
#[test]
fn client_refuses_challenges_that_the_jdks_refuses() {
    let responds = |challenge: &str| {
        client(Service::CLIENTS, "bé", "secret").step(challenge.as_bytes()).ok().flatten()
    };
    let text = |challenge: &str| {
        responds(challenge).map(|token| String::from_utf8_lossy(&token).into_owned())
    };
    for challenge in [
        "",
        "nonce=\"n\"",
        "algorithm=md5-sess",
        "nonce=\"n\",algorithm=md5",
        "nonce=\"n\",algorithm=md5-sess,charset=utf8",
        "nonce=\"n\",algorithm=md5-sess,qop=\"auth-int,auth-conf\"",
        "nonce=\"n\",algorithm=md5-sess,realm=a,realm=b",
        "nonce=\"n\",nonce=\"n\",algorithm=md5-sess",
        "nonce=\"n\",algorithm=md5-sess,maxbuf=x",
        "nonce=\"n",
    ] {
        assert_eq!(text(challenge), None, "{challenge}");
    }
    let plain = text("nonce=\"n\",algorithm=md5-sess,qop=\"auth-int, auth\",stale=x").unwrap();
    assert!(plain.starts_with("username=\"b\u{fffd}\",nonce=\"n\""), "Latin-1, no realm: {plain}");
    let plain = text("charset=utf-8,realm=\"a\\\"b\",nonce=\"n\",algorithm=md5-sess").unwrap();
    assert!(plain.starts_with("charset=utf-8,username=\"bé\",realm=\"a\\\"b\","), "{plain}");
}
