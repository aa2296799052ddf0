//! The crate zookeeper-client, driven by commands on stdin. `class Worker` in `workers.py` describes them.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, BufReader};
use zookeeper_client::{
    Acls, Client, CreateMode, Error, EventType, LockOptions, LockPrefix, MultiWriteError, OneshotWatcher,
    OwnedLockClient, SaslOptions, SessionState, TlsOptions,
};

/// The state kept from command to command.
#[derive(Default)]
struct Work {
    client: Option<Client>,
    locks: Vec<OwnedLockClient>,
    /// Other clients hold one watch per path and kind; here each read has its own, and dropping one removes it.
    watched: Arc<Mutex<HashSet<String>>>,
}

fn say(kind: &str, text: &str) {
    println!("{kind} {text}");
}

/// ZooKeeper's error number where the scenarios expect one, else the error's text.
fn code(error: &Error) -> String {
    let number = match error {
        Error::ConnectionLoss => -4,
        Error::NoNode => -101,
        Error::NoAuth => -102,
        Error::BadVersion => -103,
        Error::NoChildrenForEphemerals => -108,
        Error::NodeExists => -110,
        Error::NotEmpty => -111,
        _ => return error.to_string(),
    };
    number.to_string()
}

fn version(word: &str) -> Option<i32> {
    word.parse().ok().filter(|version| *version >= 0)
}

fn watch(work: &Work, kind: &str, path: &str, watcher: OneshotWatcher) {
    let key = format!("{kind} {path}");
    let watched = work.watched.clone();
    if !watched.lock().unwrap().insert(key.clone()) {
        return;
    }
    tokio::spawn(async move {
        let event = watcher.changed().await;
        watched.lock().unwrap().remove(&key);
        let number = match event.event_type {
            EventType::NodeCreated => 1,
            EventType::NodeDeleted => 2,
            EventType::NodeDataChanged => 3,
            EventType::NodeChildrenChanged => 4,
            _ => return,
        };
        say("event", &format!("{number} {}", event.path));
    });
}

/// * `folder`: has the certificates.
fn tls(folder: &str) -> Result<TlsOptions, Error> {
    let file = |name: &str| std::fs::read_to_string(format!("{folder}/{name}")).expect("a certificate or a key");
    TlsOptions::new().with_pem_ca(&file("trust.pem"))?.with_pem_identity(&file("client.pem"), &file("client.key"))
}

async fn connect(address: &str, timeout_ms: &str) -> Result<Client, Error> {
    let timeout = Duration::from_millis(timeout_ms.parse().expect("milliseconds"));
    let mut connector = Client::connector().with_session_timeout(timeout);
    // User and password of DIGEST-MD5.
    if let Ok(login) = std::env::var("SASL_LOGIN") {
        let (user, password) = login.split_once(':').expect("a colon");
        connector = connector.with_sasl(SaslOptions::digest_md5(user.to_owned(), password.to_owned()));
    }
    let client = match std::env::var("TLS_CERTIFICATES") {
        Ok(folder) => connector.with_tls(tls(&folder)?).secure_connect(address).await?,
        Err(_) => connector.connect(address).await?,
    };
    let mut states = client.state_watcher();
    say("state", "SyncConnected");
    states.state();
    tokio::spawn(async move {
        loop {
            let connected = states.changed().await == SessionState::SyncConnected;
            say("state", if connected { "SyncConnected" } else { "Disconnected" });
        }
    });
    Ok(client)
}

/// One multi: checks the version, sets the data, creates a child and deletes it.
async fn multi(client: &Client, path: &str, version: &str) -> Result<(), Error> {
    let child = format!("{path}/m");
    let mut writer = client.new_multi_writer();
    writer.add_check_version(path, version.parse().expect("a version"))?;
    writer.add_set_data(path, b"multi", None)?;
    writer.add_create(&child, b"", &CreateMode::Persistent.with_acls(Acls::anyone_all()))?;
    writer.add_delete(&child, None)?;
    match writer.commit().await {
        Ok(_) => Ok(()),
        Err(MultiWriteError::RequestFailed { source } | MultiWriteError::OperationFailed { source, .. }) => Err(source),
    }
}

async fn answer(work: &mut Work, words: &[&str]) -> Result<String, Error> {
    if let ["connect", address, timeout_ms] = words {
        work.client = Some(connect(address, timeout_ms).await?);
        return Ok(String::new());
    }
    let Some(client) = work.client.clone() else { return Err(Error::ClientClosed) };
    Ok(match words {
        ["session"] => format!("{:x}", client.session_id().0),
        ["create", mode, path, data] => {
            use CreateMode::{Ephemeral, EphemeralSequential, Persistent, PersistentSequential};
            let modes = [Persistent, Ephemeral, PersistentSequential, EphemeralSequential];
            let mode = modes[mode.parse::<usize>().expect("a mode")];
            let (_, sequence) = client.create(path, data.as_bytes(), &mode.with_acls(Acls::anyone_all())).await?;
            match mode {
                Persistent | Ephemeral => path.to_string(),
                _ => format!("{path}{sequence}"),
            }
        }
        ["create-own", path, data] => {
            client.create(path, data.as_bytes(), &CreateMode::Persistent.with_acls(Acls::creator_all())).await?;
            String::new()
        }
        ["whoami"] => {
            let mut users: Vec<String> =
                client.list_auth_users().await?.iter().map(|user| format!("{}:{}", user.scheme(), user.user())).collect();
            users.sort();
            users.join(",")
        }
        ["get", path] => {
            let (data, stat, watcher) = client.get_and_watch_data(path).await?;
            watch(work, "data", path, watcher);
            format!("{} {} {:x}", String::from_utf8_lossy(&data), stat.version, stat.ephemeral_owner)
        }
        ["exists", path] => {
            let (stat, watcher) = client.check_and_watch_stat(path).await?;
            watch(work, if stat.is_some() { "data" } else { "exists" }, path, watcher);
            stat.map(|_| String::new()).ok_or(Error::NoNode)?
        }
        ["set", path, data, expected] => {
            client.set_data(path, data.as_bytes(), version(expected)).await?.version.to_string()
        }
        ["children", path] => {
            let (mut names, watcher) = client.list_and_watch_children(path).await?;
            watch(work, "children", path, watcher);
            names.sort();
            names.join(",")
        }
        ["delete", path, expected] => client.delete(path, version(expected)).await.map(|()| String::new())?,
        ["multi", path, expected] => multi(&client, path, expected).await.map(|()| String::new())?,
        ["sync", path] => client.sync(path).await.map(|()| String::new())?,
        ["lock", path] => {
            let all = Acls::anyone_all();
            let options = LockOptions::new(all).with_ancestor_options(CreateMode::Persistent.with_acls(all))?;
            work.locks.push(client.lock(LockPrefix::new_curator(path, "lock-")?, b"", options).await?.into_owned());
            String::new()
        }
        ["close"] => {
            work.locks.clear();
            work.client = None; // Dropping the last clone closes the session.
            String::new()
        }
        _ => panic!("unknown command {words:?}"),
    })
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::io::Result<()> {
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let mut work = Work::default();
    while let Some(line) = lines.next_line().await? {
        let words: Vec<&str> = line.split(' ').collect();
        match answer(&mut work, &words).await {
            Ok(text) => say("ok", &text),
            Err(error) => say("error", &code(&error)),
        }
    }
    Ok(())
}
