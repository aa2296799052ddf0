//! Any bytes as the JAAS file of a member with SASL for clients and between servers: accepted, or refused with a message.

use oxkeeper::config::{Environment, Launch, Settings, load_from};
use std::io;
use std::path::Path;

const ZOO: &str = "dataDir=/d\nclientPort=2181\ninitLimit=5\nsyncLimit=2\nserver.1=a:1:2\nserver.2=b:1:2\n\
    quorum.auth.enableSasl=true\nquorum.auth.learner.saslLoginContext=L\nquorum.auth.server.saslLoginContext=S\n\
    sasl.serverconfig=C\n";

pub fn target(input: &[u8]) {
    let read = |path: &Path| match path.to_str() {
        Some("/zoo.cfg") => Ok(ZOO.as_bytes().to_vec()),
        Some("/d/myid") => Ok(b"1".to_vec()),
        Some("/jaas") => Ok(input.to_vec()),
        _ => Err(io::ErrorKind::NotFound.into()),
    };
    let flags = vec!["-Djava.security.auth.login.config=/jaas".to_owned()];
    let launch = Launch { settings: Settings::File("/zoo.cfg".into()), flags };
    match load_from(&read, &launch, &Environment::new()) {
        Ok(config) => assert!(config.client_sasl.is_some() && config.quorum_sasl.is_some()),
        Err(error) => {
            let text = error.to_string();
            assert!(text.lines().all(|line| !line.trim().is_empty()), "a refusal has a message");
        }
    }
}
