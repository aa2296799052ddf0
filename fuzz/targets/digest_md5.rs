//! Any bytes as a token of DIGEST-MD5, at each place of both halves: it is refused with a reason or understood, an exchange ends with its
//! first response, and the authenticated user is the one whose password was shown.

use oxkeeper::auth::digest_md5::{Accounts, Client, NONCE_BYTES, Server, Service};
use oxkeeper::auth::sasl::{Mechanism, Step};
use oxkeeper::model::Secret;
use std::sync::Arc;

const NONCE: [u8; NONCE_BYTES] = [0; NONCE_BYTES];

fn users() -> [(String, Arc<Secret>); 1] {
    [("bob".to_owned(), Arc::new(Secret::new(b"secret".to_vec())))]
}

fn client(service: Service) -> Client {
    let [(user, password)] = users();
    Client::new(service, user, password, NONCE)
}

/// A server, and its challenge.
fn server(service: Service) -> (Server, Vec<u8>) {
    let accounts = match service == Service::CLIENTS {
        true => Accounts::of_clients(&users(), None),
        false => Accounts::of_servers(&users()),
    };
    let mut server = Server::new(Arc::new(accounts), NONCE);
    let Ok(Step::Challenge(challenge)) = server.step(b"") else { panic!("a challenge") };
    (server, challenge)
}

pub fn target(input: &[u8]) {
    let Some((kind, token)) = input.split_first() else { return };
    let service = if kind & 1 == 0 { Service::CLIENTS } else { Service::QUORUM };
    match kind >> 1 & 3 {
        0 => {
            let (mut server, _) = server(service);
            match server.step(token) {
                Ok(Step::Done { authorization, .. }) => assert_eq!(authorization, "bob"),
                Ok(Step::Challenge(_)) => panic!("there is one challenge"),
                Err(refusal) => assert!(!refusal.to_string().contains("secret")),
            }
            assert!(server.step(token).is_err(), "the exchange has ended");
        }
        1 => {
            let mut client = client(service);
            let Ok(answer) = client.step(token) else { return };
            let response = answer.expect("a response, since the server has proved nothing yet");
            // Another server takes it only if its nonce was in the challenge.
            let (mut server, _) = server(service);
            let _judged = server.step(&response);
        }
        _ => {
            let (mut server, challenge) = server(service);
            let mut client = client(service);
            let response =
                client.step(&challenge).expect("an honest challenge").expect("a response");
            let Ok(Step::Done { token: Some(last), .. }) = server.step(&response) else {
                panic!("an honest response")
            };
            if client.step(token).is_ok() {
                assert!(token.windows(last.len() - 8).any(|part| part == &last[8..]));
            }
        }
    }
}
