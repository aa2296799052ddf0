//! `oxkeeper bench` against an oxkeeper server, both as they ship: its table, its picture, its JSON, its errors and its znodes.
#![allow(clippy::disallowed_methods, reason = "it starts processes and waits for them")]

mod server_process;

use common::ports::free_port;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use server_process::{OXKEEPER, Process};
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn bench(server: &Process, arguments: &[&str]) -> Output {
    let mut command = Command::new(OXKEEPER);
    command.args(["bench", "--server", &server.addr.to_string()]).args(arguments);
    command.output().expect("the bench runs")
}

fn text(bytes: &[u8]) -> &str {
    str::from_utf8(bytes).expect("UTF-8")
}

#[test]
fn bench_prints_a_table_writes_a_chart_and_deletes_its_znodes() {
    let dir = tempfile::tempdir().expect("a folder");
    let server = Process::start(dir.path(), "maxClientCnxns=0");
    let picture = dir.path().join("picture.svg");
    let mut arguments =
        vec!["--mix", "get=4,exists=1,list=1,set=1,create=2,delete=1", "--keys", "250"];
    arguments.extend(["--duration", "1s", "--warm-up", "200ms", "-c", "5", "-f", "4", "--picture"]);
    arguments.push(picture.to_str().expect("a plain path"));
    let output = bench(&server, &arguments);
    assert!(output.status.success(), "{output:?}");
    let table = text(&output.stdout);
    let rows: Vec<Vec<&str>> =
        table.lines().map(|line| line.split_whitespace().collect()).collect();
    for name in ["get", "exists", "list", "set", "create", "delete", "all"] {
        let row = rows.iter().find(|row| row.first() == Some(&name)).expect("a row for each");
        assert!(row[2] != "0" && row[3] == "0", "{table}");
    }
    let progress = text(&output.stderr);
    assert!(progress.contains("warm-up  ") && progress.contains("    1 s  "), "{progress}");
    let svg = std::fs::read_to_string(picture).expect("a picture");
    assert!(svg.starts_with("<svg ") && svg.contains("Throughput"), "{svg}");
    assert_eq!(server.client().children("/"), ["zookeeper"], "the bench's znodes are left");
}

#[test]
fn bench_with_a_rate_sends_no_more_and_prints_json() {
    let dir = tempfile::tempdir().expect("a folder");
    let server = Process::start(dir.path(), "maxClientCnxns=0");
    let mut arguments = vec!["--mix", "get", "--keys", "10", "--rate", "200", "--duration", "1s"];
    arguments.extend(["--warm-up", "0s", "--connections", "4", "--json", "--keep"]);
    let output = bench(&server, &arguments);
    assert!(output.status.success(), "{output:?}");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    // 4 connections, a request each 20 ms. Fewer when the machine stalls at the end, but never more.
    let count = json["all"]["count"].as_u64().expect("a count");
    assert!((1..=200).contains(&count), "{json}");
    assert_eq!((&json["mix"], &json["connections_lost"]), (&"get".into(), &0.into()));
    assert!(json["all"]["p50_us"].as_u64() <= json["all"]["p999_us"].as_u64());
    let names = server.client().children("/");
    assert!(names.iter().any(|name| name.starts_with("oxkeeper-bench-")), "{names:?}");
}

/// Writes `ca.pem`, `server.pem` with its key, and `client.pem` and `client.key`.
fn certificates(folder: &Path) {
    let key = || KeyPair::generate().expect("a key");
    let params = |name: &str| {
        let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("an address");
        params.distinguished_name.push(DnType::CommonName, name);
        params
    };
    let (mut ca, ca_key) = (params("ca"), key());
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let write = |name: &str, text: String| std::fs::write(folder.join(name), text).expect("a file");
    write("ca.pem", ca.self_signed(&ca_key).expect("a certificate").pem());
    let issuer = Issuer::new(ca, ca_key);
    let [server, client] = ["server", "client"].map(|name| {
        let key = key();
        let leaf = params(name).signed_by(&key, &issuer).expect("a certificate").pem();
        (leaf, key.serialize_pem())
    });
    write("server.pem", server.0 + &server.1);
    write("client.pem", client.0);
    write("client.key", client.1);
}

#[test]
fn bench_connects_with_tls_and_authenticates() {
    let dir = tempfile::tempdir().expect("a folder");
    let at = |name: &str| dir.path().join(name).display().to_string();
    certificates(dir.path());
    std::fs::write(at("password"), "secret\n").expect("a file");
    let jaas = "Server { org.apache.zookeeper.server.auth.DigestLoginModule required user_bob=\"secret\"; };";
    std::fs::write(at("jaas.conf"), jaas).expect("a file");
    let secure = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
    let server = Process::start_with_flags(
        dir.path(),
        &format!(
            "maxClientCnxns=0\nsecureClientPort={}\nssl.keyStore.location={}\nssl.trustStore.location={}\n\
             authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider\n\
             sessionRequireClientSASLAuth=true",
            secure.port(),
            at("server.pem"),
            at("ca.pem")
        ),
        &format!("-Djava.security.auth.login.config={}", at("jaas.conf")),
    );
    let of = |addr: String, arguments: &[String]| {
        let mut command = Command::new(OXKEEPER);
        command.args(["bench", "--server", &addr, "--keys", "10", "--duration", "500ms"]);
        command.args(["--warm-up", "0s", "-c", "3", "-f", "4", "--json"]).args(arguments);
        command.output().expect("bench runs")
    };
    let sasl = ["--sasl-user", "bob", "--sasl-password-file"].map(str::to_owned);
    let sasl = [&sasl[..], &[at("password")]].concat();
    let trust = ["--tls-ca".to_owned(), at("ca.pem")];
    let own = ["--tls-cert".to_owned(), at("client.pem"), "--tls-key".to_owned(), at("client.key")];
    for (addr, arguments) in
        [(secure, [&trust[..], &own, &sasl].concat()), (server.addr, sasl.clone())]
    {
        let output = of(addr.to_string(), &arguments);
        assert!(output.status.success(), "{output:?}");
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert!(json["all"]["count"].as_u64() > Some(0), "{json}");
        assert!(json["version"].is_string(), "{json}");
    }
    for (addr, arguments, why) in [
        (secure.to_string(), [&trust[..], &own].concat(), "prepare znodes on"),
        (secure.to_string(), [&trust[..], &sasl].concat(), "give --tls-cert and --tls-key"),
        (secure.to_string(), sasl.clone(), "is it a TLS port? give --tls-ca"),
        (
            format!("localhost:{}", secure.port()),
            [&trust[..], &own, &sasl].concat(),
            "is for 127.0.0.1, and the peer is localhost",
        ),
        (server.addr.to_string(), [&trust[..], &own].concat(), "TLS: "),
        (server.addr.to_string(), own[..2].to_vec(), "--tls-ca"),
        (server.addr.to_string(), sasl[..2].to_vec(), "--sasl-password-file"),
    ] {
        let output = of(addr, &arguments);
        let said = text(&output.stderr);
        assert!(!output.status.success() && said.contains(why), "{arguments:?}: {said}");
        assert!(!said.contains("secret"), "{said}");
    }
    std::fs::write(at("password"), "wrong").expect("a file");
    let output = of(server.addr.to_string(), &sasl);
    assert!(text(&output.stderr).contains("SASL as bob: "), "{output:?}");
}

#[test]
fn bench_errors_name_the_cause() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let addr = listener.local_addr().expect("its address");
    let of = |server: &str, mix: &str| {
        let mut command = Command::new(OXKEEPER);
        command.args(["bench", "--server", server, "--mix", mix]).output().expect("bench runs")
    };
    for (server, why) in [
        ("nowhere", "server nowhere has no port; write it as host:port, such as nowhere:2181"),
        ("127.0.0.1:99999", "server 127.0.0.1:99999: what follows its last colon is not a port"),
        ("nowhere.invalid:1", "server nowhere.invalid:1: no such host is known"),
    ] {
        let wrong = of(server, "get");
        assert!(!wrong.status.success() && text(&wrong.stderr).contains(why), "{wrong:?}");
    }
    let wrong = of("127.0.0.1:1", "fetch");
    assert!(text(&wrong.stderr).contains("`fetch` is not an operation"), "{wrong:?}");
    // A server that speaks another protocol.
    let other = std::thread::spawn(move || {
        let (mut peer, _) = listener.accept().expect("the bench comes");
        peer.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").expect("it listens");
        let _until_it_goes = std::io::Read::read_to_end(&mut peer, &mut Vec::new());
    });
    let wrong = of(&addr.to_string(), "get");
    let said = text(&wrong.stderr);
    assert!(
        !wrong.status.success() && said.contains(&format!("connect to {addr}: frame length")),
        "{said}"
    );
    other.join().expect("it heard the end");
    // The picture's path is checked before the bench connects.
    let mut command = Command::new(OXKEEPER);
    command.args(["bench", "--server", "127.0.0.1:1", "--picture", "/no/such/folder/p.svg"]);
    let wrong = command.output().expect("bench runs");
    let said = text(&wrong.stderr);
    assert!(!wrong.status.success() && !said.contains("127.0.0.1:1"), "{said}");
    assert!(said.contains("write picture /no/such/folder/p.svg: No such file"), "{said}");
    let wrong = of(&addr.to_string(), "get");
    let said = text(&wrong.stderr);
    assert!(said.contains(&format!("connect to {addr}: Connection refused")), "{said}");
}

/// The server closes these connections without an answer.
#[test]
fn bench_names_the_limits_of_the_server_that_it_meets() {
    let dir = tempfile::tempdir().expect("a folder");
    let server = Process::start(dir.path(), "maxClientCnxns=2");
    let refused = |arguments: &[&str], why: &str| {
        let output = bench(&server, &[&["--keys", "2", "--duration", "100ms"], arguments].concat());
        let said = text(&output.stderr);
        assert!(!output.status.success() && said.contains(why), "{said}");
    };
    refused(&["--connections", "3"], " of 3 at once: raise its maxClientCnxns or maxCnxns");
    refused(
        &["--value-size", "1100000", "-c", "1"],
        "of 1100000 B were created: raise its jute.maxbuffer",
    );
}

/// The bench reports the lost connections, and goes on.
#[test]
fn bench_goes_on_after_its_server_is_killed_and_restarted() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut server = Process::start(dir.path(), "maxClientCnxns=0");
    let mut command = Command::new(OXKEEPER);
    command.args(["bench", "--server", &server.addr.to_string(), "--mix", "set", "--keys", "10"]);
    command.args(["--duration", "4s", "--warm-up", "0s", "-c", "3", "-f", "2", "--json"]);
    let mut bench =
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("bench runs");
    let mut progress = BufReader::new(bench.stderr.take().expect("a pipe")).lines();
    assert!(
        progress.any(|line| line.expect("UTF-8").starts_with("    1 s")),
        "a second has passed"
    );
    server.kill_and_restart();
    progress.for_each(drop); // Drained, so that the bench does not block on a full pipe.
    let output = bench.wait_with_output().expect("it ends");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(json["connections_lost"], 3, "{json}");
    assert_eq!((&json["sessions_expired"], output.status.success()), (&0.into(), false), "{json}");
    assert!(json["all"]["count"].as_u64() > Some(0), "{json}");
}

#[test]
fn bench_names_the_parent_that_is_missing() {
    let dir = tempfile::tempdir().expect("a folder");
    let server = Process::start(dir.path(), "maxClientCnxns=0");
    let output = bench(&server, &["--under", "/nope", "--keys", "1"]);
    let errors = text(&output.stderr);
    assert!(
        !output.status.success() && errors.contains("/nope does not exist: create it"),
        "{errors}"
    );
}
